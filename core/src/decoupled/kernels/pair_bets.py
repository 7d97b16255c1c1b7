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
    level_of_pair,
    loss_above,
    weight_of_round,
)
from .stakes import multiply

REACHED = -1.0
LEAST_COMMON = 2.0**-100


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
        follows: whether each slot's arm contends. Two that do not are followed no longer.
        active: room for the slots that a round could explore.
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
    follows: Ints
    active: Ints
    factors: Floats


@compiled
def bet_on_pairs(seen: Observed, pairs: PairTotals, standing: Standing, n: int) -> bool:
    """Add an observation to the pairs; whether the bets on one have now won enough."""
    share = seen.numbers[n, SHARE]
    if len(pairs.owners) == 0 or (seen.rows[n, LAW] < 0 and share == 0.0):
        return False
    explored = -1
    count = 0
    for slot in range(len(pairs.owners)):
        arm = pairs.owners[slot]
        if arm >= 0 and standing.chances[arm] > 0.0:
            pairs.active[count] = slot
            count += 1
            if arm == seen.rows[n, EXPLORE]:
                explored = slot
    for k in range(len(pairs.stakes)):
        pairs.factors[k] = 1.0
    if share == 0.0:
        _add_weights(seen, pairs, standing, n, count)
        return explored >= 0 and _bet_by_law(seen, pairs, standing, n, explored, count)
    if seen.rows[n, LAW] < 0:
        _charge_all(pairs, share, share / seen.numbers[n, WIDTH])
    else:
        _charge_explorable(pairs, share, share / seen.numbers[n, WIDTH], count)
    return explored >= 0 and _bet_by_weight(seen, pairs, standing, n, explored, count)


@compiled
def _add_weights(seen: Observed, pairs: PairTotals, standing: Standing, n: int, count: int) -> None:
    """Add the weight of a round with a law to all pairs that it could explore."""
    rho = seen.numbers[n, RHO]
    for place in range(count):
        one = pairs.active[place]
        arm = pairs.owners[one]
        chance = standing.chances[arm]
        for other_place in range(place):
            two = pairs.active[other_place]
            if pairs.follows[one] == 1 or pairs.follows[two] == 1:
                other = pairs.owners[two]
                level = level_of_pair(standing, arm, other)
                other_chance = standing.chances[other]
                weight = weight_of_round(chance, other_chance, level, rho)
                opposite = weight_of_round(other_chance, chance, level, rho)
                pairs.weights[one, two] += rho * weight
                pairs.weights[two, one] += rho * opposite


@compiled
def _bet_by_law(
    seen: Observed, pairs: PairTotals, standing: Standing, n: int, explored: int, count: int
) -> bool:
    """Bet on the pairs of the explored arm in a round whose law is known."""
    arm = pairs.owners[explored]
    chance = standing.chances[arm]
    rho = seen.numbers[n, RHO]
    enough = False
    for place in range(count):
        slot = pairs.active[place]
        if slot != explored and (pairs.follows[slot] == 1 or pairs.follows[explored] == 1):
            other = pairs.owners[slot]
            other_chance = standing.chances[other]
            level = level_of_pair(standing, arm, other)
            above = loss_above(seen, n, level) / chance
            gain = weight_of_round(chance, other_chance, level, rho) * above
            opposite = -weight_of_round(other_chance, chance, level, rho) * above
            pairs.gains[explored, slot] += gain
            pairs.gains[slot, explored] += opposite
            enough |= _bet(pairs, explored, slot, gain)
            enough |= _bet(pairs, slot, explored, opposite)
    return enough


@compiled
def _bet_by_weight(
    seen: Observed, pairs: PairTotals, standing: Standing, n: int, explored: int, count: int
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
    enough = False
    for k in range(len(pairs.stakes)):
        pairs.factors[k] = 1.0 / (1.0 - share * pairs.stakes[k])
    for place in range(count):
        slot = pairs.active[place]
        if slot != explored:
            level = level_of_pair(standing, arm, pairs.owners[slot])
            gain = share / width * weight * (estimate - level)
            pairs.gains[explored, slot] += gain
            pairs.gains[slot, explored] -= gain
            enough |= _bet(pairs, explored, slot, share * (weight * loss - 1.0))
            enough |= _bet(pairs, slot, explored, share * (weight * (1.0 - loss) - 1.0))
    return enough


@compiled
def _charge_all(pairs: PairTotals, share: float, weight: float) -> None:
    """Let every pair pay its stake: a factor that all have in common, so it is kept once."""
    pairs.common[len(pairs.stakes)] += weight
    small = False
    for k in range(len(pairs.stakes)):
        pairs.common[k] *= 1.0 - share * pairs.stakes[k]
        small |= pairs.common[k] < LEAST_COMMON
    if small:
        for k in range(len(pairs.stakes)):
            for row in range(len(pairs.won)):
                multiply(pairs.won, pairs.powers, row, k, pairs.common[k])
            pairs.common[k] = 1.0


@compiled
def _charge_explorable(pairs: PairTotals, share: float, weight: float, count: int) -> None:
    """The same for the pairs that could be explored in this round."""
    slots = len(pairs.owners)
    for place in range(count):
        one = pairs.active[place]
        for other_place in range(count):
            two = pairs.active[other_place]
            if one != two:
                pairs.weights[one, two] += weight
                for k in range(len(pairs.stakes)):
                    factor = 1.0 - share * pairs.stakes[k]
                    multiply(pairs.won, pairs.powers, one * slots + two, k, factor)


@compiled
def _bet(pairs: PairTotals, one: int, two: int, gain: float) -> bool:
    """Bet that arm `one` is worse than arm `two`; whether that has now won enough."""
    row = one * len(pairs.owners) + two
    total = 0.0
    for k in range(len(pairs.stakes)):
        factor = (1.0 + pairs.stakes[k] * gain) * pairs.factors[k]
        multiply(pairs.won, pairs.powers, row, k, factor)
        power = pairs.powers[row, k]
        if power == 0:
            total += pairs.won[row, k] * pairs.common[k]
        elif power > 0:
            total = math.inf
    goal = pairs.goals[one, two]
    if total < goal or goal == math.inf:
        return False
    pairs.goals[one, two] = REACHED
    return True
