"""Runs in which keys come back, and how often a key is moved to another arm.

The game is played by a learner, as behind real traffic, so a round takes some ten microseconds. What is played does not
change the losses: an adversary that watches what is served could learn a key's draws, and no bound holds then.
"""

from typing import cast

import numpy as np

from ..base.arrays import Floats, Ints, Words
from ..environments import Environment
from ..environments.base import Adversary
from ..errors import ParameterError, UnsupportedError
from ..kernels.random.sampling import draw_loss
from ..kernels.rounds import Table
from ..learner.learner import Learner
from ..policies import Policy
from .traffic import DIRECT, KEY, Traffic

DRAWS = 1  # the second child of a run's seed; see `run_streams`


def check_keys(traffic: Traffic, environment: Environment, device: str) -> None:
    """Raise an error if this cannot be simulated with keys."""
    for name in ("delay", "missing", "slice", "reported"):
        if (value := getattr(traffic, name)) != getattr(DIRECT, name):
            rule = "cannot be combined with keys"
            raise ParameterError.of(name, value, rule, "leave out one of them")
    if isinstance(environment, Adversary):
        raise UnsupportedError(
            f"keys = {traffic.keys}: {type(environment).__name__} reacts to what is served, and could learn the draws of "
            "a key; use a table of losses"
        )
    if device != "cpu":
        raise UnsupportedError(f"keys = {traffic.keys}: are for the CPU; leave out device = {device!r}")


def arrivals(traffic: Traffic, horizon: int, seed: int, run: int) -> Ints:
    """The number of the key that comes in each round."""
    if traffic.arrivals == "even":
        return np.arange(horizon) % traffic.keys
    words = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(run, KEY))).random_raw(horizon)
    shares = np.cumsum(np.arange(1.0, traffic.keys + 1.0) ** -traffic.arrivals[1])
    return np.searchsorted(shares / shares[-1], (words >> np.uint64(11)) * 2.0**-53, side="right")


def play_keyed(
    policy: Policy,
    table: Table,
    best: int,
    noise: Words,
    checkpoints: Ints,
    seed: int,
    run: int,
    traffic: Traffic,
    regret: Floats,
    plays: Ints,
    switches: Floats,
) -> None:
    """Play one run. Fill `regret`, and `switches`, the number of times that a key was moved so far, as a mean over keys.

    A policy of the standard game draws afresh: it learns from what it serves, so a key must not decide that.
    """
    rows, row_at, local = table.rows, table.row_at.tolist(), np.zeros(2, np.uint64)
    learner = Learner(policy, rows.shape[1], np.random.SeedSequence(seed, spawn_key=(run, DRAWS)))
    keys = [f"key-{number}" for number in range(traffic.keys)]
    sticky = traffic.sticky and not policy.coupled
    last, moved, so_far = [-1] * len(keys), 0, 0.0
    due = dict(zip(checkpoints.tolist(), range(len(checkpoints)), strict=True))
    for t, key in enumerate(arrivals(traffic, len(row_at), seed, run).tolist()):
        row = rows[row_at[t]]
        decision = learner.decide(key=keys[key]) if sticky else learner.decide()
        exploit, explore = cast(int, decision.exploit), cast(int, decision.explore)
        learner.observe(
            decision, draw_loss(table.noise, table.concentration, row.item(explore), noise, local)
        )
        so_far += row.item(exploit) - row.item(best)
        moved += last[key] not in (-1, exploit)
        last[key] = exploit
        plays[0, exploit] += 1
        plays[1, explore] += 1
        if t + 1 in due:
            regret[due[t + 1]], switches[due[t + 1]] = so_far, moved / len(keys)
