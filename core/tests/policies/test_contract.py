"""One contract for every policy: its compiled form has the laws of its twin."""

import dataclasses
import json
import math
import zlib
from typing import Any, NamedTuple, cast

import numpy as np
import pytest

import decoupled as dc
from decoupled.base.arrays import Floats, Ints
from decoupled.kernels.random.stream import new_stream
from decoupled.kernels.state import State
from decoupled.testing import state_of
from support.exactly import added, explored, one_of_each
from support.playing import Played, play
from support.policies import examples, forms
from support.statistics import chi_square_p, means_agree
from support.twins import Twin, makers, twin_of
from support.twins.follow_the_leader import FollowTheLeaderTwin
from support.twins.ftpl import FTPLTwin

POLICIES = examples()


def knows_propensity(policy: dc.Policy) -> bool:
    """Whether it knows the probability of what it drew.

    Of the others a decision's propensity is None.
    """
    has_twin = type(policy).__name__ in makers()  # else a test of its own says that it has none
    return not has_twin or twin_of(policy, 2).knows_propensity


def is_default(policy: dc.Policy) -> bool:
    """Whether it is its class without parameters. What others share with it may be tested less."""
    return policy == type(policy)()


KNOWING = [policy for policy in POLICIES if knows_propensity(policy)]

every_policy = pytest.mark.parametrize("policy", POLICIES, ids=repr)
# For what parameters cannot change.
every_form = pytest.mark.parametrize("policy", forms(), ids=repr)
every_class = pytest.mark.parametrize("name", dc.Policy.homes)
# Those whose estimates add up importance-weighted losses; the others take means, or forget.
ESTIMATORS = [
    p for p in POLICIES if p.cumulative == "estimates" and not isinstance(p, dc.Forgetting)
]
every_estimator = pytest.mark.parametrize("policy", ESTIMATORS, ids=repr)
# The others are left to `test_estimates_are_unbiased_exactly`, which takes every draw's mean.
drawn_estimator = pytest.mark.parametrize(
    "policy", [dc.FTPL(), *(policy for policy in ESTIMATORS if policy not in KNOWING)], ids=repr
)
exact_estimator = pytest.mark.parametrize(
    "policy", [policy for policy in ESTIMATORS if policy in KNOWING], ids=repr
)

ARMS = 5

# The chance that some statistical test below fails on a sound policy, were its seed drawn afresh.
FALSE_ALARM = 1e-3
COMPARISONS = len(POLICIES) * (2 + 2 + ARMS) + 5
LEVEL = FALSE_ALARM / COMPARISONS


def seed_for(*case: object) -> int:
    """Every case has randomness of its own, the same in every process."""
    return zlib.crc32(repr(case).encode())


def exploited(decision: dc.Decision) -> int:
    return cast(int, decision.exploit)


class Pair(NamedTuple):
    learner: dc.Learner
    twin: Twin


def pair_after(policy: dc.Policy, rounds: int, arms: int = ARMS) -> Pair:
    """A state with history: the losses differ between arms, and every arm has been seen."""
    learner = policy.start(arms=arms, seed=seed_for("history", policy))
    twin = twin_of(policy, arms)
    twin.follow(learner)
    for arm in range(arms):
        learner.replay([(arm, 1 / arms, arm / arms)])
        twin.replay(arm, 1 / (1 / arms), arm / arms)
    generator = np.random.default_rng(seed_for("losses", policy))
    for _ in range(rounds):
        decision = learner.decide()
        loss = float(generator.random() < 0.3 + 0.1 * explored(decision))
        learner.observe(decision, loss=loss)
        twin.update(explored(decision), decision.weight, loss)
    return Pair(learner, twin)


@every_class
def test_every_policy_is_under_contract_and_a_frozen_description(name: str) -> None:
    kind = dc.Policy.known()[name]
    assert dc.Policy.from_dict({"name": name}) == kind()
    # The default period of Forgetting is longer than the tests.
    assert kind is dc.Forgetting or kind.examples()[0] == kind(), "the defaults come first"
    for policy in kind.examples():
        assert type(policy) is kind, "examples() gives policies of its class"
        fields = [field.name for field in dataclasses.fields(cast(Any, policy))]
        for field in [*fields, "something_new"]:
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(policy, field, 2.5)
        again = dataclasses.replace(cast(Any, policy))
        assert again is not policy
        assert again == policy
        assert {policy: "here"}[again] == "here"
        assert eval(repr(policy), dict(dc.Policy.known())) == policy
        assert json.loads(policy.to_json())["name"] == name
        assert dc.Policy.from_json(policy.to_json()) == kind.from_json(policy.to_json()) == policy
        with pytest.raises(dc.ParameterError, match="gamma"):
            dc.Policy.from_dict({**policy.to_dict(), "gamma": 0.5})
        assert isinstance(twin_of(policy, ARMS), Twin)


# That every parameter goes through its check, with its range; core/tests/base/test_spec.py has what
# the checks refuse.
BAD: list[tuple[type[dc.Policy], str, list[Any]]] = [
    (dc.FTPL, "alpha", [1.0, np.float64(1.0), "2"]),
    (dc.FTPL, "c", [0.0, math.inf, None]),
    (dc.FTPL, "ranking", ["Sorting", None, True]),
    (dc.FTPL, "ties", ["Shared", None]),
    (dc.CentredFTPL, "alpha", [1.0, None]),
    (dc.CentredFTPL, "c", [0.0, None]),
    (dc.CentredFTPL, "exploit_c", [0.0, math.nan]),
    (dc.CentredFTPL, "gate", [0.0, None]),
    (dc.CentredFTPL, "mean_rate", [-0.1, 1.0, None]),
    (dc.CentredFTPL, "schedule", ["round", None]),
    (dc.CentredFTPL, "ranking", ["Sorting", None]),
    (dc.CentredFTPL, "ties", ["Shared", None]),
    (
        dc.Ladder,
        "rungs",
        [2.0, "2", None, (), (2.0, 1.0), (1.0, 1.0), (0,), (1.0, math.nan), (1.0, None)],
    ),
    (dc.Ladder, "rungs", [(1.0, 2.0, 3.0, 4.0, 5.0), (1.0, math.inf), ("1",), (True,), ((1.0,),)]),
    (
        dc.Ladder,
        "prior",
        [2.0, "2", None, (1.0,), (1.0, 1.0, 0.0), (1.0, 1.0, math.inf), ("1", "1", "1")],
    ),
    (dc.Ladder, "prior", [(1.0, 1.0, 1e200)]),
    (dc.Ladder, "hedge_rate", [0.0, None]),
    (dc.Ladder, "mean_rate", [-0.1, 1.0, None]),
    (dc.Ladder, "least_spread", [-0.1, 1.0, None]),
    (dc.Ladder, "top_two_share", [-0.1, 1.0, None]),
    (dc.Ladder, "top_two_floor", [-0.1, 1.0, None]),
    (dc.TsallisINF, "beta", [0.0, 1.0, None]),
    (dc.TsallisINF, "c", [0.0, None]),
    (dc.Exp3, "c", [0.0, None]),
    (dc.AvnerExp3, "horizon", [0, 10.0, 10**16, True]),
    (dc.AvnerExp3, "mixing", [-0.1, 1.0, None]),
    (dc.JinHybrid, "horizon", [0, 10.0, 10**16, True]),
    (dc.JinHybrid, "barrier", [1e-7, 1e7, None]),
    (dc.JinHybrid, "theta", [1e-7, 1e7, None]),
    (dc.TopTwo, "epsilon", [0.0, None]),
    (dc.TopTwo, "beta", [0.0, 1.0, None]),
    (dc.CoupledFTPL, "perturbation", ["Frechet", None]),
    (dc.CoupledFTPL, "resampling", ["Geometric", None]),
    (dc.CoupledFTPL, "alpha", [1.0, None]),
    (dc.CoupledFTPL, "c", [0.0, None]),
    (dc.CoupledFTPL, "cap", [0, 2.0, True]),
    (dc.CoupledTsallisINF, "estimator", ["reduced_variance", None]),
    (dc.CoupledTsallisINF, "c", [0.0, "2"]),
    (dc.CoupledExp3, "c", [0.0, None]),
    (dc.UCB1, "c", [0.0, None]),
    (dc.Forgetting, "policy", ["FTPL", None, dc.FTPL, dc.Forgetting()]),
    (dc.Forgetting, "period", [1, 10.0, 10**16, True]),
    (dc.Forgetting, "discount", [0.0, 1.0, "2"]),
]


@pytest.mark.parametrize(
    ("cls", "name", "values"), BAD, ids=lambda each: getattr(each, "__name__", None)
)
def test_bad_parameters_are_refused_by_name(
    cls: type[dc.Policy], name: str, values: list[Any]
) -> None:
    for value in values:
        with pytest.raises(dc.ParameterError) as refusal:
            cls(**{name: value})
        assert f"{name} = {value!r}" in str(refusal.value)


@pytest.mark.parametrize(
    ("given", "argument"),
    [
        (
            {"rungs": (1.0,), "top_two_share": 0.0},
            "prior = (0.1, 0.15, 0.75): must be a number above",
        ),
        ({"prior": (1.0,)}, "prior = (1.0,): must be 3 numbers"),
        ({"top_two_share": 0.0, "prior": (1.0,)}, "prior = (1.0,): must be 2 numbers"),
    ],
    ids=str,
)
def test_a_prior_has_a_number_for_each_rung(given: dict[str, Any], argument: str) -> None:
    with pytest.raises(dc.ParameterError) as refusal:
        dc.Ladder(**given)
    assert argument in str(refusal.value)
    assert str(refusal.value).endswith("; use () for equal ones")


def assert_same_laws(learner: dc.Learner, twin: Twin) -> None:
    exploration = learner.exploration_probabilities()
    exploitation = learner.exploitation_probabilities()
    if learner.policy in KNOWING or not learner.policy.coupled:
        np.testing.assert_allclose(exploration, twin.exploration_law(), rtol=1e-12, atol=0)
    if learner.policy.coupled:
        assert exploration.tolist() == exploitation.tolist()
    np.testing.assert_allclose(exploitation, twin.exploitation_law(), rtol=0, atol=1e-9)
    assert abs(exploration.sum() - 1.0) < 1e-12
    assert abs(exploitation.sum() - 1.0) < 1e-12


def losses_of(rounds: int, arms: int) -> Floats:
    """Losses of two values and many zeros, so that estimates and means often coincide.

    Then bits; then any.
    """
    generator, each = np.random.default_rng(seed_for("losses")), -(-rounds // 3)
    ties = generator.choice([0.0, 0.0, 0.5], (each, arms))
    bits = generator.random((each, arms)) < np.linspace(0.2, 0.8, arms)
    return np.concatenate([ties, bits, generator.random((each, arms))])[:rounds].astype(np.float64)


@every_policy
def test_laws_are_the_twins_after_every_observation(policy: dc.Policy) -> None:
    learner = policy.start(arms=ARMS, seed=seed_for(policy))
    twin = twin_of(policy, ARMS)
    twin.follow(learner)
    assert_same_laws(learner, twin)
    # The twins of FTPL that is coupled and of Thompson sampling find every law by slow integrals.
    rounds = 18 if policy not in KNOWING else 90 if is_default(policy) else 45
    for row in losses_of(rounds, ARMS):
        decision = learner.decide()
        arm = explored(decision)
        if policy in KNOWING:
            chance = twin.exploration_law()[arm]
            assert decision.propensity == pytest.approx(chance, rel=1e-12)
            assert decision.weight == pytest.approx(1.0 / chance, rel=1e-12)
        else:
            assert decision.propensity is None
            assert decision.weight >= 1.0
        learner.observe(decision, loss=row[arm])
        twin.update(arm, decision.weight, row[arm])
        assert_same_laws(learner, twin)
    assert learner.round == twin.round
    if policy.cumulative == "estimates" and policy.baselines is None and not policy.contextual:
        assert learner.estimates().tolist() == twin.estimates.tolist()
    elif policy.cumulative == "estimates":  # their sums have three terms, in an order of their own
        np.testing.assert_allclose(learner.estimates(), twin.estimates, rtol=1e-12, atol=1e-12)


@every_form
def test_laws_are_the_twins_at_other_numbers_of_arms_and_so_are_first_draws(
    policy: dc.Policy,
) -> None:
    for arms in (2, 17):
        assert_same_laws(*pair_after(policy, 20, arms))
    assert_kernels_follow(policy.start(arms=ARMS, seed=0), twin_of(policy, ARMS), "first")


def assert_kernels_follow(learner: dc.Learner, twin: Twin, name: str) -> None:
    """Like `assert_draws_follow`, without the learner around the compiled functions: ten times the
    draws in less time.
    """
    stream = new_stream(np.random.SeedSequence(seed_for(name, learner.policy)))
    played = play(learner.policy, state_of(learner).to_state(), stream, 200_000)
    assert_pairs_follow(played.exploits, played.explores, learner, twin)


def assert_pairs_follow(exploits: Ints, explores: Ints, learner: dc.Learner, twin: Twin) -> None:
    """Both laws, from one table of pairs: the two draws are independent, or in the standard game
    one.
    """
    pairs = ARMS * exploits + explores
    counts = np.bincount(pairs, minlength=ARMS * ARMS).reshape(ARMS, ARMS)
    law = np.outer(twin.exploitation_law(), twin.exploration_law())
    if learner.policy.coupled:
        law = np.diag(twin.exploitation_law())
    assert chi_square_p(counts, law) > LEVEL


@pytest.mark.slow
@every_policy
def test_draws_have_these_laws_together(policy: dc.Policy) -> None:
    assert_kernels_follow(*pair_after(policy, 30), "draws")


@pytest.mark.parametrize("alpha", [1.3, 2.0, 3.0, 6.0])
def test_perturbing_every_arm_gives_the_same_law(alpha: float) -> None:
    learner, twin = pair_after(dc.FTPL(alpha=alpha), 30)
    perturbed = cast(FTPLTwin, twin).draw_exploits(200_000, np.random.default_rng(seed_for(alpha)))
    counts = np.bincount(perturbed, minlength=ARMS)
    assert chi_square_p(counts, learner.exploitation_probabilities()) > LEVEL


LOSSES = np.array([0.0, 0.3, 1.0, 0.7, 0.05])


def mean_change(learner: dc.Learner, decisions: dict[int, dc.Decision], law: Floats) -> Floats:
    """What one of these decisions adds to the estimates on average, when it is observed now."""
    saved = learner.to_json()
    changes = [law[arm] * added(saved, each, loss=LOSSES[arm]) for arm, each in decisions.items()]
    return np.sum(changes, axis=0)  # type: ignore[no-any-return]


@exact_estimator
def test_estimates_are_unbiased_exactly(policy: dc.Policy) -> None:
    learner, _ = pair_after(policy, 10)
    law = learner.exploration_probabilities()
    decisions = one_of_each(learner)
    np.testing.assert_allclose(mean_change(learner, decisions, law), LOSSES, rtol=1e-10, atol=1e-12)
    # Late feedback counts with the propensity of its decision.
    learner.replay([(arm, 0.2, 0.25 * arm) for arm in range(ARMS)] * 4)
    assert np.abs(learner.exploration_probabilities() / law - 1.0).max() > 0.05
    np.testing.assert_allclose(mean_change(learner, decisions, law), LOSSES, rtol=1e-10, atol=1e-12)

    # An absent arm is charged what the available ones cost on average.
    places = [0, 2, 3]
    law = learner.exploration_probabilities(available=places)
    decisions = one_of_each(learner, available=places)
    expected = np.full(ARMS, law @ LOSSES)
    expected[places] = LOSSES[places]
    np.testing.assert_allclose(
        mean_change(learner, decisions, law), expected, rtol=1e-10, atol=1e-12
    )


@every_estimator
def test_replay_weighs_by_the_logs_own_propensity(policy: dc.Policy) -> None:
    learner, twin = pair_after(policy, 10)
    before = learner.estimates()
    learner.replay([(2, 0.125, 0.5)])
    if policy.baselines is not None and policy.baselines.are_free:  # those of the arrival
        twin.replay(2, 8.0, 0.5)
        np.testing.assert_allclose(learner.estimates(), twin.estimates, rtol=1e-12)
        return
    np.testing.assert_allclose(learner.estimates() - before, [0, 0, 4.0, 0, 0], rtol=1e-12)


@pytest.mark.slow
@drawn_estimator
def test_estimates_are_unbiased_over_real_draws_that_come_back_late(policy: dc.Policy) -> None:
    # All decisions are made in one state and observed while the state moves on under them.
    draws = 20_000
    learner, twin = pair_after(policy, 10)
    before = learner.estimates()
    for decision in learner.decide(count=draws):
        learner.observe(decision, loss=LOSSES[explored(decision)])
    mean = (learner.estimates() - before) / draws
    assert means_agree(mean, LOSSES, np.sqrt(twin.estimate_variance(LOSSES) / draws), LEVEL)


def test_means_of_follow_the_leader_are_those_of_its_twin() -> None:
    learner, twin = pair_after(dc.FollowTheLeader(), 50)
    assert learner.estimates().tolist() == cast(FollowTheLeaderTwin, twin).means()
    for policy in (policy for policy in POLICIES if policy.coupled):
        learner = policy.start(arms=ARMS, seed=0)
        before = learner.to_json()
        for name in ("exploit", "explore"):
            said = rf"^{name}\(\): {type(policy).__name__} plays the standard .*use decide\(\)"
            for options in ({}, {"available": [0]}):
                with pytest.raises(dc.UnsupportedError, match=said):
                    getattr(learner, name)(**options)
        assert learner.to_json() == before

    class Twinless:
        pass

    said = (
        r"Twinless has no twin; write tests/support/twins/test_contract\.py .* "
        r"@twin_for\(\"Twinless\"\)"
    )
    with pytest.raises(LookupError, match=said):
        twin_of(Twinless(), ARMS)


@every_form
def test_deciding_changes_nothing_that_is_learned(policy: dc.Policy) -> None:
    learner, twin = pair_after(policy, 10)
    before = learner.exploration_probabilities(), learner.exploitation_probabilities()
    learner.decide(count=100)
    learner.decide(available=[0, 2])
    if not policy.coupled:
        learner.explore()
        learner.exploit()
    assert learner.round == twin.round
    assert learner.exploration_probabilities().tolist() == before[0].tolist()
    assert learner.exploitation_probabilities().tolist() == before[1].tolist()


def assert_same_laws_on(places: list[int], learner: dc.Learner, twin: Twin) -> None:
    part = twin.restricted(sorted(places))
    exploration = learner.exploration_probabilities(available=places)
    exploitation = learner.exploitation_probabilities(available=places)
    assert not np.delete(exploration, places).any()
    assert not np.delete(exploitation, places).any()
    # Where a solution is good to 1e-12 without the missing arms it is taken as it stands.
    if learner.policy in KNOWING or not learner.policy.coupled:
        np.testing.assert_allclose(exploration[sorted(places)], part.exploration_law(), rtol=1e-11)
    np.testing.assert_allclose(
        exploitation[sorted(places)], part.exploitation_law(), rtol=0, atol=1e-9
    )


@every_form
def test_laws_and_draws_on_some_arms_are_the_twins_however_far_behind_others_are(
    policy: dc.Policy,
) -> None:
    places = [0, 2, 3]
    learner, twin = pair_after(policy, 30)
    decisions = learner.decide(count=4_000, available=places)
    law = learner.exploration_probabilities(available=places)
    chances = [decision.propensity for decision in decisions]
    if policy not in KNOWING:
        assert set(chances) == {None}
    else:
        expected = law[[explored(each) for each in decisions]]
        np.testing.assert_allclose(np.array(chances, np.float64), expected, rtol=1e-12)
    counts = np.bincount([explored(decision) for decision in decisions], minlength=ARMS)
    assert chi_square_p(counts, law) > LEVEL
    counts = np.bincount([exploited(decision) for decision in decisions], minlength=ARMS)
    assert chi_square_p(counts, learner.exploitation_probabilities(available=places)) > LEVEL
    for places in ([0, 2, 3], [4, 1], [3], [0, 1, 2, 3, 4]):
        assert_same_laws_on(places, learner, twin)
    for propensity in (1e-2, 1e-3, 1e-4, 1e-6):
        learner.replay([(4, propensity, 1.0)])
        twin.replay(4, 1.0 / propensity, 1.0)
        assert_same_laws(learner, twin)
        assert_same_laws_on([0, 1, 2, 3], learner, twin)


def recorded(policy: dc.Policy, losses: Floats, weight: float, rounds: int) -> tuple[Played, State]:
    state = policy.layout.new_state(losses.shape[1])
    policy.entries().init(policy.param_values(), *state)
    return play(
        policy, state, new_stream(np.random.SeedSequence(11)), rounds, losses, weight
    ), state


def tie_losses(kind: str, arms: int) -> Floats:
    if kind == "a block at zero":  # half the arms never lose, and stay tied for ever
        return (np.arange(arms) >= arms // 2).astype(np.float64).reshape(1, arms)
    generator = np.random.default_rng(seed_for(kind, arms))
    return (generator.random((1000, arms)) < np.linspace(0.3, 0.7, arms)).astype(np.float64)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "weight"), [("bits", 0.0), ("bits", 1.0), ("a block at zero", 0.0)]
)
@pytest.mark.parametrize("arms", [2, 8, 300])
def test_both_rankings_make_the_same_decisions(arms: int, kind: str, weight: float) -> None:
    # With weight 1 in place of 1/p the estimates are whole numbers, and most of them are tied.
    losses = tie_losses(kind, arms)
    kept, kept_state = recorded(dc.FTPL(ranking="improved"), losses, weight, 30_000)
    anew, anew_state = recorded(dc.FTPL(ranking="sorting"), losses, weight, 30_000)
    assert np.array_equal(kept.exploits, anew.exploits)
    assert np.array_equal(kept.explores, anew.explores)
    assert np.array_equal(kept_state.floats, anew_state.floats)
    assert np.array_equal(kept_state.ints, anew_state.ints)


# A million rounds of every policy, in which one arm alone never loses; fewer where all arms cost
# the same, where only parameters differ, and for a contextual policy, which runs four ladders.
EXTREMES = [([1.0, 1.0, 0.0, 1.0, 1.0], 1_000_000), ([0.0] * 5, 100_000), ([1.0] * 5, 100_000)]


@pytest.mark.slow
@pytest.mark.parametrize(("losses", "rounds"), EXTREMES)
@every_policy
def test_a_million_rounds_of_extreme_losses(
    policy: dc.Policy, losses: list[float], rounds: int
) -> None:
    state, values = policy.layout.new_state(ARMS), policy.param_values()
    stream = new_stream(np.random.SeedSequence(seed_for(policy, losses)))
    block = 100_000 if is_default(policy) else 20_000
    for _ in range(rounds // 100_000 if is_default(policy) and not policy.contextual else 1):
        policy.entries().init(values, *state)
        played = play(policy, state, stream, block, np.array(losses))
        if policy in KNOWING:
            assert (played.propensities > 0.0).all()
            assert (np.abs(played.weights * played.propensities - 1.0) < 1e-12).all()
        else:
            assert np.isnan(played.propensities).all()
            assert ((played.weights >= 1.0) & (played.weights < math.inf)).all()
        assert np.isfinite(state.floats).all()
        assert np.isfinite(state.scalars).all()
        assert abs(policy.exploration_law(state).sum() - 1.0) < 1e-12
        assert abs(policy.exploitation_law(state).sum() - 1.0) < 1e-12
    if losses[2] == 0.0 < losses[0]:
        assert policy.exploitation_law(state).argmax() == 2
