"""Adversaries: alternating levels that react to the learner, and one that punishes repetition."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from ..base.arrays import Floats
from ..base.validation import set_number, set_whole
from ..kernels.dispatch import AdversaryFunctions, Memory
from ..kernels.jit import compiled
from .base import Adversary, set_best, set_gap_below_level


class AlternatingParams(NamedTuple):
    """The parameters of the compiled code."""

    gap: float
    best: float


@compiled
def alternating_losses(params: AlternatingParams, memory: Memory, t: int, out: Floats) -> None:
    """Fill the losses of the current level; `memory.ints[0]` is 1 while it is high."""
    high = memory.ints[0] > 0
    for arm in range(len(out)):
        out[arm] = 1.0 if high else params.gap
    out[int(params.best)] = 1.0 - params.gap if high else 0.0


@compiled
def alternating_note(params: AlternatingParams, memory: Memory, t: int, exploit: int) -> None:
    """Make the level high after the best arm was exploited, and low after any other arm."""
    memory.ints[0] = 1 if exploit == int(params.best) else 0


@dataclass(frozen=True)
class AdaptiveAlternating(Adversary):
    """Fixed gaps with levels that react to what is exploited.

    The losses are (0, gap) after a wrong arm was exploited, and (1 - gap, 1) after the best one.

    The mean losses are those of `Alternating`, and one arm is best in every round. So this is the
    paper's stochastically constrained regime with an adversary that sees what is exploited. A
    learner that knows the arm gets losses near 1.

    Regret is against that arm, which is always the best fixed arm.

    Args:
        arms: the number of arms, at least two.
        gap: how much worse every other arm is, in (0, 1).
        best: the number of the best arm.

    >>> import decoupled as dc
    >>> dc.environments.AdaptiveAlternating(arms=8, gap=0.125)
    AdaptiveAlternating(arms=8, gap=0.125, best=0)
    """

    arms: int
    gap: float
    best: int = 0

    params_type = AlternatingParams
    functions = AdversaryFunctions(alternating_losses, alternating_note)

    def __post_init__(self) -> None:
        set_whole(self, "arms", 2, "try 8")
        set_number(self, "gap", 0.0, 1.0, "the paper has 0.125")
        set_best(self)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(8, gap=0.125),)


class PunishParams(NamedTuple):
    """The parameters of the compiled code."""

    window: float
    gap: float
    level: float
    best: float


@compiled
def punish_losses(params: PunishParams, memory: Memory, t: int, out: Floats) -> None:
    """Fill the losses.

    `memory.ints` holds the plays of the window as a ring, then each arm's count among them.
    """
    window = int(params.window)
    arms = len(out)
    best = int(params.best)
    punished = -1
    most = 0
    if t > 0:
        # If several arms were exploited equally often, punish the one exploited last.
        punished = memory.ints[(t - 1) % window]
        most = memory.ints[window + punished]
    for arm in range(arms):
        out[arm] = params.level - (params.gap if arm == best else 0.0)
        if memory.ints[window + arm] > most:
            punished = arm
            most = memory.ints[window + arm]
    if punished >= 0:
        out[punished] = 1.0


@compiled
def punish_note(params: PunishParams, memory: Memory, t: int, exploit: int) -> None:
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

    Every other arm costs `level`, and one, `best`, costs `level - gap`. The regret of
    `FollowTheLeader` grows linearly.

    Regret is against the best fixed arm on the losses of the run.

    Args:
        arms: the number of arms, at least two.
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

    params_type = PunishParams
    functions = AdversaryFunctions(punish_losses, punish_note)

    def __post_init__(self) -> None:
        set_whole(self, "arms", 2, "try 8")
        set_whole(self, "window", 1, "the default is 1")
        set_gap_below_level(self, "the default is 0.05")
        set_best(self)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(8, window=3),)

    def memory(self) -> Memory:
        return Memory(np.zeros(0), np.zeros(self.window + self.arms, np.int64))
