"""A call that is interrupted leaves a whole learner, or one that refuses to go on.

A call inside a call is refused.
"""

from collections.abc import Callable
from functools import partial

import pytest

import decoupled as dc
from support.interrupts import at_every_point, handled_at
from support.saved import content_of

# An interrupt while a generator is closed is not raised, only reported.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

Act = Callable[[dc.Learner], object]
ACTS: dict[str, Act] = {
    "observe": lambda learner: learner.observe(learner.pending[-1].id, 0.5),
    "observe late": lambda learner: learner.observe(learner.pending[0].id, reward=0.25),
    "decide": lambda learner: learner.decide(),
    "decide among some": lambda learner: learner.decide(available=["b", "c"]),
    "decide often": lambda learner: learner.decide(count=2),
    "exploit": lambda learner: learner.exploit(available=["a", "c"]),
    "forget": lambda learner: learner.forget(learner.pending[0].id),
    "replay": lambda learner: learner.replay([("a", 0.5, 0.25), ("b", 0.25, 1.0), ("c", 0.25, 0)]),
    "add arms": lambda learner: learner.add_arms(["d", "e"]),
    "retire arms": lambda learner: learner.retire_arms(["a"]),
    "guardrails": lambda learner: setattr(learner, "guardrails", dc.Guardrails(incumbent="b")),
    "verdict": lambda learner: learner.inference.verdict(),
}


def used(policy: dc.Policy) -> dc.Learner:
    """A learner with decisions that wait: two of this round, one of an earlier round, and one among
    two arms.
    """
    learner = policy.start(["a", "b", "c"], seed=7)
    learner.tag = "tag"
    learner.watch()
    learner.decide()
    learner.decide(available=["a", "b"])
    for loss in (0.25, 1.0):
        learner.observe(learner.decide(), loss)
    learner.decide(count=2)
    return learner


def content(learner: dc.Learner) -> dict[str, object]:
    """Everything that is saved but the random stream, from which a call that was interrupted may
    have drawn.
    """
    saved = content_of(learner)
    return {name: saved[name] for name in saved.keys() - {"stream"}}


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("policy", [dc.FTPL(), dc.Ladder()], ids=["FTPL", "Ladder"])
def test_an_interrupted_learner_is_whole_or_says_what_to_do(policy: dc.Policy, act: str) -> None:
    start, done = used(policy), used(policy)
    ACTS[act](done)
    allowed = [content(start), content(done)]
    learners: list[dc.Learner] = []
    refusals: set[str] = set()
    whole = 0

    def prepared() -> Callable[[], object]:
        learners.append(used(policy))
        return partial(ACTS[act], learners[-1])

    for _ in at_every_point(prepared, most=25):
        try:
            found = content(learners[-1])
        except dc.StateError as error:
            refusals.add(str(error))
        else:
            whole += 1
            assert found in allowed
            learners[-1].observe(learners[-1].decide(), loss=0.5)
    assert whole > 0
    assert refusals <= {
        "learner: this learner was interrupted in the middle of an update, "
        "so what it has learned is not whole; "
        "restore it from a saved state, or start it anew and replay its log"
    }


@pytest.mark.parametrize("act", ["observe", "decide among some", "add arms"])
def test_a_handler_that_saves_saves_or_says_what_to_do(act: str) -> None:
    """It would wait for ever, were it let in; and the call that it interrupts goes on."""
    saved: list[dc.Learner] = []
    refused: list[str] = []
    done = used(dc.Ladder())
    before = done.round
    ACTS[act](done)

    def save() -> None:
        try:
            saved.append(dc.Learner.from_json(learner.to_json()))
        except dc.ReentryError as error:
            refused.append(str(error))

    point = 0
    while True:
        learner, count = used(dc.Ladder()), len(saved) + len(refused)
        handled_at(point, save, partial(ACTS[act], learner))
        if len(saved) + len(refused) == count:
            break
        assert content(learner) == content(done)
        point += 15
    assert refused[0] == (
        "to_json(): this thread is inside another call of the same Learner, "
        "so it would wait for itself; "
        "it was called by the handler of a signal, a finalizer or a callback; "
        "in a handler, raise SystemExit or set a flag, and make the call where the loop ends"
    )
    assert {each.round for each in saved} <= {before, done.round}
