"""Lemma 3.5: the penalty term."""

import math
from collections.abc import Iterator

import numpy as np

from ..bounds.adversarial import first_round_constant, penalty_constant
from ..inequality import AS_PRINTED, CORRECTED, Inequality, Sides
from ..moment import Moment

LOSERS = Inequality("E[r_winner - r_best] <= E[r_winner; best loses]", "lemma 3.5")
GAPS = Inequality("E[r_winner - r_best] <= alpha / (alpha - 1) sum (1 + eta u)^(1 - alpha)", "lemma 3.5")
UNIFORM = Inequality("E[r_winner - r_best] <= C_alpha K^(1/alpha)", "lemma 3.5")
SHARPER = Inequality("E[r_winner - r_best] <= C_alpha K^(1/alpha) - alpha", "lemma 3.5, its proof")
FIRST = Inequality(
    "t = 1: E[r_winner - r_best] <= alpha Gamma(1 - 1/alpha) / (alpha - 1) K^(1/alpha)", "equation (18)"
)
STEP_PRINTED = Inequality("sqrt(t) - sqrt(t - 1) <= 1 / (2 sqrt(t))", "the display above (24)", AS_PRINTED)
STEP = Inequality("sqrt(t) - sqrt(t - 1) <= sqrt(2) / (2 sqrt(t))", "the display above (24)", CORRECTED)


def penalty(moment: Moment) -> float:
    """E[r_winner - r_best], from the draws of the arms that beat the best one and its own draws when it loses."""
    prizes, others = moment.moments.prizes, moment.others
    mean = moment.alpha / (moment.alpha - 1.0)
    return float(prizes[others].sum()) - (mean - float(prizes[moment.best]))


def sides(moment: Moment) -> Iterator[Sides]:
    """All steps of lemma 3.5, and the step above (24) that turns the rates of the penalty into 1 / sqrt(t).

    On D_t the paper bounds 1/eta_t - 1/eta_{t-1} by a multiple of 1 / (2 sqrt(t - 1)) and then writes sqrt(t)
    instead. Off D_t it includes the factor sqrt(2) that this step needs.
    """
    alpha, arms, others = moment.alpha, moment.arms, moment.others
    left = penalty(moment)
    tails = (1.0 + moment.shifts[others]) ** (1.0 - alpha)
    uniform = penalty_constant(alpha) * arms ** (1.0 / alpha)
    yield Sides(LOSERS, left, float(moment.moments.prizes[others].sum()))
    yield Sides(GAPS, left, alpha / (alpha - 1.0) * float(tails.sum()))
    yield Sides(UNIFORM, left, uniform)
    yield Sides(SHARPER, left, uniform - alpha)
    if not np.any(moment.gaps):
        yield Sides(FIRST, left, first_round_constant(alpha) * arms ** (1.0 / alpha))
    if moment.round > 1:
        step = math.sqrt(moment.round) - math.sqrt(moment.round - 1.0)
        yield Sides(STEP_PRINTED, step, 0.5 / math.sqrt(moment.round))
        yield Sides(STEP, step, math.sqrt(0.5 / moment.round))
