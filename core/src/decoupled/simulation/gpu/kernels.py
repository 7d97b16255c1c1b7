"""The kernels: a thread's state, and the loops that the CPU runs too.

A thread's state lives in local memory. The device interleaves it so that neighbouring threads read
it together, and caches it near the processor while it fits. Sizes are compile-time constants, so
that loops over a few arms are unrolled into registers. So a kernel serves one number of arms.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numba import float64, int32, int64, uint64

from ...environments.base import Adversary, Environment
from ...errors import UnsupportedError
from ...kernels.dispatch import Memory
from ...kernels.feedback_delay import Direct, FeedbackQueue
from ...kernels.jit import cache_folder, compiled, is_ours, kept_in
from ...kernels.lazy_numba import Constants, common_values, pinned
from ...kernels.random.sampling import BERNOULLI
from ...kernels.random.stream import compiled_secret_of, fill_stream
from ...kernels.rounds import Run, Table, against_best, play_rounds
from ...kernels.state import SECRET, State
from ...kernels.worlds import AdversaryWorld, TableWorld
from ...policies import Policy
from ..traffic import DRAWS, KEY, LOSS_NOISE
from .memory import REMEDY, Shape, first_line, registers, simulated, toolkit
from .switches import switches_of

cuda: Any = toolkit()  # must be a global of this module, because the simulator replaces it here

_making = Lock()
_compiling = Lock()
_kernels: dict[tuple[Any, ...], "Kernel"] = {}


class PendingArrays(NamedTuple):
    """The rules of late feedback, and room for the pending decisions of every thread of a grid."""

    rules: Any
    kept: Any
    floats: Any  # slots x columns x threads
    ints: Any


class Kernel:
    """A kernel, compiled at its first launch for each kind of device and type of parameters."""

    def __init__(self, dispatcher: Any, shared: int, what: str) -> None:
        self._dispatcher = dispatcher
        self._what = what
        self._shared = shared  # bytes of a block's shared memory that policies use
        self._compiled: set[object] = set()

    def launch(self, blocks: int, threads: int, stream: Any, *arguments: Any) -> None:
        """Queue the kernel in the stream, without waiting for it."""
        configured = self._dispatcher[blocks, threads, stream, self._shared]
        if simulated():  # the simulator swaps module globals, so one thread at a time
            with _compiling:
                configured(*arguments)
            return
        kind = (
            toolkit().get_current_device().compute_capability,
            *(tuple(map(type, value)) for value in arguments if isinstance(value, tuple)),
        )
        if kind in self._compiled:
            configured(*arguments)
            return
        with _compiling, _rounding_as_on_the_cpu():
            try:
                configured(*arguments)
            # The compiler and the driver can raise anything on a user's code.
            except Exception as error:
                first = first_line(error) or type(error).__name__
                problem = f"{self._what} cannot be compiled for a device or started there ({first})"
                raise UnsupportedError(f"device = 'cuda': {problem}; {REMEDY}") from error
            self._compiled.add(kind)


def kernel_for(
    policy: Policy,
    environment: Environment,
    shape: Shape,
    noise: int = BERNOULLI,
    *,
    late: bool = False,
) -> Kernel:
    """The kernel of a policy; see `_table_kernel` and `_adaptive_kernel` for its arguments.

    With `late`, feedback may be late, lost or rare. The compiler knows this: it drops the loop that
    is not run, and `pending` is empty without it.
    """
    adversary = environment if isinstance(environment, Adversary) else None
    if adversary is not None:
        adversary.prepare()
    policy.register()
    values = common_values(policy.params(), switches_of(policy.params_type).constants)
    key = kernel_key(policy, environment, shape, noise, late=late)
    with _making:
        if key not in _kernels:
            code = [policy.params_type, *policy.functions]
            if adversary is None:
                function = _table_kernel(shape, values, noise, is_late=late)
                what = policy.label
            else:
                function = _adaptive_kernel(shape, values, is_late=late)
                what = f"{policy.label} with {adversary.label}"
                code += [adversary.params_type, *adversary.functions]
            _kernels[key] = Kernel(
                _jit(function, registers(shape), keep=is_ours(*code)), 8 * shape.arms, what
            )
        return _kernels[key]


def kernel_key(
    policy: Policy, environment: Environment, shape: Shape, noise: int, *, late: bool = False
) -> tuple[object, ...]:
    """The key of a kernel: equal for everything that one kernel serves."""
    against = environment.params_type if isinstance(environment, Adversary) else None
    values = common_values(policy.params(), switches_of(policy.params_type).constants)
    return policy.params_type, against, shape, values, noise, late


def _jit(function: Any, most: int, *, keep: bool) -> Any:
    """A kernel whose threads have at most `most` registers.

    `keep` caches its machine code on disk.
    """
    if simulated():
        return toolkit().jit(function)
    folder = cache_folder() if keep else None
    if folder is None:
        return toolkit().jit(max_registers=most)(function)
    dispatcher = kept_in(folder, toolkit().jit(max_registers=most, cache=True), function)
    save = dispatcher._cache.save_overload

    def save_if_possible(signature: object, kernel: object) -> None:
        with suppress(RuntimeError):  # code linked with Numba's own library cannot be cached
            save(signature, kernel)

    dispatcher._cache.save_overload = save_if_possible
    return dispatcher


@contextmanager
def _rounding_as_on_the_cpu() -> Iterator[None]:
    """Compile without fused multiply-add, so that plays are those of the CPU, which rounds twice.

    Numba has no option for this.
    """
    if simulated():
        yield
        return
    nvvm: Any = import_module("numba.cuda.cudadrv.nvvm")
    fusing = nvvm.compile_ir
    nvvm.compile_ir = lambda code, **options: fusing(code, **options, fma=0)
    try:
        yield
    finally:
        nvvm.compile_ir = fusing


@compiled
def begin(state: State, initial: Any, draws: Any) -> None:
    """Reset a state: `initial` scalars, the secret of a fresh stream, and rows of zeros."""
    scalars, floats, ints = state
    for place in range(len(scalars)):
        scalars[place] = initial[place]
    for arm in range(floats.shape[1]):
        for row in range(floats.shape[0]):
            floats[row, arm] = 0.0
        for row in range(ints.shape[0]):
            ints[row, arm] = 0
    scalars[SECRET] = compiled_secret_of(draws)


@compiled
def begin_counts(played: Any) -> None:
    """Set the play counts to zero; the threads of a block share the work."""
    for arm in range(cuda.threadIdx.x, played.shape[1], cuda.blockDim.x):
        played[0, arm] = 0
        played[1, arm] = 0
    cuda.syncthreads()


@compiled
def add_counts(played: Any, plays: Any) -> None:
    """Add the counts of this block to the total, once all its threads are done."""
    cuda.syncthreads()
    for arm in range(cuda.threadIdx.x, played.shape[1], cuda.blockDim.x):
        cuda.atomic.add(plays, (0, arm), int64(played[0, arm]))
        cuda.atomic.add(plays, (1, arm), int64(played[1, arm]))


def _table_kernel(shape: Shape, values: Constants, noise_kind: int, *, is_late: bool) -> Any:
    arms, scalar_count, float_rows, int_rows = shape[:4]
    int_type = np.int32 if shape.int_bytes == 4 else np.int64

    def play_table(
        params: Any,
        rows: Any,
        row_at: Any,
        concentration: Any,
        best: Any,
        checkpoints: Any,
        pool: Any,
        initial: Any,
        first: Any,
        regret: Any,
        plays: Any,
        pending: Any,
    ) -> None:
        scalars = cuda.local.array(scalar_count, float64)
        floats = cuda.local.array((float_rows, arms), float64)
        ints = cuda.local.array((int_rows, arms), int_type)
        played = cuda.shared.array((2, arms), int32)
        draws = cuda.local.array(2, uint64)
        noise = cuda.local.array(2, uint64)
        local = cuda.local.array(2, uint64)
        begin_counts(played)
        state = State(scalars, floats, ints)
        fixed_params = pinned(params, values)
        table = Table(rows, row_at, noise_kind, concentration)
        world = TableWorld(table, best, noise, local)
        horizon = len(row_at)
        me = cuda.grid(1)
        if is_late:
            key = cuda.local.array(2, uint64)
            queue = FeedbackQueue(
                rules=pending.rules,
                kept=pending.kept,
                floats=pending.floats[:, :, me],
                ints=pending.ints[:, :, me],
                key=key,
            )
        for number in range(me, regret.shape[0], cuda.gridsize(1)):
            fill_stream(pool, first + number, LOSS_NOISE, noise)
            fill_stream(pool, first + number, DRAWS, draws)
            begin(state, initial, draws)
            if is_late:
                fill_stream(pool, first + number, KEY, key)
                play_rounds(
                    Run(
                        params=fixed_params,
                        state=state,
                        draws=draws,
                        world=world,
                        feedback=queue,
                        horizon=horizon,
                        checkpoints=checkpoints,
                        regret=regret[number],
                        plays=played,
                    )
                )
            else:
                play_rounds(
                    Run(
                        params=fixed_params,
                        state=state,
                        draws=draws,
                        world=world,
                        feedback=Direct(),
                        horizon=horizon,
                        checkpoints=checkpoints,
                        regret=regret[number],
                        plays=played,
                    )
                )
        add_counts(played, plays)

    return play_table


def _adaptive_kernel(shape: Shape, values: Constants, *, is_late: bool) -> Any:
    arms, scalar_count, float_rows, int_rows, memory_floats, memory_ints = shape[:6]
    float_room = max(1, memory_floats)
    int_room = max(1, memory_ints)
    int_type = np.int32 if shape.int_bytes == 4 else np.int64

    def play_adversary(
        params: Any,
        adversary: Any,
        first_floats: Any,
        first_ints: Any,
        horizon: Any,
        checkpoints: Any,
        pool: Any,
        initial: Any,
        first: Any,
        regret: Any,
        plays: Any,
        arm_losses: Any,
        outside: Any,
        pending: Any,
    ) -> None:
        scalars = cuda.local.array(scalar_count, float64)
        floats = cuda.local.array((float_rows, arms), float64)
        ints = cuda.local.array((int_rows, arms), int_type)
        played = cuda.shared.array((2, arms), int32)
        draws = cuda.local.array(2, uint64)
        noise = cuda.local.array(2, uint64)
        local = cuda.local.array(2, uint64)
        losses = cuda.local.array(arms, float64)
        sums = cuda.local.array(arms, float64)
        remembered = cuda.local.array(float_room, float64)
        counted = cuda.local.array(int_room, int64)
        begin_counts(played)
        state = State(scalars, floats, ints)
        fixed_params = pinned(params, values)
        memory = Memory(remembered[:memory_floats], counted[:memory_ints])
        me = cuda.grid(1)
        would_have_cost = arm_losses[me]
        world = AdversaryWorld(
            params=adversary,
            memory=memory,
            noise=noise,
            scratch=local,
            losses=losses,
            arm_sums=sums,
            arm_losses=would_have_cost,
        )
        if is_late:
            key = cuda.local.array(2, uint64)
            queue = FeedbackQueue(
                rules=pending.rules,
                kept=pending.kept,
                floats=pending.floats[:, :, me],
                ints=pending.ints[:, :, me],
                key=key,
            )
        for number in range(me, regret.shape[0], cuda.gridsize(1)):
            for place in range(memory_floats):
                remembered[place] = first_floats[place]
            for place in range(memory_ints):
                counted[place] = first_ints[place]
            for arm in range(arms):
                sums[arm] = 0.0
            fill_stream(pool, first + number, LOSS_NOISE, noise)
            fill_stream(pool, first + number, DRAWS, draws)
            begin(state, initial, draws)
            suffered = regret[number]
            if is_late:
                fill_stream(pool, first + number, KEY, key)
                play_rounds(
                    Run(
                        params=fixed_params,
                        state=state,
                        draws=draws,
                        world=world,
                        feedback=queue,
                        horizon=horizon,
                        checkpoints=checkpoints,
                        regret=suffered,
                        plays=played,
                    )
                )
            else:
                play_rounds(
                    Run(
                        params=fixed_params,
                        state=state,
                        draws=draws,
                        world=world,
                        feedback=Direct(),
                        horizon=horizon,
                        checkpoints=checkpoints,
                        regret=suffered,
                        plays=played,
                    )
                )
            if not against_best(checkpoints, would_have_cost, suffered):
                outside[0] = 1
        add_counts(played, plays)

    return play_adversary
