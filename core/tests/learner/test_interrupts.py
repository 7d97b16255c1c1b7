"""An interrupt loses at most the call in progress: all of it is done, or nothing."""

import json
import random
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

import decoupled as dc
from support.interrupts import Interrupted, at_every_point, handled_at
from support.saved import content_of, from_content

# An interrupt while a generator is closed is not raised, only reported.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

ARMS = ["a", "b", "c"]
INTERRUPTS = (
    500  # of each learner; each call is interrupted, and some again while the first is dealt with
)


@dataclass(frozen=True)
class Slowly(dc.PythonPolicy):
    """An update that takes several steps."""

    def decide(self, known: Any) -> Any:
        weights = np.exp(-(known.estimates - known.estimates.min()))
        return weights / weights.sum(), np.full(known.arms, 1.0 / known.arms)

    def update(self, known: Any, arm: int, weight: float, loss: float) -> None:
        known.estimates[arm] += abs(weight * loss) / 2.0
        known.estimates[arm] += abs(weight * loss) / 2.0


POLICIES = {"sums": dc.FTPL(), "ladder": dc.Ladder(), "centred": dc.CentredFTPL()}
POLICIES |= {"means": dc.TopTwo(), "python": Slowly(), "incumbent": dc.Ladder()}


class Case:
    """A learner with decisions that wait: two of this round, one of an earlier round, and one among two arms."""

    def __init__(self, kind: str, watched: bool, name: str) -> None:
        most = 5 if name == "decide and forget" else 6
        self.learner = learner = POLICIES[kind].start(ARMS, seed=7, max_pending=most)
        if watched:
            learner.watch()
        self.late, self.some = learner.decide(), learner.decide(available=["a", "b"])
        for loss in (0.25, 1.0):
            learner.observe(learner.decide(), loss)
        predicts = learner.policy.baselines is not None
        self.predicted = learner.decide(baseline={"b": 0.75}) if predicts else learner.decide()
        if kind == "incumbent":  # on trial by what is observed from now on
            learner.guardrails = dc.Guardrails(incumbent="b")
        self.one, self.two = learner.decide(), learner.decide()

    def go_on(self) -> None:
        """Settle everything that waits, and some more."""
        for decision in self.learner.pending[::-1]:
            self.learner.observe(decision.id, 0.5)
            self.learner.observe(self.learner.decide(), 0.75)

    @property
    def content(self) -> dict[str, Any]:
        """Everything but the random stream and the next look: a call that was taken back may have drawn from the one.

        An interrupted look at the incumbent is made up for after the next observation.
        """
        content: dict[str, Any] = json.loads(self.learner.to_json())["content"]
        del content["stream"]
        content.get("guard", {}).pop("next_look", None)
        return content


Act = Callable[[Case], object]
OBSERVE: dict[str, Act] = {
    "observe": lambda case: case.learner.observe(case.two, 0.5),
    "observe by id": lambda case: case.learner.observe(case.one.id, 0.5),
    "observe late": lambda case: case.learner.observe(case.late, reward=0.25),
    "observe some": lambda case: case.learner.observe(case.some, 0.5),
    "observe predicted": lambda case: case.learner.observe(case.predicted, 0.5),
    "replay": lambda case: case.learner.replay(
        [("a", 0.5, 0.25), ("b", 0.25, 1.0), ("c", 0.25, 0.0)]
    ),
}
OTHERS: dict[str, Act] = {
    "decide": lambda case: case.learner.decide(),
    "decide and forget": lambda case: case.learner.decide(),  # the oldest
    "decide some": lambda case: case.learner.decide(available=["b", "c"]),
    "decide often": lambda case: case.learner.decide(count=2),
    "probabilities": lambda case: case.learner.exploitation_probabilities(),
    "explore": lambda case: case.learner.explore(),
    "exploit": lambda case: case.learner.exploit(available=["a", "c"]),
    "forget": lambda case: case.learner.forget(case.one),
    "add_arms": lambda case: case.learner.add_arms(["d", "e"]),
    "retire_arms": lambda case: case.learner.retire_arms([case.late.explore]),
    "guardrails": lambda case: setattr(case.learner, "guardrails", dc.Guardrails(incumbent="b")),
    "estimates": lambda case: case.learner.estimates(),
    "pending": lambda case: case.learner.pending,
    "fork": lambda case: case.learner.fork(seed=3),
}
PREDICTED: dict[str, Act] = {
    "decide predicted": lambda case: case.learner.decide(baseline={"a": 0.5, "b": 0.25})
}
WATCHED: dict[str, Act] = {
    "unwatch": lambda case: case.learner.inference.stop(),
    "verdict": lambda case: case.learner.inference.verdict(),
    "sequences": lambda case: case.learner.inference.sequences.to_dict(),
}
COMBINATIONS = [
    *(("sums", False, name) for name in OBSERVE | OTHERS),
    *(("ladder", True, name) for name in OBSERVE | OTHERS | PREDICTED | WATCHED),
    *(("centred", False, name) for name in PREDICTED),
    *((kind, False, name) for kind in ("centred", "means", "python") for name in OBSERVE),
    *(("incumbent", True, name) for name in OBSERVE),
    ("sums", False, "watch"),
]
ACTS: dict[str, Act] = (
    OBSERVE | OTHERS | PREDICTED | WATCHED | {"watch": lambda case: case.learner.watch()}
)


@pytest.mark.parametrize(("kind", "watched", "name"), COMBINATIONS)
def test_at_every_point_all_or_nothing(kind: str, watched: bool, name: str) -> None:
    act = ACTS[name]
    start, done = Case(kind, watched, name), Case(kind, watched, name)
    act(done)
    before, after = start.content, done.content
    cases: list[Case] = []

    def prepared() -> Callable[[], object]:
        cases.append(Case(kind, watched, name))
        return partial(act, cases[-1])

    for _ in at_every_point(prepared, most=16):
        found = cases[-1].content
        assert found in (before, after)
        twin = Case(kind, watched, name)
        if found == after != before:
            act(twin)
        assert twin.content == found
        stream = content_of(cases[-1].learner)["stream"]
        twin.learner = from_content({**content_of(twin.learner), "stream": stream})
        for each in (twin, cases[-1]):
            each.go_on()
        assert twin.content == cases[-1].content
    assert len(cases) > 2
    assert cases[0].content in (after, done.content), "the first was not interrupted"


@pytest.mark.parametrize("name", ["observe", "decide some", "add_arms"])
def test_a_handler_that_saves_saves_or_says_what_to_do(name: str) -> None:
    """It would wait for ever, were it let in; and the call that it interrupts goes on."""
    saved: list[dc.Learner] = []
    refused: list[str] = []
    done = Case("ladder", True, name)
    before = done.content
    ACTS[name](done)

    def save() -> None:
        try:
            saved.append(dc.Learner.from_json(case.learner.to_json()))
        except dc.ReentryError as error:
            refused.append(str(error))

    point = 0
    while True:
        case, count = Case("ladder", True, name), len(saved) + len(refused)
        handled_at(point, save, partial(ACTS[name], case))
        if len(saved) + len(refused) == count:
            break
        assert case.content == done.content
        point += 15
    assert refused[0] == (
        "to_json(): this thread is inside another call of the same Learner, so it would wait for itself; it was called "
        "by the handler of a signal, a finalizer or a callback; in a handler, raise SystemExit or set a flag, and make "
        "the call where the loop ends"
    )
    assert {each.round for each in saved} <= {before["round"], done.learner.round}


class Timer:
    """Interrupts calls by a signal. Its handler raises, and sets the timer again for whatever deals with that."""

    def __init__(self) -> None:
        self.armed, self.chance = False, random.Random(5)

    def handle(self, number: int, frame: object) -> None:
        if self.armed:  # another thread may have taken the signal, and then it comes late
            signal.setitimer(signal.ITIMER_REAL, self.chance.choice([0.0, 2e-6, 2e-5]))
            raise Interrupted

    def interrupted(self, seconds: float, act: Callable[[], object]) -> bool:
        """Make a call, with a signal after so many seconds. Return whether it was interrupted."""
        try:
            self.armed = True
            signal.setitimer(signal.ITIMER_REAL, seconds)
            act()
        except Interrupted:
            return True
        finally:
            self.armed = False
        return False


@pytest.fixture
def timer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Timer]:
    if not hasattr(signal, "SIGALRM"):
        pytest.skip("this system has no timer that interrupts")
    # A finalizer's interrupt is not raised; pytest's report of it would be interrupted in turn.
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: None)
    timer = Timer()
    before = signal.signal(signal.SIGALRM, timer.handle)
    yield timer
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("kind", ["sums", "ladder", "python"])
@pytest.mark.parametrize("watched", [False, True])
def test_thousands_of_interrupts(kind: str, watched: bool, timer: Timer) -> None:
    """Every decision is applied, pending or forgotten; every observation is summed; another thread gets in."""
    chance = random.Random(3)
    learner = POLICIES[kind].start(ARMS, seed=3, max_pending=30)
    if watched:
        learner.watch(patience=20)
    acts: list[Callable[[], object]] = [
        lambda: learner.decide(),
        lambda: learner.decide(available=["a", "b"]),
        lambda: learner.decide(count=3),
        lambda: learner.observe(
            chance.choice(learner.pending or (learner.decide(),)), chance.random()
        ),
        lambda: learner.observe(
            chance.choice(learner.pending or (learner.decide(),)).id, chance.random()
        ),
        lambda: learner.forget(chance.choice(learner.pending or (learner.decide(),))),
        lambda: learner.replay([("a", 0.5, 0.5), ("b", 0.5, 0.5), ("c", 0.5, 0.5)]),
        lambda: (learner.exploit(), learner.explore()),
        lambda: learner.inference.verdict() if watched else learner.estimates(),
        lambda: setattr(learner, "guardrails", dc.Guardrails(floors={"a": 0.1 * chance.random()})),
    ]
    replayed = count = 0
    while count < INTERRUPTS:
        number, round_before = chance.randrange(len(acts)), learner.round
        count += timer.interrupted(10 ** chance.uniform(-5.3, -3.7), acts[number])
        content = json.loads(learner.to_json())["content"]
        rounds = learner.round - round_before
        replayed += rounds if number == 6 else 0
        assert rounds in ((0, 3) if number == 6 else (0, 1))
        waiting = [each[0] for each in content["pending"]]
        assert (
            content["made"]
            == learner.round - 1 - replayed + len(waiting) + learner.pending.forgotten
        )
        if watched:
            sequences, queue = learner.inference.sequences, content["watch"]["queue"]
            settled = sequences.observed - replayed + sequences.left_out
            assert content["made"] == settled + len(queue), "every decision is there once"
            unobserved = {entry[0] for entry in queue if len(entry) > 1 and entry[3] is None}
            assert [key for key in waiting if key in unobserved] == [
                entry[0] for entry in queue if entry[0] in unobserved
            ]
    answered = threading.Thread(target=learner.to_json, daemon=True)
    answered.start()
    answered.join(60.0)
    assert not answered.is_alive(), "an interrupt left the lock behind"
    twin = dc.Learner.from_json(learner.to_json())
    assert twin.decide(count=20) == learner.decide(count=20), (
        "what is derived agrees with what is learned"
    )
