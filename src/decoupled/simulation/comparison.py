"""A short comparison of policies on one environment: every run meets the same losses."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from ..arrays import Floats, Ints
from ..environments import Environment
from ..kernels.drive import Table, drive
from ..kernels.stream import new_stream
from ..policies import Policy


class Comparison(NamedTuple):
    """Regret of each policy (policies x runs x checkpoints)."""

    policies: tuple[Policy, ...]
    checkpoints: Ints
    regret: Floats


def compare(
    policies: Sequence[Policy],
    environment: Environment,
    horizon: int,
    runs: int,
    seed: int,
    checkpoints: Ints,
    tick: Callable[[], None] = lambda: None,
) -> Comparison:
    """Run every policy `runs` times; `tick` is called after each run.

    Run r draws from two streams, children of one seed sequence keyed by r: the environment's noise and
    the policy's own. A result depends on the run's number alone, not on the thread that ran it.
    """
    table = environment.table(horizon)
    regret = np.zeros((len(policies), runs, len(checkpoints)))

    def run_all(run: int) -> None:
        for number, policy in enumerate(policies):
            regret[number, run] = run_once(policy, table, run, seed, checkpoints)
            tick()

    with ThreadPoolExecutor(max_workers=2) as executor:
        list(executor.map(run_all, range(runs)))
    return Comparison(tuple(policies), checkpoints, regret)


def run_once(policy: Policy, table: Table, run: int, seed: int, checkpoints: Ints) -> Floats:
    """The regret of one run at the checkpoints."""
    environment_seed, policy_seed = np.random.SeedSequence(seed, spawn_key=(run,)).spawn(2)
    arms = table.rows.shape[1]
    best = int(table.rows[table.row_at].mean(axis=0).argmin())
    regret = np.zeros(len(checkpoints))
    drive(
        policy.params(),
        policy.layout.new_state(arms),
        new_stream(policy_seed),
        new_stream(environment_seed),
        table,
        best,
        checkpoints,
        regret,
        np.zeros((2, arms), np.int64),
    )
    return regret
