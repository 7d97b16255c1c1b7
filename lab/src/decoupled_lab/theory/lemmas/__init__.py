"""The steps of the proofs as inequalities, one file per group; each file computes both sides in a state.

The paper's lemmas come first. The lemmas of the ladder, L1 to L8, are in `jumps`, `centred` and, for L1, in `path`.
Those of theorem T2, L9 to L14, are in `ladder`, those of late feedback, L15 and L16, in `late`, those of sticky
serving, S1 to S3, in `switches`, and the steps of theorem F in `contexts`.
"""

from collections.abc import Iterable, Iterator

from ..inequality import Inequality, Line, Sides
from ..moment import Moment
from . import centred, contexts, jumps, ladder, late, paper, path, switches

_ORDER = [
    inequality
    for group in (paper, jumps, path, centred, ladder, late, switches, contexts)
    for inequality in vars(group).values()
    if isinstance(inequality, Inequality)
]


def all_sides(moment: Moment) -> Iterator[Sides]:
    """Both sides of every inequality about one state."""
    for group in (paper, jumps, switches):
        yield from group.sides(moment)


def in_order(lines: Iterable[Line]) -> tuple[Line, ...]:
    """Sort lines in the order of the argument."""
    return tuple(sorted(lines, key=lambda line: _ORDER.index(line.inequality)))
