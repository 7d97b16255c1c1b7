"""The time of a policy's step, decide and update, with the environment's work done in advance."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from decoupled.base import Floats, Words
from decoupled.environments import Alternating
from decoupled.extend import State, Table, compiled, decide, new_stream, update
from decoupled.policies import Policy

from .textbook import TextbookFTPL, TextbookTsallis


@compiled
def further_rounds(params: Any, state: State, stream: Words, table: Table, luck: Floats) -> None:
    """Decide and update once for each number in `luck`, which determines the losses."""
    for t in range(len(luck)):
        _, explore, weight, _ = decide(params, state, stream)
        loss = 1.0 if luck[t] <= table.rows[table.row_at[t], explore] else 0.0
        update(params, state, explore, weight, loss)


def compiled_step(policy: Policy, arms: int, rounds: int, seed: int = 0) -> float:
    """Seconds per round of the compiled policy, on the paper's alternating environment."""
    learner, begin = _learner(policy, arms, seed)
    table, luck = _world(arms, rounds, seed)
    start = time.perf_counter()
    begin()
    further_rounds(*learner, table, luck)
    return (time.perf_counter() - start) / rounds


def running(policy: Policy, arms: int, rounds: int, seed: int = 0) -> Callable[[], None]:
    """A call that plays `rounds` more rounds; the first round, which sorts all arms, is already played."""
    learner, begin = _learner(policy, arms, seed)
    table, luck = _world(arms, rounds, seed)
    begin()
    further_rounds(*learner, table, luck[:1])
    return lambda: further_rounds(*learner, table, luck)


def textbook_step(policy: TextbookFTPL | TextbookTsallis, rounds: int, seed: int = 0) -> float:
    """Seconds per round of a policy written in plain NumPy, on the same environment."""
    table, luck = _world(len(policy.estimates), rounds, seed)
    losses = (luck[:, None] <= table.rows[table.row_at]).astype(float)
    rng = np.random.default_rng(seed)
    start = time.perf_counter()
    for t in range(rounds):
        _, explore, probability = policy.decide(rng)
        policy.learn(explore, probability, losses[t, explore])
    return (time.perf_counter() - start) / rounds


def _learner(policy: Policy, arms: int, seed: int) -> tuple[tuple[Any, State, Words], Callable[[], None]]:
    """The arguments of `further_rounds`, and a call that makes the state a new one."""
    policy = policy.at(arms)
    init, values = policy.entries().init, np.array(policy.params(), np.float64)
    state, stream = policy.layout.new_state(arms), new_stream(np.random.SeedSequence(seed))
    return (policy.params(), state, stream), lambda: init(values, *state)


def _world(arms: int, rounds: int, seed: int) -> tuple[Table, Floats]:
    table = Alternating(arms=arms, gap=0.125).table(rounds)
    return table, 1.0 - np.random.default_rng(seed).random(rounds)
