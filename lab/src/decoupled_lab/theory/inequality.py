"""Inequalities of the proofs, their two sides in a state, and a tally of how tight they are."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from decoupled.base import Floats

from .moment import Moment

CLAIMED = "claimed"  # the paper states it
AS_PRINTED = "as printed"  # the paper prints it, but it fails somewhere
CORRECTED = "corrected"  # the correct form
OURS = "ours"  # a lemma of the ladder or of sticky serving, which is not in the paper
NOT_CLAIMED = "not claimed"  # outside the range of the theorem

TOLERANCE = 1e-9  # relative; the computed values are far more accurate


@dataclass(frozen=True)
class Inequality:
    """Left side <= right side, with its place in the paper or in the proofs of the ladder, and its status.

    Attributes:
        name: a short form of the inequality.
        source: its place in the paper, or in the proofs of the ladder.
        status: "claimed", "as printed", "corrected", "ours" or "not claimed".
    """

    name: str
    source: str
    status: str = CLAIMED

    @property
    def expected(self) -> bool:
        """Whether it should hold everywhere."""
        return self.status in (CLAIMED, CORRECTED, OURS)


def ours(name: str, source: str) -> Inequality:
    """A lemma of ours, with its place in the proofs."""
    return Inequality(name, source, OURS)


class Sides(NamedTuple):
    """Both sides of an inequality in one state: one number per arm, or a single number."""

    inequality: Inequality
    left: ArrayLike
    right: ArrayLike
    arms: ArrayLike = ()


class Witness(NamedTuple):
    """The state in which an inequality is tightest, or fails.

    Attributes:
        left: the left side.
        right: the right side.
        arm: the arm; None for an inequality about all arms.
        round: the round.
        alpha: the shape of the perturbations.
        eta: the learning rate.
        best: the arm that the proofs call i*.
        gaps: the gaps to the smallest estimate.
    """

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
    """The result for one inequality.

    Attributes:
        inequality: the inequality.
        evaluated: how often it was evaluated.
        violations: how often it failed.
        ratio: the largest left side over right side.
        witness: the state that has this ratio; None if it was never evaluated.
    """

    inequality: Inequality
    evaluated: int = 0
    violations: int = 0
    ratio: float = -np.inf
    witness: Witness | None = None

    def add(self, sides: Sides, moment: Moment) -> None:
        """Count the sides in one state."""
        left = np.atleast_1d(np.asarray(sides.left, np.float64))
        right = np.atleast_1d(np.asarray(sides.right, np.float64))
        if not left.size:
            return
        # With a right side of zero, any larger left side is a violation. So is a NaN on either side.
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(right > 0.0, left / right, np.where(left > right, np.inf, 0.0))
        ratios[np.isnan(left) | np.isnan(right)] = np.inf
        worst = int(np.argmax(ratios))
        self.evaluated += left.size
        self.violations += int((ratios > 1.0 + TOLERANCE).sum())
        if ratios[worst] > self.ratio:
            arms = np.atleast_1d(np.asarray(sides.arms))
            arm = int(arms[worst]) if arms.size else None
            state = (moment.round, moment.alpha, moment.eta, moment.best, moment.gaps)
            self.ratio = float(ratios[worst])
            self.witness = Witness(float(left[worst]), float(right[worst]), arm, *state)


@dataclass
class Tally:
    """Lines by inequality, in the order in which they were first added."""

    lines: dict[Inequality, Line] = field(default_factory=dict)

    def add(self, several: Iterable[Sides], moment: Moment) -> None:
        """Count the sides of several inequalities in one state."""
        for sides in several:
            self.lines.setdefault(sides.inequality, Line(sides.inequality)).add(sides, moment)

    def merge(self, lines: Iterable[Line]) -> None:
        """Add the lines of another tally."""
        for line in lines:
            mine = self.lines.setdefault(line.inequality, Line(line.inequality))
            mine.evaluated += line.evaluated
            mine.violations += line.violations
            if line.ratio > mine.ratio:
                mine.ratio, mine.witness = line.ratio, line.witness

    def __iter__(self) -> Iterator[Line]:
        return (line for line in self.lines.values() if line.evaluated)
