"""Add observations to the sums of confidence sequences: to the moments of each arm, and to what
bets on arms have won.

`decoupled.inference.sums` says what the moments are.
"""

from typing import NamedTuple

from ..base.arrays import Floats, Ints
from .jit import compiled
from .observed import (
    COUPLED,
    EXPLOIT,
    EXPLORE,
    LAW,
    LOSS,
    RHO,
    SERVES,
    SHARE,
    WEIGHT,
    WEIGHTED,
    WHOLE,
    WIDTH,
    Observed,
    Standing,
    take_levels,
)
from .out_bets import OutTotals, bet_against_leader
from .pair_bets import PairTotals, bet_on_pairs
from .single_bets import SingleTotals, bet_on_singles

# The columns of one kind of moments: a sum of losses and of their squares, and the same of gains,
# which are 1 minus a loss. Of a difference, these are that difference and its opposite.
TOTAL, SQUARES, OPPOSITE, OPPOSITE_SQUARES = range(4)
MOMENTS = 4
# The kinds of moments of an arm, and those of all arms, by their first column.
PLAIN, COMPARABLE, OTHER, AGAINST = range(0, 4 * MOMENTS, MOMENTS)
COMMON, SERVED = range(0, 2 * MOMENTS, MOMENTS)
# What is counted of each arm, and of all.
SEEN, USED, OTHER_ROUNDS = range(3)
ROUNDS, COMPARED, SERVED_ROUNDS, LAW_ROUNDS = range(4)


class ArmTotals(NamedTuple):
    """The sums of each arm, and those of all; `decoupled.inference.sums.Sums` says what each is.

    Attributes:
        moments: the moments of each arm: `PLAIN`, `COMPARABLE`, `OTHER` and `AGAINST`.
        counts: the counts of each arm: `SEEN`, `USED` and `OTHER_ROUNDS`.
        rounds: how many rounds there were: `ROUNDS`, `COMPARED`, `SERVED_ROUNDS` and `LAW_ROUNDS`.
        flow: the moments of all arms: `COMMON` and `SERVED`.
    """

    moments: Floats
    counts: Ints
    rounds: Ints
    flow: Floats


@compiled
def add_observations(
    seen: Observed,
    arms: ArmTotals,
    pairs: PairTotals,
    outs: OutTotals,
    singles: SingleTotals,
    standing: Standing,
    start: int,
) -> int:
    """Add the observations from `start` on, until a bet has won enough; return the next one to
    add.
    """
    if start < len(seen.rows):
        for arm in range(len(standing.means)):
            _take_standing(arms, standing, arm, seen.numbers[start, WIDTH])
    for n in range(start, len(seen.rows)):
        # The bets first: their levels are of the losses before this one.
        _take_chances(seen, outs, standing, n)
        take_levels(standing, seen.numbers[n, RHO])
        if seen.rows[n, LAW] >= 0 and seen.numbers[n, SHARE] == 0.0:
            arms.rounds[LAW_ROUNDS] += 1
        has_pair = bet_on_pairs(seen, pairs, standing, n)
        has_out = bet_against_leader(seen, outs, standing, n)
        bet_on_singles(seen, singles, standing, n)
        _add_to_arms(seen, arms, n)
        _take_standing(arms, standing, seen.rows[n, EXPLORE], seen.numbers[n, WIDTH])
        if has_pair or has_out:
            return n + 1
    return len(seen.rows)


@compiled
def _take_standing(arms: ArmTotals, standing: Standing, arm: int, width: float) -> None:
    """Take how an arm stands from its sums. Losses are mapped from a range round one half."""
    count = arms.counts[arm, SEEN]
    total = 0.5 * count + width * (arms.moments[arm, PLAIN] - 0.5 * count)
    standing.counts[arm] = count
    standing.means[arm] = (total + 0.5) / (count + 1.0)


@compiled
def _take_chances(seen: Observed, outs: OutTotals, standing: Standing, n: int) -> None:
    """Take the chance of each arm in a round; without a law, whether it could be explored."""
    law = seen.rows[n, LAW]
    has_bet = law >= 0 or seen.numbers[n, SHARE] > 0.0
    for arm in range(len(standing.chances)):
        chance = 0.0
        if has_bet and outs.live[arm] == 1:
            chance = 1.0 if law < 0 else seen.laws[law, arm]
        standing.chances[arm] = chance


@compiled
def _add(moments: Floats, kind: int, loss: float, gain: float) -> None:
    """Add a loss and its opposite to one kind of moments."""
    moments[kind + TOTAL] += loss
    moments[kind + SQUARES] += loss * loss
    moments[kind + OPPOSITE] += gain
    moments[kind + OPPOSITE_SQUARES] += gain * gain


@compiled
def _correct_difference(
    moments: Floats, above: float, below: float, new_above: float, new_below: float
) -> None:
    """Replace what an arm had in the common comparison with what was exploited by its own."""
    moments[AGAINST + TOTAL] += new_above - above
    moments[AGAINST + SQUARES] += new_above * new_above - above * above
    moments[AGAINST + OPPOSITE] += new_below - below
    moments[AGAINST + OPPOSITE_SQUARES] += new_below * new_below - below * below


@compiled
def _add_to_arms(seen: Observed, arms: ArmTotals, n: int) -> None:
    """Add an observation to the moments of the arms and of what was exploited."""
    row = seen.rows[n]
    weight = seen.numbers[n, WEIGHT]
    loss = seen.numbers[n, LOSS]
    gain = 1.0 - loss
    explore = row[EXPLORE]
    exploit = row[EXPLOIT]
    arms.counts[explore, SEEN] += 1
    _add(arms.moments[explore], PLAIN, loss, gain)
    if exploit >= 0:
        arms.counts[exploit, USED] += 1
    is_whole = row[WHOLE] == 1
    if row[WEIGHTED] == 1:
        _add(arms.moments[explore], COMPARABLE if is_whole else OTHER, weight * loss, weight * gain)
        if is_whole:
            arms.rounds[ROUNDS] += 1
    if row[SERVES] == 0:
        return
    # The loss and the gain of the exploited arm: each is unbiased, and 0 or more.
    served_loss = loss
    served_gain = gain
    if row[COUPLED] == 0:
        served_weight = weight if exploit == explore else 0.0
        served_loss = served_weight * loss
        served_gain = served_weight * gain
    arms.rounds[SERVED_ROUNDS] += 1
    _add(arms.flow, SERVED, served_loss, served_gain)
    if not (is_whole and row[WEIGHTED] == 1):
        return
    # "Loss of an arm minus loss of the exploited arm", and its opposite, for every arm. Both are
    # written as a loss plus a gain minus 1, which is at least -1 whatever the weight. They are the
    # same for all arms but the explored arm and the exploited one, so only those two keep a
    # difference from the common sum.
    arms.rounds[COMPARED] += 1
    above = served_gain - 1.0
    below = served_loss - 1.0
    _add(arms.flow, COMMON, above, below)
    if row[COUPLED] == 0:
        # An arm and itself do not differ.
        _correct_difference(arms.moments[exploit], above, below, 0.0, 0.0)
    if row[COUPLED] == 1 or exploit != explore:
        _correct_difference(
            arms.moments[explore], above, below, above + weight * loss, below + weight * gain
        )
