"""Bets on single means by their definitions, slowly, and worlds to watch them in."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

import decoupled as dc
from decoupled.base.arrays import Floats
from decoupled.inference import singles
from decoupled.inference.sums import Observation, Sums
from decoupled.kernels.observed import BAND
from decoupled.kernels.single_bets import (
    FIRST_RATE_OF_ARMS,
    LOOK_PRIOR,
    LOOK_STAKES,
    MOST_LOST,
    RATES,
)
from support.watching import Run

Ends: TypeAlias = tuple[float, float]


def bisected(is_below: Callable[[float], bool], low: float, high: float) -> float:
    """Where a property that holds at `low` and not at `high` ends."""
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return low


def levels_before(seen: Sequence[Observation], arms: int, width: float = 1.0) -> list[Floats]:
    """The level of each arm before each round: the mean of its losses so far and of 1/2."""
    totals, counts = np.full(arms, 0.5), np.ones(arms)
    levels = []
    for each in seen:
        levels.append(np.clip(totals / counts, 0.02, 0.98))
        totals[each.explore] += 0.5 + width * (each.loss - 0.5)
        counts[each.explore] += 1.0
    return levels


def look_of(each: Observation, level: float, width: float) -> tuple[float, float, float]:
    """The estimate of a look, and the largest weights at which a bet that the mean is above the
    level, or below it, loses no more than everything: found by trying the extreme estimates.
    """
    low, high = max(level - BAND, 0.0), min(level + BAND, 1.0)

    def estimate_of(expected: float, label: float | None) -> float:
        clipped = min(max(expected, low), high)
        return clipped if label is None else clipped + (label - clipped) / each.rho

    extremes = [0.0, 1.0]
    estimate = 0.5 + width * (each.loss - 0.5)
    if each.rho < 1.0:
        extremes = [estimate_of(f, g) for f in (low, high) for g in (0.0, 1.0, None)]
        expected = estimate
        if each.label is not None:
            expected = (estimate - each.label / each.rho) / (1.0 - 1.0 / each.rho)
        estimate = estimate_of(expected, each.label)
    return estimate, 1.0 / (level - min(extremes)), 1.0 / (max(extremes) - level)


def look_ends(
    seen: Sequence[Observation], arm: int, arms: int, risk: float, width: float = 1.0
) -> Ends:
    """The interval of an arm by its looks, each end at this risk."""
    levels = levels_before(seen, arms, width)
    looks = []
    for each, level in zip(seen, levels, strict=True):
        if each.explore == arm:
            looks.append((float(level[arm]), *look_of(each, float(level[arm]), width)))
    ends = []
    for sign in (1.0, -1.0):
        weights = [up if sign > 0.0 else down for _, _, up, down in looks]
        won: Floats = np.log(LOOK_PRIOR)
        for (centre, estimate, _, _), weight in zip(looks, weights, strict=True):
            factors = 1.0 + LOOK_STAKES * (weight * sign * (estimate - centre))
            won = np.asarray(won + np.log(factors), np.float64)

        def is_refuted(mean: float, won: Floats = won, weights: list[float] = weights) -> bool:
            excess = sum(
                weight * sign * (mean - centre)  # noqa: B023
                for (centre, _, _, _), weight in zip(looks, weights, strict=True)
            )
            return bool(np.logaddexp.reduce(won - LOOK_STAKES * excess) > -math.log(risk))

        ends.append(bisected(is_refuted, -20.0 * sign, 20.0 * sign))
    return ends[0], ends[1]


class Asked(NamedTuple):
    """What a round says of a mean in which arm j counts `counts[j]`."""

    counts: Floats
    levels: Floats
    law: Floats | None
    explore: int
    weight: float
    loss: float


def centred_estimate(asked: Asked, share: float, explore: int, weight: float, loss: float) -> float:
    """An estimate of the mean that is centred by a share of the levels."""
    centres = np.where(
        asked.counts >= 0.0, share * asked.levels, 1.0 - share * (1.0 - asked.levels)
    )
    centre = float(asked.counts @ centres)
    return centre + float(asked.counts[explore]) * weight * (loss - float(centres[explore]))


def least_estimate(asked: Asked, share: float) -> float:
    """The least that it may be, over the arms that could be explored and all losses."""
    if asked.law is None:
        assert share == 0.0, "without a law nothing is known of the weight"
        return float(np.minimum(asked.counts, 0.0).sum())
    return min(
        centred_estimate(asked, share, arm, 1.0 / float(asked.law[arm]), loss)
        for arm in np.flatnonzero(asked.law).tolist()
        for loss in (0.0, 1.0)
    )


def lower_centred(rounds: Sequence[Asked], risk: float, first: int) -> float:
    """The lower end of the mean over these rounds, all with the same weight."""
    rates = RATES[first:]
    won, levels = np.full(len(rates), -math.log(len(rates))), np.zeros(len(rates))
    for asked in rounds:
        for k, rate in enumerate(rates.tolist()):
            level = float(asked.counts @ asked.levels)
            limit = MOST_LOST / rate
            share = 0.0
            if asked.law is not None:

                def is_safe(share: float) -> bool:
                    return bool(least_estimate(asked, share) >= level - limit)  # noqa: B023

                share = 1.0 if is_safe(1.0) else bisected(is_safe, 0.0, 1.0)
            level = min(level, least_estimate(asked, share) + limit)
            estimate = centred_estimate(asked, share, asked.explore, asked.weight, asked.loss)
            won[k] += math.log1p(rate * (estimate - level))
            levels[k] += level

    def is_refuted(mean: float) -> bool:
        excess = rates * (len(rounds) * mean - levels)
        return bool(np.logaddexp.reduce(won - excess) > -math.log(risk))

    return bisected(is_refuted, -20.0, 20.0)


def centred_ends(rounds: Sequence[Asked], risk: float, first: int = 0) -> Ends:
    """Both ends, by the rates from this one on."""
    opposite = [asked._replace(counts=-asked.counts) for asked in rounds]
    return lower_centred(rounds, risk, first), -lower_centred(opposite, risk, first)


def asked_of(
    seen: Sequence[Observation], arms: int, arm: int | None = None, width: float = 1.0
) -> Iterator[Asked]:
    """What rounds say of the arm that was exploited; or of `arm` less that one."""
    for each, levels in zip(seen, levels_before(seen, arms, width), strict=True):
        counts = np.zeros(arms)
        assert each.exploit is not None
        assert each.weight is not None
        counts[each.exploit] += 1.0 if arm is None else -1.0
        if arm is not None:
            counts[arm] += 1.0
        mapped = 0.5 + (levels - 0.5) / width
        yield Asked(counts, mapped, each.law, each.explore, each.weight, each.loss)


def rounds_of(
    count: int, arms: int, seed: int, *, laws: float = 0.7, coupled: bool = False
) -> list[Observation]:
    """Rounds that could explore every arm; of a share of them the law is known."""
    rng = np.random.default_rng(seed)
    means = np.linspace(0.1, 0.7, arms)
    seen = []
    for number in range(count):
        law = rng.dirichlet(np.ones(arms) * 0.7) * 0.97 + 0.03 / arms
        explore = int(rng.choice(arms, p=law))
        loss = float(np.clip(rng.normal(means[explore], 0.1), 0.0, 1.0))
        exploit = explore if coupled else int(rng.integers(arms))
        known = law if number % 10 < 10 * laws else None
        seen.append(Observation(explore, 1.0 / float(law[explore]), loss, exploit, None, known))
    return seen


# Worlds, of which each gives a round's losses and their means


World: TypeAlias = Callable[[int, Floats, np.random.Generator], tuple[Floats, Floats]]


def beta(means: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    return rng.beta(6.0 * means, 6.0 * (1.0 - means)), means


def equal(number: int, levels: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Arms that are equal, with losses anywhere in [0, 1]."""
    return beta(np.full(len(levels), 0.3), rng)


def drifting(number: int, levels: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Arms that become worse and better together."""
    return beta(np.full(len(levels), 0.5 + 0.4 * math.sin(number / 40.0)), rng)


def rare(number: int, levels: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Small losses, and rarely the largest one."""
    is_large = rng.random(len(levels)) < 0.02
    losses = np.where(is_large, 1.0, 0.01 * rng.random(len(levels)))
    return losses, np.full(len(levels), 0.02 + 0.98 * 0.005)


def against_level(number: int, levels: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """An adversary: each mean is on the other side of the arm's level."""
    return beta(np.where(levels < 0.5, 0.8, 0.2), rng)


def played(world: World, count: int, arms: int, seed: int, *, missing_by_arm: bool = False) -> Run:
    """What `Ladder()` explored in a world. With `missing_by_arm`, feedback goes missing more for
    later arms.
    """
    rng = np.random.default_rng(seed)
    learner = dc.Ladder().start(arms=arms, seed=seed)
    totals, counts = np.full(arms, 0.5), np.ones(arms)
    rows, laws, truths = [], [], []
    for number in range(count):
        law = learner.exploration_probabilities()
        decision = learner.decide()
        explore = learner.arms.index(decision.explore)
        losses, means = world(number, np.clip(totals / counts, 0.02, 0.98), rng)
        if missing_by_arm and rng.random() < 0.8 * explore / arms:
            learner.forget(decision)
            continue
        loss = float(losses[explore])
        learner.observe(decision, loss)
        totals[explore] += loss
        counts[explore] += 1.0
        rows.append(
            (explore, learner.arms.index(decision.exploit), 1.0 / float(law[explore]), loss)
        )
        laws.append(law)
        truths.append(means)
    explored, exploited, weights, seen = (np.array(column) for column in zip(*rows, strict=True))
    return Run(explored, exploited, weights, seen, np.array(truths), np.array(laws))


# Whether an interval of a recorded experiment is ever false: the supermartingale at the truth has
# reached 1 / risk


def levels_in(run: Run) -> Floats:
    """The level of each arm (columns) before each observation."""
    before = np.zeros((2, *run.means.shape))
    before[0, 1:] = np.cumsum(run.explored(run.loss), axis=0)[:-1]
    before[1, 1:] = np.cumsum(run.explored(np.ones(len(run.loss))), axis=0)[:-1]
    levels: Floats = np.clip((before[0] + 0.5) / (before[1] + 1.0), 0.02, 0.98)
    return levels


def looks_wrong(run: Run, risk: float) -> bool:
    """Whether an arm is ever outside its interval by looks."""
    goal = -math.log(risk * Sums.start(run.arms).share_of_arms()[1] / 2.0)
    levels = levels_in(run)
    for arm in range(run.arms):
        seen = run.explore == arm
        level, loss, mean = levels[seen, arm], run.loss[seen], run.means[seen, arm]
        for weight in (1.0 / level, -1.0 / (1.0 - level)):
            won = np.cumsum(np.log1p(LOOK_STAKES * (weight * (loss - level))[:, None]), axis=0)
            excess = np.cumsum(weight * (mean - level))[:, None]
            logs = np.log(singles.LOOK_PRIOR) + won - LOOK_STAKES * excess
            if (np.logaddexp.reduce(logs, axis=1) >= goal).any():
                return True
    return False


class _Rounds(NamedTuple):
    """What each round is for a bet on one end; see `decoupled.kernels.single_bets.bet_on_rounds`.
    And the mean that it is about.
    """

    level: Floats
    base: Floats
    reach: Floats
    weight: Floats
    gain: Floats
    guess: Floats
    mean: Floats


def _centred_wrong(rounds: _Rounds, goal: float, first: int = 0) -> bool:
    rates = RATES[first:]
    prior = singles.RATE_PRIOR[first:] * len(RATES) / len(rates)
    level, base, reach, weight, gain, guess, mean = (column[:, None] for column in rounds)
    limit = MOST_LOST / rates
    is_whole = reach <= limit
    with np.errstate(divide="ignore", invalid="ignore"):
        part = np.where(base < limit, (limit - base) / (reach - base), 0.0)
    share = np.where(is_whole, 1.0, part)
    excess = np.where(is_whole, 0.0, np.maximum(base - limit, 0.0))
    worth = excess - (1.0 - share) * base + weight * (gain - share * guess)
    won = np.cumsum(np.log1p(rates * worth), axis=0)
    logs = np.log(prior) + won - rates * np.cumsum(mean - level + excess, axis=0)
    return bool((np.logaddexp.reduce(logs, axis=1) >= goal).any())


def served_wrong(run: Run, risk: float) -> bool:
    """Whether what was exploited is ever outside its interval, with the laws if they are known."""
    goal = -math.log(risk * Sums.start(run.arms).share_of_arms()[1] / 2.0)
    at = np.arange(len(run.loss)), run.exploit
    level, mean = levels_in(run)[at], run.means[at]
    chance = np.zeros(len(level)) if run.laws is None else run.laws[at]
    weight = (run.explore == run.exploit) * run.weight
    with np.errstate(divide="ignore"):
        ends = [
            _Rounds(level, level, level / chance, weight, run.loss, level, mean),
            _Rounds(
                1 - level,
                1 - level,
                (1 - level) / chance,
                weight,
                1 - run.loss,
                1 - level,
                1 - mean,
            ),
        ]
    return any(_centred_wrong(end, goal) for end in ends)


def against_served_wrong(run: Run, risk: float) -> bool:
    """Whether the difference of an arm and what was exploited is ever outside its interval."""
    goal = -math.log(risk * Sums.start(run.arms).share_of_served_difference())
    at, levels = (np.arange(len(run.loss)), run.exploit), levels_in(run)
    laws = np.zeros(levels.shape) if run.laws is None else run.laws
    beside, same = levels[at], run.explore == run.exploit
    for arm in range(run.arms):
        differs, mine, level = run.exploit != arm, run.explore == arm, levels[:, arm]
        mean = run.means[:, arm] - run.means[at]
        weight = differs * (mine | same) * run.weight
        with np.errstate(divide="ignore"):
            reach = np.maximum(level / laws[:, arm], (1 - beside) / laws[at])
            other = np.maximum((1 - level) / laws[:, arm], beside / laws[at])
        gain, guess = np.where(mine, run.loss, 1 - run.loss), np.where(mine, level, 1 - beside)
        base = level + 1 - beside
        for end in (
            _Rounds(level - beside, base, reach, weight, gain, guess, mean),
            _Rounds(beside - level, 2 - base, other, weight, 1 - gain, 1 - guess, -mean),
        ):
            if _centred_wrong(
                _Rounds(*(column[differs] for column in end)), goal, FIRST_RATE_OF_ARMS
            ):
                return True
    return False
