"""A broad family of instances for tuning parameters, drawn from a seed.

Parameters look too good on the instances they were tuned on. These instances are drawn at random, and none
of them is in the paper: the numbers of arms differ, and gaps and levels are real numbers. Regimes, levels,
noise, drift and adversaries all vary.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from decoupled.base import Floats
from decoupled.environments import AdaptiveAlternating, Alternating, Environment, LossTable, PunishLast
from decoupled.policies import FTPL, Policy
from decoupled.simulation import simulate

ARMS = (2, 3, 5, 6, 7, 10, 12, 20, 24, 40, 48, 96)  # none of the paper's 4, 8, 16, 32, 64
HORIZONS = (1_000, 3_000, 10_000, 30_000)
SMOOTHING = 0.02
TAIL = 0.95


class Instance(NamedTuple):
    """An environment with its kind and its horizon."""

    kind: str
    environment: Environment
    horizon: int


def family(count: int, seed: int) -> list[Instance]:
    """Draw `count` instances, cycling through the kinds.

    >>> from decoupled_lab.paper.family import family
    >>> [instance.kind for instance in family(6, seed=0)]
    ['stochastic', 'levels', 'alternating', 'users', 'punish', 'answering']
    >>> family(2, seed=0)[1].environment.arms
    12
    """
    return [_draw(list(KINDS)[i % len(KINDS)], np.random.default_rng([seed, i])) for i in range(count)]


class Score(NamedTuple):
    """A policy's regret compared with that of the paper's FTPL over a family, as ratios.

    `mean` is the geometric mean over instances of the ratio of mean regrets. `tail` is the same for 95th
    percentiles. `worst` is the largest ratio of mean regrets.
    """

    mean: float
    tail: float
    worst: float


def score(policy: Policy, instances: Sequence[Instance], runs: int, seed: int = 0) -> Score:
    """Score a policy against the paper's FTPL on the same losses; negative regret counts as zero.

    SMOOTHING * sqrt(K * T) is added to both regrets, so that an instance with almost no regret does not
    dominate the score.

    >>> from decoupled import Ladder
    >>> from decoupled_lab.paper.family import family, score
    >>> score(Ladder(), family(2, seed=0), runs=10).mean < 1
    True
    """
    means, tails = [], []
    for place, instance in enumerate(instances):
        results = simulate(
            [FTPL(), policy], instance.environment, instance.horizon, runs, seed + place, checkpoints=1
        )
        size = instance.environment.arms, instance.horizon
        paper, ours = (smoothed(results.final_regret(each), *size) for each in (FTPL(), policy))
        means.append(math.log(ours.mean() / paper.mean()))
        tails.append(math.log(np.quantile(ours, TAIL) / np.quantile(paper, TAIL)))
    return Score(*(float(np.exp(each)) for each in (np.mean(means), np.mean(tails), np.max(means))))


def smoothed(regret: Floats, arms: int, horizon: int) -> Floats:
    """The regrets of runs as a ratio should count them: never negative, plus SMOOTHING * sqrt(K * T).

    >>> smoothed(np.array([-3.0, 3.0]), arms=4, horizon=10_000).tolist()
    [4.0, 7.0]
    """
    counted: Floats = np.maximum(regret, 0.0) + SMOOTHING * math.sqrt(arms * horizon)
    return counted


def _draw(kind: str, draw: np.random.Generator) -> Instance:
    arms = int(draw.choice(ARMS))
    horizon = int(draw.choice(HORIZONS, p=(0.15, 0.25, 0.45, 0.15)))
    return Instance(kind, KINDS[kind](draw, arms), horizon)


def _log_uniform(draw: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(draw.uniform(np.log(low), np.log(high))))


def _gaps(draw: np.random.Generator, arms: int) -> Floats:
    """Gaps of at least a smallest gap, with zero for the best arm; sometimes all others are equal."""
    least = _log_uniform(draw, 0.02, 0.3)
    spread = draw.choice([0.0, 0.5, 2.0])
    gaps = least * (1.0 + spread * draw.exponential(size=arms))
    gaps[draw.integers(arms)] = 0.0
    capped: Floats = np.minimum(gaps, 0.7)
    return capped


def _noise(draw: np.random.Generator) -> dict[str, Any]:
    kind = str(draw.choice(["bernoulli", "bernoulli", "beta", "none"]))
    return {"noise": kind, "concentration": _log_uniform(draw, 1.0, 20.0)}


def _stochastic(draw: np.random.Generator, arms: int) -> Environment:
    gaps = _gaps(draw, arms)
    return LossTable(rows=[draw.uniform(0.0, 1.0 - gaps.max()) + gaps], index=[0], **_noise(draw))


def _levels(draw: np.random.Generator, arms: int) -> Environment:
    """The gaps stay constant while the level jumps from one value to another after each stretch."""
    gaps, count = _gaps(draw, arms), int(draw.integers(2, 40))
    levels = draw.uniform(0.0, 1.0 - gaps.max(), count)
    stretch = int(_log_uniform(draw, 1.0, 2_000.0))
    return LossTable(
        rows=levels[:, None] + gaps, index=np.repeat(np.arange(count), stretch), **_noise(draw)
    )


def _alternating(draw: np.random.Generator, arms: int) -> Environment:
    gap, growth = _log_uniform(draw, 0.02, 0.4), draw.uniform(1.2, 3.0)
    return Alternating(arms, gap, growth)


def _users(draw: np.random.Generator, arms: int) -> Environment:
    """Each row is a user with a level and tastes, who comes once in a while or for many rounds in a row."""
    count = int(draw.integers(20, 400))
    worth = draw.normal(size=arms) * _log_uniform(draw, 0.03, 0.2)
    tastes = draw.normal(size=(count, arms)) * draw.uniform(0.02, 0.2)
    levels = draw.normal(draw.uniform(0.2, 0.8), 0.15, size=(count, 1))
    visits = np.repeat(draw.integers(count, size=3_000), int(_log_uniform(draw, 1.0, 100.0)))
    return LossTable(rows=np.clip(levels + worth + tastes, 0.0, 1.0), index=visits, **_noise(draw))


def _punish(draw: np.random.Generator, arms: int) -> Environment:
    level = draw.uniform(0.2, 0.8)
    window = int(draw.choice([1, 1, 5, 50]))
    return PunishLast(arms, window, gap=level * draw.uniform(0.05, 0.5), level=level)


def _answering(draw: np.random.Generator, arms: int) -> Environment:
    return AdaptiveAlternating(arms, gap=_log_uniform(draw, 0.03, 0.4))


KINDS = {
    "stochastic": _stochastic,
    "levels": _levels,
    "alternating": _alternating,
    "users": _users,
    "punish": _punish,
    "answering": _answering,
}
