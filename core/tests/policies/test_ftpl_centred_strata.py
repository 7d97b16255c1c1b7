"""Centred losses and two rates in strata: exact laws, unbiased estimates, and a gate independent of the draw."""

import json
import zlib
from typing import cast

import numpy as np
import pytest

import decoupled as dc
from decoupled.base.arrays import Floats
from decoupled.kernels.laws.leader_tiered import MOST_COVERED
from decoupled.kernels.laws.winner_law import pareto_winner_law
from decoupled.kernels.random.stream import new_stream
from decoupled.kernels.state import State
from decoupled.learner.pending import recorded
from support.playing import play
from support.statistics import chi_square_p
from support.tiered import SHAPES, gaps_of
from support.twins.centred import CentredStrataTwin
from support.twins.ftpl import cut_into_strata

POLICY = dc.FTPL(c=0.5, c_exploit=3.0, estimator="centred", kappa=0.05, lam=0.1, ranking="strata")
CASES = [(arms, shape) for arms in (64, 1000, 5_000) for shape in SHAPES]
DRAWS = 300_000

# The chance that some test of draws below fails on a sound kernel, over random seeds.
FALSE_ALARM = 1e-3
LEVEL = FALSE_ALARM / (3 * len(CASES))

every_case = pytest.mark.parametrize(("arms", "shape"), CASES)


class Situation:
    """A state with estimates of some shape, in random order of arms, and its known properties."""

    def __init__(self, arms: int, shape: str, policy: dc.FTPL = POLICY, observations: int = 49) -> None:
        self.policy, self.values = policy, np.array(policy.params())
        self.state = policy.layout.new_state(arms)
        self.twin = CentredStrataTwin(arms, policy)
        self.twin.observations = observations
        by_rank = np.random.default_rng(zlib.crc32(repr((arms, shape)).encode())).permutation(arms)
        self.twin.estimates[by_rank] = 5.0 + 0.25 * gaps_of(shape, arms) / self.twin.eta
        self.twin.mean = 0.3
        policy.layout.row(self.state, "estimates")[:] = self.twin.estimates
        policy.layout.row(self.state, "round")[0] = 1 + observations
        policy.layout.row(self.state, "rise")[0] = -0.2
        policy.entries().init(self.values, *self.state)

    def change_by(self, arm: int, weight: float, loss: float) -> Floats:
        scalars, floats, ints = self.state
        state = State(scalars.copy(), floats.copy(), ints.copy())
        state.scalars[0] += 1.0
        self.policy.entries().update(self.values, *state, arm, weight, loss)
        change: Floats = self.policy.layout.row(state, "estimates") - self.twin.estimates
        return change


@every_case
def test_both_draws_have_their_exact_laws(arms: int, shape: str) -> None:
    situation = Situation(arms, shape)
    twin = situation.twin
    stream = new_stream(np.random.SeedSequence(zlib.crc32(repr((arms, shape)).encode())))
    played = play(POLICY, situation.state, stream, DRAWS)
    counts = [np.bincount(each, minlength=arms) for each in (played.exploits, played.explores)]
    heaviest = max(played.weights[twin.baseline()[played.explores] > 0.0], default=0.0)
    law, rate = twin.exploration_law(), POLICY.params().exploit_ratio * twin.eta
    assert chi_square_p(counts[0], pareto_winner_law(rate * twin.gaps(), POLICY.alpha)) > LEVEL
    assert chi_square_p(counts[1], law) > LEVEL
    # By stratum, since single ranks at the far end are too rare.
    by_rank = np.argsort(twin.ranks())
    seen = [each.sum() for each in cut_into_strata(counts[1][by_rank].astype(np.float64))]
    assert chi_square_p(seen, [each.sum() for each in cut_into_strata(law[by_rank])]) > LEVEL
    # No observation lowers an estimate by more than B / (kappa * eta), for any drawn sum.
    assert heaviest <= 1.0 / (POLICY.kappa * twin.eta)


@every_case
def test_the_arms_covered_are_the_twins(arms: int, shape: str) -> None:
    situation = Situation(arms, shape)
    places, values = POLICY.baselines(situation.state)
    expected = situation.twin.baseline()
    assert sorted(places) == np.flatnonzero(expected).tolist()
    assert values == pytest.approx(expected[places], rel=1e-15)
    assert len(places) <= MOST_COVERED
    # True probabilities are no smaller than the envelope's share: a covered arm passes the paper's own gate.
    assert (situation.twin.exploration_law()[places] >= POLICY.kappa * situation.twin.eta).all()


def test_cases_have_arms_on_either_side_of_the_gate() -> None:
    # Otherwise these tests would prove nothing.
    covered = [np.count_nonzero(Situation(*case).twin.baseline()) for case in CASES]
    assert 0 in covered or 1 in covered
    assert MOST_COVERED in covered
    assert len(set(covered)) > 5


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("arms", [64, 600])
def test_estimates_are_unbiased_whatever_sum_is_drawn(arms: int, shape: str) -> None:
    """Every arm, weighted by its probability, with drawn sums of q that are too low and too high.

    The border of the gate lies right at an arm: one more or one less is covered than by the sum drawn.
    """
    q = np.sort(Situation(arms, shape).twin.surrogates())[::-1]
    envelope = sum(len(each) * each[0] for each in cut_into_strata(q))
    kappa = q[min(7, arms // 8)] / (envelope * Situation(arms, shape).twin.eta)
    border = dc.FTPL(c=0.5, c_exploit=3.0, estimator="centred", kappa=kappa, lam=0.1, ranking="strata")
    situation = Situation(arms, shape, border)
    losses = np.random.default_rng(arms).random(arms)
    law = situation.twin.exploration_law()
    mean = np.zeros(arms)
    for arm in range(arms):
        for share in (0.8, 1.2):  # possible draws of the sum, right on average
            mean += 0.5 * law[arm] * situation.change_by(arm, share / law[arm], losses[arm])
    np.testing.assert_allclose(mean, losses, rtol=1e-9, atol=1e-9)


def test_feedback_in_any_order_teaches_what_the_twin_learns() -> None:
    arms = 200
    policy = dc.FTPL(c=0.5, c_exploit=3.0, estimator="centred", kappa=0.5, lam=0.2, ranking="strata")
    learner, twin = policy.start(arms, seed=1), CentredStrataTwin(arms, policy)
    generator = np.random.default_rng(0)
    waiting: list[tuple[dc.Decision, Floats]] = []
    numbers = set()
    for step in range(500):
        waiting.append((learner.decide(), twin.baseline()))
        numbers.add(np.count_nonzero(waiting[-1][1]))
        if len(waiting) > 8 or generator.random() < 0.3:
            decision, b = waiting.pop(int(generator.integers(len(waiting))))
            arm = cast(int, decision.explore)
            loss = float(generator.random() < 0.2 + 0.7 * arm / arms)
            learner.observe(decision, loss=loss)
            twin.learn(arm, decision.weight, loss, b)
            if step % 10 == 0:
                np.testing.assert_allclose(learner.estimates(), twin.estimates, rtol=1e-11, atol=1e-11)
                np.testing.assert_allclose(
                    learner.exploration_probabilities(), twin.exploration_law(), rtol=1e-9
                )
    assert len(numbers) > 10  # of covered arms


def test_what_is_pending_is_small_with_very_many_arms() -> None:
    policy = dc.FTPL(c=0.5, c_exploit=3.0, estimator="centred", ranking="auto")
    learner = policy.start(arms=100_000, seed=4)
    running = learner._running
    running.layout.row(running.state, "estimates")[:] = np.linspace(0.0, 1e-6, 100_000)  # no two tie
    running.calls.init()
    for _ in range(3_000):
        learner.observe(learner.decide(), loss=1.0)
    learner.decide(count=50)
    held = [each[3] for each in learner._waiting.decisions.values()]
    assert len({id(each) for each in held}) == 1
    shared = recorded(held[0])
    assert shared is not None
    assert len(shared[0]) == len(shared[1]) == MOST_COVERED
    content = json.loads(learner.to_json())["content"]
    assert len(content["baselines"]) == 1
    assert len(json.dumps(content["pending"])) < 50 * 200
    again = dc.Learner.from_json(learner.to_json())
    for decision in learner.pending[::-1]:
        learner.observe(decision, loss=0.25)
        again.observe(decision.id, loss=0.25)
    assert again.estimates().tolist() == learner.estimates().tolist()
    assert again.decide() == learner.decide()
    # Few enough arms for the dense round, whose baselines the strata then use.
    part = list(range(0, 100_000, 500))
    before = learner.estimates()
    decision = learner.decide(available=part)
    learner.observe(decision, loss=1.0)
    change = learner.estimates() - before
    assert decision.propensity is not None
    np.testing.assert_allclose(np.delete(change, part), 1.0)
    kept = learner.exploration_probabilities()
    assert kept.sum() == pytest.approx(1.0)
