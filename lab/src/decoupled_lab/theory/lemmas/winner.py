"""Lemmas L2 and L6 of the ladder: the penalty with a smaller constant, and bounds on w by gap and rank."""

from collections.abc import Iterator

import numpy as np

from ..bounds.constants import winner_constant
from ..inequality import OURS, Inequality, Sides
from ..moment import Moment
from .penalty import penalty

UNIFORM = Inequality("E[r_winner - r_best] <= Gamma(1 - 1/alpha) K^(1/alpha)", "ladder, L2", OURS)
LOWER = Inequality("on D_t: w >= (1 + eta u)^-alpha / 8", "ladder, L6", OURS)
UPPER = Inequality("w <= max(1 + eta u, rank^(1/alpha))^-alpha", "ladder, L6", OURS)
SELF_BOUNDING = Inequality(
    "on D_t: sum (1 + eta u)^(-(alpha + 1)/2) <= sum (8 w)^(1 - 1/alpha)", "ladder, theorem C", OURS
)

_SHARE = 8.0


def sides(moment: Moment) -> Iterator[Sides]:
    """The steps of L2 and L6 that need only the state. The second bound of L2 is the first one of lemma 3.5."""
    alpha, arms, law = moment.alpha, np.arange(moment.arms), moment.moments.law
    yield Sides(UNIFORM, penalty(moment), winner_constant(alpha) * moment.arms ** (1.0 / alpha))
    yield Sides(UPPER, law, moment.levels**-alpha, arms)
    if not moment.on_event:
        return
    others = moment.others
    tails = 1.0 + moment.shifts[others]
    yield Sides(LOWER, tails**-alpha / _SHARE, law[others], arms[others])
    if alpha <= 3.0:
        bound = float(((_SHARE * law[others]) ** (1.0 - 1.0 / alpha)).sum())
        yield Sides(SELF_BOUNDING, float((tails ** (-0.5 * (alpha + 1.0))).sum()), bound)
