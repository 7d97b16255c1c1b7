"""Any arm can be the best one of an adversary."""

from typing import Any

import numpy as np
import pytest

import decoupled as dc

WORLDS = (
    dc.environments.PunishLast(4, window=3, gap=0.1),
    dc.environments.AdaptiveAlternating(4, gap=0.25),
)


def losses_of(world: Any, arms: list[int]) -> list[list[float]]:
    """The losses of each round, if these arms are exploited."""
    losses, note = (getattr(each, "py_func", each) for each in world.functions)
    memory, out, seen = world.memory(), np.zeros(world.arms), []
    for t, arm in enumerate(arms):
        losses(world.params(), memory, t, out)
        note(world.params(), memory, t, arm)
        seen.append(out.tolist())
    return seen


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: type(world).__name__)
def test_another_best_arm_is_the_same_world_with_two_arms_exchanged(world: Any) -> None:
    exchanged = [2, 1, 0, 3]
    arms = [0, 0, 2, 0, 1, 0, 0, 2, 2, 3]
    other = type(world)(**{**vars(world), "best": 2})
    found = np.array(losses_of(other, [exchanged[arm] for arm in arms]))
    assert found[:, exchanged].tolist() == losses_of(world, arms)
    assert losses_of(other, arms) != losses_of(world, arms)


@pytest.mark.parametrize("best", [4, -1, 0.5])
@pytest.mark.parametrize("world", WORLDS, ids=lambda world: type(world).__name__)
def test_the_best_arm_is_one_of_them(world: Any, best: float) -> None:
    with pytest.raises(dc.ParameterError, match=rf"best = {best}: must be "):
        type(world)(**{**vars(world), "best": best})
