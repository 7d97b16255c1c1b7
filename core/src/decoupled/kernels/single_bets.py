"""Bets on single means: of each arm, of what was exploited, and of the difference of both.

`decoupled.inference.singles` says what is bet and what the sums are for.
"""

import math
from typing import NamedTuple

import numpy as np

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
    loss_above,
)
from .stakes import PRIOR, STAKES, bet, level_of, multiply

# A mean is bounded however long an arm is watched, and a bet on a difference only until it is
# settled. So the smallest stakes are smaller here; they serve up to 10^8 looks.
LOOK_STAKES: Floats = np.append(STAKES, [0.004, 0.0016, 0.0006])
LOOK_PRIOR: Floats = np.append(0.97 * PRIOR, [0.015, 0.01, 0.005])
# Of bets whose rounds all weigh the same. No round may lose more than this share of the money.
MOST_LOST = 0.95
RATES: Floats = 8.0 * MOST_LOST * np.power(0.5, np.arange(18.0))
LIMITS: Floats = MOST_LOST / RATES  # how far below its level an estimate may fall, for each rate
RATE_PRIOR: Floats = np.full(len(RATES), 1.0 / len(RATES))

MOST_WEIGHT = 1e50  # a larger one could not be multiplied; it then counts for less

# The first rate that an arm is compared with what was exploited by: an estimate of a difference may
# fall by more than 1 below its level if nothing is seen, and larger rates allow no such loss.
FIRST_RATE_OF_ARMS = 3

# The rows of `won`, `powers`, `levels` and `excesses` in `CentredBets`: two for what was exploited,
# then two for each arm. The first of two is the bet for the lower end.
SERVED_ROWS = 0
FIRST_ARM_ROW = 2


class LookBets(NamedTuple):
    """Bets on the mean of each arm over the rounds that looked at it, two rows for each arm.

    Attributes:
        won: the money of each of `LOOK_STAKES`, see `decoupled.kernels.stakes`.
        powers: of 2^1000, that go with it.
        weights: the sum of the weights of the looks.
        centres: the sum of these weights, each times the level of its look.
    """

    won: Floats
    powers: Ints
    weights: Floats
    centres: Floats


class CentredBets(NamedTuple):
    """Bets whose rounds all weigh the same: two rows for what was exploited, and two for each arm
    that is compared with it.

    Attributes:
        won: the money of each of `RATES`, see `decoupled.kernels.stakes`.
        powers: of 2^1000, that go with it.
        levels: the sum of the levels.
        excesses: by how much these were lowered for each rate, in all.
        rounds: of what was exploited, and of each such arm.
    """

    won: Floats
    powers: Ints
    levels: Floats
    excesses: Floats
    rounds: Ints


class SingleTotals(NamedTuple):
    """All bets on single means.

    Attributes:
        looks: the bets on the mean of each arm over the rounds that looked at it.
        centred: the bets on what was exploited, and on each arm compared with it.
        live: 1 for each arm that is not retired, else 0.
    """

    looks: LookBets
    centred: CentredBets
    live: Ints


@compiled
def bet_on_singles(seen: Observed, singles: SingleTotals, standing: Standing, n: int) -> None:
    """Bet on a round, before it changes how the arms stand."""
    _bet_on_served(seen, singles.centred, standing, n)
    _bet_against_served(seen, singles, standing, n)
    arm = seen.rows[n, EXPLORE]
    _bet_on_look(
        singles.looks,
        arm,
        standing.levels[arm],
        standing.as_worse[arm],
        standing.as_better[arm],
        loss_above(seen, n, standing.levels[arm]),
        seen.numbers[n, RHO],
    )


@compiled
def add_looks(looks: LookBets, totals: Floats, counts: Floats, arms: Ints, losses: Floats) -> None:
    """Bet on looks at these arms alone, without labels, in their order.

    Args:
        looks: the bets.
        totals: the sum of the losses of each arm so far.
        counts: their number.
        arms: the arm that each loss is of.
        losses: the losses.
    """
    for n in range(len(arms)):
        arm = arms[n]
        level = level_of(totals[arm], counts[arm])
        above = losses[n] - level
        _bet_on_look(looks, arm, level, 1.0 / level, 1.0 / (1.0 - level), above, 1.0)
        totals[arm] += losses[n]
        counts[arm] += 1.0


@compiled
def _bet_on_look(
    looks: LookBets,
    arm: int,
    level: float,
    as_worse: float,
    as_better: float,
    above: float,
    rho: float,
) -> None:
    """Bet on the mean of an arm that was looked at, at the largest weights that lose no more than
    everything.

    Args:
        looks: the bets.
        arm: the arm.
        level: its level.
        as_worse: the largest weight of a bet that its mean is above the level.
        as_better: the largest weight of a bet that it is below.
        above: how far the loss lies above the level, times `rho`.
        rho: the probability of a label.
    """
    row_of_low = 2 * arm
    row_of_high = row_of_low + 1
    bet(looks.won, looks.powers, LOOK_STAKES, row_of_low, as_worse * above)
    bet(looks.won, looks.powers, LOOK_STAKES, row_of_high, -as_better * above)
    looks.weights[row_of_low] += rho * as_worse
    looks.weights[row_of_high] += rho * as_better
    looks.centres[row_of_low] += rho * as_worse * level
    looks.centres[row_of_high] += rho * as_better * level


@compiled
def _unit_level(seen: Observed, standing: Standing, arm: int, n: int) -> float:
    """The level of an arm on the map of losses to [0, 1]."""
    level: float = 0.5 + (standing.levels[arm] - 0.5) / seen.numbers[n, WIDTH]
    return level


@compiled
def _chance_of(seen: Observed, arm: int, n: int) -> float:
    """The probability with which a round explored an arm; NaN if that is not known."""
    law = seen.rows[n, LAW]
    if law < 0 or seen.numbers[n, SHARE] > 0.0:
        return math.nan
    chance: float = seen.laws[law, arm]
    return chance


@compiled
def _weight_of(seen: Observed, chance: float, n: int) -> float:
    """1 / the chance of what was explored, or the weight that was observed if it is not known."""
    if math.isnan(chance):
        weight: float = seen.numbers[n, WEIGHT]
        return weight
    return min(1.0 / chance, MOST_WEIGHT) if chance > 0.0 else 0.0


@compiled
def _inverse(chance: float) -> float:
    """1 / a chance; without a known one, a weight may be anything."""
    return 1.0 / chance if chance > 0.0 else math.inf


@compiled
def _bet_on_served(seen: Observed, centred: CentredBets, standing: Standing, n: int) -> None:
    """Bet on the mean of the exploited arm, in a round that tells it."""
    row = seen.rows[n]
    if row[SERVES] == 0:
        return
    arm = row[EXPLOIT]
    chance = 1.0 if row[COUPLED] == 1 else _chance_of(seen, arm, n)
    if chance == 0.0:
        return
    level = _unit_level(seen, standing, arm, n)
    loss = seen.numbers[n, LOSS]
    weight = 0.0
    if row[COUPLED] == 1:
        weight = 1.0
    elif arm == row[EXPLORE]:
        weight = _weight_of(seen, chance, n)
    centred.rounds[0] += 1
    inverse = _inverse(chance)
    opposite = 1.0 - level
    row_of_low = SERVED_ROWS
    row_of_high = SERVED_ROWS + 1
    reach = level * inverse
    opposite_reach = opposite * inverse
    _bet_centred(centred, row_of_low, 0, level, level, reach, weight, loss, level)
    _bet_centred(
        centred, row_of_high, 0, opposite, opposite, opposite_reach, weight, 1.0 - loss, opposite
    )


@compiled
def _bet_against_served(seen: Observed, singles: SingleTotals, standing: Standing, n: int) -> None:
    """Bet on the loss of each arm minus that of the exploited one, and on its opposite."""
    row = seen.rows[n]
    if row[SERVES] == 0 or row[WHOLE] == 0 or row[WEIGHTED] == 0 or row[COUPLED] == 1:
        return
    served = row[EXPLOIT]
    served_chance = _chance_of(seen, served, n)
    if served_chance == 0.0:
        return
    explored = row[EXPLORE]
    centred = singles.centred
    loss = seen.numbers[n, LOSS]
    served_level = _unit_level(seen, standing, served, n)
    served_inverse = _inverse(served_chance)
    for arm in range(len(centred.rounds) - 1):
        if singles.live[arm] == 0:
            continue
        chance = _chance_of(seen, arm, n)
        if chance == 0.0:
            continue
        centred.rounds[1 + arm] += 1
        if arm == served:  # an arm and itself do not differ
            continue
        level = _unit_level(seen, standing, arm, n)
        weight = 0.0
        gain = 0.0
        guess = 0.0
        if explored == arm:
            weight = _weight_of(seen, chance, n)
            gain = loss
            guess = level
        elif explored == served:
            weight = _weight_of(seen, served_chance, n)
            gain = 1.0 - loss
            guess = 1.0 - served_level
        base = level + 1.0 - served_level
        inverse = _inverse(chance)
        reach = max(level * inverse, (1.0 - served_level) * served_inverse)
        opposite_reach = max((1.0 - level) * inverse, served_level * served_inverse)
        row_of_low = FIRST_ARM_ROW + 2 * arm
        row_of_high = row_of_low + 1
        _bet_centred(
            centred,
            row_of_low,
            FIRST_RATE_OF_ARMS,
            level - served_level,
            base,
            reach,
            weight,
            gain,
            guess,
        )
        _bet_centred(
            centred,
            row_of_high,
            FIRST_RATE_OF_ARMS,
            served_level - level,
            2.0 - base,
            opposite_reach,
            weight,
            1.0 - gain,
            1.0 - guess,
        )


@compiled
def _bet_centred(
    centred: CentredBets,
    row: int,
    first_rate: int,
    level: float,
    base: float,
    reach: float,
    weight: float,
    gain: float,
    guess: float,
) -> None:
    """Bet on a round that weighs as much as any other.

    For each rate, the estimate is centred by the largest share of its level at which it falls at
    most `LIMITS` below it. If that much is lost without centring, the level is lowered.

    Args:
        centred: the bets.
        row: the row of the bet.
        first_rate: the first rate that bets.
        level: what the mean is compared with.
        base: how far the estimate falls below the level if nothing is seen and it is not centred.
        reach: how far it may fall if it is centred; infinite if that is not known.
        weight: of what was seen; 0 if nothing.
        gain: what was seen.
        guess: what was expected of it.
    """
    centred.levels[row] += level
    scale = 1.0 / (reach - base) if reach > base else 0.0
    for k in range(first_rate, len(RATES)):
        limit = LIMITS[k]
        if reach <= limit:
            if weight == 0.0:  # the round is worth nothing to this rate, and to all smaller ones
                break
            worth = weight * (gain - guess)
        elif base >= limit:
            centred.excesses[row, k] += base - limit
            worth = weight * gain - limit
        else:
            share = (limit - base) * scale
            worth = weight * (gain - share * guess) - (1.0 - share) * base
        multiply(centred.won, centred.powers, row, k, 1.0 + RATES[k] * worth)


@compiled
def bet_on_rounds(
    centred: CentredBets,
    row: int,
    levels: Floats,
    bases: Floats,
    reaches: Floats,
    weights: Floats,
    gains: Floats,
    guesses: Floats,
) -> None:
    """Bet on rounds that weigh the same, in their order; see `_bet_centred` for what each has."""
    for n in range(len(levels)):
        _bet_centred(
            centred, row, 0, levels[n], bases[n], reaches[n], weights[n], gains[n], guesses[n]
        )
