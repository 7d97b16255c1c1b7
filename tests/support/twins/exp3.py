"""The twin of EXP3."""

import math
from typing import Any

import numpy as np

from support.twins import Floats, Twin, twin_for


class Exp3Twin(Twin):
    """Exponential weights: a softmax, and its square root."""

    @property
    def eta(self) -> float:
        return self.c * math.pow(self.problem_arms, -1 / 2) / math.sqrt(self.round)

    def exploitation_law(self) -> Floats:
        w = np.exp(-self.eta * self.gaps())
        law: Floats = w / w.sum()
        return law

    def exploration_law(self) -> Floats:
        p = np.exp(-self.eta * self.gaps() / 2)  # the square root of w, taken before w underflows
        law: Floats = p / p.sum()
        return law


@twin_for("Exp3")
def exp3_twin(policy: Any, arms: int) -> Twin:
    return Exp3Twin(arms, policy.c)
