"""The twin of TopTwo."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from support.twins import Floats, Twin, twin_for


class TopTwoTwin(Twin):
    """EB-TC_eps: all losses are kept in lists, every duel in a list of (leader, challenger, explored)."""

    def __init__(self, arms: int, epsilon: float, beta: float) -> None:
        super().__init__(arms)
        self.epsilon, self.beta = epsilon, beta
        self.seen: dict[int, list[float]] = {}  # in the order of first observations
        self.arms = list(range(arms))
        self.duels: list[tuple[int, int, int]] = []

    def mean(self, arm: int) -> float:
        return sum(self.seen[arm]) / len(self.seen[arm])

    def known(self) -> list[int]:
        """The arms observed so far, the first observed first; `min` takes the first of equal ones."""
        return [arm for arm in self.seen if arm in self.arms]

    def unknown(self) -> list[int]:
        return [arm for arm in self.arms if arm not in self.seen]

    def leader(self) -> int:
        return min(self.known(), key=self.mean)

    def cost(self, arm: int) -> float:
        best = self.leader()
        counts = len(self.seen[best]), len(self.seen[arm])
        return (self.mean(arm) - self.mean(best) + self.epsilon) / math.sqrt(
            1 / counts[0] + 1 / counts[1]
        )

    def challenger(self) -> int:
        return min((arm for arm in self.known() if arm != self.leader()), key=self.cost)

    def next(self) -> int:
        if len(self.arms) == 1:
            return self.arms[0]
        pair = self.leader(), self.challenger()
        met = 1 + sum(duel[:2] == pair for duel in self.duels)
        explored = sum(duel == (*pair, pair[1]) for duel in self.duels)
        return pair[1] if explored <= (1 - self.beta) * met else pair[0]

    def update(self, arm: int, weight: float, loss: float) -> None:
        self.observations += 1
        if not self.unknown():
            leader = self.leader()
            self.duels.append((leader, self.challenger() if arm == leader else arm, arm))
        self.seen.setdefault(arm, []).append(loss)

    def law_on(self, chosen: list[int]) -> Floats:
        return np.array([float(arm in chosen) / len(chosen) for arm in self.arms])

    def exploitation_law(self) -> Floats:
        return self.law_on([self.leader()] if self.known() else self.arms)

    def exploration_law(self) -> Floats:
        return self.law_on(self.unknown() or [self.next()])

    def restricted(self, places: Sequence[int]) -> "TopTwoTwin":
        part = TopTwoTwin(len(places), self.epsilon, self.beta)
        part.seen, part.duels, part.arms = self.seen, self.duels, list(places)
        return part


@twin_for("TopTwo")
def top_two_twin(policy: Any, arms: int) -> Twin:
    return TopTwoTwin(arms, policy.epsilon, policy.beta)
