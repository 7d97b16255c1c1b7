"""Add observations to the sums of confidence sequences.

These are the moments of each arm, and what bets on pairs of arms have won.

`decoupled.inference.sums` says what the moments are, and `decoupled.inference.pairs` what is bet.
"""

import math
from typing import NamedTuple

from ..base.arrays import Floats, Ints
from .jit import compiled

# The columns of `Observed.rows` and `Observed.numbers`.
EXPLORE, EXPLOIT, LAW, WEIGHTED, WHOLE, SERVES, COUPLED = range(7)
WEIGHT, LOSS, SHARE, STAKE, ESTIMATE, RHO = range(6)

# The first columns of the moments of an arm, each with the three after it: a sum of losses and of
# their squares, then the same of gains.
PLAIN = 0
COMPARABLE = 4
OTHER = 8
AGAINST = 12
SEEN, USED, OTHER_ROUNDS = range(3)
ROUNDS, COMPARED, SERVED_ROUNDS, LAW_ROUNDS = range(4)
COMMON = 0
SERVED = 4
LEVEL = 8

REACHED = -1.0
# As powers of two they change no other digit.
LARGE = 2.0**1000
LEAST = 2.0**-1000
# So a positive power means 2^600 at least; 10^50 fits.
MOST = 2.0**800
LESS = 2.0**-300
LEAST_COMMON = 2.0**-100
TINY = 1e-300  # instead of a branch for arms without a chance
RATE = 1.0 / 64.0  # of the level; about the mean of the last 64 losses


class Observed(NamedTuple):
    """Observations in their order.

    Attributes:
        rows: the explored arm, the exploited one or -1, the row in `laws` or -1, and whether the
            weight is known, the round could explore every arm, it counts for what was exploited,
            and the game is the standard one.
        numbers: the weight; the loss in [0, 1]; the share of their money that pairs of arms bet in
            a round without a law, 0 if it has one; how much such a round counts; and the loss that
            was estimated from a label, with the label's probability, see
            `decoupled.learner.labels`. Without labels these are the share, the loss and 1.
        laws: laws of exploration, by arm. With a share above 0, what is not 0 there could be
            explored.
    """

    rows: Ints
    numbers: Floats
    laws: Floats


class ArmTotals(NamedTuple):
    """The sums of each arm, and those of all arms together.

    The latter are counts of rounds, the moments of what was exploited, and a level of losses.
    """

    moments: Floats
    counts: Ints
    rounds: Ints
    flow: Floats


class PairTotals(NamedTuple):
    """What is summed for pairs of arms. Each such arm has a slot.

    What a bet has won is `won` times `common` times 2^(1000 powers): nothing overflows, and
    multiplying is all that an observation takes.
    """

    owners: Ints  # the arm of each slot, -1 if it is free
    bets: Floats
    won: Floats  # for each two slots, row by row, what the bets "the first is worse" have won
    powers: Ints  # of 2^1000, the same
    weights: Floats  # their sum for each two slots, below the diagonal
    gains: Floats  # the sum of what was bet on
    # To win together to be enough; infinite if no more is wanted, `REACHED` once it was.
    goals: Floats
    # a factor for each bet that is the same for all pairs; and, last, a part of the weights that is
    common: Floats
    chances: Floats  # room for a number for each slot
    factors: Floats  # room for a number for each bet


@compiled
def add_observations(seen: Observed, arms: ArmTotals, pairs: PairTotals, start: int) -> int:
    """Add the observations from `start` on, until the bets on a pair have won enough.

    Return the number of the next observation to add.
    """
    for n in range(start, len(seen.rows)):
        _add_to_arms(seen, arms, n)
        if _add_to_pairs(seen, arms, pairs, n):
            return n + 1
    return len(seen.rows)


@compiled
def _add(moments: Floats, at: int, loss: float, gain: float) -> None:
    moments[at] += loss
    moments[at + 1] += loss * loss
    moments[at + 2] += gain
    moments[at + 3] += gain * gain


@compiled
def _correct_difference(
    moments: Floats, above: float, below: float, new_above: float, new_below: float
) -> None:
    """Replace what an arm had in the common comparison with what was exploited by its own."""
    moments[AGAINST] += new_above - above
    moments[AGAINST + 1] += new_above * new_above - above * above
    moments[AGAINST + 2] += new_below - below
    moments[AGAINST + 3] += new_below * new_below - below * below


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
    served_loss, served_gain = loss, gain
    if row[COUPLED] == 0:
        same = weight if exploit == explore else 0.0
        served_loss, served_gain = same * loss, same * gain
    arms.rounds[SERVED_ROUNDS] += 1
    _add(arms.flow, SERVED, served_loss, served_gain)
    if not (is_whole and row[WEIGHTED] == 1):
        return
    # "Loss of an arm minus loss of the exploited arm", and its opposite, for every arm. Both are
    # written as a loss plus a gain minus 1, which is at least -1 whatever the weight. They are the
    # same for all arms but the explored arm and the exploited one, so only those two keep a
    # difference from the common sum.
    arms.rounds[COMPARED] += 1
    above, below = served_gain - 1.0, served_loss - 1.0
    _add(arms.flow, COMMON, above, below)
    if row[COUPLED] == 0:
        _correct_difference(
            arms.moments[exploit], above, below, 0.0, 0.0
        )  # an arm and itself do not differ
    if row[COUPLED] == 1 or exploit != explore:
        _correct_difference(
            arms.moments[explore], above, below, above + weight * loss, below + weight * gain
        )


@compiled
def _add_to_pairs(seen: Observed, arms: ArmTotals, pairs: PairTotals, n: int) -> bool:
    """Add an observation to the pairs; whether the bets on one have now won enough."""
    law = seen.rows[n, LAW]
    share = seen.numbers[n, SHARE]
    if len(pairs.owners) == 0 or (law < 0 and share == 0.0):
        return False
    explored = -1
    for slot in range(len(pairs.owners)):
        arm = pairs.owners[slot]
        chance = 1.0 if arm >= 0 else 0.0
        if arm >= 0 and law >= 0:
            chance = seen.laws[law, arm]
        pairs.chances[slot] = chance
        if arm == seen.rows[n, EXPLORE]:
            explored = slot
    # Whatever the level in [0, 1], an estimate differs from it by at most 1 / rho.
    above = seen.numbers[n, RHO] * (seen.numbers[n, ESTIMATE] - arms.flow[LEVEL])
    arms.flow[LEVEL] = min(max(arms.flow[LEVEL] + RATE * above, 0.0), 1.0)
    for k in range(len(pairs.bets)):
        pairs.factors[k] = 1.0
    if share == 0.0:
        arms.rounds[LAW_ROUNDS] += 1
        return _bet_by_law(pairs, explored, above, seen.numbers[n, RHO])
    if law < 0:
        _charge_all(pairs, share, seen.numbers[n, STAKE])
    else:
        _charge_explorable(pairs, share, seen.numbers[n, STAKE])
    return explored >= 0 and _bet_by_weight(seen, pairs, n, explored, above)


@compiled
def _bet_by_law(pairs: PairTotals, explored: int, above: float, rho: float) -> bool:
    """Bet on the pairs of the explored arm in a round whose law is known."""
    chances = pairs.chances
    enough = False
    for one in range(len(chances)):
        for two in range(one):
            weight = chances[one] * chances[two] / (chances[one] + chances[two] + TINY)
            pairs.weights[one, two] += rho * weight
    if explored < 0:
        return False
    for slot in range(len(chances)):
        if slot != explored and chances[slot] > 0.0:
            gain = above * chances[slot] / (chances[slot] + chances[explored])
            pairs.gains[explored, slot] += gain
            pairs.gains[slot, explored] -= gain
            enough |= _bet(pairs, explored, slot, gain)
            enough |= _bet(pairs, slot, explored, -gain)
    return enough


@compiled
def _bet_by_weight(seen: Observed, pairs: PairTotals, n: int, explored: int, above: float) -> bool:
    """Add what the explored arm tells.

    The stake of the round, which every pair pays, is paid already.
    """
    weight = seen.numbers[n, WEIGHT]
    loss = seen.numbers[n, LOSS]
    share = seen.numbers[n, SHARE]
    gain = seen.numbers[n, STAKE] * weight * above / seen.numbers[n, RHO]
    enough = False
    for k in range(len(pairs.bets)):
        pairs.factors[k] = 1.0 / (1.0 - share * pairs.bets[k])
    for slot in range(len(pairs.owners)):
        if slot != explored and pairs.chances[slot] > 0.0:
            pairs.gains[explored, slot] += gain
            pairs.gains[slot, explored] -= gain
            enough |= _bet(pairs, explored, slot, share * (weight * loss - 1.0))
            enough |= _bet(pairs, slot, explored, share * (weight * (1.0 - loss) - 1.0))
    return enough


@compiled
def _charge_all(pairs: PairTotals, share: float, stake: float) -> None:
    """Let every pair pay its stake: a factor that all have in common, so it is kept once."""
    pairs.common[len(pairs.bets)] += stake
    small = False
    for k in range(len(pairs.bets)):
        pairs.common[k] *= 1.0 - share * pairs.bets[k]
        small |= pairs.common[k] < LEAST_COMMON
    if small:
        for k in range(len(pairs.bets)):
            for row in range(len(pairs.won)):
                _multiply(pairs, row, k, pairs.common[k])
            pairs.common[k] = 1.0


@compiled
def _charge_explorable(pairs: PairTotals, share: float, stake: float) -> None:
    """The same for the pairs that could be explored in this round."""
    slots = len(pairs.owners)
    for one in range(slots):
        for two in range(slots):
            if one != two and pairs.chances[one] > 0.0 and pairs.chances[two] > 0.0:
                if two < one:
                    pairs.weights[one, two] += stake
                for k in range(len(pairs.bets)):
                    _multiply(pairs, one * slots + two, k, 1.0 - share * pairs.bets[k])


@compiled
def _bet(pairs: PairTotals, one: int, two: int, gain: float) -> bool:
    """Bet that arm `one` is worse than arm `two`; whether that has now won enough."""
    row = one * len(pairs.owners) + two
    total = 0.0
    for k in range(len(pairs.bets)):
        _multiply(pairs, row, k, (1.0 + pairs.bets[k] * gain) * pairs.factors[k])
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


@compiled
def _multiply(pairs: PairTotals, row: int, k: int, factor: float) -> None:
    """Multiply what a bet has won, and keep it within the range of floats."""
    won = pairs.won[row, k] * factor
    if won > MOST:
        won *= LEAST
        pairs.powers[row, k] += 1
    elif won < LESS:
        won *= LARGE
        pairs.powers[row, k] -= 1
    pairs.won[row, k] = won
