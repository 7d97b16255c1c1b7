"""Lemma D.1: the stability of the best arm on the event D_t."""

import math
from collections.abc import Iterator

import numpy as np

from ..inequality import AS_PRINTED, CORRECTED, Inequality, Sides
from ..moment import Moment

CASE_ONE = Inequality(
    "on D_t, sum q <= zeta / eta: stability of the best arm <= main term", "lemma D.1, case (i)"
)
TAIL_PRINTED = Inequality(
    "on D_t, sum q > zeta / eta: loss <= resampling tail", "lemma D.1, case (ii)", AS_PRINTED
)
LEMMA_PRINTED = Inequality("on D_t: stability of the best arm <= main term + resampling tail", "lemma D.1")
LEMMA = Inequality(
    "on D_t: stability of the best arm <= main term + 1[sum q > zeta / eta]", "lemma D.1", CORRECTED
)


def resampling_tail(level: float) -> float:
    """The bound that lemma D.1 takes from geometric resampling: (1 - 1/e)^(level - 1) (level + e)."""
    return math.pow(1.0 - math.exp(-1.0), level - 1.0) * (level + math.e)


def main_term(moment: Moment) -> float:
    """The sum of q times sum_{i != best} (e - 1) eta alpha / ((1 - zeta)^(alpha + 1) (1 + eta u_i)^(alpha + 1))."""
    power = moment.alpha + 1.0
    tails = float(((1.0 + moment.shifts[moment.others]) ** -power).sum())
    rate = (math.e - 1.0) * moment.eta * moment.alpha / math.pow(1.0 - moment.zeta, power)
    return moment.surrogate_sum * rate * tails


def sides(moment: Moment) -> Iterator[Sides]:
    """All steps of lemma D.1, at a loss of 1.

    On D_t the best arm has q = 1, so its estimate grows by loss * sum q whenever it is explored. In case
    (ii), where that exceeds zeta / eta, the expectation on the left of the tail bound is the loss itself.
    There the bound fails as soon as zeta / eta exceeds 5.63. No state is known in which the statement of the
    lemma fails, because its main term is large.
    """
    if not moment.on_event:
        return
    level = moment.zeta / moment.eta
    stability, main, tail = float(moment.stability[moment.best]), main_term(moment), resampling_tail(level)
    second_case = moment.surrogate_sum > level
    if second_case:
        yield Sides(TAIL_PRINTED, 1.0, tail, moment.best)
    else:
        yield Sides(CASE_ONE, stability, main, moment.best)
    yield Sides(LEMMA_PRINTED, stability, main + tail, moment.best)
    yield Sides(LEMMA, stability, main + float(second_case), moment.best)


def edge_of_event(arms: int, alpha: float, zeta: float = 0.1) -> Moment:
    """The worst state for the tail bound: all rivals tied, as close as D_t allows, and zeta / eta just below sum q.

    >>> from decoupled_lab.theory.lemmas.best_arm import edge_of_event
    >>> moment = edge_of_event(arms=400, alpha=3.0)
    >>> moment.on_event, round(moment.surrogate_sum, 2), round(moment.zeta / moment.eta, 2)
    (True, 5.91, 5.91)
    """
    closest = math.pow(2.0 * (arms - 1.0), 1.0 / alpha) - math.pow(2.0, 1.0 / alpha)
    shifts = np.concatenate(([0.0], np.full(arms - 1, closest * (1.0 + 1e-9))))
    level = Moment(shifts, 1.0, alpha).surrogate_sum * (1.0 - 1e-9)
    eta = zeta / level
    return Moment(shifts / eta, eta, alpha, zeta=zeta)
