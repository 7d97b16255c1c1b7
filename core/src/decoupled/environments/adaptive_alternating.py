"""The alternating environment with levels that react to the learner."""

from dataclasses import dataclass
from typing import NamedTuple, Self

from ..base.arrays import Floats
from ..base.validation import set_number, set_whole
from ..kernels.adversary import AdversaryFunctions, Memory
from ..kernels.jit import compiled
from .base import Adversary, set_best


class Params(NamedTuple):
    """The parameters of the compiled code."""

    gap: float
    best: float


@compiled
def losses(params: Params, memory: Memory, t: int, out: Floats) -> None:
    """Fill the losses of the current level; `memory.ints[0]` is 1 while it is high."""
    high = memory.ints[0] > 0
    for arm in range(len(out)):
        out[arm] = 1.0 if high else params.gap
    out[int(params.best)] = 1.0 - params.gap if high else 0.0


@compiled
def note(params: Params, memory: Memory, t: int, exploit: int) -> None:
    """Make the level high after the best arm was exploited, and low after any other arm."""
    memory.ints[0] = 1 if exploit == int(params.best) else 0


@dataclass(frozen=True)
class AdaptiveAlternating(Adversary):
    """Fixed gaps with levels that react: (0, gap) after a wrong arm was exploited, (1 - gap, 1) after the best one.

    The mean losses are those of `Alternating`, and one arm is best in every round. So this is the paper's stochastically
    constrained regime with an adversary that sees what is exploited. A learner that knows the arm gets losses near 1.

    Regret is against that arm, which is always the best fixed arm.

    Args:
        arms: how many arms, two at least.
        gap: how much worse every other arm is, in (0, 1).
        best: the number of the best arm.

    >>> import decoupled as dc
    >>> dc.environments.AdaptiveAlternating(arms=8, gap=0.125)
    AdaptiveAlternating(arms=8, gap=0.125, best=0)
    """

    arms: int
    gap: float
    best: int = 0

    params_type = Params
    functions = AdversaryFunctions(losses, note)

    def __post_init__(self) -> None:
        set_whole(self, "arms", 2, "try 8")
        set_number(self, "gap", 0.0, 1.0, "the paper has 0.125")
        set_best(self)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(8, gap=0.125),)

    def params(self) -> Params:
        return Params(self.gap, float(self.best))
