"""The order in which decisions become evidence: that in which they were made."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

_T = TypeVar("_T")

# For how many newer decisions the evidence waits for one without a loss: that of a learner, that of
# a log or of an experiment of the service, and the longest. Those that wait are added all at once.
PATIENCE = 250
PATIENCE_OF_LOGS = 1_000
MOST_PATIENCE = 10_000


class Awaited(NamedTuple):
    """The decision without a loss that later losses wait for, and until when.

    Attributes:
        decision: its id.
        decisions: after how many more decisions it is given up.
        until: the time at which it is given up if that comes first; None if only decisions count.

    >>> Awaited("1f2e-7", 20).until is None
    True
    """

    decision: str
    decisions: int
    until: str | None = None


def iter_settled(
    decisions: Iterable[_T], is_pending: Callable[[_T], bool], patience: int = PATIENCE_OF_LOGS
) -> Iterator[_T]:
    """The decisions before the first pending one that has fewer than `patience` others after it.

    Later decisions are not a fair sample: whether their feedback has arrived may depend on the arm
    and its loss.

    >>> list(iter_settled("abc?de", "?".__eq__))
    ['a', 'b', 'c']
    >>> list(iter_settled("abc?de", "?".__eq__, patience=2))
    ['a', 'b', 'c', '?', 'd', 'e']
    """
    queue: deque[_T] = deque()
    for decision in decisions:
        queue.append(decision)
        while queue and (len(queue) > patience or not is_pending(queue[0])):
            yield queue.popleft()


def describe_gaps(left_out: int, waiting: int, awaited: Awaited | None = None) -> str | None:
    """What is assumed about so many decisions that are left out, and what so many losses wait for;
    None if there are none.

    >>> print(describe_gaps(0, 1))
    1 loss waits for that of an earlier decision
    >>> print(describe_gaps(0, 3, Awaited("1f2e-7", 20)))
    3 losses wait for that of decision 1f2e-7, for at most 20 more decisions
    """
    remarks = []
    if left_out:
        what = "decision without a loss is" if left_out == 1 else "decisions without a loss are"
        assumption = "assuming that whether a loss comes in time depends on neither arm nor loss"
        remarks.append(f"{left_out:,} {what} left out, {assumption}")
    if waiting:
        what = "loss waits for that" if waiting == 1 else "losses wait for that"
        remarks.append(f"{waiting:,} {what} of {_describe_awaited(awaited)}")
    return "; ".join(remarks) or None


def _describe_awaited(awaited: Awaited | None) -> str:
    """A decision that is waited for, and until when."""
    if awaited is None:
        return "an earlier decision"
    what = "decision" if awaited.decisions == 1 else "decisions"
    end = "" if awaited.until is None else f", or until {awaited.until}"
    return f"decision {awaited.decision}, for at most {awaited.decisions:,} more {what}{end}"
