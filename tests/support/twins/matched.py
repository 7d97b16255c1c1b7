"""The slow, obvious twin of MatchedFTPL: q, h and z as its docstring defines them, from a full sort each time."""

from typing import Any

import numpy as np

from support.twins import Floats, FTPLTwin, Twin, twin_for


class MatchedTwin(FTPLTwin):
    """It keeps beta itself, and takes every sum over arms in their own order."""

    def __init__(self, arms: int, alpha: float, kappa: float, c: float) -> None:
        super().__init__(arms, alpha, c)
        self.kappa = kappa
        self.beta: float = arms ** (1 / 2 - 1 / alpha) / c

    @property
    def eta(self) -> float:
        return 1 / self.beta

    def q(self) -> Floats:
        q: Floats = np.minimum((1 + self.gaps() / self.beta) ** -self.alpha, 1 / self.ranks())
        return q

    def next_beta(self) -> float:
        q, others = self.q(), self.ranks() > 1
        explored = q ** ((self.alpha + 1) / (2 * self.alpha))
        h = self.alpha / (self.alpha - 1) * (q[others] ** (1 - 1 / self.alpha)).sum()
        z = self.kappa * explored.sum() * explored[others].sum()
        if h == 0:
            return self.beta
        return float(min(2 ** (1 / self.alpha) * self.beta, self.beta + z / (self.beta * h)))

    def update(self, arm: int, weight: float, loss: float) -> None:
        super().update(arm, weight, loss)
        self.beta = self.next_beta()


@twin_for("MatchedFTPL")
def matched_twin(policy: Any, arms: int) -> Twin:
    return MatchedTwin(arms, policy.alpha, policy.kappa, policy.c)
