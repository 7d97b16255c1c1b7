"""Slow, obvious twins of AvnerExp3, JinHybrid and TopTwo, written from their definitions.

As in `twins`, nothing is warm-started and no algebra is done ahead; the Jin twin keeps its last weights
until the next observation only because it is two nested root finders.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import brentq

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


class JinTwin(Twin):
    """Log-barrier and Tsallis entropy: a root finder for the multiplier, and in it one for every weight."""

    def __init__(self, arms: int, barrier: float, theta: float, horizon: int | None) -> None:
        super().__init__(arms)
        self.barrier, self.theta, self.horizon = barrier, theta, horizon
        self.sums: Floats = np.zeros(arms)
        self.weights: Floats | None = None

    @property
    def eta(self) -> float:
        raise NotImplementedError("every arm has a rate of its own")

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
            self.sums + np.maximum(self.exploitation_law(), floor) ** (2 / 3) / self.exploration_law()
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
        return np.array([weight(float(gap) + level, rate) for gap, rate in zip(gaps, rates, strict=True)])

    # No weight exceeds 1, and the largest is at least 1 / K.
    arms = len(gaps)
    lowest, highest = barrier, barrier * arms + max(rates) * arms ** (1 / 3)
    level = brentq(
        lambda s: math.fsum(weights(s)) - 1, lowest, highest * (1 + 1e-9), xtol=1e-300, rtol=1e-15
    )
    return weights(level)


class TopTwoTwin(Twin):
    """EB-TC_eps: all losses are kept in lists, every duel in a list of (leader, challenger, explored)."""

    def __init__(self, arms: int, epsilon: float, beta: float) -> None:
        super().__init__(arms)
        self.epsilon, self.beta = epsilon, beta
        self.seen: dict[int, list[float]] = {}  # in the order of first observations
        self.arms = list(range(arms))
        self.duels: list[tuple[int, int, int]] = []

    @property
    def eta(self) -> float:
        raise NotImplementedError("there is no learning rate")

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
        return (self.mean(arm) - self.mean(best) + self.epsilon) / math.sqrt(1 / counts[0] + 1 / counts[1])

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


@twin_for("AvnerExp3")
def avner_twin(policy: Any, arms: int) -> Twin:
    return AvnerTwin(arms, policy.horizon, policy.mixing)


@twin_for("JinHybrid")
def jin_twin(policy: Any, arms: int) -> Twin:
    return JinTwin(arms, policy.barrier, policy.theta, policy.horizon)


@twin_for("TopTwo")
def top_two_twin(policy: Any, arms: int) -> Twin:
    return TopTwoTwin(arms, policy.epsilon, policy.beta)
