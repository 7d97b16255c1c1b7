"""Guardrails: what is served follows the rules, also the cheapest arm that is good enough, and what
is learned does not notice them.
"""

import copy
import itertools
import json
import pickle
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import decoupled as dc
from decoupled.decision import GuardedDecision
from decoupled.inference import Sequences, difference_now, share_of_segment
from decoupled.inference.comparisons import within
from decoupled.learner.portable import place_in_stream
from support.policies import forms
from support.seeds import seeded
from support.statistics import chi_square_p

POLICIES = forms()
DECOUPLED = [policy for policy in POLICIES if not policy.coupled]
ARMS = ["a", "b", "c", "d"]
COST = {"a": 0.9, "b": 0.2, "c": 0.5, "d": 0.7}
# The chance that one of the statistical tests fails on sound code, were its seed drawn afresh.
FALSE_ALARM = 1e-3
LEVEL = FALSE_ALARM / 5

SHARES = dc.Guardrails(floors={"a": 0.2, "d": 0.1}, holdout=0.15, control="c")


def trained(
    rules: dc.Guardrails | None = None, policy: dc.Policy | None = None, rounds: int = 30
) -> dc.Learner:
    learner = dc.Learner(policy or dc.FTPL(), ARMS, seeded(5), guardrails=rules)
    for _ in range(rounds):
        decision = learner.decide()
        learner.observe(decision, loss=COST[str(decision.explore)])
    return learner


def course(policy: dc.Policy, *rules: dc.Guardrails) -> tuple[list[Any], list[Any], str]:
    """What a learner explores, what it serves, and what it has learned.

    Each set of rules holds for some rounds.
    """
    learner = policy.start(ARMS, seed=seeded(11))
    explored, served = list[Any](), list[Any]()
    for each in rules:
        learner.guardrails = each
        late = learner.decide(count=2)
        for turn in range(8):
            decision = learner.decide(available=["a", "b", "d"] if turn % 3 == 2 else None)
            explored.append((*decision[3:], learner.explore().explore))
            exploited = [learner.exploit() for _ in range(5)]
            served.append((decision.exploit, decision.guard))
            served += [(each.exploit, each.guard) for each in exploited]
            learner.observe(decision, loss=COST[str(decision.explore)])
        for decision in late:
            learner.observe(decision.id, reward=COST[str(decision.explore)])
    return explored, served, learner.estimates().tobytes().hex() + place_in_stream(learner).hex()


@pytest.mark.parametrize("policy", DECOUPLED, ids=repr)
def test_exploring_and_learning_are_equal_to_the_bit_with_and_without_guardrails(
    policy: dc.Policy,
) -> None:
    plain = course(policy, *[dc.Guardrails()] * 4)
    rules = (
        SHARES,
        dc.Guardrails(pinned="d"),
        dc.Guardrails(incumbent="c"),
        dc.Guardrails(holdout=0.5),
    )
    guarded = course(policy, *rules)
    assert (guarded[0], guarded[2]) == (plain[0], plain[2])
    assert guarded[1] != plain[1]
    # The hold-out is drawn by a coin. 48 times of one half: it never comes up in one of 1e14 seeds.
    assert {guard for _, guard in guarded[1]} >= {"pinned", "incumbent", "holdout"}


@pytest.mark.parametrize("policy", [each for each in POLICIES if each.coupled], ids=repr)
def test_a_policy_of_the_standard_game_refuses_rules_about_what_is_served(
    policy: dc.Policy,
) -> None:
    learner = policy.start(ARMS, seed=seeded(11))
    cheapest = dc.Guardrails(cheapest_within=0.1, prices=dict.fromkeys(ARMS, 1.0))
    for rules in (dc.Guardrails(pinned="a"), cheapest, dc.Guardrails(switch_margin=0.1)):
        with pytest.raises(dc.UnsupportedError, match="learns from the arm that is served"):
            learner.guardrails = rules
    with pytest.raises(dc.UnsupportedError, match="plays the standard game"):
        dc.Meter(dc.Budget(share=0.5)).decide(learner)
    learner.guardrails = dc.Guardrails(down=["a", "b"])
    assert {learner.decide().exploit for _ in range(40)} <= {"c", "d"}


def test_the_law_of_what_is_served_is_the_one_stated() -> None:
    learner = trained()
    law = learner.exploitation_probabilities()
    learner.guardrails = SHARES
    floors, control = np.array([0.2, 0.0, 0.0, 0.1]), np.array([0.0, 0.0, 1.0, 0.0])
    stated = 0.15 * control + floors + (1.0 - 0.15 - 0.3) * law
    np.testing.assert_allclose(learner.exploitation_probabilities(), stated, rtol=1e-12)
    np.testing.assert_array_equal(learner.exploitation_probabilities(guarded=False), law)
    # b and d alone: the control and the floor of a are not available, and fall back to the policy.
    within = learner.exploitation_probabilities(available=["b", "d"], guarded=False)
    expected = np.array([0.0, 0.0, 0.0, 0.1]) + 0.9 * within
    np.testing.assert_allclose(
        learner.exploitation_probabilities(available=["b", "d"]), expected, rtol=1e-12
    )
    learner.guardrails = dc.Guardrails(holdout=0.4)
    np.testing.assert_allclose(learner.exploitation_probabilities(), 0.1 + 0.6 * law, rtol=1e-12)


@pytest.mark.parametrize(
    "rules", [SHARES, dc.Guardrails(holdout=0.4), dc.Guardrails(floors={"a": 0.3}, incumbent="c")]
)
@pytest.mark.parametrize("some", [None, ["a", "b", "d"]])
def test_what_is_served_follows_its_law(rules: dc.Guardrails, some: list[str] | None) -> None:
    learner = trained(rules)
    law = learner.exploitation_probabilities(available=some)
    served = Counter(each.exploit for each in learner.decide(count=20_000, available=some))
    served.update(learner.exploit(available=some).exploit for _ in range(200))
    counts = np.array([served[arm] for arm in ARMS])
    assert counts[law == 0.0].sum() == 0
    assert chi_square_p(counts[law > 0.0], law[law > 0.0]) > LEVEL / 2


def test_the_guards_draws_do_not_depend_on_the_policys() -> None:
    learner = trained(SHARES)
    kinds = [None, "holdout", "floor"]
    pairs = Counter((each.guard, each.drawn) for each in learner.decide(count=20_000))
    counts = np.array([[pairs[kind, arm] for arm in ARMS] for kind in kinds])
    law = np.outer([0.55, 0.15, 0.3], learner.exploitation_probabilities(guarded=False))
    assert chi_square_p(counts, law) > LEVEL


def test_a_pin_is_served_while_it_is_available_and_a_release_ends_it() -> None:
    learner = trained(SHARES.updated(pinned="d"))
    assert {(each.exploit, each.guard) for each in learner.decide(count=50)} == {("d", "pinned")}
    assert {learner.exploit()[::2] for _ in range(50)} == {("d", "pinned")}
    assert learner.exploitation_probabilities().tolist() == [0.0, 0.0, 0.0, 1.0]
    learner.guardrails = learner.guardrails.updated(pinned=None)
    assert {each.exploit for each in learner.decide(count=200)} > {"a", "d"}
    learner = trained(dc.Guardrails(pinned="d"))
    decision = learner.decide(available=["a", "b"])
    assert (decision.exploit in ("a", "b"), decision.guard) == (True, None)
    learner.guardrails = dc.Guardrails(pinned="d", down=["d"])
    assert {each.exploit for each in learner.decide(count=100)} <= {"a", "b", "c"}


def test_arms_that_are_down_are_not_drawn_and_rules_that_come_back_do_not_repeat_their_draws() -> (
    None
):
    learner = trained(dc.Guardrails(down=["b"]))
    decisions = [*learner.decide(count=300), learner.explore(), learner.decide()]
    assert "b" not in {arm for each in decisions for arm in (each.exploit, each.explore)}
    assert "b" not in {learner.exploit().exploit for _ in range(100)}
    assert learner.exploration_probabilities()[1] == 0.0
    twin = dc.Learner.from_json(learner.to_json())
    twin.guardrails = dc.Guardrails()
    assert learner.decide()[2:] == twin.decide(available=["a", "c", "d"])[2:]
    with pytest.raises(dc.ArmError, match="every arm of this decision is down"):
        learner.decide(available=["b"])
    learner, twin = trained(SHARES, rounds=0), trained(SHARES, rounds=0)
    first = [learner.exploit().guard for _ in range(50)]
    learner.guardrails = dc.Guardrails()
    restored = dc.Learner.from_json(learner.to_json())
    restored.guardrails = SHARES
    assert [twin.exploit().guard for _ in range(50)] == first
    assert [restored.exploit().guard for _ in range(50)] == [
        twin.exploit().guard for _ in range(50)
    ]


def test_a_guarded_decision_is_a_decision() -> None:
    learner = trained(dc.Guardrails(pinned="d"))
    decision = learner.decide()
    assert isinstance(decision, GuardedDecision)
    for again in (pickle.loads(pickle.dumps(decision)), copy.deepcopy(decision)):
        assert (again, again.drawn, again.guard) == (decision, decision.drawn, "pinned")
    _, _, exploit, explore, _, _ = decision
    assert (exploit, explore) == ("d", decision.explore)
    learner.observe(pickle.loads(pickle.dumps(decision)), loss=0.5)
    plain = trained().decide()
    assert (plain.drawn, plain.guard) == (plain.exploit, None)


def test_new_arms_do_not_change_the_rules_and_named_arms_do_not_retire() -> None:
    learner = trained(SHARES.updated(pinned="b", down=["c"]))
    learner.add_arms(["e"])
    assert learner.decide().exploit == "b"
    for name, rule in (("b", "pinned"), ("a", "floors"), ("c", "control")):
        with pytest.raises(
            dc.ArmError, match=f"names = '{name}': is named by the guardrail '{rule}'"
        ):
            learner.retire_arms(["e", name])
    assert learner.arms == ("a", "b", "c", "d", "e")
    learner.guardrails = dc.Guardrails(down=["a", "c"])
    learner.retire_arms(["a"])
    assert learner.guardrails == dc.Guardrails(down=["c"])
    # The arm "d" had a chance of 0.0003 or more in 300 seeds of 300: it is missing in at most one
    # seed of 400.
    assert {each.explore for each in learner.decide(count=20_000)} == {"b", "d", "e"}


SLOW = {"a": 0.9, "b": 0.1, "c": 0.9}


def played(
    incumbent: str, losses: dict[str, float], rounds: int, seed: int, **rules: Any
) -> tuple[dc.Learner, list[str | None]]:
    """A learner after some rounds of Bernoulli losses with these means, and the guard of each
    decision.
    """
    rules_ = dc.Guardrails(incumbent=incumbent, **rules)
    learner, luck = (
        dc.Learner(dc.Exp3(c=0.2), list(losses), seeded(seed), guardrails=rules_),
        random.Random(seeded(seed)),
    )
    guards = list[str | None]()
    for _ in range(rounds):
        decision = learner.decide()
        guards.append(decision.guard)
        learner.observe(decision, loss=float(luck.random() < losses[str(decision.explore)]))
    return learner, guards


@pytest.mark.parametrize("drift", [True, False])
def test_an_incumbent_is_served_until_another_arm_is_known_to_be_better(drift: bool) -> None:
    learner, guards = played("a", SLOW, 400, seed=1, drift=drift)
    at = guards.index(None)
    assert 10 < at < 200
    assert set(guards[at:]) == {None}, "it stays released"
    assert learner.inference.incumbent_released
    assert learner.exploitation_probabilities()[1] > 0.6
    for _ in range(400):  # the incumbent becomes the best, and evidence against it fades
        decision = learner.decide()
        learner.observe(decision, loss=1.0 - SLOW[str(decision.explore)])
        assert decision.guard is None
    assert dc.Learner.from_json(learner.to_json()).inference.incumbent_released
    learner.guardrails = learner.guardrails.updated(floors={"a": 0.1})
    assert learner.inference.incumbent_released
    learner.guardrails = learner.guardrails.updated(incumbent="b", floors={})
    assert learner.decide().guard == "incumbent"


def test_a_best_incumbent_is_left_in_at_most_the_stated_share_of_runs() -> None:
    """Three equal arms are the hardest case.

    If the share were the risk, 0.3, 23 of 40 would come once in 2,500 times.
    """

    def left(incumbent: str, losses: dict[str, float], runs: int, **rules: Any) -> int:
        ends = (played(incumbent, losses, 150, seed, **rules)[0] for seed in range(runs))
        return sum(bool(each.inference.incumbent_released) for each in ends)

    assert left("a", dict.fromkeys("abc", 0.5), 40, risk=0.3) < 23
    assert left("b", SLOW, 3) == 0


def watched_long(losses: dict[str, float], rounds: int = 1_500) -> dc.Learner:
    """A learner that was watched while arm `a` turned out to be worse."""
    learner = dc.Ladder().start(list(losses), seed=seeded(7))
    learner.watch()
    observed(learner, losses, rounds)
    assert learner.inference.verdict().out == ("a",)
    return learner


def observed(learner: dc.Learner, losses: dict[str, float], rounds: int) -> int:
    """Play until the incumbent is released, at most so long; how long it took."""
    luck = random.Random(seeded(rounds))
    for turn in range(rounds):
        if learner.inference.incumbent_released:
            return turn
        decision = learner.decide()
        learner.observe(decision, loss=float(luck.random() < losses[str(decision.explore)]))
    return rounds


def test_an_incumbent_is_released_on_evidence_since_it_was_set() -> None:
    losses = {"a": 0.6, "b": 0.3}
    learner = watched_long(losses)
    learner.guardrails = dc.Guardrails(incumbent="a")
    twin = dc.Learner.from_json(learner.to_json())
    assert observed(learner, losses, 20) == 20, "too few to tell"
    took = observed(learner, losses, 3_000)
    assert 20 < took < 3_000
    assert observed(twin, losses, 20) == 20
    assert observed(twin, losses, 3_000) == took, "a saved learner knows since when"
    fresh = dc.Learner(
        dc.Ladder(), list(losses), seed=seeded(7), guardrails=dc.Guardrails(incumbent="a")
    )
    observed(fresh, losses, 20)
    assert (twin.to_json() == learner.to_json(), observed(fresh, losses, 3_000) < 3_000) == (
        True,
        True,
    )


def test_equal_arms_release_no_incumbent_whatever_was_seen_before_it_was_set() -> None:
    learner = watched_long({"a": 0.6, "b": 0.3})
    learner.guardrails = dc.Guardrails(incumbent="a")
    observed(learner, {"a": 0.4, "b": 0.4}, 1_000)
    assert learner.inference.incumbent_released is False
    assert learner.inference.verdict().out == ("a",), "the verdict counts everything"


def test_decisions_from_before_and_logs_do_not_release_an_incumbent() -> None:
    learner = dc.Ladder().start(["a", "b"], seed=seeded(7))
    made = learner.decide(count=600)
    learner.guardrails = dc.Guardrails(incumbent="a")
    learner.replay([("a", 0.5, 1.0), ("b", 0.5, 0.0)] * 300)
    twin = dc.Learner.from_json(learner.to_json())
    for each in (learner, twin):
        for decision in made:
            each.observe(decision.id, loss=float(decision.explore == "a"))
        assert each.inference.verdict().out == ("a",)
        assert each.inference.incumbent_released is False
    for _ in range(2_000):
        for each in (learner, twin):
            decision = each.decide()
            each.observe(decision, loss=float(decision.explore == "a"))
    assert learner.inference.incumbent_released is True
    assert learner.to_json() == twin.to_json()


def test_another_incumbent_is_judged_from_its_own_start() -> None:
    losses = {"a": 0.6, "b": 0.2, "c": 0.7}
    learner = dc.Learner(
        dc.Ladder(), list(losses), seed=seeded(7), guardrails=dc.Guardrails(incumbent="a")
    )
    observed(learner, losses, 2_000)
    assert learner.inference.incumbent_released
    learner.guardrails = learner.guardrails.updated(incumbent="c")
    assert observed(learner, losses, 10) == 10
    learner.guardrails = learner.guardrails.updated(holdout=0.1)  # the same incumbent goes on
    learner.add_arms(["d"])
    learner.retire_arms(["a"])
    assert observed(learner, {**losses, "d": 0.9}, 2_000) < 2_000


PRICES = {"cheap": 1.0, "dear": 3.0}
Losses = Callable[[int], dict[str, float]]


def rules(margin: float = 0.1, **more: Any) -> dc.Guardrails:
    return dc.Guardrails(cheapest_within=margin, **{"prices": PRICES, **more})


def always(cheap: float, dear: float) -> Losses:
    return lambda turn: {"cheap": cheap, "dear": dear}


def worst_served(
    losses: Losses, guardrails: dc.Guardrails, seed: int, rounds: int, late: int = 0
) -> float:
    """By how much an arm served by the rule was worse at most, at the moment of serving.

    -1 if none was ever served.

    That is the twin of the guarantee: the difference of the true means, over the rounds that count
    by then, weighted by the chance to explore both arms.
    """
    learner = dc.Learner(dc.FTPL(), list(PRICES), seeded(seed), guardrails=guardrails)
    luck, worst, weights, gaps = random.Random(seeded(seed)), -1.0, list[float](), list[float]()
    waiting = list[tuple[Any, float]]()
    for turn in range(rounds):
        one, two = learner.exploration_probabilities()
        decision, means = learner.decide(), losses(turn)
        counted = slice(learner.inference.sequences.observed)
        if decision.guard == "cheapest" and sum(weights[counted]) > 0.0:
            gap = np.dot(weights[counted], gaps[counted]) / sum(weights[counted])
            worst = max(worst, float(gap) if decision.exploit == "cheap" else -float(gap))
        weights.append(one * two / (one + two))
        gaps.append(means["cheap"] - means["dear"])
        waiting.append((decision, float(luck.random() < means[str(decision.explore)])))
        if len(waiting) > late:  # among those that wait, the bad losses come last
            waiting.sort(key=lambda each: each[1])
            due, loss = waiting.pop(0)
            learner.observe(due, loss)
    return worst


@pytest.mark.parametrize(
    ("losses", "late"),
    [
        (always(0.601, 0.5), 0),
        pytest.param(always(0.601, 0.5), 20, marks=pytest.mark.exhaustive),
        pytest.param(
            lambda turn: {"cheap": 0.05 if turn < 100 else 0.95, "dear": 0.3},
            0,
            marks=pytest.mark.exhaustive,
        ),
    ],
    ids=["worse", "worse and late", "good enough at first only"],
)
def test_an_arm_worse_by_more_than_the_margin_is_served_in_at_most_the_stated_share_of_runs(
    losses: Losses, late: int
) -> None:
    """Worse by a little more than the margin.

    The same with late losses; and good enough at first only.

    If the share were the risk, 0.3, 10 or more of 12 would come once in 4,800 times.
    """
    found = [worst_served(losses, rules(risk=0.3), seed, 350, late) for seed in range(12)]
    assert sum(each > 0.1 for each in found) < 10
    if losses(0)["cheap"] < losses(0)["dear"]:
        assert max(found) > -1.0, "it was served while it was good enough"


@pytest.mark.parametrize("drift", [True, False])
def test_the_cheapest_arm_is_served_once_it_is_known_to_be_good_enough(drift: bool) -> None:
    # 35 seeds of 35 know by then that 0.02 is within 0.3, and not whether it is within 0.01. With
    # `FTPL()`, which explores one of two good arms seldom, means of 0.2 and 0.25, and a margin of
    # 0.2, two seeds of three would not.
    learner = dc.Ladder().start(["dear", "cheap", "free"], seed=seeded(4))
    prices = {"dear": 3.0, "cheap": 1.0, "free": 0.0}
    learner.guardrails = rules(0.3, prices=prices, drift=drift, incumbent="dear")
    luck, guards = random.Random(seeded(3)), list[str | None]()
    for _ in range(2_500):  # "free" is far worse, and no arm is better than the incumbent
        decision = learner.decide()
        guards.append(decision.guard)
        loss = {"dear": 0.4, "cheap": 0.42, "free": 0.9}[str(decision.explore)]
        learner.observe(decision, loss=float(luck.random() < loss))
        if len(guards) == 2_000:
            learner.guardrails = learner.guardrails.updated(incumbent=None)
            twin = dc.Learner.from_json(learner.to_json())
    assert set(guards[:2_000]) == {"incumbent"}
    assert (decision.guard, decision.exploit) == ("cheapest", "cheap")
    assert learner.exploitation_probabilities().tolist() == [0.0, 1.0, 0.0]
    assert (twin.decide().guard, twin.decide().exploit) == ("cheapest", "cheap")
    assert learner.decide(available=["free"]).guard is None, "the cheapest arm is not good enough"
    learner.guardrails = learner.guardrails.updated(floors={"free": 1.0})
    assert learner.decide().guard == "floor"
    learner.guardrails = learner.guardrails.updated(floors={}, cheapest_within=0.01)
    assert learner.decide().guard is None, "another margin is judged at once"
    learner.guardrails = learner.guardrails.updated(cheapest_within=0.3)
    assert learner.decide().guard == "cheapest"
    learner.add_arms(["new"])
    assert learner.decide().guard is None, "nothing is known of the new arm"
    learner.retire_arms(["new", "free"])
    assert (learner.decide().guard, dict(learner.guardrails.prices)) == ("cheapest", PRICES)


@pytest.mark.parametrize(
    ("drift", "share"),
    [(True, 1.0), pytest.param(False, 1.0, marks=pytest.mark.exhaustive), (True, 0.5)],
)
def test_good_enough_is_what_the_intervals_of_all_differences_say(
    drift: bool, share: float
) -> None:
    luck, found = random.Random(seeded(1)), Counter[int]()
    # A verdict has half of its risk for pairs if losses may drift; here they have all of it.
    sequences = Sequences(3, 0.4 if drift else 0.2, drift=drift, label_share=share)
    for turn in range(1, 1_501):
        law = [0.2, 0.3, 0.5]
        arm = luck.choices(range(3), law)[0]
        loss = float(luck.random() < (0.3, 0.35, 0.5)[arm])
        sequences.update(arm, 1.0 / law[arm], loss, law=law, rho=share)
        for margin in (0.05, 0.13, 0.4) if turn % 500 == 0 else ():
            sums = sequences.sums
            good = []
            for arm in range(3):
                apart = [
                    difference_now(sums, arm, other, drift=drift) for other in {0, 1, 2} - {arm}
                ]
                good += [arm] if max(each.high for each in apart) <= margin else []
            assert within(sums, margin, 0.2, drift=drift).tolist() == good
            found[len(good)] += 1
    assert len(found) > 1


def test_segments_are_judged_by_their_own_evidence() -> None:
    policy, luck = dc.ContextualLadder(segments=("subject",)), random.Random(seeded(2))
    learner = policy.start(list(PRICES), seed=seeded(3))
    learner.guardrails = rules(0.3)  # with 0.2, one seed in ten would not know enough by the end
    first, second = (Sequences(2, 0.05 * share_of_segment(place)) for place in (1, 2))
    twins = {"law": first, "art": second}
    expected: dict[str, list[Any]] = {"law": [], "art": []}
    served = Counter[tuple[str, str | None]]()
    for turn in range(1_200):
        subject = "art" if turn % 2 else "law"
        law = learner.exploration_probabilities(context={"subject": subject})
        decision = learner.decide(context={"subject": subject})
        good = within(twins[subject].sums, 0.3, twins[subject].risk, drift=True).tolist()
        expected[subject].append(learner.arms[good[0]] if good else None)  # the first is cheap
        # The learner compares the arms before 5 % more losses of the segment are counted.
        waits = len(expected[subject]) // 20
        assert (decision.exploit if decision.guard else None) in expected[subject][-1 - waits :]
        served[subject, decision.guard and str(decision.exploit)] += 1
        bad = 0.9 if (subject, decision.explore) == ("art", "cheap") else 0.2
        loss, explored = float(luck.random() < bad), learner.arms.index(decision.explore)
        twins[subject].update(explored, decision.weight, loss, law=law)
        learner.observe(decision, loss=loss)
        if turn == 700:
            learner = dc.Learner.from_json(learner.to_json())
    assert served["law", "cheap"] > 100
    assert served["art", "dear"] > 100
    assert served["art", "cheap"] == 0
    assert learner.decide(context={"subject": "new"}).guard is None


def test_keys_draw_from_the_policys_law_until_another_arm_beats_it_by_the_margin() -> None:
    learner, luck, margin = dc.FTPL().start(4, seed=seeded(6)), random.Random(seeded(8)), 0.06
    learner.guardrails = dc.Guardrails(switch_margin=margin)
    frozen, replaced = learner.exploitation_probabilities(), 0
    keys = [f"key-{number}" for number in range(20)]
    before = [learner.exploit(key=key).exploit for key in keys]
    for turn in range(600):
        decision = learner.decide(key="key-0")
        assert decision.guard == "frozen"
        learner.observe(
            decision, loss=float(luck.random() < (0.5, 0.4, 0.3, 0.45)[int(decision.explore)])
        )
        means = learner.estimates() / (learner.round - 1)  # the twin of the rule
        moved = frozen @ means - means.min() > margin
        if moved:
            frozen, replaced = learner.exploitation_probabilities(guarded=False), turn
        after = [learner.exploit(key=key).exploit for key in keys]
        assert moved or after == before
        before = after
        if turn == 300:
            learner = dc.Learner.from_json(learner.to_json())
    assert replaced > 0  # the last time: in one seed of 20, already in round 10
    served = Counter(learner.exploit(key=each).exploit for each in range(20_000))
    assert chi_square_p(np.array([served[arm] for arm in range(4)]), frozen) > 1e-3
    assert learner.exploit().guard is None, "without a key the policy draws"
    assert {learner.exploit(key=key, available=[1, 3]).exploit for key in keys} <= {1, 3}
    learner.add_arms([4])
    assert [learner.exploit(key=key).exploit for key in keys] == before, (
        "nobody moves to a new arm yet"
    )
    learner.retire_arms([0])
    means, left = learner.estimates() / (learner.round - 1), np.append(frozen[1:], 0.0)
    moved = (
        left @ means / left.sum() - means.min() > margin
    )  # if the arm that left was most of a good law
    for was, key in zip(before, keys, strict=True):
        assert moved or was == 0 or learner.exploit(key=key).exploit == was


@pytest.mark.parametrize(
    "policy",
    [dc.FTPL(), dc.Ladder(), dc.Exp3(), dc.TopTwo(), dc.Forgetting(dc.FTPL(), period=50)],
    ids=repr,
)
def test_exploring_does_not_notice_either_rule(policy: dc.Policy) -> None:
    def course(*changes: dc.Guardrails) -> list[Any]:
        learner, found = policy.start(list(PRICES), seed=seeded(5)), list[Any]()
        for turn, each in enumerate(
            itertools.chain.from_iterable(itertools.repeat(x, 60) for x in changes)
        ):
            if turn % 60 == 0:
                learner.guardrails = each
            decision = learner.decide(key=turn % 7)
            found.append((decision.explore, decision.propensity))
            learner.observe(
                decision, loss=0.4 if decision.explore == "cheap" else 0.5 + 0.01 * (turn % 9)
            )
        return [*found, learner.estimates().tolist()]

    plain = course(dc.Guardrails(), dc.Guardrails(), dc.Guardrails())
    assert (
        course(rules(0.9, risk=0.5), dc.Guardrails(switch_margin=0.01), rules(0.9, drift=False))
        == plain
    )


@pytest.mark.parametrize("memory", [{"discount": 0.98}, {"period": 50}], ids=str)
def test_a_policy_that_forgets_moves_keys_by_the_means_of_what_it_remembers(
    memory: dict[str, Any],
) -> None:
    margin, discount = 0.25, memory.get("discount", 1.0)
    learner = dc.Forgetting(dc.FTPL(), **memory).start(2, seed=6)
    learner.guardrails = dc.Guardrails(switch_margin=margin)
    frozen, count, moves = learner.exploitation_probabilities(), 0.0, list[int]()
    keys = [f"key-{number}" for number in range(20)]
    before = [learner.exploit(key=key).exploit for key in keys]
    for turn in range(1_200):
        decision, bad = learner.decide(key=keys[0]), turn // 400 % 2  # the better arm changes twice
        learner.observe(decision, loss=0.9 if decision.explore == bad else 0.1)
        count = discount * (count + 1.0)
        if count == memory.get("period"):
            count = 0.0
        means = (
            learner.estimates() / count if count > 0.0 else learner.estimates()
        )  # the twin of the rule
        moved = frozen @ means - means.min() > margin
        if moved:
            frozen = learner.exploitation_probabilities(guarded=False)
            moves.append(turn)
            kept = json.loads(learner.to_json())["content"]["guard"]["frozen"]
            assert kept == pytest.approx(frozen.tolist())
        after = [learner.exploit(key=key).exploit for key in keys]
        assert moved or after == before
        before = after
    for start in (400, 800):
        assert any(start < turn < start + 150 for turn in moves), moves


def test_labels_and_a_margin_for_switches_are_refused_together_and_nothing_changes() -> None:
    labels, message = (
        dc.Labels(share=0.1),
        r"switch_margin: is a difference of losses.*; leave it out, or",
    )
    rules = dc.Guardrails(switch_margin=0.1)
    learner = dc.Ladder().start(2, seed=1, labels=labels)
    learner.guardrails = dc.Guardrails(pinned=0)
    with pytest.raises(dc.UnsupportedError, match=message):
        learner.guardrails = rules
    assert learner.guardrails == dc.Guardrails(pinned=0)
    with pytest.raises(dc.UnsupportedError, match=message):
        dc.Learner(dc.Ladder(), 2, 1, labels=labels, guardrails=rules)


def test_a_contextual_policy_has_no_law_that_stays_and_a_hundred_and_one_arms_are_too_many() -> (
    None
):
    learner = dc.ContextualLadder(segments=("subject",)).start(2, seed=1)
    with pytest.raises(dc.UnsupportedError, match="switch_margin: keys would draw from one law"):
        learner.guardrails = dc.Guardrails(switch_margin=0.1)
    many = dc.FTPL().start(101, seed=1)
    with pytest.raises(
        dc.ParameterError, match=r"two by two, at most 100 of them, and there are 101"
    ):
        many.guardrails = dc.Guardrails(cheapest_within=0.1, prices=dict.fromkeys(range(101), 1.0))
    wide = dc.FTPL().start(2, seed=1, loss_range=(0.0, 50.0))
    wide.guardrails = dc.Guardrails(
        cheapest_within=49.0, prices={0: 1.0, 1: 1.0}, switch_margin=20.0
    )
    assert dc.Guardrails.from_dict(wide.guardrails.to_dict()) == wide.guardrails
