"""The alternating environment with levels that answer the learner."""

from dataclasses import dataclass
from typing import NamedTuple, Self

from ..base.arrays import Floats
from ..base.validation import number_in, whole_number
from ..kernels.adversary import AdversaryFunctions, Memory
from ..kernels.jit import compiled
from .base import Adversary


class Params(NamedTuple):
    """The parameters as compiled code takes them."""

    gap: float


@compiled
def losses(params: Params, memory: Memory, t: int, out: Floats) -> None:
    """`memory.ints[0]` is 1 while the level is high."""
    high = memory.ints[0] > 0
    for arm in range(len(out)):
        out[arm] = 1.0 if high else params.gap
    out[0] = 1.0 - params.gap if high else 0.0


@compiled
def note(params: Params, memory: Memory, t: int, exploit: int) -> None:
    """The level is high after the best arm was exploited, low after any other."""
    memory.ints[0] = 1 if exploit == 0 else 0


@dataclass(frozen=True)
class AdaptiveAlternating(Adversary):
    """Gaps stay, levels answer: (0, gap) after a wrong arm was exploited, (1 - gap, 1) after the best one.

    The mean losses are those of `Alternating`, and arm 0 is best in every round, so this is the paper's
    stochastically constrained regime with an adversary that sees what is exploited. A learner that has
    found arm 0 gets losses near 1 only, which carry the most noise and the least information.

    Regret is against arm 0, the best fixed arm on any losses that come.

    Args:
        arms: how many arms, two at least.
        gap: how much worse every other arm is, in (0, 1).

    >>> import decoupled as dc
    >>> dc.environments.AdaptiveAlternating(arms=8, gap=0.125)
    AdaptiveAlternating(arms=8, gap=0.125)
    """

    arms: int
    gap: float

    params_type = Params
    functions = AdversaryFunctions(losses, note)

    def __post_init__(self) -> None:
        object.__setattr__(self, "arms", whole_number("arms", self.arms, 2, "try 8"))
        gap = number_in("gap", self.gap, 0.0, 1.0, remedy="the paper has 0.125")
        object.__setattr__(self, "gap", gap)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(8, gap=0.125),)

    def params(self) -> Params:
        return Params(self.gap)
