"""Lemma 3.6: the stability term, step by step."""

import math
from collections.abc import Iterator

import numpy as np

from decoupled.base import needed_for

from ..bounds.adversarial import stability_constant
from ..inequality import AS_PRINTED, CORRECTED, Inequality, Sides
from ..moment import Moment

with needed_for("checks of the lemmas"):
    from scipy.special import beta, betainc

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
USE = Inequality("where the gap binds: (1 + eta u)^-(alpha + 1) <= q^2", "below equation (14)", CORRECTED)
LEMMA = Inequality("stability of an arm <= e (alpha + 1) eta sum q q_i", "lemma 3.6")
ROUND = Inequality(
    "stability of a round <= 4 c alpha^2 (alpha + 1) e / (alpha - 1)^2 sqrt(K / t)", "equation (15)"
)


def sides(moment: Moment) -> Iterator[Sides]:
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
    yield Sides(BETA, integral, betainc(shape, ranks, level**-alpha) * beta(shape, ranks) / alpha, arms)
    yield Sides(RANK, integral, math.e / (alpha * ranks**shape), arms)
    yield Sides(GAP_PRINTED, integral, math.e / ((alpha + 1.0) * level * ranks), arms)
    binds = level >= ranks ** (1.0 / alpha)
    q = moment.surrogates
    yield Sides(USE_PRINTED, (1.0 / (level * ranks))[binds], q[binds] ** 2, arms[binds])
    yield Sides(GAP, integral, math.e / ((alpha + 1.0) * level ** (alpha + 1.0)), arms)
    yield Sides(USE, (level ** -(alpha + 1.0))[binds], q[binds] ** 2, arms[binds])
    lemma = math.e * (alpha + 1.0) * eta * moment.surrogate_sum * q
    yield Sides(LEMMA, moment.stability, lemma, arms)
    # eta sqrt(t) = c K^(1/alpha - 1/2), so the right side needs neither c nor t.
    bound = 0.5 * stability_constant(alpha, 1.0) * eta * moment.arms ** (1.0 - 1.0 / alpha)
    yield Sides(ROUND, float(moment.stability.sum()), bound)
