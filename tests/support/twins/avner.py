"""The twin of AvnerExp3."""

import math
from typing import Any

import numpy as np

from support.twins import Floats, Twin, twin_for


class AvnerTwin(Twin):
    """Exponential weights with a rate from the horizon, or from the round if there is none."""

    def __init__(self, arms: int, horizon: int | None, mixing: float) -> None:
        super().__init__(arms)
        self.horizon, self.mixing = horizon, mixing

    @property
    def eta(self) -> float:
        if self.horizon is None:
            return math.sqrt(math.log(self.problem_arms) / self.problem_arms / self.round)
        return math.sqrt(2 * math.log(self.problem_arms) / self.problem_arms / self.horizon)

    def exploitation_law(self) -> Floats:
        g = np.exp(-self.eta * self.gaps())
        law: Floats = (1 - self.mixing) * g / g.sum() + self.mixing / len(g)
        return law

    def exploration_law(self) -> Floats:
        roots = np.sqrt(self.exploitation_law())
        if self.mixing == 0:  # the square root taken before w underflows
            roots = np.exp(-self.eta * self.gaps() / 2)
        law: Floats = roots / roots.sum()
        return law


@twin_for("AvnerExp3")
def avner_twin(policy: Any, arms: int) -> Twin:
    return AvnerTwin(arms, policy.horizon, policy.mixing)
