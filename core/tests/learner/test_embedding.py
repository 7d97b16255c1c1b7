"""What a program needs that logs the calls of its learners and replays them: ids, overdue labels,
and the evidence.
"""

from typing import Any

import numpy as np
import pytest

import decoupled as dc
from decoupled.inference import Sequences
from decoupled.inference.sums import Observation
from decoupled.testing import state_of


def test_a_tag_is_set_before_the_first_decision_and_must_be_a_name() -> None:
    learner = dc.FTPL().start(arms=2, seed=1)
    wrong: list[Any] = ["", "a b", 7, None]
    for tag in wrong:
        with pytest.raises(dc.ParameterError, match=r"^tag = "):
            learner.tag = tag
    learner.tag = "one"
    decision = learner.decide()
    with pytest.raises(
        dc.ParameterError, match=r"^tag = 'two': cannot be set while decisions are pending"
    ):
        learner.tag = "two"
    learner.observe(decision, 0.5)
    learner.tag = "two"
    assert (decision.id, learner.decide().id) == ("one-1", "two-2")
    assert dc.Learner.from_json(learner.to_json()).tag == "two"


def test_a_decision_is_made_again_from_what_it_served() -> None:
    rules = dc.Guardrails(down=("c",))
    first, again = (dc.Ladder().start(arms=["a", "b", "c", "d"], seed=3) for _ in range(2))
    for learner in (first, again):
        learner.guardrails = rules
    for number in range(60):
        available = None if number % 3 else ["a", "b", "c"]
        decision = first.decide(key=f"user {number}", available=available)
        assert decision.exploit is not None
        assert decision.drawn is not None
        served = dc.Served(decision.exploit, decision.drawn, decision.guard)
        assert again.redecide(served, available=available) == decision
        for learner in (first, again):
            learner.observe(learner.pending[0], loss=number % 2)
    assert again.to_json() == first.to_json()


def test_a_decision_that_cannot_be_made_again_changes_nothing() -> None:
    learner = dc.FTPL().start(arms=["a", "b"], seed=1)
    before = learner.to_json()
    with pytest.raises(dc.ArmError, match="nowhere"):
        learner.redecide(dc.Served("nowhere", "nowhere"))
    assert learner.to_json() == before
    with pytest.raises(dc.UnsupportedError, match=r"^redecide\(\): UCB1 plays the standard game"):
        dc.UCB1().start(arms=["a", "b"], seed=1).redecide(dc.Served("a", "a"))


def test_a_label_is_overdue_until_it_is_settled_however_often_one_asks() -> None:
    learner = dc.FTPL().start(arms=2, seed=1, labels=dc.Labels(share=1.0, deadline=3))
    first, second, third = learner.decide(count=3)
    for decision in (first, third):
        learner.observe(decision, judged=0.5)
    assert list(learner.overdue) == []
    learner.decide()
    assert list(learner.overdue) == [first]
    assert list(learner.overdue) == [first]  # though another label is still in time
    learner.forget(first)
    assert list(learner.overdue) == []
    learner.decide(count=2)
    assert list(learner.overdue) == [third]
    learner.observe(second, judged=0.5, loss=0.5)  # settles it first
    assert list(learner.overdue) == []
    assert learner.labels is not None
    assert (learner.labels.missing, dc.FTPL().start(arms=2, seed=1).overdue) == (2, ())


def test_a_declared_loss_is_a_loss_and_says_nothing_about_a_judge() -> None:
    one, two = (dc.FTPL().start(arms=2, seed=1, loss_range=(0, 10)) for _ in range(2))
    one.expire(one.decide().id, 4.0)
    two.observe(two.decide(), 4.0)
    assert one.to_json() == two.to_json()
    learner = dc.FTPL().start(arms=2, seed=1, labels=dc.Labels(share=0.5), loss_range=(0, 10))
    decision = learner.decide()
    with pytest.raises(dc.LossError):
        learner.expire(decision, 11.0)
    learner.expire(decision, 10.0)
    expected = decision.weight * dc.Labels(share=0.5).to_unit(1.0)
    assert learner.estimates().max() == pytest.approx(expected)
    assert learner.labels == (0, 0, 0, 1.0)
    with pytest.raises(dc.FeedbackError, match="already applied"):
        learner.expire(decision, 10.0)


@pytest.mark.parametrize("labels", [None, dc.Labels(share=0.5)])
def test_configured_evidence_is_that_of_a_learner_that_was_watched_so(
    labels: dc.Labels | None,
) -> None:
    wanted, changed = (
        dc.Ladder().start(arms=2, seed=1, loss_range=(0, 10), labels=labels) for _ in range(2)
    )
    wanted.watch(patience=5, expired_loss=8.0)
    changed.watch(patience=900)
    changed.inference.configure(patience=5, expired_loss=8.0)
    for learner in (wanted, changed):
        learner.decide(count=40)  # none has feedback
    progress = wanted.inference.catch_up()
    assert (progress.observed, progress.left_out, progress.waiting) == (35, 0, 0)
    assert changed.inference.catch_up() == progress
    assert changed.to_json() == wanted.to_json()
    with pytest.raises(dc.ParameterError, match=r"^patience = 0"):
        changed.inference.configure(patience=0, expired_loss=None)
    with pytest.raises(dc.LossError, match=r"^expired_loss = 11"):
        changed.inference.configure(patience=5, expired_loss=11.0)
    assert changed.to_json() == wanted.to_json()


def test_sequences_that_are_kept_elsewhere_are_those_of_the_learner() -> None:
    learner, own = dc.Ladder().start(arms=3, seed=1), Sequences(3)
    learner.watch(patience=4)
    assert learner.inference.take_released() == {}
    made: dict[str, dc.Decision] = {}
    chance = np.random.default_rng(1)
    for _ in range(200):
        for decision in learner.decide(count=int(chance.integers(1, 4))):
            made[decision.id] = decision
        for decision in learner.pending:
            if chance.random() < 0.6:
                learner.observe(decision, float(chance.random()))
        for key, seen in learner.inference.take_released().items():
            if seen is None:
                lost = made[key]
                own.leave_out(Observation(int(lost.explore), lost.weight, 0.0))
            else:
                own.add(seen)
    progress = learner.inference.catch_up()
    assert min(progress.observed, progress.left_out) > 30
    evidence = learner.inference.copy_evidence()
    learner.observe(learner.decide(), 0.5)
    assert evidence.sequences.to_dict() == own.to_dict()
    assert (evidence.waiting, evidence.judged, evidence.judge) == (progress.waiting, None, None)


def test_a_named_state_is_a_copy_that_cannot_be_changed() -> None:
    learner = dc.TopTwo().start(arms=3, seed=1)
    state = state_of(learner)
    names = {"round", "arms", "secret", "events", *dc.TopTwo.layout.floats, *dc.TopTwo.layout.pairs}
    assert names <= set(state)
    assert len(state) == len(set(state))
    with pytest.raises(KeyError, match="nothing"):
        state["nothing"]
    with pytest.raises(ValueError, match="read-only"):
        state[dc.TopTwo.layout.floats[0]][0] = 1.0
    state.to_state().floats[:] = 7.0
    learner.observe(learner.decide(), 0.5)
    assert (state["round"], state_of(learner)["round"]) == (1.0, 2.0)
    assert not (state_of(learner).to_state().floats == 7.0).any()
