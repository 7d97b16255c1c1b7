"""The steps of the proofs as inequalities, one file a group; each gives both sides in a state."""

from collections.abc import Iterator

from ..inequality import Sides
from ..moment import Moment
from . import best_arm, exploration, penalty, probabilities, stability


def all_sides(moment: Moment) -> Iterator[Sides]:
    """Both sides of every inequality that speaks of one state."""
    for group in (probabilities, exploration, penalty, stability, best_arm):
        yield from group.sides(moment)
