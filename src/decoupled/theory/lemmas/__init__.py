"""The steps of the proofs as inequalities, one file a group; each gives both sides in a state."""

from collections.abc import Iterable, Iterator

from ..inequality import Inequality, Line, Sides
from ..moment import Moment
from . import best_arm, exploration, path, penalty, probabilities, stability

_GROUPS = (probabilities, exploration, penalty, stability, best_arm)
_ORDER = [
    inequality
    for group in (*_GROUPS, path)
    for inequality in vars(group).values()
    if isinstance(inequality, Inequality)
]


def all_sides(moment: Moment) -> Iterator[Sides]:
    """Both sides of every inequality that speaks of one state."""
    for group in _GROUPS:
        yield from group.sides(moment)


def in_order(lines: Iterable[Line]) -> tuple[Line, ...]:
    """Lines in the order of the argument, whatever came first on the way."""
    return tuple(sorted(lines, key=lambda line: _ORDER.index(line.inequality)))
