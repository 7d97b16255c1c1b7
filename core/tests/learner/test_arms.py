"""Adding and retiring arms: what new arms start with, their identity, and their feedback."""

import enum
import json
import random

import numpy as np
import pytest

import decoupled as dc
from decoupled import testing
from decoupled.extend import diagnostics
from decoupled.kernels.state import MOST_PAIRED_ARMS
from decoupled.learner import place_in_stream
from decoupled.learner.arms import Serials
from decoupled.policies.ftpl import MANY_ARMS
from decoupled.testing import state_of
from support.policies import forms
from support.saved import content_of, learned_by, with_learned

POLICIES = forms()
# Reversed, since the contract of policies runs forwards: of two workers that start with nothing
# compiled, each then compiles one half and finds the other half done.
every_policy = pytest.mark.parametrize("policy", POLICIES[::-1], ids=lambda policy: policy.label)
NAMES = ["a", "b", "c", "d", "e"]


def used(policy: dc.Policy, rounds: int = 40, seed: int = 3) -> dc.Learner:
    """A learner that has seen every arm, some more often than others."""
    learner = policy.start(NAMES, seed)
    learner.replay([(name, 0.2, 0.1 + 0.2 * i) for i, name in enumerate(NAMES)])
    script = random.Random(seed)
    for _ in range(rounds):
        decision = learner.decide()
        learner.observe(
            decision, loss=script.random() * (0.3 + 0.1 * NAMES.index(str(decision.explore)))
        )
    return learner


@every_policy
def test_the_contract_of_arms_that_come_and_go(policy: dc.Policy) -> None:
    case = testing.PolicyUnderTest(policy, arms=5, rounds=1, seed=1)
    testing.check_newcomers(case)
    testing.check_retired(case)


@every_policy
def test_newcomers_start_level_with_the_leader_or_unseen(policy: dc.Policy) -> None:
    learner = used(policy)
    before, stream, round_ = learner.estimates(), place_in_stream(learner), learner.round
    layout, old = policy.layout, state_of(learner)
    learner.add_arms(["x", 9])
    new = state_of(learner)
    for name in layout.learned:
        if name not in (
            "roots",
            "level",
            "excess",
            "excess_exploit",
        ):  # solutions, which have changed
            row = new[name] if name in layout.scalars else new[name][:5]
            row = row[:, :5] if name in layout.pairs else row
            assert np.array_equal(row, old[name]), name
    assert learner.arms == (*NAMES, "x", 9)
    known = learner.estimates()
    assert known[:5].tolist() == before.tolist()
    fresh = policy.start(2, 0).estimates()[0]
    assert known[5:].tolist() == [fresh if policy.cumulative is None else before.min()] * 2
    assert (place_in_stream(learner), learner.round) == (stream, round_)
    law = learner.exploitation_probabilities()
    if policy.cumulative is not None and not isinstance(
        policy, dc.Ladder | dc.ContextualLadder
    ):  # which go by means, too
        np.testing.assert_allclose(law[5:], law[before.argmin()], rtol=1e-6)


@every_policy
def test_what_stays_is_as_if_the_others_had_never_been(policy: dc.Policy) -> None:
    """The laws after a retirement are those of the same estimates among that many arms."""
    learner = used(policy)
    learner.retire_arms(["b", "d"])
    assert learner.arms == ("a", "c", "e")
    rounds = {name: content_of(learner)[name] for name in ("round", "remembered_round")}
    alone = with_learned(policy.start(["a", "c", "e"], 3), learned_by(learner), **rounds)
    assert learner.estimates().tolist() == alone.estimates().tolist()
    for law in ("exploitation_probabilities", "exploration_probabilities"):
        np.testing.assert_array_equal(getattr(learner, law)(), getattr(alone, law)())
    for _ in range(30):
        decision = learner.decide()
        assert {decision.exploit, decision.explore} <= {"a", "c", "e"}
        learner.observe(decision, loss=0.5)


# What the ladder learns about the observed arm itself: how well its means predicted the loss, and
# how the rungs, which play that arm too, did.
LEARNED_OF_THE_ARM = ("raw_error", "centred_error", "hedge_regret", "rung_loss")


# The contextual ladder has the baselines of the arrival, which depend on the arms that are there.
@pytest.mark.parametrize("policy", [each for each in POLICIES if not each.contextual], ids=repr)
def test_feedback_of_a_retired_arm_is_as_good_as_that_of_one_that_stayed(policy: dc.Policy) -> None:
    """The others learn the same as if the arm had been retired after the feedback."""
    if policy.baselines is not None and policy.baselines.keep_law:
        pytest.skip("its baselines are those of the arms that are there when feedback arrives")
    early, late = used(policy), used(policy)
    decisions = [learner.decide() for learner in (early, late)]
    gone = [decisions[0].explore]
    early.retire_arms(gone)
    for learner, decision in zip((early, late), decisions, strict=True):
        learner.observe(decision, loss=0.6)
    late.retire_arms(gone)
    assert diagnostics(early)["round"] == diagnostics(late)["round"]
    assert (
        diagnostics(early)["observed"]
        == diagnostics(late)["observed"]
        == early.round - 1
        == late.round - 1
    )
    np.testing.assert_allclose(early.estimates(), late.estimates(), rtol=1e-12)
    if not isinstance(policy, dc.JinHybrid):  # rates that follow laws with the arm in them
        one, two = (json.loads(each.to_json())["content"]["learned"] for each in (early, late))
        for name in one:
            if not name.startswith(LEARNED_OF_THE_ARM):
                np.testing.assert_allclose(one[name], two[name], rtol=1e-9, err_msg=name)
        laws = (early.exploitation_probabilities(), late.exploitation_probabilities())
        np.testing.assert_allclose(*laws, rtol=1e-9)


def test_newcomers_are_charged_for_decisions_before_them_and_not_after() -> None:
    learner = dc.FTPL().start(3, seed=5)
    early = learner.decide()
    learner.add_arms([3])
    between = learner.decide()
    learner.add_arms([4])
    for decision, charges in ((early, [1.0, 1.0]), (between, [1.0, 2.0])):
        learner.observe(decision, loss=1.0)
        away = [3, 4] if decision is early else [4]
        for place, charge in zip((3, 4), charges, strict=True):
            if place in away:
                assert learner.estimates()[place] == charge


def test_serials_find_their_places() -> None:
    script, arms, serials = random.Random(4), list(range(6)), Serials(6)
    for _ in range(200):
        if len(arms) > 3 and script.random() < 0.5:
            stays = sorted(script.sample(range(len(arms)), len(arms) - script.randint(0, 2)))
            serials, arms = serials.restricted_to(np.array(stays)), [arms[place] for place in stays]
        else:
            count = script.randint(0, 3)
            arms += range(serials.n_ever, serials.n_ever + count)
            serials = serials.extended(count)
        everyone = range(serials.n_ever)
        assert [serials.place(each) for each in everyone] == [
            arms.index(each) if each in arms else None for each in everyone
        ]
        places, found = serials.places(np.array(everyone))
        assert (places.tolist(), found.tolist()) == (list(range(len(arms))), arms)
        assert serials.ids(np.arange(len(arms))).tolist() == arms
        assert [serials.id_at(place) for place in range(len(arms))] == arms
        assert [serials.first_from(each) for each in everyone] == [
            sum(arm < each for arm in arms) for each in everyone
        ]


def test_numbered_arms_stay_numbers_while_they_can_and_no_arms_change_nothing() -> None:
    learner = dc.Exp3().start(3, seed=0)
    learner.add_arms(range(3, 6))
    assert json.loads(learner.to_json())["content"]["arms"] == 6
    learner.replay([(5, 1.0, 0.5)], unrandomised=True)
    assert learner.estimates().tolist() == [0.0] * 5 + [0.5]
    learner.retire_arms([1])
    assert list(learner.arms) == [0, 2, 3, 4, 5]
    learner.add_arms(["one", 1])
    assert list(learner.arms) == [0, 2, 3, 4, 5, "one", 1]
    known = learner.estimates()
    learner.replay([(name, 0.5, 0.125 * place) for place, name in enumerate(learner.arms)])
    assert (learner.estimates() - known).tolist() == [0.25 * place for place in range(7)]
    learner.decide(available=[1, "one"])
    learner = used(dc.FTPL())
    learner.decide()
    before = learner.to_json()
    learner.add_arms([])
    learner.retire_arms(())
    assert learner.to_json() == before


def test_top_two_breaks_ties_by_who_was_seen_first_also_after_arms_went() -> None:
    learner = dc.TopTwo().start(["a", "b", "c", "d"], seed=0)
    learner.replay([(name, 1.0, 0.9) for name in "abcd"])
    learner.retire_arms(["a", "b"])
    learner.add_arms(["x"])
    learner.replay([("x", 1.0, 0.9)])
    assert learner.decide().exploit == "c"
    assert state_of(learner)["seen_at"].tolist() == [3, 4, 5]


def test_the_form_for_many_arms_begins_where_they_are_many_and_pairs_have_a_limit() -> None:
    learner = dc.FTPL(ranking="auto").start(MANY_ARMS - 1, seed=0)
    assert learner.decide().propensity is not None
    learner.add_arms([MANY_ARMS - 1])
    decision = learner.decide()
    assert decision.propensity is None
    learner.retire_arms([0])
    learner.observe(decision, loss=0.5)
    assert learner.decide().propensity is not None
    np.testing.assert_allclose(learner.exploration_probabilities().sum(), 1.0)
    learner = dc.TopTwo().start(MOST_PAIRED_ARMS, seed=0)
    with pytest.raises(dc.ParameterError, match=r"^arms = 1001: must not exceed 1000"):
        learner.add_arms(["x"])
    assert len(learner.arms) == MOST_PAIRED_ARMS
    learner.decide()


# Why the rule is good

# Other rules, and what they cost, are in docs/learner.md.


@pytest.mark.parametrize(("mean", "least", "most"), [(0.2, 0.95, 1.0), (0.5, 0.0, 0.05)])
def test_a_better_newcomer_is_found_and_a_worse_one_dropped(
    mean: float, least: float, most: float
) -> None:
    means = {"good": 0.3, **{f"bad {i}": 0.5 for i in range(5)}, "new": mean}
    shares = []
    for seed in range(6):
        learner = dc.FTPL().start(list(means)[:-1], seed)
        noise = np.random.default_rng(seed)
        for t in range(4_000):
            if t == 2_000:
                learner.add_arms(["new"])
            decision = learner.decide()
            learner.observe(decision, loss=float(noise.random() < means[str(decision.explore)]))
        shares.append(learner.exploitation_probabilities()[-1])
    assert least <= np.mean(shares) <= most


def test_a_set_has_no_order_so_arms_cannot_be_one_and_members_of_enums_are_their_values() -> None:
    for unordered in ({"a", "b"}, frozenset({"a", "b"})):
        with pytest.raises(dc.ArmError, match=r"arms = .* is a set, whose order differs"):
            dc.Ladder().start(unordered, seed=1)
    learner = dc.Ladder().start(["a", "b"], seed=1)
    with pytest.raises(dc.ArmError, match=r"names = \{'c'\}: is a set"):
        learner.add_arms({"c"})
    learner.decide(available={"a", "b"})  # here order does not matter
    with pytest.raises(dc.ParameterError, match=r"rewards = .* must be 2 numbers or more"):
        dc.environments.Bernoulli({0.2, 0.7})  # type: ignore[arg-type]
    for wrong in ("ab", {"a", "b"}):
        with pytest.raises(dc.ArmError, match="must be a list of names"):
            dc.evaluate([{"explore": "a", "propensity": 0.5, "loss": 0.5}], arms=wrong)  # type: ignore[arg-type]

    class Model(str, enum.Enum):  # noqa: UP042 - that of a StrEnum prints its value
        SMALL = "small"
        LARGE = "large"

    learner = dc.Ladder().start(Model, seed=1)
    assert learner.arms == ("small", "large")
    assert learner.decide(available=[Model.SMALL]).exploit == "small"
