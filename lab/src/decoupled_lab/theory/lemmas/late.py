"""Lemmas L15 and L16: what a loss costs that arrives in another state than that of its decision, exactly."""

from collections.abc import Iterator

import numpy as np

from decoupled.base import Floats
from decoupled.extend import winner_law

from ..bounds.constants import curvature_constant
from ..bounds.ladder import FALL, RECORD
from ..inequality import Sides, ours
from ..moment import Moment, divergence, potential
from ..rounds import LadderRound
from .switches import new_wins

RISE = ours("arm wins, loses after a rise by x <= new wins in flight + x H", "ladder, L15")
FELL = ours(
    "cost of a fall by X <= 8/3 (1 + g)^4 (X^2 / 2 H + X new wins in flight)", "ladder, L15"
)
ARRIVAL = ours(
    "stability of an arrival <= jumps of the decision's state + drift + switches in flight + what was not seen",
    "ladder, L16",
)

_RISE = 0.3
_LEAST = (
    1e-8  # a divergence is a difference of numbers around 1, so smaller ones have too few digits
)


def arrival_sides(played: LadderRound, decided: Moment) -> Iterator[Sides]:
    """All inequalities about a loss of a decision made in the state `decided`, which arrives in that of `played`."""
    now, law = played.moment.shifts, played.moment.moments.law
    wins, curvature = new_wins(decided.shifts, now, 3.0), 4.0 * decided.moments.inverses
    for moved in (now, now - played.moment.eta * played.d):
        yield from _moves(now, moved, wins, curvature)
    of, eta, unit = played.numbers, played.moment.eta, played.unit
    grown = curvature_constant() * of.growth
    jumps = 0.5 * eta * grown * FALL * float((decided.surrogates**2 / played.p) @ played.plain**2)
    drift = (4.0 + RECORD) * unit * grown * eta * float(played.d @ played.q**2)
    beyond = float(played.lows @ (1.0 - law) + law @ played.highs + played.records.sum())
    right = jumps + drift + FALL * of.growth * unit * float(wins.sum()) + beyond
    if eta * right > _LEAST:
        yield Sides(ARRIVAL, played.stability, right)


def _moves(now: Floats, moved: Floats, wins: Floats, curvature: Floats) -> Iterator[Sides]:
    """L15 after a drift from `now` to `moved`, for a rise and for the largest fall of every arm."""
    before, drifted = potential(moved, 3.0), new_wins(now, moved, 3.0)
    for arm, step in enumerate(np.eye(len(now))):
        risen = moved + _RISE * step
        lost = before.moments.law[arm] - winner_law(risen - risen.min(), 3.0, False)[arm]
        yield Sides(RISE, lost, wins[arm] + drifted[arm] + _RISE * curvature[arm] + _LEAST, arm)
        x, grown = 0.5 * (1.0 + now[arm]), (1.0 + (now - moved)[arm]) ** 4
        right = FALL * grown * (0.5 * x**2 * curvature[arm] + x * wins[arm])
        if right > _LEAST:
            yield Sides(FELL, divergence(potential(moved - x * step, 3.0), before), right, arm)
