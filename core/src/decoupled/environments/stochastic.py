"""Environments that do not react to what is played: fixed rewards, a best arm that drifts, fixed
gaps at changing levels, and a large catalogue.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from ..base.arrays import Floats
from ..base.validation import as_float, set_number, set_whole
from ..errors import ParameterError
from ..kernels.rounds import Table
from .base import Environment, set_gap_below_level


@dataclass(frozen=True)
class Bernoulli(Environment):
    """Every arm pays a Bernoulli reward with a fixed mean; the loss is 1 - reward.

    Args:
        rewards: the mean reward of each arm, two at least, each in [0, 1].

    >>> import decoupled as dc
    >>> easy = dc.environments.Bernoulli(rewards=[0.55, 0.6, 0.45, 0.3, 0.2])
    >>> easy.arms, easy.table(horizon=3).rows.round(2).tolist()
    (5, [[0.45, 0.4, 0.55, 0.7, 0.8]])
    """

    rewards: Sequence[float] = field(metadata={"depth": 1})

    def __post_init__(self) -> None:
        object.__setattr__(self, "rewards", _checked_rewards(self.rewards))

    @property
    def label(self) -> str:
        """A short name for tables and figures."""
        return super().label if len(self.rewards) <= 8 else f"Bernoulli({len(self.rewards)} arms)"

    @property
    def arms(self) -> int:  # type: ignore[override]
        """How many arms there are."""
        return len(self.rewards)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls([0.2, 0.7]),)

    def table(self, horizon: int) -> Table:
        return Table(1.0 - np.array([self.rewards]), np.zeros(horizon, np.int64))


def _checked_rewards(rewards: Any) -> tuple[float, ...]:
    """The mean reward of each arm, of two or more arms."""
    # A set has no order that arms could be numbered by.
    is_ordered = isinstance(rewards, Iterable) and not isinstance(rewards, (set, frozenset))
    numbers = [as_float(reward) for reward in rewards] if is_ordered else []
    means = [number for number in numbers if number is not None and 0.0 <= number <= 1.0]
    if len(means) < 2 or len(means) < len(numbers):
        rule = "must be 2 numbers or more, each in [0, 1]"
        raise ParameterError.of("rewards", rewards, rule, "give the mean reward of each arm")
    return tuple(means)


@dataclass(frozen=True)
class Drifting(Environment):
    """Every `period` rounds the next arm becomes the best; after the last arm comes the first.

    Mean losses are `level - gap` for the best arm and `level` for every other; losses are
    Bernoulli.

    Regret is against the best *fixed* arm over the whole horizon, as everywhere: that arm is best
    in about n / arms of n phases. A learner that follows the drift does better than any fixed arm,
    and *its regret is negative*, down to -gap * (rounds in which another arm was best), about -gap
    * horizon * (1 - 1 / arms). The distance from that value is what it lost to the moving best arm.

    Args:
        arms: the number of arms, at least two.
        gap: how much better the best arm is, above 0 and at most `level`.
        period: how many rounds an arm stays the best.
        level: the mean loss of every other arm, in (0, 1).

    >>> import decoupled as dc
    >>> table = dc.environments.Drifting(arms=2, gap=0.25, period=2).table(horizon=5)
    >>> table.rows.tolist(), table.row_at.tolist()
    ([[0.25, 0.5], [0.5, 0.25]], [0, 0, 1, 1, 0])
    """

    arms: int
    gap: float
    period: int
    level: float = 0.5

    def __post_init__(self) -> None:
        set_whole(self, "arms", 2, "try 8")
        set_whole(self, "period", 1, "try 1000")
        set_gap_below_level(self, "try 0.125")

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(arms=4, gap=0.2, period=7, level=0.6),)

    def table(self, horizon: int) -> Table:
        rows = self.level - self.gap * np.eye(self.arms)
        return Table(rows, np.arange(horizon) // self.period % self.arms)


@dataclass(frozen=True)
class Alternating(Environment):
    """Zimmert and Seldin's stochastically constrained adversary, with Bernoulli losses.

    The mean losses of (arm 0, every other arm) alternate between (0, gap) and (1 - gap, 1),
    starting with the low level. Phase n = 1, 2, ... lasts floor(growth ** n) rounds. Arm 0 is
    optimal.

    Zimmert, J. and Seldin, Y. (2021). Tsallis-INF: an optimal algorithm for stochastic and
    adversarial bandits. JMLR 22.

    Args:
        arms: the number of arms, at least two.
        gap: how much worse every other arm is, in (0, 1).
        growth: the factor by which phases grow, above 1.

    >>> import decoupled as dc
    >>> table = dc.environments.Alternating(arms=2, gap=0.25).table(horizon=5)
    >>> table.rows.tolist(), table.row_at.tolist()
    ([[0.0, 0.25], [0.75, 1.0]], [0, 1, 1, 0, 0])
    """

    arms: int
    gap: float
    growth: float = 1.6

    def __post_init__(self) -> None:
        set_whole(self, "arms", 2, "the paper has 8")
        set_number(self, "gap", 0.0, 1.0, "the paper has 0.125")
        set_number(self, "growth", 1.0, math.inf, "the default is 1.6")

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(arms=8, gap=0.125),)

    def table(self, horizon: int) -> Table:
        rows = np.full((2, self.arms), self.gap)
        rows[0, 0] = 0.0
        rows[1] = 1.0
        rows[1, 0] = 1.0 - self.gap
        row_at = np.empty(horizon, np.int64)
        start = 0
        phase = 1
        while start < horizon:
            # Past the horizon the exact length does not matter, and a large power would overflow.
            is_past = phase * math.log(self.growth) > math.log(horizon) + 1.0
            length = horizon if is_past else math.floor(self.growth**phase)
            row_at[start : start + length] = (phase - 1) % 2
            start += length
            phase += 1
        return Table(rows, row_at)


@dataclass(frozen=True)
class Catalogue(Environment):
    """Random items with a known best, like those of a shop or a film library.

    The best item has mean reward `top`. Every other item has (top - gap) * B with B drawn from
    Beta(1, 4): half of them pay less than a sixth of top - gap, and 16 in 10,000 more than four
    fifths. Rewards are Bernoulli and a loss is 1 - reward. The description stays short for any
    number of items.

    Args:
        arms: the number of items, at least two.
        gap: the smallest distance of any other item from the best.
        top: the mean reward of the best item, above `gap` and below 1.
        seed: determines the items and the place of the best.

    >>> import decoupled as dc
    >>> shop = dc.environments.Catalogue(arms=1_000_000, gap=0.2, top=0.9)
    >>> losses = shop.table(horizon=10).rows[0]
    >>> int(losses.argmin()) == shop.best, round(float(losses.min()), 6)
    (True, 0.1)
    """

    arms: int
    gap: float = 0.2
    top: float = 0.9
    seed: int = 0

    def __post_init__(self) -> None:
        set_whole(self, "arms", 2, "try 1000000")
        top = set_number(self, "top", 0.0, 1.0, "the default is 0.9")
        gap = set_number(self, "gap", 0.0, 1.0, "the default is 0.2")
        if gap >= top:
            raise ParameterError.of("gap", gap, f"must be below top = {top}", "lower it")
        set_whole(self, "seed", 0, "the default is 0")

    @property
    def best(self) -> int:
        """The place of the best item."""
        return int(np.random.default_rng(self.seed).integers(self.arms))

    def rewards(self) -> Floats:
        """The mean reward of every item."""
        draw = np.random.default_rng(self.seed)
        best = draw.integers(self.arms)
        rewards = (self.top - self.gap) * draw.beta(1.0, 4.0, self.arms)
        rewards[best] = self.top
        return np.asarray(rewards)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(500, gap=0.25, top=0.8, seed=3),)

    def table(self, horizon: int) -> Table:
        return Table(1.0 - self.rewards()[None, :], np.zeros(horizon, np.int64))
