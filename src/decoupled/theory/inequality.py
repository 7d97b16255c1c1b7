"""An inequality of the proofs, both its sides in some state, and a tally of how tight it was."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..base.arrays import Floats
from .moment import Moment

CLAIMED = "claimed"  # the paper states it
AS_PRINTED = "as printed"  # the paper prints it, and it fails somewhere
MENDED = "mended"  # what should stand in its place
NOT_CLAIMED = "not claimed"  # outside the range of the theorem

TOLERANCE = 1e-9  # relative; what is computed is far better than this


@dataclass(frozen=True)
class Inequality:
    """Left side <= right side, with where it stands in the paper and whether it is meant to hold."""

    name: str
    source: str
    status: str = CLAIMED

    @property
    def expected(self) -> bool:
        """Whether a violation would be news."""
        return self.status in (CLAIMED, MENDED)


class Sides(NamedTuple):
    """Both sides of an inequality in one state, one number an arm or one in all."""

    inequality: Inequality
    left: ArrayLike
    right: ArrayLike
    arms: ArrayLike = ()


class Witness(NamedTuple):
    """The state that shows how tight an inequality is, or that it fails."""

    left: float
    right: float
    arm: int | None
    round: int
    alpha: float
    eta: float
    best: int
    gaps: Floats


@dataclass
class Line:
    """How one inequality fared: `ratio` is the largest left / right, shown by `witness`."""

    inequality: Inequality
    evaluated: int = 0
    violations: int = 0
    ratio: float = -np.inf
    witness: Witness | None = None

    def add(self, sides: Sides, moment: Moment) -> None:
        """Count these sides in."""
        left = np.atleast_1d(np.asarray(sides.left, np.float64))
        right = np.atleast_1d(np.asarray(sides.right, np.float64))
        if not left.size:
            return
        ratios = _ratios(left, right)
        worst = int(np.argmax(ratios))
        self.evaluated += left.size
        self.violations += int((ratios > 1.0 + TOLERANCE).sum())
        if ratios[worst] > self.ratio:
            arms = np.atleast_1d(np.asarray(sides.arms))
            arm = int(arms[worst]) if arms.size else None
            self.ratio = float(ratios[worst])
            self.witness = Witness(
                float(left[worst]),
                float(right[worst]),
                arm,
                moment.round,
                moment.alpha,
                moment.eta,
                moment.best,
                moment.gaps,
            )


def _ratios(left: Floats, right: Floats) -> Floats:
    # A right side of zero admits no left side above it; a NaN on either side counts as a violation.
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(right > 0.0, left / right, np.where(left > right, np.inf, 0.0))
    return np.where(np.isnan(left) | np.isnan(right), np.inf, ratios)


@dataclass
class Tally:
    """Lines by inequality, in the order in which they first came."""

    lines: dict[Inequality, Line] = field(default_factory=dict)

    def add(self, several: Iterable[Sides], moment: Moment) -> None:
        """Count in all that holds in one state."""
        for sides in several:
            self.lines.setdefault(sides.inequality, Line(sides.inequality)).add(sides, moment)

    def merge(self, lines: Iterable[Line]) -> None:
        """Count in another tally's lines."""
        for line in lines:
            mine = self.lines.setdefault(line.inequality, Line(line.inequality))
            mine.evaluated += line.evaluated
            mine.violations += line.violations
            if line.ratio > mine.ratio:
                mine.ratio, mine.witness = line.ratio, line.witness

    def __iter__(self) -> Iterator[Line]:
        return (line for line in self.lines.values() if line.evaluated)
