"""Evidence is added in the order of decisions, so that it is right for delays that depend on the arm and on its loss."""

import json
import pickle
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import decoupled as dc
from decoupled.inference import Sequences
from decoupled.inference.sums import Observation
from decoupled.learner.portable import as_text, from_columns, to_columns

Delay = Callable[[int, bool, random.Random], int | None]

NEVER = None
RUNS = 20
MOST_WRONG = 6  # of 20; more with probability 4e-5 if each is wrong with probability 5 %


def game(
    seed: int, delay: Delay, incumbent: int | None = None, rounds: int = 500, **watch: Any
) -> dc.Learner:
    """Two equal arms, whose losses are 0.9 or 0.1. Feedback comes so many decisions later, or never."""
    luck = random.Random(seed)
    learner = dc.Ladder().start(2, seed=seed)
    learner.watch(**watch)
    if incumbent is not None:
        learner.guardrails = dc.Guardrails(incumbent=incumbent)
    due: dict[int, list[tuple[dc.Decision, float]]] = {}
    for now in range(rounds):
        decision, bad = learner.decide(), luck.random() < 0.5
        late = delay(int(decision.explore), bad, luck)
        if late is not None:
            due.setdefault(now + late, []).append((decision, 0.9 if bad else 0.1))
        for each, loss in due.pop(now, ()):
            learner.observe(each, loss)
    return learner


def telling(late: int) -> Delay:
    """Bad losses of arm 1 and good ones of arm 0 are late, so that arm 1 looks better until they come."""
    return lambda arm, bad, _: late if (arm == 1) == bad else 0


def wrong(delay: Delay, **watch: Any) -> int:
    return sum(game(seed, delay, **watch).inference.verdict().state != "open" for seed in range(RUNS))


@pytest.mark.parametrize("late", [0, 50, 200])
def test_equal_arms_are_seldom_told_apart_by_their_delays(late: int) -> None:
    """False alarm: 4e-5 for each. Added as they came, losses that are 200 decisions late made 20 of 20 verdicts wrong."""
    assert wrong(telling(late)) <= MOST_WRONG


def test_nor_if_some_feedback_is_lost_or_comes_beyond_patience_at_random() -> None:
    """False alarm: 4e-5."""

    def delay(arm: int, bad: bool, luck: random.Random) -> int | None:
        return NEVER if luck.random() < 0.01 else telling(100)(arm, bad, luck)

    assert wrong(delay, patience=150) <= MOST_WRONG
    verdict = game(1, delay, patience=150).inference.verdict()
    assert verdict.left_out > 0
    assert verdict.remark is not None
    assert "depends on neither arm nor loss" in verdict.remark
    # False alarm: 4e-5.
    assert wrong(lambda arm, bad, luck: 200 if luck.random() < 0.2 else 0, patience=50) <= MOST_WRONG
    # False alarm: 4e-5. Added as they came, losses made 20 of 20 leave it.
    left = [game(seed, telling(200), incumbent=0).inference.incumbent_released for seed in range(RUNS)]
    assert sum(map(bool, left)) <= MOST_WRONG


def test_nor_beyond_patience_if_a_loss_is_declared() -> None:
    """Late losses count as the loss that they have, 0.9, so the arms stay equal; left out, they would not be.

    False alarm: 4e-5. Undeclared, the verdict is wrong nearly always: fewer than 10 with probability below 1e-6 at 90 %.
    """
    delay: Delay = lambda arm, bad, _: 200 if arm == 1 and bad else 0  # noqa: E731
    assert wrong(delay, patience=50, expired_loss=0.9) <= MOST_WRONG
    assert wrong(delay, patience=50) >= 10, "what the verdict says it assumes does not hold"


# What is added, and when


class Model:
    """The rule, word for word: each decision is looked at again whenever something has happened."""

    def __init__(self, patience: int, expired: float | None) -> None:
        self.patience, self.expired = patience, expired
        self.made: list[tuple[str, Any]] = []
        self.losses: dict[str, float | None] = {}
        self.sequences, self.next = Sequences(3), 0

    def settle(self, key: str, loss: float | None) -> None:
        if key in {each for each, _ in self.made[self.next :]}:
            self.losses[key] = loss
        self.look()

    def look(self) -> None:
        while self.next < len(self.made):
            key, (explore, weight, exploit, law) = self.made[self.next]
            late = len(self.made) - 1 - self.next >= self.patience
            if key not in self.losses and not late:
                return
            loss = self.losses.pop(key, self.expired)
            if loss is None:
                self.sequences.leave_out()
            else:
                self.sequences.add(Observation(explore, weight, loss, exploit, range(3), law))
            self.next += 1


def saved(learner: dc.Learner, way: str) -> dc.Learner:
    if way == "json":
        return dc.Learner.from_json(learner.to_json())
    if way == "pickle":
        return pickle.loads(pickle.dumps(learner))  # type: ignore[no-any-return]
    content, columns = to_columns(learner)
    return from_columns(
        json.loads(json.dumps(as_text(content))), columns(), [each[1:] for each in learner.pending]
    )


@pytest.mark.parametrize("expired", [None, 0.75])
@pytest.mark.parametrize("patience", [1, 2, 7, 1_000])
def test_losses_are_added_in_the_order_of_decisions(patience: int, expired: float | None) -> None:
    luck = random.Random(patience)
    learner = dc.FTPL().start(3, seed=patience, max_pending=12)
    learner.watch(patience=patience, expired_loss=expired)
    model = Model(patience, expired)
    waiting: list[dc.Decision] = []
    for turn in range(600):
        act = luck.choice(("decide", "decide", "decide", "observe", "observe", "forget", "save", "ask"))
        if act == "decide":
            law, decision = learner.exploration_probabilities(), learner.decide()
            if len(waiting) == 12:  # the oldest is forgotten first
                model.settle(waiting.pop(0).id, expired)
            assert decision.propensity is not None
            kept = int(decision.explore), 1.0 / decision.propensity, int(decision.exploit or 0), law
            model.made.append((decision.id, kept))
            model.look()
            waiting.append(decision)
        elif act == "save":
            learner = saved(learner, luck.choice(("json", "pickle", "columns")))
        elif act == "ask":
            learner.inference.verdict()
        elif waiting:
            decision = waiting.pop(luck.randrange(len(waiting)))
            if act == "forget":
                learner.forget(decision)
                model.settle(decision.id, expired)
            else:
                loss = luck.random()
                learner.observe(decision, loss)
                model.settle(decision.id, loss)
        if turn % 20 == 0:
            assert learner.inference.sequences.to_dict() == model.sequences.to_dict()
            known = sum(loss is not None for loss in model.losses.values())
            assert learner.inference.verdict().waiting == known
    assert learner.inference.sequences.to_dict() == model.sequences.to_dict()
    assert (learner.inference.verdict().left_out > 0) == (expired is None)
    assert learner.round > 100, "late feedback reaches the policy"


def test_what_waits_is_added_as_of_its_decision_after_arms_have_changed() -> None:
    """Arms that came after a decision had no chance in it, also if it waits in the queue while they come."""
    learner = dc.FTPL().start(["a", "b", "c"], seed=7)
    learner.watch()
    twin = Sequences(3)
    held, *rest = learner.decide(count=20)
    law = learner.exploration_probabilities()
    for each in rest:
        learner.observe(each, 0.25)
    learner.add_arms(["d"])
    learner.retire_arms(["c"])
    learner = dc.Learner.from_json(learner.to_json())
    learner.observe(held, 0.5)
    twin.add_arms(1)
    twin.retire(2)
    for each in (held, *rest):
        assert each.propensity is not None
        seen = "abc".index(str(each.explore)), 1.0 / each.propensity, 0.5 if each == held else 0.25
        twin.add(Observation(*seen, "abc".index(str(each.exploit)), range(3), np.pad(law, (0, 1))))
    assert learner.inference.sequences.to_dict() == twin.to_dict()
    learner = dc.FTPL().start(2, seed=7)
    learner.watch()
    held, *rest = learner.decide(count=4)
    for each in rest:
        learner.observe(each, 0.5)
    assert learner.inference.verdict().text == "too early: 3 losses wait for that of an earlier decision"
    learner.forget(held)
    verdict = learner.inference.verdict()
    assert (verdict.waiting, verdict.left_out, learner.inference.sequences.observed) == (0, 1, 3)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"patience": 0}, "patience = 0: must be a whole number from 1 on"),
        ({"patience": 10**6}, "patience = 1000000: must not exceed 10,000"),
        ({"patience": 1.5}, "patience = 1.5"),
        ({"expired_loss": 2.0}, r"expired_loss = 2.0: must lie in \[0.0, 1.0\]"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(given: dict[str, Any], said: str) -> None:
    learner = dc.FTPL().start(2, seed=7)
    with pytest.raises(dc.DecoupledError, match=said):
        learner.watch(**given)
    learner.watch()
