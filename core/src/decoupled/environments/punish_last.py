"""An adversary that punishes repetition."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from ..base.arrays import Floats
from ..base.validation import set_whole
from ..kernels.adversary import AdversaryFunctions, Memory
from ..kernels.jit import compiled
from .base import Adversary, set_best, set_gap_below_level


class Params(NamedTuple):
    """The parameters of the compiled code."""

    window: float
    gap: float
    level: float
    best: float


@compiled
def losses(params: Params, memory: Memory, t: int, out: Floats) -> None:
    """Fill the losses; `memory.ints` holds the plays of the window as a ring, then each arm's count among them."""
    window = int(params.window)
    arms, best = len(out), int(params.best)
    punished, most = -1, 0
    if t > 0:
        # If several arms were exploited equally often, punish the one exploited last.
        punished = memory.ints[(t - 1) % window]
        most = memory.ints[window + punished]
    for arm in range(arms):
        out[arm] = params.level - (params.gap if arm == best else 0.0)
        if memory.ints[window + arm] > most:
            punished, most = arm, memory.ints[window + arm]
    if punished >= 0:
        out[punished] = 1.0


@compiled
def note(params: Params, memory: Memory, t: int, exploit: int) -> None:
    """Put the play into the ring and drop the oldest."""
    window = int(params.window)
    place = t % window
    if t >= window:
        memory.ints[window + memory.ints[place]] -= 1
    memory.ints[place] = exploit
    memory.ints[window + exploit] += 1


@dataclass(frozen=True)
class PunishLast(Adversary):
    """The arm exploited last, or most often within a window, costs 1.

    Every other arm costs `level`, and one of them, `best`, costs `level - gap`. This punishes a policy that commits to an arm: the
    regret of `FollowTheLeader` grows linearly.

    Regret is against the best fixed arm on the losses of the run.

    Args:
        arms: how many arms, two at least.
        window: how many past rounds count; 1 is only the last one.
        gap: how much better the arm `best` is when it is not punished, in (0, level].
        level: the loss of an arm that is not punished, in (0, 1).
        best: the number of the arm that is better.

    >>> import decoupled as dc
    >>> dc.environments.PunishLast(arms=8)
    PunishLast(arms=8, window=1, gap=0.05, level=0.5, best=0)
    """

    arms: int
    window: int = 1
    gap: float = 0.05
    level: float = 0.5
    best: int = 0

    params_type = Params
    functions = AdversaryFunctions(losses, note)

    def __post_init__(self) -> None:
        set_whole(self, "arms", 2, "try 8")
        set_whole(self, "window", 1, "the default is 1")
        set_gap_below_level(self, "the default is 0.05")
        set_best(self)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(8, window=3),)

    def params(self) -> Params:
        return Params(float(self.window), self.gap, self.level, float(self.best))

    def memory(self) -> Memory:
        return Memory(np.zeros(0), np.zeros(self.window + self.arms, np.int64))
