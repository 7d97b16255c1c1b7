"""Counting the draws of resampling, over the same runs that are simulated."""

from typing import cast

import numpy as np
import pytest

import decoupled as dc
from decoupled.kernels.random.stream import uniform
from decoupled.simulation.cpu import run_streams
from decoupled.simulation.draws import draws_per_round

ROUNDS, SEED = 300, 3
WORLD = dc.environments.Bernoulli([0.2, 0.7, 0.5, 0.5])


@pytest.mark.parametrize("perturbation", ["frechet", "pareto"])
@pytest.mark.parametrize("resampling", ["geometric", "conditional"])
def test_draws_are_those_of_the_learner(perturbation: str, resampling: str) -> None:
    policy = dc.CoupledFTPL(perturbation, resampling)
    counted = draws_per_round(policy, WORLD, ROUNDS, 2, SEED)
    for run in range(2):
        noise, _ = run_streams(SEED, run)
        learner = policy.start(WORLD.arms, np.random.SeedSequence(SEED, spawn_key=(run, 1)))
        draws = 0.0
        for _ in range(ROUNDS):
            decision, estimates = learner.decide(), learner.estimates()
            arm = cast(int, decision.explore)
            before = [
                other for other in range(WORLD.arms) if (estimates[other], other) < (estimates[arm], arm)
            ]
            rank = 1 + len(before)
            draws += decision.weight / (rank if resampling == "conditional" else 1)
            mean = WORLD.table(ROUNDS).rows[0, arm]
            learner.observe(decision, loss=float(uniform(noise) <= mean))
        assert draws == int(draws)
        assert counted[run] == draws / ROUNDS


def test_adversaries_are_refused() -> None:
    with pytest.raises(dc.UnsupportedError, match="PunishLast: draws are counted on tables"):
        draws_per_round(dc.CoupledFTPL(), dc.environments.PunishLast(4), 10, 1, 0)
