"""A large catalogue: very many items, most of them with low rewards, and one best."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from ..base.arrays import Floats
from ..base.validation import set_number, set_whole
from ..errors import ParameterError
from ..kernels.rounds import Table
from .base import Environment


@dataclass(frozen=True)
class Catalogue(Environment):
    """Random items with a known best, like those of a shop or a film library.

    The best item has mean reward `top`. Every other item has (top - gap) * B with B drawn from Beta(1, 4): half of them
    pay less than a sixth of top - gap, and 16 in 10,000 more than four fifths. Rewards are Bernoulli and a loss is
    1 - reward. The description stays short for any number of items.

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
