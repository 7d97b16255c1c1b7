"""A world that drifts: the best arm moves on."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from ..base.validation import number_in, whole_number
from ..errors import ParameterError, invalid_value
from ..kernels.rounds import Table
from .base import Environment


@dataclass(frozen=True)
class Drifting(Environment):
    """The best arm moves on to the next one every `period` rounds, and after the last comes the first.

    Mean losses are `level - gap` for the best arm and `level` for every other; losses are Bernoulli.

    Regret is against the best *fixed* arm over the whole horizon, as everywhere: of n phases that arm is
    best in about n / arms. A learner that keeps up with the drift does better than any fixed arm, and
    *its regret is negative*, down to -gap * (rounds in which another arm was best), about
    -gap * horizon * (1 - 1 / arms). What it lost to the moving best arm is its distance from there.

    Args:
        arms: how many arms, two at least.
        gap: how much better the best arm is, above 0 and no more than `level`.
        period: how many rounds an arm stays the best.
        level: what every other arm costs, in (0, 1).

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
        object.__setattr__(self, "arms", whole_number("arms", self.arms, 2, "try 8"))
        object.__setattr__(self, "period", whole_number("period", self.period, 1, "try 1000"))
        level = number_in("level", self.level, 0.0, 1.0, remedy="the default is 0.5")
        object.__setattr__(self, "level", level)
        gap = number_in("gap", self.gap, 0.0, 1.0, remedy="try 0.125")
        if gap > level:
            raise ParameterError(invalid_value("gap", gap, f"must not exceed level = {level}", "lower it"))
        object.__setattr__(self, "gap", gap)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(arms=4, gap=0.2, period=7, level=0.6),)

    def table(self, horizon: int) -> Table:
        rows = self.level - self.gap * np.eye(self.arms)
        return Table(rows, np.arange(horizon) // self.period % self.arms)
