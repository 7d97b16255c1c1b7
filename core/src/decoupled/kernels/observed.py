"""Observations as compiled code takes them, and how the arms stand before a round."""

from typing import NamedTuple

from ..base.arrays import Floats, Ints
from .jit import compiled
from .stakes import LEAST_LEVEL, MOST_LEVEL

# An expected loss that is farther than this from the level counts as the nearer end of the band.
BAND = 0.08


class ObservedRow(NamedTuple):
    """A row of `Observed.rows`.

    Attributes:
        explore: the explored arm.
        exploit: the exploited arm; -1 if there is none.
        law: the row in `Observed.laws`; -1 if there is none.
        is_weighted: whether the weight is known.
        is_whole: whether the weight is known and the round could explore every arm.
        serves: whether the round counts for what was exploited.
        is_coupled: whether the game is the standard one.
    """

    explore: int
    exploit: int
    law: int
    is_weighted: bool
    is_whole: bool
    serves: bool
    is_coupled: bool


class ObservedNumbers(NamedTuple):
    """A row of `Observed.numbers`.

    Attributes:
        weight: 1 / propensity, or an estimate of it; 0 if it is not known.
        loss: the loss, in [0, 1].
        share: the share of their money that arms bet in a round without a law; 0 if it has one.
        width: the width of the range of losses, which is 1 without labels.
        expected: the loss that was expected of the answer, see `decoupled.learner.labels`; without
            labels the loss.
        label: the label, NaN if there is none; without labels the loss.
        rho: the probability with which a label was wanted; 1 without labels.
    """

    weight: float
    loss: float
    share: float
    width: float
    expected: float
    label: float
    rho: float


# The columns of `Observed.rows` and `Observed.numbers`, in the order of these fields.
EXPLORE, EXPLOIT, LAW, WEIGHTED, WHOLE, SERVES, COUPLED = range(len(ObservedRow._fields))
WEIGHT, LOSS, SHARE, WIDTH, EXPECTED, LABEL, RHO = range(len(ObservedNumbers._fields))


class Observed(NamedTuple):
    """Observations in their order.

    Attributes:
        rows: an `ObservedRow` of each.
        numbers: the `ObservedNumbers` of each.
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
