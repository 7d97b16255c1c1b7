"""Running a block on the CPU: the result depends only on the plan and the run numbers."""

from collections.abc import Callable
from functools import cache, lru_cache
from types import FunctionType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..base.arrays import Floats, Ints, Words
from ..environments import ContextTable, Environment
from ..environments.base import Adversary
from ..errors import ParameterError
from ..kernels.jit import is_ours, translate
from ..kernels.late import drive_adaptive_late, drive_late, learn_arrived
from ..kernels.lazy_numba import compiling_for
from ..kernels.random.stream import secret_of
from ..kernels.rounds import Table, against_best, drive, drive_adaptive, drive_in_context
from ..policies import Policy
from .admission import find_outside, outside_range
from .baseline import Baseline, TableRun
from .contextual import best_arm, play_blind, play_in_context, play_keyed
from .traffic import DIRECT, DRAWS, KEY, LOSS_NOISE, Traffic, new_late, stream_of


class BlockResult(NamedTuple):
    """The regret of each run at the checkpoints, the total plays of each arm by role, and with keys the switches of each run."""

    regret: Floats
    plays: Ints
    switches: Floats | None = None


# Plays one run. Arguments: the policy's draws, the environment's noise, what follows the arguments of the loop if
# feedback is not direct, regret to fill, plays to add to.
Player: TypeAlias = Callable[[Words, Words, tuple[Any, ...], Floats, Ints], None]


# The same loops for policies and adversaries from outside the package, whose machine code is not cached.
_UNCACHED: dict[Any, Any] = {
    loop: translate(getattr(loop, "py_func", loop), keep=False, counting=False)
    for loop in (drive, drive_adaptive, drive_late, drive_adaptive_late)
}


def run_block(
    policy: Policy,
    environment: Environment,
    horizon: int,
    checkpoints: Ints,
    seed: int,
    first: int,
    last: int,
    traffic: Traffic = DIRECT,
) -> BlockResult:
    """Run `first` to `last - 1` of one policy, one after another.

    >>> import decoupled as dc
    >>> easy = dc.environments.Bernoulli(rewards=[0.2, 0.7])
    >>> run_block(dc.FTPL(), easy, 100, np.array([50, 100]), seed=0, first=0, last=3).regret.shape
    (3, 2)
    """
    regret, switches = np.empty((2, last - first, len(checkpoints)))
    plays = np.zeros((2, environment.arms), np.int64)
    if isinstance(environment, ContextTable) and (
        environment.order == "shuffled" or policy.contextual
    ):
        for at, run in enumerate(range(first, last)):
            row_at = environment.row_at(horizon, seed, run)
            best = best_arm(environment, row_at)
            one = TableRun(environment, row_at, best, checkpoints, seed, run, regret[at], plays)
            _play_table(policy, one)
        return BlockResult(regret, plays)
    if traffic.keys:
        known = world(environment, horizon)
        for at, run in enumerate(range(first, last)):
            noise, found = stream_of(seed, run, LOSS_NOISE), (regret[at], plays, switches[at])
            play_keyed(policy, *known, noise, checkpoints, seed, run, traffic, found)
        return BlockResult(regret, plays, switches)
    policy = policy.at(environment.arms)
    policy.register()  # also in a process that has not seen the policy
    player = _adaptive_player if isinstance(environment, Adversary) else _table_player
    play = player(policy, environment, horizon, checkpoints, traffic)
    late = None if traffic.direct else new_late(policy, environment.arms, traffic, horizon)
    for at, run in enumerate(range(first, last)):
        noise, draws = run_streams(seed, run)
        more = () if late is None else (late._replace(key=stream_of(seed, run, KEY)),)
        play(draws, noise, more, regret[at], plays)
    return BlockResult(regret, plays)


def _play_table(policy: Policy, run: TableRun) -> None:
    """Play one run in an order of its own, with contexts for those who see them."""
    if isinstance(policy, Baseline):
        policy.play(run)
        return
    form = policy.at(run.table.arms)
    form.register()  # also in a process that has not seen the policy
    if policy.contextual:
        play_in_context(form, drive_in_context, run)
    else:
        rows, draws = run.table.table(1).rows, stream_of(run.seed, run.number, DRAWS)
        play_blind(form, table_loop(form), rows, draws, run)


def run_streams(seed: int, run: int) -> tuple[Words, Words]:
    """The streams of the environment's noise and the policy's draws: two children of one seed, keyed by the run."""
    return stream_of(seed, run, LOSS_NOISE), stream_of(seed, run, DRAWS)


@lru_cache(maxsize=4)
def world(environment: Environment, horizon: int) -> tuple[Table, int]:
    """The table of an environment, and its best fixed arm by mean loss over the whole horizon.

    >>> import decoupled as dc
    >>> table, best = world(dc.environments.Bernoulli(rewards=[0.2, 0.7]), horizon=10)
    >>> table.rows.round(1).tolist(), best
    ([[0.8, 0.3]], 1)
    """
    table = checked_table(environment, horizon)
    visits = np.bincount(table.row_at, minlength=len(table.rows))
    return table, int((visits @ table.rows).argmin())


def checked_table(environment: Environment, horizon: int) -> Table:
    """The table of an environment, validated: it may be a user's own, and compiled code trusts it."""
    table = environment.table(horizon)
    rows = np.ascontiguousarray(table.rows, np.float64)
    row_at = np.ascontiguousarray(table.row_at, np.int64)
    name = type(environment).__name__
    what, found = f"{name}.table({horizon})", ""
    if (
        rows.ndim != 2
        or rows.shape[1] != environment.arms
        or not ((rows >= 0.0) & (rows <= 1.0)).all()
    ):
        found = f"rows, of shape {rows.shape}: must be rows x {environment.arms} arms of losses in [0, 1]"
    elif row_at.shape != (horizon,) or row_at.min() < 0 or row_at.max() >= len(rows):
        rule = f"must be a row number from 0 to {len(rows) - 1} for each of {horizon} rounds"
        found = f"row_at, of shape {row_at.shape}: {rule}"
    if found:
        raise ParameterError(f"{what}.{found}; fix the environment")
    return table._replace(rows=rows, row_at=row_at)


def table_loop(policy: Policy, traffic: Traffic = DIRECT) -> Callable[..., None]:
    """The round loop for a policy; see `drive` for its arguments."""
    return _loop_for(policy, traffic, drive, drive_late)


def _loop_for(
    policy: Policy, traffic: Traffic, direct: Any, late: Any, *code: Any
) -> Callable[..., None]:
    """One of two loops, for a policy and perhaps the `code` of an adversary."""
    loop: Callable[..., None] = direct if traffic.direct else late
    if not traffic.direct:
        compiling_for(f"{type(policy).__name__} with {traffic.label}")
    if policy.in_python:
        return interpreted(loop)
    return loop if is_ours(policy.params_type, *policy.functions, *code) else _UNCACHED[loop]


def _table_player(
    policy: Policy, environment: Environment, horizon: int, checkpoints: Ints, traffic: Traffic
) -> Player:
    table, best = world(environment, horizon)
    loop = table_loop(policy, traffic)
    params, layout, arms = policy.params(), policy.layout, environment.arms
    local = np.zeros(2, np.uint64)

    def play(
        draws: Words, noise: Words, more: tuple[Any, ...], regret: Floats, plays: Ints
    ) -> None:
        state = layout.new_state(arms, secret_of(draws))
        loop(params, state, draws, noise, local, table, best, checkpoints, regret, plays, *more)

    return play


def _adaptive_player(
    policy: Policy, environment: Any, horizon: int, checkpoints: Ints, traffic: Traffic
) -> Player:
    environment.prepare()
    code = environment.params_type, *environment.functions
    loop = _loop_for(policy, traffic, drive_adaptive, drive_adaptive_late, *code)
    params, adversary, arms = policy.params(), environment.params(), environment.arms
    local, losses = np.zeros(2, np.uint64), np.zeros(arms)
    arm_losses = np.empty((len(checkpoints), arms))

    def game(draws: Words, noise: Words, at: Ints, *found: Any) -> None:
        state = policy.layout.new_state(arms, secret_of(draws))
        memory, sums = environment.memory(), np.zeros(arms)
        world = (params, state, draws, noise, local, adversary, memory, int(at[-1]))
        loop(*world, losses, sums, at, *found)

    def play(
        draws: Words, noise: Words, more: tuple[Any, ...], regret: Floats, plays: Ints
    ) -> None:
        first_draws, first_noise = draws.copy(), noise.copy()

        def again(at: Ints) -> Floats:
            of_arms = np.empty((len(at), arms))
            streams, ignored = (first_draws.copy(), first_noise.copy()), np.empty(len(at))
            game(*streams, at, ignored, of_arms, np.zeros_like(plays), *more)
            return of_arms

        game(draws, noise, checkpoints, regret, arm_losses, plays, *more)
        if not against_best(checkpoints, arm_losses, regret):
            raise outside_range(environment, find_outside(again, checkpoints, arm_losses))

    return play


@cache
def interpreted(loop: Any) -> Callable[..., None]:
    """A round loop as plain Python, for a policy that is. What does not depend on the policy stays machine code."""
    source = getattr(loop, "py_func", loop)
    # The one function that a loop calls, and that calls the policy in its turn.
    known = {
        **source.__globals__,
        learn_arrived.__name__: getattr(learn_arrived, "py_func", learn_arrived),
    }
    return FunctionType(source.__code__, known, source.__name__)
