"""The slow, obvious twins of FTPL with centred losses and two rates."""

import math
from typing import Any

import numpy as np

from support.twins import Floats, twin_for
from support.twins.ftpl import FTPLTwin, StrataTwin, pareto_law_by_quad


class CentredFTPLTwin(FTPLTwin):
    """hat_l(i) = b_i + 1[j = i] (loss - b_i) / p_i, b_i = B if p_i >= gate * eta, else 0; the leader at its own rate."""

    def __init__(self, arms: int, policy: Any) -> None:
        super().__init__(arms, policy.alpha, policy.c)
        self.exploit_c = policy.c if policy.exploit_c is None else policy.exploit_c
        self.gate, self.mean_rate = policy.gate, policy.mean_rate
        self.schedule = policy.schedule
        self.mean = 0.5
        self.spread = 0.0

    @property
    def eta(self) -> float:
        passed = 1 + self.spread if self.schedule == "losses" else self.round
        return self.c * math.pow(self.problem_arms, 1 / self.alpha - 1 / 2) / math.sqrt(passed)

    @property
    def eta_exploit(self) -> float:
        eta: float = self.eta * self.exploit_c / self.c
        return eta

    def exploitation_law(self) -> Floats:
        return pareto_law_by_quad(self.eta_exploit * self.gaps(), self.alpha)

    def baseline(self) -> Floats:
        covered = self.exploration_law() >= self.gate * self.eta
        b: Floats = np.where(covered, self.mean, 0.0)
        return b

    def learn(self, arm: int, weight: float, loss: float, b: Floats) -> None:
        estimate = b.copy()
        estimate[arm] += weight * (loss - b[arm])
        self.estimates = self.estimates + estimate
        self.spread += (loss - self.mean) ** 2 / 0.25
        self.mean += self.mean_rate * (loss - self.mean)
        self.observations += 1

    def update(self, arm: int, weight: float, loss: float) -> None:
        self.learn(arm, weight, loss, self.baseline())

    def replay(self, arm: int, weight: float, loss: float) -> None:
        self.learn(arm, weight, loss, np.zeros(len(self.estimates)))

    def estimate_variance(self, losses: Floats) -> Floats:
        variance: Floats = (losses - self.baseline()) ** 2 * (1 / self.exploration_law() - 1)
        return variance


class CentredStrataTwin(CentredFTPLTwin, StrataTwin):
    """The same in strata: the gate uses the envelope's sum instead of that of q, and covers at most 64 ranks and no partial tie."""

    def baseline(self) -> Floats:
        envelope = sum(len(each) * each[0] for each in self.strata())
        covered = self.surrogates() >= self.gate * self.eta * envelope
        last_ranks = np.array([(self.estimates <= estimate).sum() for estimate in self.estimates])
        b: Floats = np.where(covered & (last_ranks <= 64), self.mean, 0.0)
        return b

    def estimate_variance(self, losses: Floats) -> Floats:
        variance: Floats = (losses - self.baseline()) ** 2 * (self.second_moment_of_weights() - 1)
        return variance


@twin_for("CentredFTPL")
def centred_twin(policy: Any, arms: int) -> CentredFTPLTwin:
    kind = CentredStrataTwin if policy.ranking == "strata" else CentredFTPLTwin
    return kind(arms, policy)
