"""The order in which decisions become evidence: that in which they were made."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

_T = TypeVar("_T")

PATIENCE, MOST_PATIENCE = 1_000, 10_000  # decisions; those that wait are added all at once


def settled(
    decisions: Iterable[_T], is_pending: Callable[[_T], bool], patience: int = PATIENCE
) -> Iterator[_T]:
    """The decisions before the first pending one that has fewer than `patience` others after it.

    Later decisions are not a fair sample: whether their feedback has arrived may depend on the arm and its loss.

    >>> list(settled("abc?de", "?".__eq__)), list(settled("abc?de", "?".__eq__, patience=2))
    (['a', 'b', 'c'], ['a', 'b', 'c', '?', 'd', 'e'])
    """
    queue: deque[_T] = deque()
    for each in decisions:
        queue.append(each)
        while queue and (len(queue) > patience or not is_pending(queue[0])):
            yield queue.popleft()


def unsettled(left_out: int, waiting: int) -> str | None:
    """What is assumed about so many decisions that are left out, and what so many losses wait for; None if there are none.

    >>> print(unsettled(0, 1))
    1 loss waits for that of an earlier decision
    """
    parts = []
    if left_out:
        what = "decision without a loss is" if left_out == 1 else "decisions without a loss are"
        assumed = "assuming that whether a loss comes in time depends on neither arm nor loss"
        parts.append(f"{left_out:,} {what} left out, {assumed}")
    if waiting:
        what = "loss waits for that" if waiting == 1 else "losses wait for that"
        parts.append(f"{waiting:,} {what} of an earlier decision")
    return "; ".join(parts) or None
