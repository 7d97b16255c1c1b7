"""The sum of q, and bounds on q by w on the event D_t: equations (17) and (21)."""

import math
from collections.abc import Iterator

import numpy as np

from ..bounds.stochastic import surrogate_sum_bound
from ..inequality import AS_PRINTED, CORRECTED, NOT_CLAIMED, Inequality, Sides
from ..moment import Moment

SUM = Inequality("sum q <= 2 alpha / (alpha - 1) K^(1/2 - 1/(2 alpha))", "equation (17)")
RANKS = Inequality("sum q <= sum_i i^(-1/2 - 1/(2 alpha))", "equation (17)")
FIRST = Inequality("on D_t: q <= (2 e^2 w)^(1/2 + 1/(2 alpha))", "equation (21)")
EXPONENT_PRINTED = Inequality(
    "on D_t: (2 e^2 w)^(1/2 + 1/(2 alpha)) <= (2 e^2 w)^(1 - 1/alpha)", "equation (21)", AS_PRINTED
)
EXPONENT = Inequality("(1 + eta u)^(-(alpha + 1)/2) <= (1 + eta u)^(1 - alpha)", "equation (21)", CORRECTED)
LAST = Inequality("on D_t: q <= (2 e^2 w)^(1 - 1/alpha)", "equation (21)")
LAST_BEYOND = Inequality("on D_t, alpha > 3: q <= (2 e^2 w)^(1 - 1/alpha)", "equation (21)", NOT_CLAIMED)


def sides(moment: Moment) -> Iterator[Sides]:
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
    q, first, last = moment.surrogates[others], scaled ** (0.5 + 0.5 / alpha), scaled ** (1.0 - 1.0 / alpha)
    yield Sides(FIRST, q, first, arms[others])
    if alpha <= 3.0:
        base = 1.0 + moment.shifts[others]
        yield Sides(EXPONENT_PRINTED, first, last, arms[others])
        yield Sides(EXPONENT, base ** (-0.5 * (alpha + 1.0)), base ** (1.0 - alpha), arms[others])
    yield Sides(LAST if alpha <= 3.0 else LAST_BEYOND, q, last, arms[others])
