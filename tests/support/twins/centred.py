"""The slow, obvious twins of the composed policies: as published, and with centred losses and two rates."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from support.twins import Floats, Twin, twin_for
from support.twins.exp3 import Exp3Twin
from support.twins.ftpl import FTPLTwin, StrataTwin, pareto_law_by_quad
from support.twins.tsallis import TsallisTwin, tsallis_law_by_brentq


class Centring(Twin):
    """hat_l(i) = b_i + 1[j = i] (loss - b_i) / p_i, b_i = B if p_i >= kappa * eta, else 0."""

    def set_additions(self, policy: Any) -> None:
        self.c_exploit = policy.c if policy.c_exploit is None else policy.c_exploit
        self.centred = policy.estimator == "centred"
        self.kappa, self.lam = policy.kappa, policy.lam
        self.mean = 0.5
        self.spread = 0.0

    @property
    def eta_exploit(self) -> float:
        eta: float = self.eta * self.c_exploit / self.c
        return eta

    def baseline(self) -> Floats:
        covered = self.exploration_law() >= self.kappa * self.eta
        b: Floats = np.where(covered, self.mean, 0.0) * self.centred
        return b

    def learn(self, arm: int, weight: float, loss: float, b: Floats) -> None:
        estimate = b.copy()
        estimate[arm] += weight * (loss - b[arm])
        self.estimates = self.estimates + estimate
        self.spread += (loss - self.mean) ** 2 / 0.25
        self.mean += self.lam * (loss - self.mean)
        self.observations += 1

    def update(self, arm: int, weight: float, loss: float) -> None:
        self.learn(arm, weight, loss, self.baseline())

    def replay(self, arm: int, weight: float, loss: float) -> None:
        self.learn(arm, weight, loss, np.zeros(len(self.estimates)))

    def estimate_variance(self, losses: Floats) -> Floats:
        variance: Floats = (losses - self.baseline()) ** 2 * (1 / self.exploration_law() - 1)
        return variance


class CentredFTPLTwin(Centring, FTPLTwin):
    """The perturbed leader at its own rate."""

    def __init__(self, arms: int, policy: Any) -> None:
        super().__init__(arms, policy.alpha, policy.c)
        self.set_additions(policy)
        self.schedule = policy.schedule

    @property
    def eta(self) -> float:
        passed = 1 + self.spread if self.schedule == "losses" else self.round
        return self.c * math.pow(self.problem_arms, 1 / self.alpha - 1 / 2) / math.sqrt(passed)

    def exploitation_law(self) -> Floats:
        return pareto_law_by_quad(self.eta_exploit * self.gaps(), self.alpha)


class CentredTsallisTwin(Centring, TsallisTwin):
    """Two roots, one for each rate, each from nothing."""

    def __init__(self, arms: int, policy: Any) -> None:
        super().__init__(arms, policy.beta, policy.c)
        self.set_additions(policy)

    def exploitation_law(self) -> Floats:
        return tsallis_law_by_brentq(self.estimates, self.eta_exploit, self.beta)

    def exploration_law(self) -> Floats:
        p = tsallis_law_by_brentq(self.estimates, self.eta, self.beta) ** (1 - self.beta / 2)
        law: Floats = p / p.sum()
        return law


class CentredExp3Twin(Centring, Exp3Twin):
    """A softmax at each rate; the exploration law is the square root of the first."""

    def __init__(self, arms: int, policy: Any) -> None:
        super().__init__(arms, policy.c)
        self.set_additions(policy)

    def exploitation_law(self) -> Floats:
        w = np.exp(-self.eta_exploit * self.gaps())
        law: Floats = w / w.sum()
        return law


class CentredStrataTwin(CentredFTPLTwin, StrataTwin):
    """The same in strata: the gate uses the envelope's sum instead of that of q, and covers at most 64 ranks and no partial tie."""

    def baseline(self) -> Floats:
        envelope = sum(len(each) * each[0] for each in self.strata())
        covered = self.surrogates() >= self.kappa * self.eta * envelope
        last_ranks = np.array([(self.estimates <= estimate).sum() for estimate in self.estimates])
        b: Floats = np.where(covered & (last_ranks <= 64), self.mean, 0.0) * self.centred
        return b

    def estimate_variance(self, losses: Floats) -> Floats:
        variance: Floats = (losses - self.baseline()) ** 2 * (self.second_moment_of_weights() - 1)
        return variance


def centred_twin(arms: int, policy: Any) -> Centring:
    """The twin of a policy with additions."""
    if getattr(policy, "ranking", None) == "strata":
        return CentredStrataTwin(arms, policy)
    kinds: dict[str, Callable[[int, Any], Centring]] = {
        "FTPL": CentredFTPLTwin,
        "TsallisINF": CentredTsallisTwin,
        "Exp3": CentredExp3Twin,
    }
    return kinds[type(policy).__name__](arms, policy)


@twin_for("FTPL")
def ftpl_twin(policy: Any, arms: int) -> Twin:
    if not policy.published:
        return centred_twin(arms, policy)
    return (StrataTwin if policy.ranking == "strata" else FTPLTwin)(arms, policy.alpha, policy.c)


@twin_for("TsallisINF")
def tsallis_twin(policy: Any, arms: int) -> Twin:
    return (
        TsallisTwin(arms, policy.beta, policy.c) if policy.published else centred_twin(arms, policy)
    )


@twin_for("Exp3")
def exp3_twin(policy: Any, arms: int) -> Twin:
    return Exp3Twin(arms, policy.c) if policy.published else centred_twin(arms, policy)
