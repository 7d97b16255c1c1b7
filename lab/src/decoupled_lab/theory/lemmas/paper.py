"""The paper's lemmas about one state: 3.5, 3.6 and D.1 to D.3, and equations (17) and (21)."""

import math
from collections.abc import Iterator

import numpy as np
from scipy.special import beta, betainc

from ..bounds.constants import LEAST_OFF_EVENT
from ..bounds.paper import (
    first_round_constant,
    penalty_constant,
    stability_constant,
    surrogate_sum_bound,
)
from ..inequality import AS_PRINTED, CORRECTED, NOT_CLAIMED, Inequality, Sides
from ..moment import Moment

UPPER = Inequality("w <= (1 + eta u)^-alpha", "lemma D.2")
LOWER = Inequality("on D_t: w >= (1 + eta u)^-alpha / (2 e^2)", "lemma D.2", CORRECTED)
LOWER_PRINTED = Inequality("on D_t with <=: w >= (1 + eta u)^-alpha / (2 e^2)", "lemma D.2")
BEST = Inequality("on D_t: w_best >= 1 / (2 e)", "lemma D.2", CORRECTED)
BEST_PRINTED = Inequality("on D_t with <=: w_best >= 1 / (2 e)", "lemma D.2", AS_PRINTED)
OFF = Inequality("off D_t: 1 - w_best >= (1 - e^-0.5) / 2", "lemma D.3", CORRECTED)
OFF_PRINTED = Inequality("off D_t with <=: 1 - w_best >= (1 - e^-0.5) / 2", "lemma D.3")

LEAST_BEST = 0.5 / math.e


def probability_sides(moment: Moment) -> Iterator[Sides]:
    """All steps of lemmas D.2 and D.3.

    The paper prints D_t with <= 1/2. With two arms and the rival ahead, the sum is exactly 1/2, so the event
    holds and the bound on the best arm fails. With < 1/2 the best arm must lead. The rest holds either way.
    """
    law, arms = moment.moments.law, np.arange(moment.arms)
    bound = (1.0 + moment.shifts) ** -moment.alpha
    yield Sides(UPPER, law, bound, arms)
    others = moment.others
    lost = float(law[others].sum())  # 1 - w_best, without cancellation
    for on_event, lower, best, off in (
        (moment.on_event, LOWER, BEST, OFF),
        (moment.on_event_as_printed, LOWER_PRINTED, BEST_PRINTED, OFF_PRINTED),
    ):
        if on_event:
            yield Sides(lower, bound[others] / (2.0 * math.e**2), law[others], arms[others])
            yield Sides(best, LEAST_BEST, law[moment.best], moment.best)
        else:
            yield Sides(off, LEAST_OFF_EVENT, lost)


SUM = Inequality("sum q <= 2 alpha / (alpha - 1) K^(1/2 - 1/(2 alpha))", "equation (17)")
RANKS = Inequality("sum q <= sum_i i^(-1/2 - 1/(2 alpha))", "equation (17)")
BY_WEIGHTS = Inequality("on D_t: q <= (2 e^2 w)^(1/2 + 1/(2 alpha))", "equation (21)")
EXPONENT_PRINTED = Inequality(
    "on D_t: (2 e^2 w)^(1/2 + 1/(2 alpha)) <= (2 e^2 w)^(1 - 1/alpha)", "equation (21)", AS_PRINTED
)
EXPONENT = Inequality(
    "(1 + eta u)^(-(alpha + 1)/2) <= (1 + eta u)^(1 - alpha)", "equation (21)", CORRECTED
)
LAST = Inequality("on D_t: q <= (2 e^2 w)^(1 - 1/alpha)", "equation (21)")
LAST_BEYOND = Inequality(
    "on D_t, alpha > 3: q <= (2 e^2 w)^(1 - 1/alpha)", "equation (21)", NOT_CLAIMED
)


def exploration_sides(moment: Moment) -> Iterator[Sides]:
    """All steps of equations (17) and (21).

    The middle step of (21) lowers an exponent, which needs a base of at most 1. But 2 e^2 w exceeds 1 wherever
    w > 0.068. Lowering the exponent of (1 + eta u)^-alpha first, whose base is at most 1, gives the same result.
    """
    alpha, arms = moment.alpha, np.arange(moment.arms)
    yield Sides(SUM, moment.surrogate_sum, surrogate_sum_bound(moment.arms, alpha))
    yield Sides(RANKS, moment.surrogate_sum, float(((arms + 1.0) ** (-0.5 - 0.5 / alpha)).sum()))
    if not moment.on_event:
        return
    others = moment.others
    scaled = 2.0 * math.e**2 * moment.moments.law[others]
    q, first, last = (
        moment.surrogates[others],
        scaled ** (0.5 + 0.5 / alpha),
        scaled ** (1.0 - 1.0 / alpha),
    )
    yield Sides(BY_WEIGHTS, q, first, arms[others])
    if alpha <= 3.0:
        base = 1.0 + moment.shifts[others]
        yield Sides(EXPONENT_PRINTED, first, last, arms[others])
        yield Sides(EXPONENT, base ** (-0.5 * (alpha + 1.0)), base ** (1.0 - alpha), arms[others])
    yield Sides(LAST if alpha <= 3.0 else LAST_BEYOND, q, last, arms[others])


LOSERS = Inequality("E[r_winner - r_best] <= E[r_winner; best loses]", "lemma 3.5")
GAPS = Inequality(
    "E[r_winner - r_best] <= alpha / (alpha - 1) sum (1 + eta u)^(1 - alpha)", "lemma 3.5"
)
UNIFORM = Inequality("E[r_winner - r_best] <= C_alpha K^(1/alpha)", "lemma 3.5")
SHARPER = Inequality("E[r_winner - r_best] <= C_alpha K^(1/alpha) - alpha", "lemma 3.5, its proof")
FIRST = Inequality(
    "t = 1: E[r_winner - r_best] <= alpha Gamma(1 - 1/alpha) / (alpha - 1) K^(1/alpha)",
    "equation (18)",
)
ROOTS_PRINTED = Inequality(
    "sqrt(t) - sqrt(t - 1) <= 1 / (2 sqrt(t))", "the display above (24)", AS_PRINTED
)
ROOTS = Inequality(
    "sqrt(t) - sqrt(t - 1) <= sqrt(2) / (2 sqrt(t))", "the display above (24)", CORRECTED
)


def penalty(moment: Moment) -> float:
    """E[r_winner - r_best], from the draws of the arms that beat the best one and its own draws when it loses."""
    prizes, others = moment.moments.prizes, moment.others
    mean = moment.alpha / (moment.alpha - 1.0)
    return float(prizes[others].sum()) - (mean - float(prizes[moment.best]))


def penalty_sides(moment: Moment) -> Iterator[Sides]:
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
        yield Sides(ROOTS_PRINTED, step, 0.5 / math.sqrt(moment.round))
        yield Sides(ROOTS, step, math.sqrt(0.5 / moment.round))


SLOPE = Inequality("-phi' <= alpha (alpha + 1) I", "lemma 3.6, its proof", CORRECTED)
SLOPE_PRINTED = Inequality("alpha (alpha + 1) I <= -phi'", "lemma 3.6, its proof", AS_PRINTED)
STEP = Inequality("w - w moved by eta / p <= eta / p alpha (alpha + 1) I", "lemma 3.6, its proof")
BETA = Inequality("I <= B((1 + eta u)^-alpha; 1 + 1/alpha, rank) / alpha", "lemma 3.6, its proof")
RANK = Inequality("I <= e / (alpha rank^(1 + 1/alpha))", "equation (13)")
GAP_PRINTED = Inequality("I <= e / ((alpha + 1) (1 + eta u) rank)", "equation (14)")
USE_PRINTED = Inequality(
    "where the gap binds: 1 / ((1 + eta u) rank) <= q^2", "below equation (14)", AS_PRINTED
)
GAP = Inequality("I <= e / ((alpha + 1) (1 + eta u)^(alpha + 1))", "equation (14)", CORRECTED)
USE = Inequality(
    "where the gap binds: (1 + eta u)^-(alpha + 1) <= q^2", "below equation (14)", CORRECTED
)
STABILITY = Inequality("stability of an arm <= e (alpha + 1) eta sum q q_i", "lemma 3.6")
ROUND = Inequality(
    "stability of a round <= 4 c alpha^2 (alpha + 1) e / (alpha - 1)^2 sqrt(K / t)", "equation (15)"
)


def stability_sides(moment: Moment) -> Iterator[Sides]:
    """All steps of lemma 3.6; I is the integral that the paper calls I_{i, alpha + 2}.

    The paper's phi' is the derivative, except for an arm that leads alone, whose slope is flatter. The second
    bound on I drops the factor min(1, rank / (1 + eta u)^alpha) of the incomplete gamma function. The result is
    true but useless, because q^2 is smaller where the gap binds.
    """
    alpha, arms, eta = moment.alpha, np.arange(moment.arms), moment.eta
    ranks, level = moment.ranks.astype(np.float64), 1.0 + moment.shifts
    inverses = moment.moments.inverses
    integral = inverses / alpha
    yield Sides(SLOPE, -moment.moments.slopes, (alpha + 1.0) * inverses, arms)
    yield Sides(SLOPE_PRINTED, (alpha + 1.0) * inverses, -moment.moments.slopes, arms)
    yield Sides(STEP, moment.stability, eta / moment.exploration * (alpha + 1.0) * inverses, arms)
    shape = 1.0 + 1.0 / alpha
    yield Sides(
        BETA, integral, betainc(shape, ranks, level**-alpha) * beta(shape, ranks) / alpha, arms
    )
    yield Sides(RANK, integral, math.e / (alpha * ranks**shape), arms)
    yield Sides(GAP_PRINTED, integral, math.e / ((alpha + 1.0) * level * ranks), arms)
    binds = level >= ranks ** (1.0 / alpha)
    q = moment.surrogates
    yield Sides(USE_PRINTED, (1.0 / (level * ranks))[binds], q[binds] ** 2, arms[binds])
    yield Sides(GAP, integral, math.e / ((alpha + 1.0) * level ** (alpha + 1.0)), arms)
    yield Sides(USE, (level ** -(alpha + 1.0))[binds], q[binds] ** 2, arms[binds])
    lemma = math.e * (alpha + 1.0) * eta * moment.surrogate_sum * q
    yield Sides(STABILITY, moment.stability, lemma, arms)
    # eta sqrt(t) = c K^(1/alpha - 1/2), so the right side needs neither c nor t.
    bound = 0.5 * stability_constant(alpha, 1.0) * eta * moment.arms ** (1.0 - 1.0 / alpha)
    yield Sides(ROUND, float(moment.stability.sum()), bound)


CASE_ONE = Inequality(
    "on D_t, sum q <= zeta / eta: stability of the best arm <= main term", "lemma D.1, case (i)"
)
TAIL_PRINTED = Inequality(
    "on D_t, sum q > zeta / eta: loss <= resampling tail", "lemma D.1, case (ii)", AS_PRINTED
)
LEMMA_PRINTED = Inequality(
    "on D_t: stability of the best arm <= main term + resampling tail", "lemma D.1"
)
LEMMA = Inequality(
    "on D_t: stability of the best arm <= main term + 1[sum q > zeta / eta]", "lemma D.1", CORRECTED
)


def resampling_tail(level: float) -> float:
    """The bound that lemma D.1 takes from geometric resampling: (1 - 1/e)^(level - 1) (level + e)."""
    return math.pow(1.0 - math.exp(-1.0), level - 1.0) * (level + math.e)


def best_arm_sides(moment: Moment) -> Iterator[Sides]:
    """All steps of lemma D.1, at a loss of 1.

    On D_t the best arm has q = 1, so its estimate grows by loss * sum q whenever it is explored. In case
    (ii), where that exceeds zeta / eta, the expectation on the left of the tail bound is the loss itself.
    There the bound fails as soon as zeta / eta exceeds 5.63. No state is known in which the statement of the
    lemma fails, because its main term is large.
    """
    if not moment.on_event:
        return
    level, power = moment.zeta / moment.eta, moment.alpha + 1.0
    # The sum of q times sum_{i != best} (e - 1) eta alpha / ((1 - zeta)^(alpha + 1) (1 + eta u_i)^(alpha + 1)).
    tails = float(((1.0 + moment.shifts[moment.others]) ** -power).sum())
    rate = (math.e - 1.0) * moment.eta * moment.alpha / math.pow(1.0 - moment.zeta, power)
    main = moment.surrogate_sum * rate * tails
    stability, tail = float(moment.stability[moment.best]), resampling_tail(level)
    second_case = moment.surrogate_sum > level
    if second_case:
        yield Sides(TAIL_PRINTED, 1.0, tail, moment.best)
    else:
        yield Sides(CASE_ONE, stability, main, moment.best)
    yield Sides(LEMMA_PRINTED, stability, main + tail, moment.best)
    yield Sides(LEMMA, stability, main + float(second_case), moment.best)


def edge_of_event(arms: int, alpha: float, zeta: float = 0.1) -> Moment:
    """The worst state for the tail bound: all rivals tied, as close as D_t allows, and zeta / eta just below sum q.

    >>> from decoupled_lab.theory.lemmas.paper import edge_of_event
    >>> moment = edge_of_event(arms=400, alpha=3.0)
    >>> moment.on_event, round(moment.surrogate_sum, 2), round(moment.zeta / moment.eta, 2)
    (True, 5.91, 5.91)
    """
    closest = math.pow(2.0 * (arms - 1.0), 1.0 / alpha) - math.pow(2.0, 1.0 / alpha)
    shifts = np.concatenate(([0.0], np.full(arms - 1, closest * (1.0 + 1e-9))))
    level = Moment(shifts, 1.0, alpha).surrogate_sum * (1.0 - 1e-9)
    eta = zeta / level
    return Moment(shifts / eta, eta, alpha, zeta=zeta)


def sides(moment: Moment) -> Iterator[Sides]:
    """All steps of the paper's lemmas about one state."""
    for group in (
        probability_sides,
        exploration_sides,
        penalty_sides,
        stability_sides,
        best_arm_sides,
    ):
        yield from group(moment)
