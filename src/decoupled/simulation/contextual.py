"""Runs on a `ContextTable`: in an order of their own, and with a context in every round.

Policies that are blind to the context play the compiled loop. A contextual policy is played by a learner, as behind real
traffic, so its rounds take some ten microseconds.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base.arrays import Floats, Ints, Words
from ..environments import ContextTable, Environment
from ..environments.context_table import check_number_column, check_segment_column
from ..errors import ParameterError, UnsupportedError, invalid_value
from ..kernels.random.hashed import secret_of
from ..kernels.random.noise import NONE
from ..kernels.random.stream import new_stream
from ..kernels.rounds import Table
from ..learner.learner import Learner
from ..policies import Policy
from .baselines.base import Baseline
from .traffic import Traffic

DRAWS = 1  # the second child of a run's seed; see `run_streams`


def sees_context(policy: Policy, environment: Environment) -> bool:
    """Whether a policy is played with the context of each round."""
    contextual = isinstance(policy, Baseline) or getattr(policy, "contextual", False)
    return contextual and isinstance(environment, ContextTable)


def check_context(
    policies: Sequence[Policy], environment: Environment, device: str, traffic: Traffic
) -> None:
    """Raise an error if these cannot be simulated in this environment."""
    for policy in policies:
        if not isinstance(environment, ContextTable):
            if isinstance(policy, Baseline):
                raise UnsupportedError(
                    f"policies: {policy.label} reads a context, and {type(environment).__name__} has none; use "
                    "environments.ContextTable"
                )
            continue
        if sees_context(policy, environment):
            _check_columns(policy, environment)
        elif environment.order == "given":
            continue  # a table of losses like any other
        what = (
            f"order = {environment.order!r}"
            if isinstance(policy, Policy) and not getattr(policy, "contextual", False)
            else policy.label
        )
        if device != "cpu":
            raise UnsupportedError(f"device = {device!r}: cannot play {what}; leave it out, for the CPU")
        if not traffic.direct:
            rule = f"cannot be combined with {what}"
            raise ParameterError(invalid_value("traffic", traffic.label, rule, "leave it out"))


def _check_columns(policy: Policy, table: ContextTable) -> None:
    if isinstance(policy, Baseline):
        policy.check(table)
        return
    declared: Any = policy
    for name in declared.segments:
        check_segment_column("segments", name, table.context)
    for name in declared.numbers:
        check_number_column("numbers", name, table.context)
    if declared.advisers:
        rule, remedy = (
            "cannot give advice in a simulation",
            "leave them out, or loop over decide(advice=...)",
        )
        raise ParameterError(invalid_value("advisers", declared.advisers, rule, remedy))


def draws_of(seed: int, run: int, *of: int) -> Words:
    """The stream of a run's draws, or of one of its segments."""
    return new_stream(np.random.SeedSequence(seed, spawn_key=(run, DRAWS, *of)))


def best_arm(table: ContextTable, row_at: Ints) -> int:
    """The best single arm over these rows."""
    return int((np.bincount(row_at, minlength=len(table.losses)) @ table.losses).argmin())


def play_blind(
    policy: Policy,
    loop: Callable[..., None],
    rows: Floats,
    row_at: Ints,
    draws: Words,
    best: int,
    checkpoints: Ints,
    regret: Floats,
    plays: Ints,
) -> None:
    """Play the rounds of `row_at` with a policy that is blind to the context, in its form for the number of arms."""
    state = policy.layout.new_state(rows.shape[1], secret_of(draws))
    words, local = np.ones(2, np.uint64), np.zeros(2, np.uint64)  # recorded losses have no noise
    table = Table(rows, np.ascontiguousarray(row_at), NONE)
    loop(policy.params(), state, draws, words, local, table, best, checkpoints, regret, plays)


def play_learner(
    policy: Policy, table: ContextTable, row_at: Ints, best: int, checkpoints: Ints, seed: int, run: int,
    regret: Floats, plays: Ints,
) -> None:  # fmt: skip
    """Play one run with a contextual policy."""
    learner = Learner(policy, table.arms, np.random.SeedSequence(seed, spawn_key=(run, DRAWS)))
    declared: Any = policy
    names = (*declared.segments, *declared.numbers)
    contexts = [
        dict(zip(names, values, strict=True))
        for values in zip(*(table.context[name] for name in names), strict=True)
    ]
    exploited, explored = [], []
    for row in row_at.tolist():
        decision: Any = learner.decide(context=contexts[row])
        learner.observe(decision, table.losses.item(row, decision.explore))
        exploited.append(decision.exploit)
        explored.append(decision.explore)
    arms = np.array(exploited), np.array(explored)
    fill_regret(table.losses, row_at, best, *arms, checkpoints, regret, plays)


def fill_regret(
    losses: Floats, row_at: Ints, best: int, exploited: Ints, explored: Ints, checkpoints: Ints,
    regret: Floats, plays: Ints,
) -> None:  # fmt: skip
    """Fill the regret at each checkpoint and add to the plays, from the arms of all rounds."""
    behind = losses[row_at, exploited] - losses[row_at, best]
    regret[:] = behind.cumsum()[checkpoints - 1]
    for role, arms in enumerate((exploited, explored)):
        plays[role] += np.bincount(arms, minlength=losses.shape[1])
