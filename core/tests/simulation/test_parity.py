"""The simulation and the learner play the same rounds from the same seed."""

from typing import cast

import numpy as np
import pytest

import decoupled as dc
from decoupled.kernels.random.stream import uniform
from decoupled.simulation.cpu import run_block, run_streams
from decoupled.simulation.draws import draws_per_round
from support.policies import forms

ROUNDS = 400
SEED, RUN = 11, 5

# No two arms cost the same in any row, so each step of the regret curve shows which arm was
# exploited.
RNG = np.random.default_rng(0)
WORLD = dc.environments.LossTable(RNG.random((7, 6)), RNG.integers(0, 7, ROUNDS), noise="bernoulli")
# Enough arms that strata keep them in several blocks.
CROWD = dc.environments.LossTable(
    RNG.random((7, 600)), RNG.integers(0, 7, ROUNDS), noise="bernoulli"
)


def learner_of(policy: dc.Policy, arms: int) -> dc.Learner:
    return policy.start(arms, np.random.SeedSequence(SEED, spawn_key=(RUN, 1)))


def marks_of(policy: dc.Policy) -> list[pytest.MarkDecorator]:
    """The loop of `ContextualLadder` is compiled for two minutes, and no other test needs it."""
    return [pytest.mark.exhaustive] if isinstance(policy, dc.ContextualLadder) else []


@pytest.mark.parametrize(
    ("policy", "world"),
    [
        *(pytest.param(policy, WORLD, marks=marks_of(policy)) for policy in forms()),
        (dc.FTPL(ranking="strata"), CROWD),
        (dc.CentredFTPL(c=0.5, exploit_c=3.0, ranking="strata"), CROWD),
        (dc.Ladder(), CROWD),
    ],
    ids=lambda each: getattr(each, "label", ""),
)
def test_table_runs_play_as_the_learner_does(
    policy: dc.Policy, world: dc.environments.Environment
) -> None:
    engine = run_block(policy, world, ROUNDS, np.arange(1, ROUNDS + 1), SEED, range(RUN, RUN + 1))
    learner = learner_of(policy, world.arms)
    noise, _ = run_streams(SEED, RUN)
    table = world.table(ROUNDS)
    best = table.rows[table.row_at].mean(axis=0).argmin()
    regret, plays, curve = 0.0, np.zeros((2, world.arms), int), []
    for t in range(ROUNDS):
        means = table.rows[table.row_at[t]]
        decision = learner.decide()
        assert isinstance(decision.exploit, int)
        assert isinstance(decision.explore, int)
        learner.observe(decision, loss=float(uniform(noise) <= means[decision.explore]))
        regret += means[decision.exploit] - means[best]
        curve.append(regret)
        plays[0, decision.exploit] += 1
        plays[1, decision.explore] += 1
    assert engine.regret[0].tolist() == curve
    assert engine.plays.tolist() == plays.tolist()


class PunishTwin:
    def __init__(self, environment: dc.environments.PunishLast) -> None:
        self.environment = environment
        self.history: list[int] = []

    def losses(self) -> list[float]:
        level, gap = self.environment.level, self.environment.gap
        losses = [level - gap] + [level] * (self.environment.arms - 1)
        recent = self.history[-self.environment.window :]
        if recent:
            most = max(recent.count(arm) for arm in recent)
            tied = [arm for arm in range(self.environment.arms) if recent.count(arm) == most]
            # Ties go to the arm exploited last, or else to the lowest number.
            losses[recent[-1] if recent[-1] in tied else tied[0]] = 1.0
        return losses


class AlternatingTwin:
    def __init__(self, environment: dc.environments.AdaptiveAlternating) -> None:
        self.environment = environment
        self.history: list[int] = []

    def losses(self) -> list[float]:
        gap, others = self.environment.gap, self.environment.arms - 1
        if self.history and self.history[-1] == 0:
            return [1.0 - gap] + [1.0] * others
        return [0.0] + [gap] * others


ADVERSARIES = [
    (dc.environments.PunishLast(6), PunishTwin),
    (dc.environments.PunishLast(6, window=9, gap=0.2, level=0.6), PunishTwin),
    (dc.environments.AdaptiveAlternating(6, gap=0.25), AlternatingTwin),
]


@pytest.mark.parametrize("policy", [dc.FTPL(), dc.FollowTheLeader()], ids=str)
@pytest.mark.parametrize(
    ("environment", "twin_kind"), ADVERSARIES, ids=lambda each: getattr(each, "label", "")
)
def test_adversaries_play_as_their_twins_do(
    policy: dc.Policy,
    environment: dc.environments.Adversary,
    twin_kind: type[PunishTwin | AlternatingTwin],
) -> None:
    engine = run_block(
        policy, environment, ROUNDS, np.arange(1, ROUNDS + 1), SEED, range(RUN, RUN + 1)
    )
    learner, twin = learner_of(policy, environment.arms), twin_kind(environment)  # type: ignore[arg-type]
    noise, _ = run_streams(SEED, RUN)
    suffered, arm_losses = [], []
    for _ in range(ROUNDS):
        losses = twin.losses()
        decision = learner.decide()
        assert isinstance(decision.exploit, int)
        assert isinstance(decision.explore, int)
        learner.observe(decision, loss=float(uniform(noise) <= losses[decision.explore]))
        twin.history.append(decision.exploit)
        suffered.append(losses[decision.exploit])
        arm_losses.append(losses)
    sums = np.cumsum(arm_losses, axis=0)
    regret = np.cumsum(suffered) - sums[:, sums[-1].argmin()]
    assert np.allclose(engine.regret[0], regret, atol=1e-9)
    assert (
        engine.plays[0].tolist() == np.bincount(twin.history, minlength=environment.arms).tolist()
    )


DRAWN_ROUNDS, DRAWN_SEED = 300, 3
DRAWN_WORLD = dc.environments.Bernoulli([0.2, 0.7, 0.5, 0.5])


@pytest.mark.parametrize("perturbation", ["frechet", "pareto"])
@pytest.mark.parametrize("resampling", ["geometric", "conditional"])
def test_draws_are_those_of_the_learner(perturbation: str, resampling: str) -> None:
    policy = dc.CoupledFTPL(perturbation, resampling)
    counted = draws_per_round(policy, DRAWN_WORLD, DRAWN_ROUNDS, 2, DRAWN_SEED)
    for run in range(2):
        noise, _ = run_streams(DRAWN_SEED, run)
        learner = policy.start(
            DRAWN_WORLD.arms, np.random.SeedSequence(DRAWN_SEED, spawn_key=(run, 1))
        )
        draws = 0.0
        for _ in range(DRAWN_ROUNDS):
            decision, estimates = learner.decide(), learner.estimates()
            arm = cast(int, decision.explore)
            before = [
                other
                for other in range(DRAWN_WORLD.arms)
                if (estimates[other], other) < (estimates[arm], arm)
            ]
            rank = 1 + len(before)
            draws += decision.weight / (rank if resampling == "conditional" else 1)
            mean = DRAWN_WORLD.table(DRAWN_ROUNDS).rows[0, arm]
            learner.observe(decision, loss=float(uniform(noise) <= mean))
        assert draws == int(draws)
        assert counted[run] == draws / DRAWN_ROUNDS


def test_adversaries_are_refused() -> None:
    with pytest.raises(dc.UnsupportedError, match="PunishLast: draws are counted on tables"):
        draws_per_round(dc.CoupledFTPL(), dc.environments.PunishLast(4), 10, 1, 0)
