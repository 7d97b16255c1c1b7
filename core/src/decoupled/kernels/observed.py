"""Observations as compiled code takes them, and how the arms stand before a round."""

from typing import NamedTuple

from ..base.arrays import Floats, Ints
from .jit import compiled
from .stakes import LEAST_LEVEL, MOST_LEVEL

# The columns of `Observed.rows` and `Observed.numbers`.
EXPLORE, EXPLOIT, LAW, WEIGHTED, WHOLE, SERVES, COUPLED = range(7)
WEIGHT, LOSS, SHARE, WIDTH, EXPECTED, LABEL, RHO = range(7)

# Round the level, to which the expected loss of an unlabelled answer is clipped.
BAND = 0.08


class Observed(NamedTuple):
    """Observations in their order.

    Attributes:
        rows: the explored arm, the exploited one or -1, the row in `laws` or -1, and whether the
            weight is known, the round could explore every arm, it counts for what was exploited,
            and the game is the standard one.
        numbers: the weight; the loss in [0, 1]; the share of their money that arms bet in a round
            without a law, 0 if it has one; the width of the range of losses, which is 1 without
            labels; the loss that was expected of the answer, the label or NaN, and the probability
            with which one was wanted, see `decoupled.learner.labels`. Without labels these are the
            loss, the loss and 1.
        laws: laws of exploration, by arm. With a share above 0, what is not 0 there could be
            explored.
    """

    rows: Ints
    numbers: Floats
    laws: Floats


class Standing(NamedTuple):
    """How each arm stands before a round, by the losses of earlier decisions alone.

    Attributes:
        means: the running mean of the losses seen, drawn a little to one half.
        counts: how many were seen.
        chances: the chance with which each arm is explored in the round; without a law, 1 or 0.
        levels: the mean, kept away from 0 and 1.
        as_worse: the largest weight of the round, over the chance of the first arm, at which a bet
            at this level that the first is worse loses no more than everything if it is explored.
        as_better: the same over the chance of the second arm, if that is explored.
    """

    means: Floats
    counts: Ints
    chances: Floats
    levels: Floats
    as_worse: Floats
    as_better: Floats


@compiled
def take_level(standing: Standing, arm: int, rho: float) -> None:
    """Take the level of an arm, and what it allows in a round that asks for a label with
    probability `rho`.

    docs/theory.md has the proof that no loss then costs more than everything.
    """
    level = min(max(standing.means[arm], LEAST_LEVEL), MOST_LEVEL)
    low = max(level - BAND, 0.0)
    high = min(level + BAND, 1.0)
    standing.levels[arm] = level
    standing.as_worse[arm] = 1.0 / (rho * level + (1.0 - rho) * high)
    standing.as_better[arm] = 1.0 / (1.0 - rho * level - (1.0 - rho) * low)


@compiled
def take_levels(standing: Standing, rho: float) -> None:
    """The same for every arm."""
    for arm in range(len(standing.means)):
        take_level(standing, arm, rho)


@compiled
def level_arm(standing: Standing, one: int, two: int) -> int:
    """The arm whose level a bet on two arms has: the one that was seen more often."""
    if standing.counts[one] == standing.counts[two]:
        return min(one, two)
    return one if standing.counts[one] > standing.counts[two] else two


@compiled
def weight_of_round(standing: Standing, worse: int, better: int) -> float:
    """The largest weight v with which a bet on "the first arm is worse than the second" loses no
    more than everything, whatever the loss.
    """
    arm = level_arm(standing, worse, better)
    weight: float = min(
        standing.chances[worse] * standing.as_worse[arm],
        standing.chances[better] * standing.as_better[arm],
    )
    return weight


@compiled
def loss_above(seen: Observed, n: int, level: float) -> float:
    """How far the loss of a round lies above a level, times the probability of a label.

    An expected loss counts as the end of the band round the level if it lies beyond: its mean with
    a label is that of the label, whatever was expected.
    """
    rho: float = seen.numbers[n, RHO]
    label: float = seen.numbers[n, LABEL]
    if rho == 1.0:
        return label - level
    low = max(level - BAND, 0.0)
    high = min(level + BAND, 1.0)
    expected: float = min(max(seen.numbers[n, EXPECTED], low), high)
    if label != label:  # NaN: not labelled
        return rho * (expected - level)
    return rho * (expected - level) + (label - expected)
