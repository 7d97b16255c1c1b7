"""Runs with keys that come back, which a simulation has no rules for: a learner plays them, as behind real traffic."""

from typing import NamedTuple, cast

import numpy as np

from decoupled.base import Floats, Ints
from decoupled.environments import Environment
from decoupled.extend import draw_loss, new_stream
from decoupled.policies import Policy
from decoupled.simulation import table_and_best

LOSS_NOISE, DRAWS = range(
    2
)  # the children of a run's seed that a simulation gives to losses and to the policy


class KeyedRun(NamedTuple):
    """What a run with keys comes to.

    Attributes:
        regret: against the best arm, at each checkpoint.
        switches: how often a key was moved so far, as a mean over the keys, at each checkpoint.
        plays: how often each arm was exploited and explored, 2 x arms.
    """

    regret: Floats
    switches: Floats
    plays: Ints


def play_keys(
    policy: Policy,
    environment: Environment,
    checkpoints: Ints,
    seed: int,
    number: int,
    *,
    keys: int,
    is_sticky: bool,
) -> KeyedRun:
    """Play a run in which keys take turns; it meets the losses of the same run of a simulation.

    If draws are sticky, a key decides the draw of its arm. A policy of the standard game draws afresh all the same: it
    learns from what it serves, so a key must not decide that. The environment is a table of losses: an adversary that
    watches what is served could learn the draws of a key.

    >>> import decoupled as dc
    >>> easy = dc.environments.Bernoulli(rewards=[0.2, 0.7])
    >>> play_keys(dc.FTPL(), easy, np.array([100]), seed=0, number=0, keys=5, is_sticky=True).plays.sum(axis=1).tolist()
    [100, 100]
    """
    horizon = int(checkpoints[-1])
    table, best = table_and_best(environment, horizon)
    noise = new_stream(np.random.SeedSequence(seed, spawn_key=(number, LOSS_NOISE)))
    work = np.zeros(2, np.uint64)
    learner = policy.start(
        environment.arms, np.random.SeedSequence(seed, spawn_key=(number, DRAWS))
    )
    decides_by_key = is_sticky and not policy.coupled
    regret, switches = np.zeros((2, len(checkpoints)))
    plays = np.zeros((2, environment.arms), np.int64)
    place_of = {checkpoint: place for place, checkpoint in enumerate(checkpoints.tolist())}
    last_arms: list[int | None] = [None] * keys
    moves = 0
    regret_so_far = 0.0
    for t, row in enumerate(table.row_at.tolist()):
        means = table.rows[row]
        key = t % keys
        decision = learner.decide(key=f"key-{key}") if decides_by_key else learner.decide()
        exploit, explore = cast(int, decision.exploit), cast(int, decision.explore)
        loss = draw_loss(table.noise, table.concentration, means.item(explore), noise, work)
        learner.observe(decision, loss)
        regret_so_far += means.item(exploit) - means.item(best)
        if last_arms[key] not in (None, exploit):
            moves += 1
        last_arms[key] = exploit
        plays[0, exploit] += 1
        plays[1, explore] += 1
        if t + 1 in place_of:
            place = place_of[t + 1]
            regret[place] = regret_so_far
            switches[place] = moves / keys
    return KeyedRun(regret, switches, plays)
