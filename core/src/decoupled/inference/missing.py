"""Whether feedback goes missing more often for one arm than for others.

A decision without a loss is left out, which is right if whether its loss comes depends on neither
the arm nor the loss. Part of that can be tested. Let W_n = 1 / p_n(explored arm). If the arm does
not matter, then among the decisions that are left out the explored arm is drawn by the law p_n too,
so that for each arm i

    z_n = 1{explored i} W_n - 1

has the mean 0 and is at least -1: a bet on "more is missing of i". The money of all arms together,
each with a share, reaches 1 / `RISK` with probability `RISK` at most if the arm does not matter.
That a loss is missing because it is large cannot be seen.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..base.arrays import Floats
from ..kernels.stakes import STAKES
from .stakes import LOG_PRIOR, evidence

RISK = 0.01


class LostDecision(Protocol):
    """What is known of a decision that is left out."""

    @property
    def explore(self) -> int:
        """The arm that was explored."""

    @property
    def weight(self) -> float | None:
        """1 / propensity; None if it is not known."""


class Missing(NamedTuple):
    """What is missing of each arm.

    Attributes:
        counts: how many decisions of each arm were left out.
        logs: for each arm, the logarithm of what each stake has won by betting that more is missing
            of it.
        is_uneven: whether more was shown to be missing of some arm. It stays so.
    """

    counts: tuple[int, ...] = ()
    logs: tuple[tuple[float, ...], ...] = ()
    is_uneven: bool = False

    def with_decision(self, decision: LostDecision, live: Sequence[int]) -> "Missing":
        """The same with one more decision that is left out.

        Args:
            decision: the decision.
            live: the arms that are not retired, which share the bets.

        >>> from decoupled.inference import Observation
        >>> missing = Missing()
        >>> for _ in range(20):
        ...     missing = missing.with_decision(Observation(0, 2.0, 0.0), [0, 1])
        >>> missing.counts, missing.is_uneven
        ((20, 0), True)
        """
        size = max(len(self.counts), decision.explore + 1, max(live) + 1)
        counts = [*self.counts, *[0] * (size - len(self.counts))]
        counts[decision.explore] += 1
        logs = np.array([*self.logs, *[tuple(LOG_PRIOR)] * (size - len(self.logs))])
        weight = decision.weight
        if weight is not None:
            z = np.full(size, -1.0)
            z[decision.explore] = weight - 1.0
            places = list(live)
            logs[places] += np.log1p(STAKES * z[places, None])
        money = float(np.logaddexp.reduce(evidence(logs) + np.log(_shares(size))))
        return Missing(
            counts=tuple(counts),
            logs=tuple(map(tuple, logs.tolist())),
            is_uneven=self.is_uneven or money >= -float(np.log(RISK)),
        )

    @property
    def most(self) -> int:
        """The arm of which most is missing, by what its bet has won."""
        return int(np.argmax(evidence(np.array(self.logs))))

    def to_list(self) -> list[Any]:
        """Everything as plain values."""
        return [list(self.counts), [list(row) for row in self.logs], self.is_uneven]

    @classmethod
    def from_list(cls, content: Sequence[Any]) -> "Missing":
        """Restore the result of `to_list`."""
        counts, logs, is_uneven = content
        rows = np.array(logs, np.float64).reshape(-1, len(STAKES))
        is_possible = len(counts) == len(rows) and bool((rows < np.inf).all())
        if not is_possible or any(type(count) is not int or count < 0 for count in counts):
            raise ValueError("missing cannot be")
        return cls(tuple(counts), tuple(map(tuple, rows.tolist())), bool(is_uneven))


NOTHING_MISSING = Missing()


def _shares(arms: int) -> Floats:
    """The share of each arm's bet; all shares sum to less than 1 for any number of arms, so that
    arms may be added.
    """
    numbers = np.arange(arms)
    shares: Floats = 1.0 / ((numbers + 1.0) * (numbers + 2.0))
    return shares
