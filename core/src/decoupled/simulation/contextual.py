"""Runs on a `ContextTable`: they have an order of their own, and a context in every round.

Policies that are blind to the context play in the world of every table. A contextual policy has a
world that does what its learner does, which a test compares with it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.arrays import Floats, Ints, Words
from ..environments import ContextTable, Environment
from ..environments.context_table import check_columns
from ..errors import ParameterError, UnsupportedError
from ..kernels.context import MISSING
from ..kernels.feedback_delay import Direct
from ..kernels.random.sampling import NONE
from ..kernels.random.stream import secret_of
from ..kernels.rounds import Run, Table
from ..kernels.worlds import ContextWorld, RoundContexts, TableWorld
from ..policies import Policy
from ..policies.contextual.state import NUMBERS_AT, S
from .baseline import Baseline, TableRun
from .traffic import Traffic


def sees_context(policy: Policy, environment: Environment) -> bool:
    """Whether a policy is played with the context of each round."""
    return policy.contextual and isinstance(environment, ContextTable)


def check_context(
    policies: Sequence[Policy], environment: Environment, device: str, traffic: Traffic
) -> None:
    """Raise an error if these cannot be simulated in this environment, or on this device."""
    for policy in policies:
        if not isinstance(environment, ContextTable):
            if isinstance(policy, Baseline):
                rule = f"{policy.label} reads a context, and {type(environment).__name__} has none"
                raise UnsupportedError(f"policies: {rule}; use environments.ContextTable")
            continue
        if sees_context(policy, environment):
            _check_columns(policy, environment)
        elif environment.order == "given":
            continue  # a table of losses like any other
        what = policy.label if policy.contextual else f"order = {environment.order!r}"
        if device != "cpu":
            raise UnsupportedError(
                f"device = {device!r}: cannot play {what}; leave it out, for the CPU"
            )
        if not traffic.is_direct:
            rule = f"cannot be combined with {what}"
            raise ParameterError.of("traffic", traffic.label, rule, "leave it out")


def _check_columns(policy: Policy, table: ContextTable) -> None:
    """Check that a table has the columns that a policy reads."""
    if isinstance(policy, Baseline):
        policy.check(table)
        return
    declared: Any = policy  # which fields it reads is not part of every policy
    check_columns(table.context, declared.segments, declared.all_numbers)
    if declared.advisers:
        rule = "cannot give advice in a simulation"
        remedy = "leave them out, or call decide(advice=...) of a learner"
        raise ParameterError.of("advisers", declared.advisers, rule, remedy)


def best_arm(table: ContextTable, row_at: Ints) -> int:
    """The best single arm over these rows."""
    return int((np.bincount(row_at, minlength=len(table.losses)) @ table.losses).argmin())


def blind_run(policy: Policy, rows: Floats, draws: Words, run: TableRun) -> Run:
    """A run of a policy that is blind to the context, in its form for the number of arms."""
    # Recorded losses have no noise, and so the stream of the noise is never read.
    world = TableWorld(
        table=Table(rows, np.ascontiguousarray(run.row_at), NONE),
        best=run.best,
        noise=np.ones(2, np.uint64),
        scratch=np.zeros(2, np.uint64),
    )
    return Run(
        params=policy.params(),
        state=policy.layout.new_state(rows.shape[1], secret_of(draws)),
        draws=draws,
        world=world,
        feedback=Direct(),
        horizon=len(run.row_at),
        checkpoints=run.checkpoints,
        regret=run.regret,
        plays=run.plays,
    )


def context_world(policy: Policy, table: ContextTable, row_at: Ints, best: int) -> ContextWorld:
    """The rounds of a run with their contexts, for a contextual policy."""
    played = Table(np.array(table.losses), row_at, NONE)
    return ContextWorld(played, best, _contexts(policy, table, row_at))


def _contexts(policy: Any, table: ContextTable, row_at: Ints) -> RoundContexts:
    """The contexts of a run.

    Segments are numbered as they come, and those beyond the most are one.
    """
    segments = table.segment_at(policy.segments)[row_at]
    _, firsts, places = np.unique(segments, return_index=True, return_inverse=True)
    segment_at = np.minimum(firsts.argsort().argsort()[places], policy.max_segments)
    columns = [np.nan_to_num(table.numbers(name), nan=MISSING) for name in policy.all_numbers]
    numbers = np.stack(columns, axis=1) if columns else np.zeros((len(table.losses), 0))
    return RoundContexts(segment_at, numbers, S.wanted, NUMBERS_AT, S.entering)


def fill_regret(losses: Floats, run: TableRun, played: Ints) -> None:
    """Fill the regret at each checkpoint, and add the arms played to both rows of the plays."""
    behind = losses[run.row_at, played] - losses[run.row_at, run.best]
    run.regret[:] = behind.cumsum()[run.checkpoints - 1]
    run.plays[:] += np.bincount(played, minlength=losses.shape[1])
