"""Arms compared two by two, in rounds whose whole law of exploration is known.

Let p_n be the law of round n, l_n the loss seen and b_n any number in [0, 1] known before. For two arms i and j, and the
weight w_n = min(p_n(i), p_n(j)), the number

    y_n = w_n (1{explored i} (l_n - b_n) / p_n(i) - 1{explored j} (l_n - b_n) / p_n(j))

lies in [-1, 1], and its mean, given the past, is w_n times the difference of the two mean losses of that round: the
level b_n cancels. So `boundary` applies to the sum of y_n, and covers the mean difference over the rounds, each counted
with its weight. Losses may drift as they like. If only their level does, and the difference of the arms does not, it is
that difference. An arm that is seldom explored is compared as precisely as the losses seen of it allow, since y_n is
not divided by its small probability.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.arrays import Floats

MOST = 100  # arms; the sums grow with the square of their number
_RATE = 1.0 / 64.0  # of the level; about the mean of the last 64 losses


@dataclass(slots=True)
class Pairs:
    """The sums for all pairs of arms: of y (row minus column), of y^2, and of the weights."""

    differences: Floats
    squares: Floats
    weights: Floats
    level: float = 0.5
    rounds: int = 0

    @classmethod
    def start(cls, arms: int) -> "Pairs":
        """Nothing is known yet."""
        shape = (arms, arms)
        return cls(np.zeros(shape), np.zeros(shape), np.zeros(shape))

    def copy(self) -> "Pairs":
        """A copy that shares nothing with this one."""
        return Pairs(
            self.differences.copy(), self.squares.copy(), self.weights.copy(), self.level, self.rounds
        )

    def add(self, explore: int, law: Floats, loss: float) -> None:
        """Add a round: the explored arm, its law of exploration, and the loss."""
        parts = np.minimum(law / law[explore], 1.0) * self.above_level(loss)
        parts[explore] = 0.0
        self.differences[explore] += parts
        self.differences[:, explore] -= parts
        parts *= parts
        self.squares[explore] += parts
        self.squares[:, explore] += parts
        self.weights += np.minimum.outer(law, law)
        self.rounds += 1

    def above_level(self, loss: float) -> float:
        """How far a loss is above the level, which then moves towards it."""
        above = loss - self.level
        self.level += _RATE * above
        return above

    def extended(self, count: int) -> "Pairs":
        """With this many more arms."""
        differences, squares, weights = (
            np.pad(each, (0, count)) for each in (self.differences, self.squares, self.weights)
        )
        return Pairs(differences, squares, weights, self.level, self.rounds)

    def to_dict(self) -> dict[str, Any]:
        """The sums as plain values: each pair once, row by row."""
        above = np.triu_indices(len(self.weights), 1)
        return {
            "differences": self.differences[above].tolist(),
            "squares": self.squares[above].tolist(),
            "weights": self.weights[above].tolist(),
            "level": self.level,
            "rounds": self.rounds,
        }

    @classmethod
    def from_dict(cls, arms: int, content: dict[str, Any]) -> "Pairs":
        """Restore the result of `to_dict`."""
        pairs = cls.start(arms)
        pairs.level, pairs.rounds = content["level"], content["rounds"]
        rows, columns = np.triu_indices(arms, 1)
        for name, sign in (("differences", -1.0), ("squares", 1.0), ("weights", 1.0)):
            values = np.array(content[name], np.float64)
            matrix = getattr(pairs, name)
            matrix[rows, columns], matrix[columns, rows] = values, sign * values
        return pairs
