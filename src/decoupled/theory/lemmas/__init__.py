"""The steps of the proofs as inequalities, one file per group; each file computes both sides in a state."""

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
    """Both sides of every inequality about one state."""
    for group in _GROUPS:
        yield from group.sides(moment)


def in_order(lines: Iterable[Line]) -> tuple[Line, ...]:
    """Sort lines in the order of the argument."""
    return tuple(sorted(lines, key=lambda line: _ORDER.index(line.inequality)))
