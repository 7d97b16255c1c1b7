"""Lemmas L2 to L4 and L6 of the ladder: the penalty, bounds on w, and the cost of a jump."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from decoupled.base import Floats, Ints

from ..bounds.constants import curvature_constant, fall_ratio, jump_factor, winner_constant
from ..bounds.switching import SHARE
from ..inequality import Sides, ours
from ..moment import Moment, Potential, divergence, potential
from .paper import penalty

UNIFORM = ours("E[r_winner - r_best] <= Gamma(1 - 1/alpha) K^(1/alpha)", "ladder, L2")
LOWER = ours("on D_t: w >= (1 + eta u)^-alpha / 8", "ladder, L6")
UPPER = ours("w <= max(1 + eta u, rank^(1/alpha))^-alpha", "ladder, L6")
SELF_BOUNDING = ours(
    "on D_t: sum (1 + eta u)^(-(alpha + 1)/2) <= sum (8 w)^(1 - 1/alpha)", "ladder, theorem C"
)


def winner_sides(moment: Moment) -> Iterator[Sides]:
    """The steps of L2 and L6 that need only the state. The second bound of L2 is the first one of lemma 3.5."""
    alpha, arms, law = moment.alpha, np.arange(moment.arms), moment.moments.law
    yield Sides(UNIFORM, penalty(moment), winner_constant(alpha) * moment.arms ** (1.0 / alpha))
    yield Sides(UPPER, law, moment.levels**-alpha, arms)
    if not moment.on_event:
        return
    others = moment.others
    tails = 1.0 + moment.shifts[others]
    yield Sides(LOWER, tails**-alpha / SHARE, law[others], arms[others])
    if alpha <= 3.0:
        bound = float(((SHARE * law[others]) ** (1.0 - 1.0 / alpha)).sum())
        yield Sides(SELF_BOUNDING, float((tails ** (-0.5 * (alpha + 1.0))).sum()), bound)


CURVATURE = ours("alpha (alpha + 1) I <= C1 q^2", "ladder, L3 (1)")
FALLEN = ours("after a fall: alpha (alpha + 1) I <= rho^(alpha + 1) C1 q^2", "ladder, L3 (2)")
GROWTH = ours("I after a further fall by g <= (1 + g)^(alpha + 1) I", "ladder, L3 (2)")
LAW = ours("after a fall: w <= rho^alpha w before", "ladder, L3 (3)")
OTHERS = ours("I of an arm after another one falls <= I", "ladder, L3 (4)")
RISE = ours("cost of a rise by x <= x^2 / 2 C1 q^2", "ladder, L4")
FALL = ours("cost of a fall by x <= x^2 / 2 C1 q^2 R(x, eta u)", "ladder, L4")

MOST_ARMS = 64  # more arms take seconds per state
_SOME = 3
_LEAST = (
    1e-8  # a divergence is a difference of numbers around 1, so smaller ones have too few digits
)


class _Jump(NamedTuple):
    """One arm's loss has fallen by x in units of 1 / eta, or risen if x is negative."""

    arm: int
    x: float
    after: Potential


def sides(moment: Moment) -> Iterator[Sides]:
    """The steps of L2 to L4 and L6 that need only the state: L3 and L4 for a few arms of different ranks, L3 (1) for all."""
    yield from winner_sides(moment)
    alpha, arms = moment.alpha, np.arange(moment.arms)
    q = moment.levels ** (-0.5 * (alpha + 1.0))
    bound = curvature_constant(alpha) * q**2
    yield Sides(CURVATURE, _curvature(moment.moments.inverses, alpha), bound, arms)
    if moment.arms > MOST_ARMS:
        return
    before = potential(moment.shifts, alpha)
    some = _spread(moment)
    half = [_fall(moment, arm, 0.5 * (1.0 + moment.shifts[arm])) for arm in some]
    far = [_fall(moment, arm, 2.0 * (1.0 + moment.shifts[arm])) for arm in some[:2]]
    rises = [_fall(moment, arm, -moment.eta / moment.exploration[arm]) for arm in some]
    for arm, x, after in half + far:
        ratio = float(fall_ratio(x, float(moment.shifts[arm])))
        curvature = _curvature(after.moments.inverses, alpha)[arm]
        yield Sides(FALLEN, curvature, ratio ** (alpha + 1.0) * bound[arm], arm)
        yield Sides(LAW, after.moments.law[arm], ratio**alpha * moment.moments.law[arm], arm)
    for near, further in zip(half, far, strict=False):
        more = further.x - near.x
        curvatures = [
            _curvature(jump.after.moments.inverses, alpha)[jump.arm] for jump in (further, near)
        ]
        yield Sides(GROWTH, curvatures[0], (1.0 + more) ** (alpha + 1.0) * curvatures[1], near.arm)
    fallen = half[-1]
    rest = arms != fallen.arm
    inverses = fallen.after.moments.inverses[rest]
    yield Sides(OTHERS, inverses, moment.moments.inverses[rest] * (1.0 + 1e-9) + 1e-15, arms[rest])
    for inequality, jumps in ((RISE, rises), (FALL, half + far)):
        for jump in jumps:
            right = 0.5 * jump.x**2 * float(bound[jump.arm])
            if jump.x > 0.0:
                right *= jump_factor(jump.x, float(moment.shifts[jump.arm]), alpha)
            if right > _LEAST:
                yield Sides(inequality, divergence(jump.after, before), right, jump.arm)


def _curvature(inverses: Floats, alpha: float) -> Floats:
    """H_i of lemma L3, which is (alpha + 1) E[1 / r_i; i wins]."""
    return (alpha + 1.0) * inverses


def _fall(moment: Moment, arm: int, x: float) -> _Jump:
    losses = moment.shifts.copy()
    losses[arm] -= x
    return _Jump(arm, x, potential(losses, moment.alpha))


def _spread(moment: Moment) -> Ints:
    """The leader, an arm in the middle and the last one."""
    order = np.argsort(moment.estimates, kind="stable")
    return order[np.unique(np.linspace(0, moment.arms - 1, _SOME).astype(np.int64))]
