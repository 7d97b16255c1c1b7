"""A block of runs on a device: `run_block` for GPUs, with the same arguments.

Plans on devices: checks, and threads that each serve one device.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from itertools import cycle
from threading import Lock, local
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ...base.arrays import Ints
from ...environments import Environment
from ...environments.base import Adversary
from ...errors import UnsupportedError
from ...kernels.random.sampling import BERNOULLI
from ...kernels.random.stream import MOST_RUNS, seed_pool
from ...policies import Policy
from ..admission import outside_range
from ..cpu import BlockResult, table_and_best
from ..plan import Plan
from ..scheduler import Workers
from ..traffic import DIRECT, Traffic, kept_places, pending_bytes, pending_capacity
from .kernels import PendingArrays, kernel_for, kernel_key
from .memory import (
    REMEDY,
    WORKERS,
    Device,
    LaunchGrid,
    LaunchRequirements,
    check_fits,
    devices,
    launch_grid,
    most_runs,
    resident_threads,
    shape_of,
    simulated,
    toolkit,
)

_turns: dict[int, Lock] = defaultdict(Lock)  # by device

# Launches some runs. Arguments: the number of the first, regret to fill, plays to add to.
Launch: TypeAlias = Callable[[int, Any, Any], None]


class _Job(NamedTuple):
    """What to run, and where."""

    device: Device
    policy: Policy
    environment: Any
    requirements: LaunchRequirements
    shared: tuple[Any, Any]  # the checkpoints and the seed, on the device
    traffic: Traffic
    stream: Any


def run_block_on(
    policy: Policy,
    environment: Environment,
    horizon: int,
    checkpoints: Ints,
    seed: int,
    runs: range,
    *,
    device: Device,
    traffic: Traffic = DIRECT,
) -> BlockResult:
    """Play some runs of one policy, as many per launch as fit on the device."""
    cuda = toolkit()
    policy = policy.at(environment.arms)
    pending = pending_bytes(policy, environment.arms, traffic, horizon)
    requirements = LaunchRequirements(
        shape_of(policy, environment), horizon, len(checkpoints), pending
    )
    regret = np.empty((len(runs), len(checkpoints)))
    with cuda.gpus[device.number]:
        stream = cuda.stream()
        initial = policy.layout.new_state(environment.arms).scalars
        shared = tuple(
            cuda.to_device(array, stream) for array in (checkpoints, seed_pool(seed), initial)
        )
        plays = cuda.to_device(np.zeros((2, environment.arms), np.int64), stream)
        job = _Job(device, policy, environment, requirements, shared, traffic, stream)
        launch = _launcher(job)
        most = most_runs(requirements, device)
        for start in range(0, len(runs), most):
            piece = regret[start : start + most]
            there = cuda.device_array(piece.shape, np.float64, stream=stream)
            launch(runs.start + start, there, plays)
            _fetch(there, piece, stream)
            del there  # frees its memory before the next allocation
        counted = np.empty((2, environment.arms), np.int64)
        _fetch(plays, counted, stream)
    return BlockResult(regret, counted)


def kernel_name(policy: Policy, environment: Environment) -> str:
    """The name of a policy's kernel: equal for policies that share one."""
    policy = policy.at(environment.arms)
    noise = BERNOULLI if isinstance(environment, Adversary) else environment.table(2).noise
    return repr(kernel_key(policy, environment, shape_of(policy, environment), noise))


def compile_kernel(policy: Policy, environment: Environment) -> None:
    """Compile the kernel of a policy and cache it on disk."""
    run_block_on(policy, environment, 2, np.array([2]), 0, range(1), device=devices()[0])


def _pending(job: _Job) -> Callable[[LaunchGrid], tuple[Any, ...]]:
    """What makes the last argument of a kernel for a grid: `PendingArrays`, or nothing."""
    _, policy, environment, requirements, _, traffic, stream = job
    if traffic.is_direct:
        return lambda grid: ()
    cuda = toolkit()
    kept = cuda.to_device(kept_places(policy, environment.arms), stream)
    capacity = pending_capacity(policy, environment.arms, traffic, requirements.horizon)

    def allocated(grid: LaunchGrid) -> tuple[Any, ...]:
        # Threads are last, so that neighbours read and write neighbouring numbers.
        floats = cuda.device_array(
            (capacity.slots, capacity.floats, grid.size), np.float64, stream=stream
        )
        ints = cuda.device_array(
            (capacity.slots, capacity.ints, grid.size), np.int64, stream=stream
        )
        return PendingArrays(rules=traffic.rules(), kept=kept, floats=floats, ints=ints)

    return allocated


def _launcher(job: _Job) -> Launch:
    """A function that launches the kernel of a job with its arguments, which are on the device."""
    device, policy, environment, requirements, shared, traffic, stream = job
    cuda = toolkit()
    adaptive = requirements.shape.adaptive
    pending = _pending(job)
    facts: tuple[Any, ...]
    if adaptive:
        kernel = kernel_for(policy, environment, requirements.shape, late=not traffic.is_direct)
        # One extra element, because an array on a device cannot be empty.
        longer = (np.append(array, array.dtype.type(0)) for array in environment.memory())
        memory = [cuda.to_device(array, stream) for array in longer]
        facts = (policy.params(), environment.params(), *memory, requirements.horizon, *shared)
    else:
        table, best = table_and_best(environment, requirements.horizon)
        kernel = kernel_for(
            policy,
            environment,
            requirements.shape,
            table.noise,
            late=not traffic.is_direct,
        )
        sent = _sent(environment, requirements.horizon, device.number)
        facts = (policy.params(), *sent, table.concentration, best, *shared)

    def launch(first: int, regret: Any, plays: Any) -> None:
        grid = launch_grid(requirements, device, regret.shape[0])
        outside = np.zeros(1, np.int64)
        of_arms: list[Any] = []
        if adaptive:
            size = (grid.size, requirements.checkpoints, environment.arms)
            of_arms = [
                cuda.device_array(size, np.float64, stream=stream),
                cuda.to_device(outside, stream),
            ]
        with _turn(device, grid, requirements, stream):
            kernel.launch(*grid, stream, *facts, first, regret, plays, *of_arms, pending(grid))
        if adaptive:
            _fetch(of_arms[1], outside, stream)
        if outside[0]:
            raise outside_range(environment)

    return launch


@contextmanager
def _turn(
    device: Device, grid: LaunchGrid, requirements: LaunchRequirements, stream: Any
) -> Iterator[None]:
    """Serialise launches that fill a device: together, their states would not fit its caches."""
    if 2 * grid.size <= device.processors * resident_threads(requirements.shape):
        yield
        return
    with _turns[device.number]:
        yield
        _finish(stream)


@lru_cache(maxsize=16)
def _sent(environment: Environment, horizon: int, device: int) -> tuple[Any, Any]:
    """The table of an environment on a device, shared by policies and blocks."""
    cuda = toolkit()
    table, _ = table_and_best(environment, horizon)
    return cuda.to_device(table.rows), cuda.to_device(table.row_at.astype(np.int32))


def _fetch(there: Any, here: Any, stream: Any) -> None:
    """Copy an array from the device, after everything queued in the stream."""
    there.copy_to_host(here, stream=stream)
    _finish(stream)


def _finish(stream: Any) -> None:
    if not simulated():
        stream.synchronize()


_of_thread = local()  # `device` is the one that a thread serves


def devices_for(plan: Plan) -> tuple[Device, ...]:
    """The devices that will run a plan, or an error that says what prevents it."""
    available = devices()
    if plan.runs > MOST_RUNS:
        raise UnsupportedError(
            f"runs = {plan.runs}: must be at most {MOST_RUNS} on a device; {REMEDY}"
        )
    for policy in plan.policies:
        form = policy.at(plan.environment.arms)
        pending = pending_bytes(form, plan.environment.arms, plan.traffic, plan.horizon)
        requirements = LaunchRequirements(
            shape_of(form, plan.environment), plan.horizon, len(plan.checkpoints), pending
        )
        for device in available:
            check_fits(requirements, device, policy.label)
    return available


@contextmanager
def device_workers(available: tuple[Device, ...]) -> Iterator[Workers]:
    """A pool of threads, a few for each device."""
    turns = cycle(available)
    lock = Lock()

    def choose() -> None:
        with lock:
            _of_thread.device = next(turns)

    count = WORKERS * len(available)
    threads = ThreadPoolExecutor(count, "decoupled-cuda", initializer=choose)
    try:
        yield Workers(threads, count, timed_on_device)
    finally:
        threads.shutdown(wait=True, cancel_futures=True)


def timed_on_device(*arguments: Any, traffic: Traffic) -> tuple[BlockResult, float]:
    """Run a block on this thread's device; return its result and the seconds it took."""
    start = time.perf_counter()
    try:
        result = run_block_on(*arguments, device=_of_thread.device, traffic=traffic)
    except Exception as error:
        if "OUT_OF_MEMORY" not in str(error):
            raise
        name = _of_thread.device.name
        problem = f"device = 'cuda': {name} is out of memory; another program may be using it"
        remedy = (
            f"wait for that program, record fewer checkpoints, use a smaller block, or {REMEDY}"
        )
        raise UnsupportedError(f"{problem}; {remedy}") from error
    return result, time.perf_counter() - start
