"""Bets that the arm that was decided for has become worse than a rival, one that starts at every
round.

`decoupled.inference.lookout` says what they are for.
"""

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
    Observed,
    Standing,
    level_arm,
    loss_above,
    take_levels,
    weight_of_round,
)


class AlarmTotals(NamedTuple):
    """What is summed since a decision.

    Attributes:
        stakes: the stakes.
        prior: the share of each.
        rivals: the rivals of the arm that was decided for.
        sums: for each rival and each stake, the sum of the bets that started at every round.
    """

    stakes: Floats
    prior: Floats
    rivals: Ints
    sums: Floats


@compiled
def bet_since(
    seen: Observed, alarm: AlarmTotals, standing: Standing, decided: int, n: int
) -> float:
    """Add a round that could explore the decided arm; return the mean of the sums over rivals."""
    take_levels(standing, seen.numbers[n, RHO])
    total = 0.0
    chance_of_decided = standing.chances[decided]
    for place in range(len(alarm.rivals)):
        rival = alarm.rivals[place]
        is_compared = chance_of_decided > 0.0 and standing.chances[rival] > 0.0
        z = _gain(seen, standing, decided, rival, n) if is_compared else 0.0
        for k in range(len(alarm.stakes)):
            if is_compared:
                alarm.sums[place, k] = (1.0 + alarm.sums[place, k]) * (1.0 + alarm.stakes[k] * z)
            total += alarm.prior[k] * alarm.sums[place, k]
    return total / len(alarm.rivals)


@compiled
def _gain(seen: Observed, standing: Standing, decided: int, rival: int, n: int) -> float:
    """What a round is worth to the bet that the decided arm is worse than a rival."""
    explored = seen.rows[n, EXPLORE]
    if seen.rows[n, LAW] < 0 or seen.numbers[n, SHARE] > 0.0:
        estimate: float = 0.0
        if explored == decided:
            estimate = seen.numbers[n, WEIGHT] * seen.numbers[n, LOSS]
        elif explored == rival:
            estimate = seen.numbers[n, WEIGHT] * (1.0 - seen.numbers[n, LOSS])
        share: float = seen.numbers[n, SHARE]
        return share * (estimate - 1.0)
    if explored != decided and explored != rival:
        return 0.0
    level = standing.levels[level_arm(standing, decided, rival)]
    gain: float = weight_of_round(standing, decided, rival) * loss_above(seen, n, level)
    if explored == decided:
        gain /= standing.chances[decided]
    else:
        gain /= -standing.chances[rival]
    return gain
