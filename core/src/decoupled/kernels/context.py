"""The numbers of a context, and the places of a contextual policy's state that a learner uses."""

from typing import Any, NamedTuple

MISSING = 1e140  # in place of a number that a context does not have; those that it has are smaller
LARGEST_NUMBER = 1e100


class ContextPlaces(NamedTuple):
    """Places in the state of a contextual policy.

    Attributes:
        scalars: the place of each scalar, by name.
        rows: the place of each row of floats, by name.
        numbers: the place of the first number of a context, among the scalars.
        advice: the first row of advice.
        kept_scalars: the scalars that are kept of every segment, in order.
        kept_rows: the rows of floats that are kept of every segment, in order. The first has the
            sums of the losses.
    """

    scalars: Any
    rows: Any
    numbers: int
    advice: int
    kept_scalars: tuple[int, ...]
    kept_rows: tuple[int, ...]

    def width(self, arms: int) -> int:
        """How many numbers are kept of a segment."""
        return len(self.kept_scalars) + len(self.kept_rows) * arms
