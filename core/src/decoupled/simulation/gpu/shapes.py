"""The size of one thread's state."""

from typing import NamedTuple

from ...environments.base import Adversary, Environment
from ...kernels.jit import is_ours
from ...kernels.state import SHARED_SCALARS
from ...policies import Policy


class Shape(NamedTuple):
    """Counts of single numbers and of rows; a row has one entry per arm."""

    arms: int
    scalars: int
    floats: int  # rows
    ints: int  # rows
    memory_floats: int = 0  # of an adversary
    memory_ints: int = 0

    adaptive: bool = False
    common: int = 0  # rows of floats that are allocated but never used
    int_bytes: int = 4  # 8 for a user's policy, which may store any 64-bit integer

    def bytes(self) -> int:
        """The local memory it takes; the few single numbers stay in registers."""
        an_arm = 8 * self.floats + self.int_bytes * self.ints + (16 if self.adaptive else 0)
        return an_arm * self.arms + 8 * (self.memory_floats + self.memory_ints)

    def touched(self) -> int:
        """The bytes of it that are read and written."""
        return max(1, self.bytes() - 8 * self.common * self.arms)


def shape_of(policy: Policy, environment: Environment) -> Shape:
    """The shape for a policy in an environment."""
    layout, arms = policy.layout, environment.arms
    ints = len(layout.ints) + len(layout.pairs) * arms
    own = (arms, len(SHARED_SCALARS) + len(layout.scalars), max(1, len(layout.floats)), max(1, ints))
    common, int_bytes = policy.common_rows, 4 if is_ours(policy.params_type, *policy.functions) else 8
    if not isinstance(environment, Adversary):
        return Shape(*own, common=common, int_bytes=int_bytes)
    memory = environment.memory()
    return Shape(*own, len(memory.floats), len(memory.ints), True, common, int_bytes)
