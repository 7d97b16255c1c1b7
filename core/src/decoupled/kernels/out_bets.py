"""One bet for each arm: that it is worse than the arm that leads.

`decoupled.inference.outs` says what the money shows.
"""

from typing import NamedTuple

from ..base.arrays import Floats, Ints
from .jit import compiled
from .observed import (
    EXPLORE,
    LAW,
    LOSS,
    SHARE,
    WEIGHT,
    Observed,
    Standing,
    level_arm,
    loss_above,
    weight_of_round,
)
from .stakes import bet

CONTENDS, OUT, REACHED_OUT = range(3)


class OutTotals(NamedTuple):
    """What the bet of each arm has won, and which arms are out.

    Attributes:
        stakes: the stakes.
        won: what each stake of each arm has won, times 2^(1000 powers).
        powers: of 2^1000, the same.
        money: what all stakes of each arm have together.
        marks: whether each arm contends, is out, or was shown to be out just now.
        led: whether each arm ever led, so that others bet against it.
        live: whether each arm is not retired.
        goal: what shows an arm to be out, alone in an array; 0 if nothing is bet.
        closed: whether the mean over the arms that contend must reach the goal, and not the arm
            alone; alone in an array.
    """

    stakes: Floats
    won: Floats
    powers: Ints
    money: Floats
    marks: Ints
    led: Ints
    live: Ints
    goal: Floats
    closed: Ints


@compiled
def bet_against_leader(seen: Observed, outs: OutTotals, standing: Standing, n: int) -> bool:
    """Let each arm but the leader bet on a round; whether an arm is now shown to be out."""
    leader = _leader(outs, standing)
    if leader < 0 or outs.goal[0] == 0.0:
        return False
    if seen.numbers[n, SHARE] > 0.0:
        return _bet_by_weight(seen, outs, standing, n, leader)
    explored = seen.rows[n, EXPLORE]
    if seen.rows[n, LAW] < 0 or outs.live[explored] == 0:
        return False
    outs.led[leader] = 1
    if explored != leader:
        _bet_by_law(seen, outs, standing, n, explored, leader, 1.0)
        return _mark_if_won(outs, explored)
    has_won = False
    for arm in range(len(outs.money)):
        if arm != leader and standing.chances[arm] > 0.0:
            _bet_by_law(seen, outs, standing, n, arm, leader, -1.0)
            has_won |= outs.marks[arm] == CONTENDS and outs.money[arm] >= outs.goal[0]
    return has_won and _mark_all(outs)


@compiled
def _leader(outs: OutTotals, standing: Standing) -> int:
    """The arm with the least running mean among those that the round could explore; -1 if it
    could explore only one.
    """
    leader = -1
    count = 0
    for arm in range(len(outs.money)):
        if standing.chances[arm] > 0.0 and outs.live[arm] == 1:
            count += 1
            if leader < 0 or standing.means[arm] < standing.means[leader]:
                leader = arm
    return leader if count > 1 else -1


@compiled
def _bet_by_law(
    seen: Observed,
    outs: OutTotals,
    standing: Standing,
    n: int,
    arm: int,
    leader: int,
    sign: float,
) -> None:
    """Let an arm bet that it is worse than the leader; `sign` is 1 if it was explored itself."""
    chance = standing.chances[arm] if sign > 0.0 else standing.chances[leader]
    level = standing.levels[level_arm(standing, arm, leader)]
    weight = weight_of_round(standing, arm, leader)
    z = sign * weight * loss_above(seen, n, level) / chance
    outs.money[arm] = bet(outs.won, outs.powers, outs.stakes, arm, z)


@compiled
def _bet_by_weight(
    seen: Observed, outs: OutTotals, standing: Standing, n: int, leader: int
) -> bool:
    """Let every arm but the leader bet in a round of which only the weight is known."""
    explored = seen.rows[n, EXPLORE]
    weight = seen.numbers[n, WEIGHT]
    loss = seen.numbers[n, LOSS]
    outs.led[leader] = 1
    for arm in range(len(outs.money)):
        if arm != leader and standing.chances[arm] > 0.0 and outs.live[arm] == 1:
            estimate = 0.0
            if explored == arm:
                estimate = weight * loss
            elif explored == leader:
                estimate = weight * (1.0 - loss)
            z = seen.numbers[n, SHARE] * (estimate - 1.0)
            outs.money[arm] = bet(outs.won, outs.powers, outs.stakes, arm, z)
    return _mark_all(outs)


@compiled
def _mark_if_won(outs: OutTotals, arm: int) -> bool:
    """Mark every arm whose bet has won enough, once that of this arm has; whether any was
    marked.
    """
    if outs.marks[arm] != CONTENDS or outs.money[arm] < outs.goal[0]:
        return False
    return _mark_all(outs)


@compiled
def _mark_all(outs: OutTotals) -> bool:
    """Mark every arm whose bet has won enough; whether any was marked.

    Closed testing: with the arms that contend and whose money is below the goal, the mean must
    reach the goal.
    """
    goal = outs.goal[0]
    lacking = 0.0
    if outs.closed[0] == 1:
        for arm in range(len(outs.money)):
            if outs.live[arm] == 1 and outs.marks[arm] == CONTENDS and outs.money[arm] < goal:
                lacking += goal - outs.money[arm]
    is_any_marked = False
    for arm in range(len(outs.money)):
        contends = outs.live[arm] == 1 and outs.marks[arm] == CONTENDS
        if contends and outs.money[arm] >= goal + lacking:
            outs.marks[arm] = REACHED_OUT
            is_any_marked = True
    return is_any_marked
