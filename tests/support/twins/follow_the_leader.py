"""The twin of follow the leader."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from support.twins import Floats, Twin, twin_for


class FollowTheLeaderTwin(Twin):
    """Follow the leader: all losses of every arm are kept in a list, and means are taken anew."""

    def __init__(self, arms: int) -> None:
        super().__init__(arms)
        self.seen: list[list[float]] = [[] for _ in range(arms)]

    def update(self, arm: int, weight: float, loss: float) -> None:
        self.observations += 1
        self.seen[arm].append(loss)

    def means(self) -> list[float]:
        """An arm not yet seen comes before every other: its mean is minus infinity."""
        return [sum(losses) / len(losses) if losses else -math.inf for losses in self.seen]

    def exploitation_law(self) -> Floats:
        means = self.means()
        leads = np.array([mean == min(means) for mean in means], np.float64)
        law: Floats = leads / leads.sum()
        return law

    def exploration_law(self) -> Floats:
        return np.full(len(self.seen), 1 / len(self.seen))

    def restricted(self, places: Sequence[int]) -> "FollowTheLeaderTwin":
        part = FollowTheLeaderTwin(len(places))
        part.seen = [self.seen[place] for place in places]
        return part


@twin_for("FollowTheLeader")
def follow_the_leader_twin(policy: Any, arms: int) -> Twin:
    return FollowTheLeaderTwin(arms)
