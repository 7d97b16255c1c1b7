"""The alternating environment: fixed gaps, changing levels."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from ..base.validation import set_number, set_whole
from ..kernels.rounds import Table
from .base import Environment


@dataclass(frozen=True)
class Alternating(Environment):
    """Zimmert and Seldin's stochastically constrained adversary, with Bernoulli losses.

    The mean losses of (arm 0, every other arm) alternate between (0, gap) and (1 - gap, 1), starting with the low level.
    Phase n = 1, 2, ... lasts floor(growth ** n) rounds. Arm 0 is optimal.

    Zimmert, J. and Seldin, Y. (2021). Tsallis-INF: an optimal algorithm for stochastic and adversarial
    bandits. JMLR 22.

    Args:
        arms: how many arms, two at least.
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
        start, phase = 0, 1
        while start < horizon:
            # Past the horizon the exact length does not matter, and a large power would overflow.
            past = phase * math.log(self.growth) > math.log(horizon) + 1.0
            length = horizon if past else math.floor(self.growth**phase)
            row_at[start : start + length] = (phase - 1) % 2
            start, phase = start + length, phase + 1
        return Table(rows, row_at)
