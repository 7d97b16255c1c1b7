"""Bets on pairs of arms: that the first is worse than the second.

`decoupled.inference.pairs` says what is bet, and what the money shows.
"""

import math
from typing import NamedTuple

from ..base.arrays import Floats, Ints
from .jit import compiled
from .observed import (
    EXPLORE,
    LAW,
    LOSS,
    RHO,
    SHARE,
    WEIGHT,
    WIDTH,
    Observed,
    Standing,
    level_arm,
    loss_above,
)
from .stakes import multiply

REACHED = -1.0
LEAST_COMMON = 2.0**-100
TIE = 2.0**-20  # of two arms that were seen equally often, the earlier one counts as seen more


class PairTotals(NamedTuple):
    """What is summed for pairs of arms. Each such arm has a slot.

    Attributes:
        owners: the arm of each slot, -1 if it is free.
        stakes: the stakes.
        won: for each two slots, row by row, what the bets "the first is worse" have won: `won`
            times `common` times 2^(1000 powers).
        powers: of 2^1000, the same.
        weights: for each two slots, the sum of the weights of rounds.
        gains: for each two slots, the sum of what was bet on.
        goals: to win together to be enough; infinite if no more is wanted, `REACHED` once it was.
        common: a factor for each stake that is the same for all pairs; and, last, a part of the
            weights that is.
        chances: room for the chance of each slot's arm in a round, and so for the next three.
        counts: how many losses of it were seen, less for a later arm, so that no two are equal.
        as_worse: `Standing.as_worse`.
        as_better: `Standing.as_better`.
        factors: room for a number for each stake.
    """

    owners: Ints
    stakes: Floats
    won: Floats
    powers: Ints
    weights: Floats
    gains: Floats
    goals: Floats
    common: Floats
    chances: Floats
    counts: Floats
    as_worse: Floats
    as_better: Floats
    factors: Floats


@compiled
def bet_on_pairs(seen: Observed, pairs: PairTotals, standing: Standing, n: int) -> bool:
    """Add an observation to the pairs; whether the bets on one have now won enough."""
    share = seen.numbers[n, SHARE]
    if len(pairs.owners) == 0 or (seen.rows[n, LAW] < 0 and share == 0.0):
        return False
    explored = _take_slots(pairs, standing, seen.rows[n, EXPLORE])
    for k in range(len(pairs.stakes)):
        pairs.factors[k] = 1.0
    if share == 0.0:
        _add_weights(pairs, seen.numbers[n, RHO])
        return explored >= 0 and _bet_by_law(seen, pairs, standing, n, explored)
    if seen.rows[n, LAW] < 0:
        _charge_all(pairs, share, share / seen.numbers[n, WIDTH])
    else:
        _charge_explorable(pairs, share, share / seen.numbers[n, WIDTH])
    return explored >= 0 and _bet_by_weight(seen, pairs, standing, n, explored)


@compiled
def _take_slots(pairs: PairTotals, standing: Standing, arm: int) -> int:
    """Take how the arm of each slot stands; return the slot of one arm, -1 if it has none or the
    round could not explore it.
    """
    explored_slot = -1
    for slot in range(len(pairs.owners)):
        owner = pairs.owners[slot]
        if owner < 0:
            pairs.chances[slot] = 0.0
            continue
        pairs.chances[slot] = standing.chances[owner]
        pairs.counts[slot] = standing.counts[owner] - TIE * owner
        pairs.as_worse[slot] = standing.as_worse[owner]
        pairs.as_better[slot] = standing.as_better[owner]
        if owner == arm and standing.chances[owner] > 0.0:
            explored_slot = slot
    return explored_slot


@compiled
def _add_weights(pairs: PairTotals, rho: float) -> None:
    """Add the weight of a round with a law to all pairs; it is 0 for those that the round could not
    explore.
    """
    slots = len(pairs.owners)
    for worse in range(slots):
        for better in range(slots):
            pairs.weights[worse, better] += rho * _slot_weight(pairs, worse, better)
        pairs.weights[worse, worse] = 0.0


@compiled
def _slot_weight(pairs: PairTotals, worse: int, better: int) -> float:
    """`weight_of_round` by slots."""
    is_first = pairs.counts[worse] > pairs.counts[better]
    as_worse = pairs.as_worse[worse] if is_first else pairs.as_worse[better]
    as_better = pairs.as_better[worse] if is_first else pairs.as_better[better]
    first: float = pairs.chances[worse] * as_worse
    second: float = pairs.chances[better] * as_better
    return first if first < second else second


@compiled
def _bet_by_law(
    seen: Observed, pairs: PairTotals, standing: Standing, n: int, explored: int
) -> bool:
    """Bet on the pairs of the explored arm in a round whose law is known."""
    arm = pairs.owners[explored]
    chance = pairs.chances[explored]
    has_won = False
    for slot in range(len(pairs.owners)):
        if slot != explored and pairs.chances[slot] > 0.0:
            level = standing.levels[level_arm(standing, arm, pairs.owners[slot])]
            above = loss_above(seen, n, level) / chance
            gain = _slot_weight(pairs, explored, slot) * above
            opposite = -_slot_weight(pairs, slot, explored) * above
            pairs.gains[explored, slot] += gain
            pairs.gains[slot, explored] += opposite
            has_won |= _bet(pairs, explored, slot, gain)
            has_won |= _bet(pairs, slot, explored, opposite)
    return has_won


@compiled
def _bet_by_weight(
    seen: Observed, pairs: PairTotals, standing: Standing, n: int, explored: int
) -> bool:
    """Add what the explored arm tells. The stake of the round, which every pair pays, is paid
    already.
    """
    weight = seen.numbers[n, WEIGHT]
    loss = seen.numbers[n, LOSS]
    share = seen.numbers[n, SHARE]
    width = seen.numbers[n, WIDTH]
    estimate = 0.5 + width * (loss - 0.5)
    arm = pairs.owners[explored]
    has_won = False
    for k in range(len(pairs.stakes)):
        pairs.factors[k] = 1.0 / (1.0 - share * pairs.stakes[k])
    for slot in range(len(pairs.owners)):
        if slot != explored and pairs.chances[slot] > 0.0:
            level = standing.levels[level_arm(standing, arm, pairs.owners[slot])]
            gain = share / width * weight * (estimate - level)
            pairs.gains[explored, slot] += gain
            pairs.gains[slot, explored] -= gain
            has_won |= _bet(pairs, explored, slot, share * (weight * loss - 1.0))
            has_won |= _bet(pairs, slot, explored, share * (weight * (1.0 - loss) - 1.0))
    return has_won


@compiled
def _charge_all(pairs: PairTotals, share: float, weight: float) -> None:
    """Let every pair pay its stake: a factor that all have in common, so it is kept once."""
    pairs.common[len(pairs.stakes)] += weight
    is_small = False
    for k in range(len(pairs.stakes)):
        pairs.common[k] *= 1.0 - share * pairs.stakes[k]
        is_small |= pairs.common[k] < LEAST_COMMON
    if is_small:
        for k in range(len(pairs.stakes)):
            for row in range(len(pairs.won)):
                multiply(pairs.won, pairs.powers, row, k, pairs.common[k])
            pairs.common[k] = 1.0


@compiled
def _charge_explorable(pairs: PairTotals, share: float, weight: float) -> None:
    """Let every pair that could be explored in this round pay its stake."""
    slots = len(pairs.owners)
    for worse in range(slots):
        for better in range(slots):
            if worse != better and pairs.chances[worse] > 0.0 and pairs.chances[better] > 0.0:
                pairs.weights[worse, better] += weight
                for k in range(len(pairs.stakes)):
                    factor = 1.0 - share * pairs.stakes[k]
                    multiply(pairs.won, pairs.powers, worse * slots + better, k, factor)


@compiled
def _bet(pairs: PairTotals, worse: int, better: int, gain: float) -> bool:
    """Bet that one slot's arm is worse than another's; whether that has now won enough."""
    row = worse * len(pairs.owners) + better
    total = 0.0
    for k in range(len(pairs.stakes)):
        factor = (1.0 + pairs.stakes[k] * gain) * pairs.factors[k]
        multiply(pairs.won, pairs.powers, row, k, factor)
        power = pairs.powers[row, k]
        if power == 0:
            total += pairs.won[row, k] * pairs.common[k]
        elif power > 0:
            total = math.inf
    goal = pairs.goals[worse, better]
    if total < goal or goal == math.inf:
        return False
    pairs.goals[worse, better] = REACHED
    return True
