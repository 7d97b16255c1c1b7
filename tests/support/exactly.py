"""One round, exactly: a decision for each arm that may be explored, and what its feedback adds to the estimates."""

from typing import Any, cast

import decoupled as dc
from decoupled.base.arrays import Floats


def explored(decision: dc.Decision) -> int:
    return cast(int, decision.explore)


def one_of_each(learner: dc.Learner, **options: Any) -> dict[int, dc.Decision]:
    """A decision for each arm that may be explored. The learner forgets all others, so that it is soon saved and loaded."""
    arms = options.get("available") or range(len(learner.arms))
    found: dict[int, dc.Decision] = {}
    for _ in range(400):  # an arm far behind is explored once in thousands of draws
        found |= {explored(each): each for each in learner.decide(count=200, **options)}
        if len(found) == len(arms):
            break
    assert sorted(found) == sorted(arms)
    kept = {each.id for each in found.values()}
    for each in learner.pending:
        if each.id not in kept:
            learner.forget(each)
    return found


def added(saved: str, decision: dc.Decision, **feedback: Any) -> Floats:
    """What the feedback adds to each estimate of a learner that is as it was saved."""
    learner = dc.Learner.from_json(saved)
    before = learner.estimates()
    learner.observe(decision.id, **feedback)
    change: Floats = learner.estimates() - before
    return change
