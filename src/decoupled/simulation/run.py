"""Running a block: everything here depends on the plan and the run numbers alone."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Floats, Ints, Words
from ..environments import Environment
from ..environments.base import Adversary
from ..kernels.compiled import is_ours, translate
from ..kernels.drive import Table, drive, drive_adaptive
from ..kernels.stream import new_stream
from ..policies import Policy


class BlockResult(NamedTuple):
    """Regret of each run at the checkpoints, and how often each arm was exploited and explored in all."""

    regret: Floats
    plays: Ints


# The same loops for policies and adversaries from outside the package, whose machine code is not kept.
_drive_afresh = translate(getattr(drive, "py_func", drive), keep=False, counting=False)
_drive_adaptive_afresh = translate(
    getattr(drive_adaptive, "py_func", drive_adaptive), keep=False, counting=False
)


def run_block(
    policy: Policy,
    environment: Environment,
    horizon: int,
    checkpoints: Ints,
    seed: int,
    first: int,
    last: int,
) -> BlockResult:
    """Runs `first` to `last - 1` of one policy, one after another."""
    policy.entries()  # makes the compiled functions known, also in a process that never saw the policy
    one_run = _adaptive_run if isinstance(environment, Adversary) else _table_run
    regret = np.empty((last - first, len(checkpoints)))
    plays = np.zeros((2, environment.arms), np.int64)
    for run in range(first, last):
        noise, draws = run_streams(seed, run)
        one_run(policy, environment, horizon, checkpoints, draws, noise, regret[run - first], plays)
    return BlockResult(regret, plays)


def run_streams(seed: int, run: int) -> tuple[Words, Words]:
    """The environment's noise and the policy's draws: two children of one seed, keyed by the run."""
    noise, draws = (np.random.SeedSequence(seed, spawn_key=(run, child)) for child in range(2))
    return new_stream(noise), new_stream(draws)


@lru_cache(maxsize=4)
def _world(environment: Environment, horizon: int) -> tuple[Table, int]:
    """The table, and the best fixed arm over the whole horizon by mean loss."""
    table = environment.table(horizon)
    visits = np.bincount(table.row_at, minlength=len(table.rows))
    return table, int((visits @ table.rows).argmin())


def _table_run(
    policy: Policy,
    environment: Environment,
    horizon: int,
    checkpoints: Ints,
    draws: Words,
    noise: Words,
    regret: Floats,
    plays: Ints,
) -> None:
    table, best = _world(environment, horizon)
    loop = drive if is_ours(policy.params_type) else _drive_afresh
    state = policy.layout.new_state(environment.arms)
    local = np.zeros(2, np.uint64)
    loop(policy.params(), state, draws, noise, local, table, best, checkpoints, regret, plays)


def _adaptive_run(
    policy: Policy,
    environment: Any,
    horizon: int,
    checkpoints: Ints,
    draws: Words,
    noise: Words,
    regret: Floats,
    plays: Ints,
) -> None:
    environment.prepare()
    arms = environment.arms
    ours = is_ours(policy.params_type) and is_ours(environment.params_type)
    loop = drive_adaptive if ours else _drive_adaptive_afresh
    arm_losses = np.empty((len(checkpoints), arms))
    loop(
        policy.params(),
        policy.layout.new_state(arms),
        draws,
        noise,
        np.zeros(2, np.uint64),
        environment.params(),
        environment.memory(),
        horizon,
        np.zeros(arms),
        np.zeros(arms),
        checkpoints,
        regret,
        arm_losses,
        plays,
    )
    # The loop filled in what was suffered; the best arm is known only now that all losses have come.
    regret -= arm_losses[:, arm_losses[-1].argmin()]
