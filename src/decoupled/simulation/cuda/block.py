"""A block of runs on a device: what `run_block` is on a CPU, and the same arguments."""

from functools import lru_cache
from typing import Any

import numpy as np

from ...arrays import Floats, Ints
from ...environments import Environment
from ...environments.base import Adversary
from ...kernels.seeding import seed_pool
from ...policies import Policy
from ..run import BlockResult, went_outside, world
from .devices import Card, simulated, toolkit
from .kernels import kernel_for
from .shapes import Shape, shape_of
from .sizes import fitting_grid, launch_grid


def run_block_on(
    card: Card,
    policy: Policy,
    environment: Environment,
    horizon: int,
    checkpoints: Ints,
    seed: int,
    first: int,
    last: int,
) -> BlockResult:
    """Runs `first` to `last - 1` of one policy, as many at once as the device is good for."""
    cuda = toolkit()
    policy = policy.at(environment.arms)
    shape = shape_of(policy, environment)
    runs = last - first
    with cuda.gpus[card.number]:
        stream = cuda.stream()
        regret = cuda.device_array((runs, len(checkpoints)), np.float64, stream=stream)
        plays = cuda.to_device(np.zeros((2, environment.arms), np.int64), stream)
        shared = (cuda.to_device(checkpoints, stream), cuda.to_device(seed_pool(seed), stream), first)
        if isinstance(environment, Adversary):
            _play_adversary(card, shape, policy, environment, horizon, shared, regret, plays, stream)
        else:
            _play_table(card, shape, policy, environment, horizon, shared, regret, plays, stream)
        return BlockResult(_fetched(regret, stream), _fetched(plays, stream))


def _play_table(
    card: Card,
    shape: Shape,
    policy: Policy,
    environment: Environment,
    horizon: int,
    shared: Any,
    regret: Any,
    plays: Any,
    stream: Any,
) -> None:
    table, best = world(environment, horizon)
    rows, row_at = _sent(environment, horizon, card.number)
    grid = launch_grid(shape, card, len(regret))
    kernel_for(policy, environment, shape).launch(
        *grid, stream, policy.params(), rows, row_at, table.noise, table.concentration, best, *shared, regret, plays
    )  # fmt: skip


def _play_adversary(
    card: Card,
    shape: Shape,
    policy: Policy,
    environment: Adversary,
    horizon: int,
    shared: Any,
    regret: Any,
    plays: Any,
    stream: Any,
) -> None:
    cuda = toolkit()
    grid = fitting_grid(shape, card, len(regret), regret.shape[1])
    memory = environment.memory()
    start = [cuda.to_device(np.append(each, each.dtype.type(0)), stream) for each in memory]
    arm_losses = cuda.device_array((grid.size, regret.shape[1], environment.arms), np.float64, stream=stream)
    outside = cuda.to_device(np.zeros(1, np.int64), stream)
    kernel_for(policy, environment, shape).launch(
        *grid, stream, policy.params(), environment.params(), *start, horizon, *shared, regret, plays, arm_losses, outside
    )  # fmt: skip
    if _fetched(outside, stream)[0]:
        raise went_outside(environment)


@lru_cache(maxsize=16)
def _sent(environment: Environment, horizon: int, card: int) -> tuple[Any, Any]:
    """The table on a device; several policies and many blocks share it."""
    table, _ = world(environment, horizon)
    cuda = toolkit()
    return cuda.to_device(table.rows), cuda.to_device(table.row_at.astype(np.int32))


def _fetched(array: Any, stream: Any) -> Any:
    """The array, here, once all that is in the stream is done."""
    found: Floats | Ints = np.empty(array.shape, array.dtype)
    array.copy_to_host(found, stream=stream)
    if not simulated():
        stream.synchronize()
    return found
