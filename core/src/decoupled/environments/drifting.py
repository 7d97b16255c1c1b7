"""An environment that drifts: the best arm changes."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from ..base.validation import set_whole
from ..kernels.rounds import Table
from .base import Environment, set_gap_below_level


@dataclass(frozen=True)
class Drifting(Environment):
    """Every `period` rounds the next arm becomes the best; after the last arm comes the first.

    Mean losses are `level - gap` for the best arm and `level` for every other; losses are Bernoulli.

    Regret is against the best *fixed* arm over the whole horizon, as everywhere: that arm is best in about n / arms of n
    phases. A learner that follows the drift does better than any fixed arm, and *its regret is negative*, down to -gap *
    (rounds in which another arm was best), about -gap * horizon * (1 - 1 / arms). The distance from that value is what
    it lost to the moving best arm.

    Args:
        arms: how many arms, two at least.
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
