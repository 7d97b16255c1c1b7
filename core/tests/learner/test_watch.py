"""A watched learner: what it counts, under every kind of call, and that watching changes no decision."""

import json
import random

import numpy as np
import pytest

import decoupled as dc
from decoupled.inference import Sequences, regret
from decoupled.kernels.betting import LAW_ROUNDS, OTHER_ROUNDS, ROUNDS
from decoupled.learner.portable import as_text, from_columns, to_columns

COST = {"a": 0.2, "b": 0.5, "c": 0.8, "d": 0.1}


def played(learner: dc.Learner, rounds: int, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        decision = learner.decide()
        learner.observe(decision, loss=float(rng.random() < COST[str(decision.explore)]))


def watched(policy: dc.Policy | None = None, **options: object) -> dc.Learner:
    learner = (policy or dc.Ladder()).start(arms=["a", "b", "c"], seed=7, **options)  # type: ignore[arg-type]
    learner.watch()
    return learner


def sums(learner: dc.Learner) -> dict[str, object]:
    assert learner._watch is not None
    return learner._watch.sequences.to_dict()


def test_watching_changes_no_decision_and_a_verdict_names_the_arms() -> None:
    one, two = watched(), dc.Ladder().start(arms=["a", "b", "c"], seed=7)
    for _ in range(200):
        assert one.decide() == two.decide()
        for learner in (one, two):
            learner.observe(learner.pending[0], loss=COST[str(learner.pending[0].explore)])
    assert one.estimates().tolist() == two.estimates().tolist()
    learner = watched()
    assert learner.inference.verdict().text == "too early: nothing was observed"
    played(learner, 1_500)
    verdict = learner.inference.verdict()
    assert (verdict.state, verdict.best, verdict.basis) == ("decided", "a", "paired")
    assert (
        verdict.text == f"a is better than every other arm (95 %, decided at round {verdict.decided_at:,})"
    )
    assert learner.inference.verdict(drift=False).basis == "stationary"


def test_what_is_counted_is_every_observation_with_its_law() -> None:
    learner, twin = watched(), Sequences(3)
    rng = np.random.default_rng(1)
    for _ in range(100):
        law = learner.exploration_probabilities()
        decision = learner.decide()
        loss = float(rng.random())
        learner.observe(decision, loss)
        assert decision.propensity is not None
        twin.update(
            "abc".index(str(decision.explore)), 1 / decision.propensity, loss, "abc".index(str(decision.exploit)),
            law=law,
        )  # fmt: skip
    assert sums(learner) == twin.to_dict()
    assert learner.inference.intervals() == dict(zip("abc", twin.arms(), strict=True))
    assert learner.inference.exploited() == twin.served()
    assert learner.inference.difference("a", "b") == twin.difference(0, 1)
    assert learner.inference.difference("a") == twin.against_served(0)


def test_late_feedback_counts_with_the_law_of_its_decision() -> None:
    learner, twin = watched(), Sequences(3)
    decisions, laws = [], []
    for _ in range(30):
        laws.append(learner.exploration_probabilities())
        decisions.append(learner.decide())
        if len(decisions) % 3 == 0:  # the state changes while others wait
            place = len(decisions) - 3
            learner.observe(decisions[place], 0.5)
    for place in range(30):
        if place % 3 != 0:
            learner.observe(decisions[place], 0.25)
    for place in range(30):  # in the order of decisions, whenever feedback came
        decision = decisions[place]
        assert decision.propensity is not None
        twin.update(
            "abc".index(str(decision.explore)), 1 / decision.propensity, 0.25 if place % 3 else 0.5,
            "abc".index(str(decision.exploit)), law=laws[place],
        )  # fmt: skip
    assert sums(learner) == twin.to_dict()


def test_intervals_are_in_the_range_of_losses() -> None:
    wide, unit = watched(loss_range=(100, 300)), watched()
    for _ in range(300):
        for learner, low, width in ((wide, 100, 200), (unit, 0, 1)):
            decision = learner.decide()
            learner.observe(decision, loss=low + width * (0.25 if decision.explore == "a" else 0.75))
    for arm in "abc":
        assert wide.inference.intervals()[arm] == pytest.approx(
            [100 + 200 * end for end in unit.inference.intervals()[arm]]
        )
    assert wide.inference.difference("b", "a") == pytest.approx(
        [200 * end for end in unit.inference.difference("b", "a")]
    )
    assert wide.inference.exploited() == pytest.approx(
        [100 + 200 * end for end in unit.inference.exploited()]
    )
    assert wide.inference.intervals()["a"].high < 300


def test_arms_that_come_and_go_are_followed() -> None:
    learner = watched()
    played(learner, 300)
    waiting = learner.decide(count=5)
    learner.retire_arms(["c"])
    learner.add_arms(["d", "c"])  # the second is a new arm with an old name
    for decision in waiting:
        learner.observe(decision, loss=0.9)
    assert set(learner.inference.intervals()) == {"a", "b", "c", "d"}
    assert learner.inference.intervals()["c"] == (0.5, 0.0, 1.0)
    played(learner, 1_500)
    assert learner.inference.verdict().best == "d"
    assert learner.inference.intervals(drift=False)["c"].low > 0.0
    assert learner._watch is not None
    assert learner._watch.sequences.live == [0, 1, 3, 4]


def test_decisions_among_some_arms_count_for_those() -> None:
    learner = watched()
    for _ in range(50):
        learner.observe(learner.decide(available=["a", "b"]), loss=0.5)
    assert learner.inference.intervals()["c"] == (0.5, 0.0, 1.0)
    assert learner.inference.intervals()["a"].low > 0.0
    assert learner.inference.difference("a") == (0.0, -1.0, 1.0)  # no round could explore every arm
    assert learner.inference.difference("a", "b").low > -1.0
    assert learner.inference.difference("a", "c") == (0.0, -1.0, 1.0)


def test_what_counts_of_rounds_that_only_explore_of_logs_and_of_earlier_decisions() -> None:
    learner = watched()
    for _ in range(20):
        learner.exploit()
        learner.observe(learner.explore(), loss=0.5)
    assert learner.inference.exploited() == (0.5, 0.0, 1.0)
    assert learner._watch is not None
    assert learner._watch.sequences.observed == 20
    learner = watched(dc.FTPL())
    learner.replay([("a", 0.5, 0.0), ("b", 0.25, 1.0), ("a", 0.5, 0.0), ("c", 0.25, 1.0)] * 200)
    assert learner.inference.intervals()["a"].high < 0.5 < learner.inference.intervals()["b"].low
    assert learner.inference.verdict().basis == "running"
    # Which decisions are pending depends on their delays, and these may depend on the arm.
    learner = dc.FTPL().start(arms=["a", "b", "c"], seed=7)
    before = learner.decide()
    learner.watch()
    learner.observe(before, 0.5)
    assert learner._watch is not None
    assert learner._watch.sequences.observed == 0
    assert learner.inference.verdict().left_out == 0
    assert learner.round == 2, "the policy learns from it"


def test_an_incumbents_trial_is_saved_apart_from_the_pending_decisions() -> None:
    learner = watched(dc.Ladder())
    for loss in (0.25, 0.75):
        learner.observe(learner.decide(), loss)
    made = learner.decide(count=3)
    learner.guardrails = dc.Guardrails(incumbent="a")
    content, columns = to_columns(learner)
    twin = from_columns(as_text(content), columns(), [each[1:] for each in made])
    for each in (learner, twin):
        for decision in made:
            each.observe(decision, 0.5)
        each.observe(each.decide(), 1.0)
    assert twin.to_json() == learner.to_json()


@pytest.mark.parametrize(
    "policy", [dc.UCB1(), dc.ThompsonSampling(), dc.CoupledFTPL(), dc.TopTwo()], ids=repr
)
def test_policies_without_propensities_or_of_the_standard_game_can_be_watched(policy: dc.Policy) -> None:
    learner = watched(policy)
    played(learner, 400)
    assert learner.inference.intervals(drift=False)["a"].high < 0.6
    assert learner.inference.verdict(drift=False).best == "a"
    learner.inference.exploited()
    learner.inference.difference("a")
    learner.inference.verdict()


def test_what_is_kept_of_decisions_is_bounded() -> None:
    learner = watched(max_pending=10)
    learner.forget(learner.decide())
    for _ in range(50):
        learner.decide()
    learner.replay([("a", 0.5, 0.5)])  # the round ends
    assert learner._watch is not None
    assert len(learner._watch.queue) == 10
    assert learner.inference.verdict().left_out == 41
    learner.observe(learner.pending[0], 0.5)
    assert len(learner._watch.queue) == 9
    learner = dc.FTPL().start(arms=2, seed=7)
    with pytest.raises(dc.ParameterError, match="risk = 2"):
        learner.watch(risk=2)
    with pytest.raises(dc.UnsupportedError, match="not watched"):
        learner.inference  # noqa: B018
    learner.watch()
    with pytest.raises(dc.ParameterError, match="watched already"):
        learner.watch()


@pytest.mark.parametrize("policy", [dc.UCB1(), dc.TopTwo(), dc.FollowTheLeader()], ids=repr)
def test_rounds_that_could_not_explore_an_arm_do_not_count_for_it(policy: dc.Policy) -> None:
    """Weights are unbiased only for arms that had a chance."""
    learner, luck = policy.start(3, seed=5), random.Random(5)
    learner.watch()
    could = np.zeros(3)
    for _ in range(60):
        could += learner.exploration_probabilities() > 0.0
        decision = learner.decide()
        learner.observe(decision, loss=float(luck.random() < 0.5))
    sums = learner.inference.sequences.sums
    assert (sums.rounds[ROUNDS] + sums.counts[:, OTHER_ROUNDS]).tolist() == could.tolist()
    assert (could.min() < 60) == (not isinstance(policy, dc.FollowTheLeader))


def test_without_room_decisions_go_without_their_laws(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would fill the memory if feedback never came. Those that were made first keep theirs: were it the last that
    came to lose theirs, what is bet on a round would depend on its delay."""
    monkeypatch.setattr("decoupled.learner.watch.MOST_NUMBERS", 6)
    learner = dc.FTPL().start(2, seed=5)
    learner.watch()
    made = learner.decide(count=5)
    twin = dc.Learner.from_json(learner.to_json())
    for each in (learner, twin):
        each.observe(made[4], loss=1.0)
        made_later = each.decide()
        for decision in (made_later, *made[:4]):
            each.observe(decision, loss=0.0)
        assert each.inference.sequences.observed == 6
        with_law = each.inference.sequences.sums.rounds[LAW_ROUNDS]
        assert with_law == 3, "the oldest three"
    assert learner.to_json() == twin.to_json()
    assert learner.inference.sequences.sums.rounds[ROUNDS] == 6, "weights are enough for the intervals"


def test_the_regret_is_that_of_what_was_exploited() -> None:
    """The truth is in the interval at every look; false alarm below 5 %, were the seed drawn afresh."""
    means, luck = [0.2, 0.6, 0.7], random.Random(2)
    for drift in (True, False):
        learner, truth = dc.Exp3(c=0.3).start(3, seed=2, loss_range=(0.0, 10.0)), 0.0
        learner.watch(drift=drift)
        assert learner.inference.regret() is None
        for turn in range(1, 801):
            decision = learner.decide()
            learner.observe(decision, loss=10.0 * (luck.random() < means[int(decision.explore)]))
            truth += 10.0 * (means[int(decision.exploit or 0)] - means[0])
            if turn % 100 == 0:
                found = regret(learner.inference.sequences, 0)
                assert found is not None
                assert 10.0 * found.low <= truth <= 10.0 * found.high
        last = learner.inference.regret()
        assert last is not None
        assert last.high - last.low < 0.4 * 8000
        assert last.low <= last.estimate <= last.high


def test_equal_laws_are_saved_once_however_they_came_to_be() -> None:
    """Objects tell the rounds apart, and what was restored. Learners that know the same must be saved as the same text."""
    learner = dc.FTPL().start(3, seed=7)
    learner.watch()
    first = learner.decide()
    learner.decide()
    learner.observe(first, 0.0)  # a loss of 0 moves no law
    restored = dc.Learner.from_json(learner.to_json())
    for each in (learner, restored):
        each.decide()
    assert restored.to_json() == learner.to_json()
    assert len(json.loads(restored.to_json())["content"]["watch"]["laws"]) == 1
