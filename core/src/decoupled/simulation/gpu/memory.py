"""The GPUs of this machine, how many runs fit on one at once, and why none can be used."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from threading import Lock
from typing import Any, NamedTuple

import numba
import numpy as np

from ...base.extras import how_to_install
from ...environments.base import Adversary, Environment
from ...errors import UnsupportedError
from ...kernels.jit import is_ours
from ...policies import Policy
from ..plan import Plan
from .switches import switches_of


class Shape(NamedTuple):
    """Counts of single numbers and of rows; a row has one entry per arm.

    Attributes:
        arms: the number of arms.
        scalars: the scalars of the policy's state.
        floats: its rows of floats.
        ints: its rows of whole numbers.
        memory_floats: the numbers that an adversary remembers.
        memory_ints: the whole numbers that it remembers.
        adaptive: whether the environment is an adversary.
        common: the rows of floats that are allocated but never used.
        int_bytes: the size of a whole number: 4, or 8 for a user's policy, which may store any
            64-bit integer.
    """

    arms: int
    scalars: int
    floats: int
    ints: int
    memory_floats: int = 0
    memory_ints: int = 0

    adaptive: bool = False
    common: int = 0
    int_bytes: int = 4

    def bytes(self) -> int:
        """The local memory that a run takes; the few single numbers stay in registers."""
        an_arm = 8 * self.floats + self.int_bytes * self.ints + (16 if self.adaptive else 0)
        return an_arm * self.arms + 8 * (self.memory_floats + self.memory_ints)

    def touched(self) -> int:
        """The bytes of this memory that are read and written."""
        return max(1, self.bytes() - 8 * self.common * self.arms)


def shape_of(policy: Policy, environment: Environment) -> Shape:
    """The shape for a policy in an environment."""
    layout = policy.layout
    arms = environment.arms
    ints = len(layout.ints) + len(layout.pairs) * arms
    own = (arms, len(layout.all_scalars), max(1, len(layout.floats)), max(1, ints))
    common = switches_of(policy.params_type).shared_rows
    int_bytes = 4 if is_ours(policy.params_type, *policy.functions) else 8
    if not isinstance(environment, Adversary):
        return Shape(*own, common=common, int_bytes=int_bytes)
    memory = environment.memory()
    return Shape(*own, len(memory.floats), len(memory.ints), True, common, int_bytes)


_one_at_a_time = Lock()
REMEDY = "use device='cpu'"
_settings: Any = numba.config


class Device(NamedTuple):
    """A device: its number, name, number of multiprocessors, and free memory in bytes."""

    number: int
    name: str
    processors: int
    free: int


def simulated() -> bool:
    """Whether Numba's slow simulator replaces the device, for tests (NUMBA_ENABLE_CUDASIM=1)."""
    return bool(_settings.ENABLE_CUDASIM)


@cache
def toolkit() -> Any:
    """`numba.cuda`, or an error that says why it cannot be used."""
    if simulated():
        if not _settings.DISABLE_JIT:
            rule = "Numba's CUDA simulator calls Python functions only"
            raise UnsupportedError(
                f"device = 'cuda': {rule}; set NUMBA_DISABLE_JIT=1 as well, or {REMEDY}"
            )
        return import_module("numba.cuda")
    try:
        with _names_removed_from_numpy():
            cuda: Any = import_module("numba.cuda")
            if getattr(cuda, "implementation", "") == "NVIDIA":
                # Otherwise it is loaded later, at the first compilation.
                import_module("numba.cuda.cudaimpl")
    except ImportError as error:
        problem = f"device = 'cuda': numba-cuda cannot be loaded ({error})"
        raise UnsupportedError(f"{problem}; {REMEDY}") from None
    if getattr(cuda, "implementation", "") != "NVIDIA":
        rule = "needs the package numba-cuda, which is not installed"
        remedy = how_to_install("cuda")
        raise UnsupportedError(f"device = 'cuda': {rule}; {remedy}, or {REMEDY}")
    if not cuda.is_available():
        raise UnsupportedError(f"device = 'cuda': no NVIDIA GPU was found{_why(cuda)}; {REMEDY}")
    # A few runs leave most of a device idle; a small simulation should not warn about that.
    _settings.CUDA_LOW_OCCUPANCY_WARNINGS = 0
    return cuda


@contextmanager
def _names_removed_from_numpy() -> Iterator[None]:
    """Lend NumPy, in the block, a name that it dropped and numba-cuda needs."""
    # numba-cuda 0.30 needs an alias of vstack that NumPy 2.5 removed.
    name = "row_stack"
    missing = not hasattr(np, name)
    if missing:
        setattr(np, name, np.vstack)
    try:
        yield
    finally:
        if missing:
            delattr(np, name)


def _why(cuda: Any) -> str:
    try:
        first = first_line(cuda.cuda_error() or "").rstrip(".:")
    except Exception:  # the driver can raise anything
        return ""
    return f" ({first})" if first else ""


def first_line(error: object) -> str:
    """The first line of an error that is not blank."""
    return next(filter(None, map(str.strip, str(error).splitlines())), "")


@cache
def devices() -> tuple[Device, ...]:
    """Every device, with the memory that was free at the first call."""
    cuda = toolkit()
    if simulated():
        return (Device(0, "simulator", 1, 2**30),)
    found_devices = []
    with _one_at_a_time:  # Numba does not support calls from several threads here
        for number in range(len(cuda.gpus)):
            with cuda.gpus[number]:
                current = cuda.get_current_device()
                name = current.name
                if isinstance(name, bytes):
                    name = name.decode()
                free = int(cuda.current_context().get_memory_info().free)
                found_devices.append(
                    Device(
                        number=number,
                        name=str(name),
                        processors=int(current.MULTIPROCESSOR_COUNT),
                        free=free,
                    )
                )
    return tuple(found_devices)


WARP = 32
NEAR = 224 * 1024  # bytes of a multiprocessor's cache that states may use
MOST_THREADS = 768  # per multiprocessor: with more, each has too few registers
REGISTERS = 65_536  # per multiprocessor
FEWEST_THREADS = (
    64  # per multiprocessor with their states in its cache; with fewer, the cache does not pay
)
# Per multiprocessor, if states are farther away: some compute while others wait for theirs.
FAR_THREADS = 256
MOST_LOCAL = 512 * 1024  # bytes of local memory that a thread can have
RESIDENT = 2048  # threads of a multiprocessor; the driver reserves local memory for all of them
SHARE = 0.4  # of the free memory for the local memory of all threads; the same for results
AT_ONCE = 8  # large blocks on a device together, if several plans run
MOST_COUNT = 2**31 - 1  # plays that the threads of a block can count together
MOST_ARMS = 2048  # whose counts and table fit in a block's shared memory

WORKERS = 2  # blocks in progress on each device: one computes while another's results are fetched
BLOCK_SECONDS = 0.1
BLOCK_BYTES = 256 * 1024**2  # results of a block; several wait on the host
ROUNDS_A_SECOND = 1.2e11  # divided by the number of arms: a rough guess is enough


class LaunchGrid(NamedTuple):
    """The size of a launch: the number of blocks, and the threads of each."""

    blocks: int
    threads: int

    @property
    def size(self) -> int:
        """The number of threads in all blocks."""
        return self.blocks * self.threads


class LaunchRequirements(NamedTuple):
    """What determines how many runs fit on a device: a state, the horizon and the checkpoints.

    Against an adversary, each thread also stores the loss of every arm at every checkpoint. If
    feedback is not direct, it stores its pending decisions, which take `pending` bytes.
    """

    shape: Shape
    horizon: int
    checkpoints: int
    pending: int = 0


def resident_threads(shape: Shape) -> int:
    """How many threads of a multiprocessor should run at once: as many as have their states in its
    cache, if there is room for any.
    """
    fitting = NEAR // shape.touched() // WARP * WARP
    return int(min(fitting, MOST_THREADS)) if fitting >= FEWEST_THREADS else FAR_THREADS


def registers(shape: Shape) -> int:
    """How many registers a thread may have, so that all resident threads run at once."""
    return int(min(255, REGISTERS // resident_threads(shape) // 8 * 8))


def launch_grid(requirements: LaunchRequirements, device: Device, runs: int) -> LaunchGrid:
    """The grid for a number of runs; if they are more than the threads, each plays several."""
    count = min(runs, device.processors * resident_threads(requirements.shape))
    if requirements.shape.adaptive:
        room = _room(requirements, device) // (
            8 * requirements.checkpoints * requirements.shape.arms
        )
        count = min(count, max(WARP, room // WARP * WARP))
    if requirements.pending:
        count = min(
            count, max(WARP, _room(requirements, device) // requirements.pending // WARP * WARP)
        )
    # The local memory of a warp is interleaved; a smaller block would leave part of each cache line
    # empty.
    threads = 1 if simulated() else WARP
    return LaunchGrid(math.ceil(count / threads), threads)


def most_runs(requirements: LaunchRequirements, device: Device) -> int:
    """How many runs a launch can have: results must fit in memory, and plays in the counters."""
    widest = launch_grid(requirements, device, MOST_COUNT)
    # All threads of a block may play one run more than some threads of another.
    runs_a_thread = MOST_COUNT // (widest.threads * requirements.horizon)
    return max(
        1,
        min(
            _room(requirements, device) // (8 * requirements.checkpoints),
            widest.size * runs_a_thread,
        ),
    )


def _room(requirements: LaunchRequirements, device: Device) -> int:
    """Bytes for one block's results.

    Against an adversary, as much again holds the losses of every arm.
    """
    return int(device.free * SHARE / AT_ONCE / (2 if requirements.shape.adaptive else 1))


def check_fits(requirements: LaunchRequirements, device: Device, what: str) -> None:
    """Raise an error if the threads of a device cannot hold a simulation."""
    shape = requirements.shape
    room = _room(requirements, device)
    most = min(MOST_LOCAL, int(device.free * SHARE) // (device.processors * RESIDENT))
    what = f"device = 'cuda': {what} with {shape.arms} arms"
    problem = None
    if shape.arms > MOST_ARMS:
        problem = f"{what}: a device supports at most {MOST_ARMS} arms; "
    elif shape.bytes() > most:
        needed = f"needs {shape.bytes():,} bytes per run"
        problem = f"{what} {needed}, and a thread of {device.name} has at most {most:,}; "
    elif shape.adaptive and 8 * requirements.checkpoints * shape.arms * WARP > room:
        needed = (
            f"and {requirements.checkpoints} checkpoints needs more memory than {device.name} has"
        )
        problem = f"{what} {needed}; record fewer checkpoints, or "
    elif requirements.pending * WARP > room:
        needed = f"needs {requirements.pending:,} bytes per run for pending decisions"
        remedy = "give a shorter delay, or "
        problem = f"{what} {needed}, and {device.name} has too little memory for that; {remedy}"
    elif WARP * requirements.horizon > MOST_COUNT:
        most = MOST_COUNT // WARP
        problem = f"horizon = {requirements.horizon}: must be at most {most} rounds on a device; "
    if problem is not None:
        raise UnsupportedError(problem + REMEDY)


def block_size(plan: Plan, devices: tuple[Device, ...]) -> int:
    """How many runs a block holds: about 0.1 s of work, in whole waves if results are small."""
    device = min(devices, key=lambda candidate: candidate.free)
    arms = plan.environment.arms
    shape = max(
        (shape_of(policy.at(arms), plan.environment) for policy in plan.policies), key=Shape.bytes
    )
    wave = device.processors * resident_threads(shape)
    wanted = int(BLOCK_SECONDS * ROUNDS_A_SECOND / (arms * plan.horizon))
    share = math.ceil(plan.runs / len(devices))  # so that every device gets some
    most = BLOCK_BYTES // (8 * len(plan.checkpoints))
    return max(1, min(max(wave, wanted // wave * wave), share, most))
