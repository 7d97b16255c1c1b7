"""The twin of JinHybrid: two nested root finders, so it keeps its last weights until the next observation."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import brentq

from support.twins import Floats, Twin, twin_for


class JinTwin(Twin):
    """Log-barrier and Tsallis entropy: a root finder for the multiplier, and in it one for every weight."""

    def __init__(self, arms: int, barrier: float, theta: float, horizon: int | None) -> None:
        super().__init__(arms)
        self.barrier, self.theta, self.horizon = barrier, theta, horizon
        self.sums: Floats = np.zeros(arms)
        self.weights: Floats | None = None

    def exploitation_law(self) -> Floats:
        if self.weights is None:
            gammas = self.theta * np.sqrt(1 + self.sums)
            self.weights = hybrid_law_by_brentq(self.estimates, self.barrier, gammas)
        return self.weights

    def exploration_law(self) -> Floats:
        powers = self.exploitation_law() ** (2 / 3)
        law: Floats = powers / powers.sum()
        return law

    def update(self, arm: int, weight: float, loss: float) -> None:
        floor = 1 / (self.round if self.horizon is None else self.horizon)
        self.sums = (
            self.sums
            + np.maximum(self.exploitation_law(), floor) ** (2 / 3) / self.exploration_law()
        )
        super().update(arm, weight, loss)
        self.weights = None

    def restricted(self, places: Sequence[int]) -> "JinTwin":
        part = super().restricted(places)
        assert isinstance(part, JinTwin)
        part.sums, part.weights = self.sums[list(places)], None
        return part


def hybrid_law_by_brentq(estimates: Floats, barrier: float, gammas: Floats) -> Floats:
    """The minimiser of <w, L> - C sum log w - sum gamma w^(2/3) over the simplex.

    Where it is stationary, C / w_i + 2/3 gamma_i w_i^(-1/3) = L_i - x =: d_i for every arm. L is counted
    from its smallest entry, which loses no digits, and so is -x.
    """
    gaps = estimates - estimates.min()
    rates = [2 / 3 * float(gamma) for gamma in gammas]

    def weight(d: float, rate: float) -> float:
        # Of the two terms the larger is at least half of d, and neither exceeds d.
        low, high = max(barrier / d, (rate / d) ** 3), max(2 * barrier / d, (2 * rate / d) ** 3)
        if low == 0:  # below every floating-point number
            return 0.0
        ends = low * (1 - 1e-12), high * (1 + 1e-12)
        return float(
            brentq(lambda w: barrier / w + rate * w ** (-1 / 3) - d, *ends, xtol=1e-300, rtol=1e-15)
        )

    def weights(level: float) -> Floats:
        return np.array(
            [weight(float(gap) + level, rate) for gap, rate in zip(gaps, rates, strict=True)]
        )

    # No weight exceeds 1, and the largest is at least 1 / K.
    arms = len(gaps)
    lowest, highest = barrier, barrier * arms + max(rates) * arms ** (1 / 3)
    level = brentq(
        lambda s: math.fsum(weights(s)) - 1, lowest, highest * (1 + 1e-9), xtol=1e-300, rtol=1e-15
    )
    return weights(level)


@twin_for("JinHybrid")
def jin_twin(policy: Any, arms: int) -> Twin:
    return JinTwin(arms, policy.barrier, policy.theta, policy.horizon)
