"""What is counted while an experiment runs: plays, and the sums that estimate its regret."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from .records import Interval

_NORMAL_95 = 1.959963984540054


@dataclass(slots=True)
class Tallies:
    """Counts by arm, and importance-weighted sums over the decisions observed.

    `sums[a]` estimates the loss of always playing arm a, `used` the loss of what was exploited; the other
    sums are those of squares and products, from which the variance of `used - sums[a]` follows for any a.
    `blind` tells that some decision left arms without a chance, so that nothing can be compared.
    """

    exploit: list[int] = field(default_factory=list)
    explore: list[int] = field(default_factory=list)
    decisions: int = 0
    applied: int = 0
    expired: int = 0
    sums: list[float] = field(default_factory=list)
    squares: list[float] = field(default_factory=list)
    shared: list[float] = field(default_factory=list)
    used: float = 0.0
    used_squares: float = 0.0
    compared: int = 0
    blind: bool = False

    def widen(self, arms: int) -> None:
        """Make room for that many arms."""
        for each in (self.exploit, self.explore):
            each.extend([0] * (arms - len(each)))
        for sums in (self.sums, self.squares, self.shared):
            sums.extend([0.0] * (arms - len(sums)))

    def compare(self, explore: int, used: float, weighted: float) -> None:
        """Add one observation: the estimated loss of what was exploited, and of the arm that was explored."""
        self.compared += 1
        self.used += used
        self.used_squares += used * used
        self.sums[explore] += weighted
        self.squares[explore] += weighted * weighted
        self.shared[explore] += used * weighted

    def compare_anew(self) -> None:
        """Start the comparison again: other arms, another best one."""
        zeros = [0.0] * len(self.sums)
        self.sums, self.squares, self.shared = zeros, zeros.copy(), zeros.copy()
        self.used = self.used_squares = 0.0
        self.compared, self.blind = 0, False

    def regret(self, arms: Sequence[int], width: float) -> Interval | None:
        """Of what was exploited against the best of these arms, with a normal interval at 95 %; None without data.

        `width` is that of the loss range: the sums are of losses scaled to [0, 1].
        """
        if self.compared == 0 or self.blind:
            return None
        best = min(arms, key=self.sums.__getitem__)
        estimate = self.used - self.sums[best]
        squares = self.used_squares + self.squares[best] - 2.0 * self.shared[best]
        variance = max(0.0, squares - estimate * estimate / self.compared)
        spread = _NORMAL_95 * math.sqrt(variance)
        return Interval(width * estimate, width * (estimate - spread), width * (estimate + spread))

    def to_dict(self) -> dict[str, Any]:
        """The tallies as plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """The tallies that `to_dict` wrote."""
        return cls(**values)
