"""The steps of the proofs as inequalities, one file per group; each file computes both sides in a state.

The paper's lemmas come first. The lemmas of the ladder, L1 to L8, are in `winner`, `jumps`, `one_round`, `hedge`,
`running_mean` and, for L1, in `path`. Those of theorem T2, L9 to L14, are in `ladder_round` and `ladder_path`,
those of sticky serving, S1 to S3, in `switches`, and the steps of theorem F in `contexts`.
"""

from collections.abc import Iterable, Iterator

from ..inequality import Inequality, Line, Sides
from ..moment import Moment
from . import (
    best_arm,
    contexts,
    exploration,
    hedge,
    jumps,
    ladder_path,
    ladder_round,
    one_round,
    path,
    penalty,
    probabilities,
    running_mean,
    stability,
    switches,
    winner,
)

_GROUPS = (probabilities, exploration, penalty, stability, best_arm, winner, jumps)
_ORDER = [
    inequality
    for group in (
        *_GROUPS,
        path,
        one_round,
        hedge,
        running_mean,
        ladder_round,
        ladder_path,
        switches,
        contexts,
    )
    for inequality in vars(group).values()
    if isinstance(inequality, Inequality)
]


def all_sides(moment: Moment) -> Iterator[Sides]:
    """Both sides of every inequality about one state."""
    for group in (*_GROUPS, switches):
        yield from group.sides(moment)


def in_order(lines: Iterable[Line]) -> tuple[Line, ...]:
    """Sort lines in the order of the argument."""
    return tuple(sorted(lines, key=lambda line: _ORDER.index(line.inequality)))
