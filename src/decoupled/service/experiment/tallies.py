"""What is counted while an experiment runs: plays, and the sums that estimate its regret."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from .intervals import interval
from .records import Interval


@dataclass(slots=True)
class Tallies:
    """Counts by arm, and importance-weighted sums over the decisions observed.

    `sums[a]` estimates the loss of always playing arm a, `used` the loss of what was exploited; the other
    sums are those of squares and products, from which the variance of `used - sums[a]` follows for any a.
    Of the decisions compared, `exploited`, `explored` and `both` count by arm what was exploited, what was explored,
    and what was both. `blind` tells that some decision left arms without a chance, so that nothing can be compared.
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
    exploited: list[int] = field(default_factory=list)
    explored: list[int] = field(default_factory=list)
    both: list[int] = field(default_factory=list)
    blind: bool = False

    def widen(self, arms: int) -> None:
        """Make room for that many arms."""
        for each in (self.exploit, self.explore, self.exploited, self.explored, self.both):
            each.extend([0] * (arms - len(each)))
        for sums in (self.sums, self.squares, self.shared):
            sums.extend([0.0] * (arms - len(sums)))

    def compare(self, exploit: int, explore: int, used: float, weighted: float) -> None:
        """Add one observation: the estimated loss of what was exploited, and of the arm that was explored."""
        self.compared += 1
        self.exploited[exploit] += 1
        self.explored[explore] += 1
        self.both[explore] += exploit == explore
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
        self.exploited, self.explored, self.both = ([0] * len(zeros) for _ in range(3))
        self.compared, self.blind = 0, False

    def regret(self, arms: Sequence[int], width: float) -> Interval | None:
        """Of what was exploited against the best of these arms, with an interval at 95 %; None without data.

        Nothing is lost or gained where the best arm itself was exploited, so the regret is at most the number of
        the other decisions. What was explored in those tells the rest, where it was one of the two arms.
        `width` is that of the loss range: the sums are of losses scaled to [0, 1].
        """
        if self.compared == 0 or self.blind:
            return None
        best = min(arms, key=self.sums.__getitem__)
        apart = width * (self.compared - self.exploited[best])
        telling = sum(self.both) + self.explored[best] - 2 * self.both[best]
        estimate = self.used - self.sums[best]
        squares = self.used_squares + self.squares[best] - 2.0 * self.shared[best]
        variance = max(0.0, squares - estimate * estimate / self.compared)
        return interval(width * estimate, width * math.sqrt(variance), telling, -apart, apart)

    def to_dict(self) -> dict[str, Any]:
        """The tallies as plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """The tallies that `to_dict` wrote."""
        return cls(**values)
