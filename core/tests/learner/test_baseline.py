"""Users' baselines: predictions instead of the running mean, behind the policy's own gate."""

import json
from typing import cast

import numpy as np
import pytest

import decoupled as dc
from decoupled.base.arrays import Floats
from decoupled.extend import diagnostics
from decoupled.testing import state_of
from support.centred_ftpl import CENTRED_FTPL
from support.exactly import added, explored, one_of_each
from support.memory import bytes_kept
from support.saved import kept_by, with_learned
from support.twins.centred import CentredFTPLTwin

ARMS = 6
SORTING = dc.CentredFTPL(c=0.5, exploit_c=3.0, ranking="sorting", gate=0.6)
COUPLED = dc.CoupledTsallisINF(estimator="reduced-variance", c=0.9)
CENTRED: list[dc.Policy] = [dc.Ladder(), CENTRED_FTPL, SORTING, COUPLED]
every_centred = pytest.mark.parametrize("policy", CENTRED, ids=lambda policy: policy.label)
LOSSES = np.array([0.2, 0.9, 0.35, 0.6, 0.5, 0.75])
# Far from the losses, and different for every arm; one is right and one is 0.
PREDICTED = np.array([0.9, 0.1, 0.35, 1.0, 0.0, 0.3])


def trained(policy: dc.Policy, rounds: int = 150, seed: int = 2) -> dc.Learner:
    learner = policy.start(ARMS, seed, max_pending=100_000)
    for _ in range(rounds):
        decision = learner.decide()
        learner.observe(decision, loss=float(LOSSES[explored(decision)]))
    return learner


def changes(
    learner: dc.Learner, available: list[int] | None = None, meanwhile: bool = False
) -> tuple[Floats, Floats]:
    """For each explored arm: its probability, and what its feedback adds to every estimate."""
    law = learner.exploration_probabilities(available=available)
    found = one_of_each(learner, available=available, baseline=PREDICTED)
    if meanwhile:  # the gate and the running mean change before the feedback comes
        learner.replay([(0, 0.05, 1.0), (1, 0.5, 0.0), (2, 0.1, 1.0)])
    saved = learner.to_json()
    steps = {arm: added(saved, decision, loss=LOSSES[arm]) for arm, decision in found.items()}
    return law, np.array([steps.get(arm, np.zeros(ARMS)) for arm in range(ARMS)])


@every_centred
@pytest.mark.parametrize("meanwhile", [False, True], ids=["prompt", "late"])
def test_estimates_stay_unbiased_whatever_is_predicted(policy: dc.Policy, meanwhile: bool) -> None:
    law, change = changes(trained(policy), meanwhile=meanwhile)
    np.testing.assert_allclose(law @ change, LOSSES, rtol=1e-9)


@every_centred
def test_perfect_predictions_leave_no_noise_and_arms_that_are_away_no_bias(
    policy: dc.Policy,
) -> None:
    # A decision teaches the exact loss of every arm that passes the gate, whichever arm it explores. A soft gate lets
    # predictions pass up to its bound.
    learner = trained(policy)
    state, before = state_of(learner).to_state(), learner.estimates()
    passes = np.zeros(len(LOSSES), bool)
    baselines = policy.baselines
    assert baselines is not None
    passes[baselines.read(state)[0]] = True
    passes &= baselines.largest(state) >= LOSSES
    assert passes.any()
    decision = learner.decide(baseline=LOSSES)
    learner.observe(decision, loss=float(LOSSES[explored(decision)]))
    np.testing.assert_allclose((learner.estimates() - before)[passes], LOSSES[passes], rtol=1e-10)
    available = [0, 2, 3, 5]
    law, change = changes(trained(policy), available)
    expected = np.full(ARMS, law @ LOSSES)  # the charge of an unavailable arm
    expected[available] = LOSSES[available]
    np.testing.assert_allclose(law @ change, expected, rtol=1e-9)


@pytest.mark.parametrize("kappa", [0.1, 0.6, 2.0])
def test_the_gate_is_the_policys_own(kappa: float) -> None:
    """Compared with the twin round by round: b is the prediction if p >= kappa * eta, else 0."""
    policy = dc.CentredFTPL(c=0.5, exploit_c=3.0, gate=kappa)
    learner, twin = policy.start(ARMS, seed=4), CentredFTPLTwin(ARMS, policy)
    generator, closed = np.random.default_rng(5), 0
    for _ in range(300):
        predicted = generator.random(ARMS)
        named = {arm: float(predicted[arm]) for arm in range(ARMS) if generator.random() < 0.7}
        passes = twin.baseline() > 0
        b = twin.baseline()
        for arm, value in named.items():
            b[arm] = value if passes[arm] else 0.0
        closed += int((~passes).sum())
        decision = learner.decide(baseline=named)
        loss = float(generator.random() < LOSSES[explored(decision)])
        learner.observe(decision, loss=loss)
        twin.learn(explored(decision), decision.weight, loss, b)
        np.testing.assert_allclose(learner.estimates(), twin.estimates, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(
            learner.exploration_probabilities(), twin.exploration_law(), rtol=1e-9
        )
        assert diagnostics(learner)["rise"] == pytest.approx(
            twin.mean - 0.5
        )  # the mean still learns
    assert closed > 0 or kappa < 0.5


def test_predictions_are_losses_of_the_declared_range() -> None:
    texts = []
    for baseline in (
        [100.0, 250.0, 0.0],
        np.array([100, 250, 0]),
        {"b": 250, "a": 100.0, "c": 0},
        iter((100, 250, 0)),
    ):
        learner = CENTRED_FTPL.start(["a", "b", "c"], seed=1, loss_range=(0, 250))
        learner.decide(baseline=baseline)
        texts.append(learner.to_json())
    assert len(set(texts)) == 1
    content = json.loads(texts[0])["content"]
    assert [record[-1] for record in content["pending"]] == [0]
    assert content["baselines"] == [[[0, 1], [0.4, 1.0], True]]  # that of c is 0, and not stored


def test_a_decision_that_only_explores_and_many_at_once_take_it_too() -> None:
    learner = CENTRED_FTPL.start(3, seed=1)
    single = learner.explore(baseline=[0.1, 0.2, 0.3])
    several = learner.decide(count=3, baseline=[0.1, 0.2, 0.3])
    own = learner.decide()
    kept = kept_by(learner)
    assert all(kept[each.id].by_arm == {0: 0.1, 1: 0.2, 2: 0.3} for each in (single, *several))
    assert kept[own.id].by_arm == {0: 0.5, 1: 0.5, 2: 0.5}
    for policy in (CENTRED_FTPL, dc.Ladder()):
        one, two = (policy.start(3, seed=1) for _ in range(2))
        for learner in (one, two):
            learner.replay([(0, 0.5, 0.2), (1, 0.25, 0.7), (2, 0.25, 0.4)])
        assert one.decide(baseline=[0.1, 0.2, 0.3]) == two.decide()


def test_many_at_once_keep_one_prediction() -> None:
    """Each with its own, these would keep 16 MB."""
    policy = dc.CentredFTPL(c=0.5, exploit_c=3.0)
    learner = with_learned(
        policy.start(5_000, seed=1), {}, round=10**9
    )  # so late that every arm has one
    learner.decide()
    assert bytes_kept(lambda: learner.decide(count=200, baseline=[0.25] * 5_000)) < 1_000_000
    assert len(kept_by(learner)[learner.pending[-1].id].by_arm) == 5_000


def regret(model: str, seed: int, rounds: int = 1_500) -> float:
    """Six arms at constant distances from a wandering level, and a model that predicts the level or noise."""
    generator = np.random.default_rng(seed)
    learner = dc.Ladder().start(ARMS, seed)
    gaps = np.array([0.0, 0.1, 0.1, 0.1, 0.1, 0.1])
    suffered = 0.0
    for _ in range(rounds):
        losses = 0.8 * generator.random() + gaps
        given = {"good": losses, "bad": generator.random(ARMS), "none": None}[model]
        decision = learner.decide(baseline=given)
        learner.observe(decision, loss=float(losses[explored(decision)]))
        suffered += gaps[cast(int, decision.exploit)]
    return suffered


@pytest.mark.slow
def test_a_good_model_lowers_regret_and_a_bad_one_is_outlived() -> None:
    # Means of 24 such runs, with standard errors: 5.2 +- 0.1, 9.8 +- 1.3 and 24.9 +- 4.0; a uniform choice
    # would suffer 125. After 6,000 rounds they are 6.0, 10.8 and 26.3: noise instead of a model costs
    # some rounds at first, and biases nothing.
    good, none, bad = (
        float(np.mean([regret(model, seed) for seed in range(runs)]))
        for model, runs in {"good": 2, "none": 8, "bad": 8}.items()
    )
    assert good < 0.7 * none
    assert none < bad < 60.0


@pytest.mark.parametrize(
    "policy", [dc.Ladder(), CENTRED_FTPL, dc.CentredFTPL(ranking="sorting")], ids=repr
)
def test_baselines_that_are_computed_late_are_those_of_their_round(policy: dc.Policy) -> None:
    """A decision's baselines are computed when its round ends, if at all; the learner below has them at once."""
    lazy, eager = (policy.start(arms=["a", "b", "c", "d"], seed=5) for _ in range(2))
    choose = np.random.default_rng(5)
    for step in range(400):
        for learner in (lazy, eager):
            learner.decide()
        eager.to_json()
        action = choose.integers(8)
        if action == 0:
            arms = [arm for arm in lazy.arms if arm != "a"][: 1 + len(lazy.arms) % 2]
            available = [*arms, "a"]
            assert lazy.decide(available=available) == eager.decide(available=available)
        elif action == 1 and len(lazy.arms) < 7:
            for learner in (lazy, eager):
                learner.add_arms([f"new-{step}"])
        elif action == 2 and len(lazy.arms) > 3:
            gone = lazy.arms[-1]
            for learner in (lazy, eager):
                learner.retire_arms([gone])
        elif action == 3:
            assert lazy.to_json() == eager.to_json()
        elif action == 4:
            lazy, eager = (dc.Learner.from_json(each.to_json()) for each in (lazy, eager))
        for _ in range(choose.integers(3)):
            if lazy.pending:
                which = lazy.pending[choose.integers(len(lazy.pending))].id
                loss = float(choose.random())
                for learner in (lazy, eager):
                    learner.observe(which, loss=loss)
    assert lazy.to_json() == eager.to_json()
