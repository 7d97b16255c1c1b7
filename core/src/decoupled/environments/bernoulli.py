"""The stochastic environment."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from ..base.validation import numbers_within
from ..kernels.rounds import Table
from .base import Environment


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
        rewards = numbers_within("rewards", self.rewards, 2, "give the mean reward of each arm")
        object.__setattr__(self, "rewards", rewards)

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
