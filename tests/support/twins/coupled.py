"""Slow, obvious twins of the policies of the standard game, in the manner of `twins`.

The arm played is the arm seen, so both laws are one. That law is asked for often and found by slow
integrals, so a twin remembers the last one, under everything that it depends on.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import quad
from scipy.special import betainc

from support.twins import Floats, Twin, twin_for
from support.twins.tsallis import tsallis_law_by_brentq


class CoupledTwin(Twin):
    """One law, remembered."""

    def __init__(self, arms: int, c: float = 1.0) -> None:
        super().__init__(arms, c)
        self.last: tuple[object, Floats] = (None, np.zeros(0))

    @abstractmethod
    def law(self) -> Floats: ...

    def known(self) -> object:
        return self.estimates.tobytes(), self.round

    def exploitation_law(self) -> Floats:
        if self.last[0] != self.known():
            self.last = (self.known(), self.law())
        return self.last[1]

    def exploration_law(self) -> Floats:
        return self.exploitation_law()


class CoupledFTPLTwin(CoupledTwin):
    """Follow the perturbed leader: every arm gets its draw, and so it does in every resampling."""

    knows_propensity = False

    def __init__(
        self, arms: int, perturbation: str, resampling: str, alpha: float, c: float
    ) -> None:
        super().__init__(arms, c)
        self.perturbation, self.resampling, self.alpha = perturbation, resampling, alpha

    @property
    def eta(self) -> float:
        return self.c * math.pow(self.problem_arms, 1 / self.alpha - 1 / 2) / math.sqrt(self.round)

    def law(self) -> Floats:
        return leader_law_by_quad(self.eta * self.gaps(), self.alpha, self.perturbation)

    def ranks(self) -> list[int]:
        """1 for the smallest estimate; equal estimates in the order of their arms."""
        by_estimate = sorted(range(len(self.estimates)), key=lambda arm: (self.estimates[arm], arm))
        return [1 + by_estimate.index(arm) for arm in range(len(self.estimates))]

    def multipliers(self) -> Floats:
        """The factor of the number of draws: the arm's rank, or 1."""
        return np.array(
            self.ranks() if self.resampling == "conditional" else [1] * len(self.estimates)
        )

    def estimate_variance(self, losses: Floats) -> Floats:
        # W = s * M with M geometric of chance s * w, so the mean of W^2 is (2 - s w) / w^2.
        w = self.exploration_law()
        variance: Floats = losses**2 * ((2 - self.multipliers() * w) / w - 1)
        return variance

    def perturbations(self, generator: np.random.Generator) -> Floats:
        uniforms = 1 - generator.random(len(self.estimates))
        tails = uniforms if self.perturbation == "pareto" else -np.log(uniforms)
        r: Floats = tails ** (-1 / self.alpha)
        return r

    def wins_again(self, arm: int, generator: np.random.Generator) -> bool:
        """One resampling draw: of every arm, and then the swap."""
        r = self.perturbations(generator)
        if self.resampling == "conditional":
            ranks = np.array(self.ranks())
            up_to = np.flatnonzero(ranks <= ranks[arm])
            largest = up_to[r[up_to].argmax()]
            r[arm], r[largest] = r[largest], r[arm]
        return bool(np.argmin(self.gaps() - r / self.eta) == arm)


class CoupledTsallisTwin(CoupledTwin):
    """Tsallis-INF with beta = 1/2: w = 4 (eta (L - x))^-2; baselines as in the paper."""

    def __init__(self, arms: int, reduced: bool, c: float) -> None:
        super().__init__(arms, c)
        self.reduced = reduced

    @property
    def eta(self) -> float:
        return self.c / math.sqrt(self.round)

    def law(self) -> Floats:
        return tsallis_law_by_brentq(self.estimates, self.eta, 1 / 2)

    def baseline(self) -> Floats:
        b: Floats = np.where(self.exploration_law() >= self.eta**2, 0.5 * self.reduced, 0.0)
        return b

    def update(self, arm: int, weight: float, loss: float) -> None:
        b = self.baseline()
        played = np.arange(len(self.estimates)) == arm
        self.observations += 1
        self.estimates = self.estimates + (played * (loss - b) * weight + b)

    def replay(self, arm: int, weight: float, loss: float) -> None:
        Twin.update(self, arm, weight, loss)

    def estimate_variance(self, losses: Floats) -> Floats:
        variance: Floats = (losses - self.baseline()) ** 2 * (1 / self.exploration_law() - 1)
        return variance


class CoupledExp3Twin(CoupledTwin):
    """Exponential weights: a softmax."""

    @property
    def eta(self) -> float:
        return self.c * math.sqrt(math.log(self.problem_arms) / (self.problem_arms * self.round))

    def law(self) -> Floats:
        w = np.exp(-self.eta * self.gaps())
        law: Floats = w / w.sum()
        return law


class ListTwin(CoupledTwin):
    """All losses of every arm, in lists."""

    def __init__(self, arms: int, c: float = 1.0) -> None:
        super().__init__(arms, c)
        self.seen: list[list[float]] = [[] for _ in range(arms)]

    def known(self) -> object:
        return [list(losses) for losses in self.seen], self.round

    def update(self, arm: int, weight: float, loss: float) -> None:
        self.observations += 1
        self.seen[arm].append(loss)

    def restricted(self, places: Sequence[int]) -> "ListTwin":
        part = type(self)(len(places), self.c)
        part.seen = [self.seen[place] for place in places]
        part.observations = self.observations
        return part


class UCB1Twin(ListTwin):
    """The arm whose mean may be the lowest."""

    def law(self) -> Floats:
        wide = [
            math.sqrt(self.c * math.log(self.observations) / len(x)) if x else 0.0
            for x in self.seen
        ]
        index = [
            sum(x) / len(x) - w if x else -math.inf for x, w in zip(self.seen, wide, strict=True)
        ]
        leads = np.array([each == min(index) for each in index], np.float64)
        law: Floats = leads / leads.sum()
        return law


class ThompsonTwin(ListTwin):
    """Beta posteriors; the law is a sum over a fine grid of log odds, where all densities are smooth."""

    knows_propensity = False

    def law(self) -> Floats:
        odds = np.arange(-42, 42, 0.02)
        above, density = [], []
        for losses in self.seen:
            a, b = 1 + sum(losses), 1 + sum(1 - loss for loss in losses)
            above.append(betainc(b, a, 1 / (1 + np.exp(odds))))
            constant = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
            # f(x) dx = f(x) x (1 - x) d odds
            density.append(
                np.exp(constant - a * np.log1p(np.exp(-odds)) - b * np.log1p(np.exp(odds)))
            )
        rivals = [np.prod(above[:i] + above[i + 1 :], axis=0) for i in range(len(above))]
        return np.array([0.02 * (f * rest).sum() for f, rest in zip(density, rivals, strict=True)])


def leader_law_by_quad(shifts: ArrayLike, alpha: float, perturbation: str) -> Floats:
    """w_i = integral of f(z + v_i) prod_{j != i} F(z + v_j) dz, in s = log z and piece by piece.

    Frechet: F(x) = exp(-x^-alpha), x > 0. Pareto: F(x) = 1 - x^-alpha, x > 1. Past the last point a
    chance of 1e-14 is left, and below the first one of exp(-45), or none.
    """
    v = [float(shift) for shift in np.asarray(shifts)]
    pareto = perturbation == "pareto"

    def below(x: float) -> float:
        return 1 - math.pow(x, -alpha) if pareto else math.exp(-math.pow(x, -alpha))

    def integrand(s: float, i: int) -> float:
        z = math.exp(s)
        density = alpha * math.pow(z + v[i], -alpha - 1) * (1 if pareto else below(z + v[i]))
        return z * density * math.prod(below(z + v[j]) for j in range(len(v)) if j != i)

    low = 0.0 if pareto else -math.log(45) / alpha
    high = math.log(1e14 * len(v)) / alpha
    # The integrand bends where the best draw lies, and where z is about as large as a shift.
    bends = {0.0, math.log(len(v)) / alpha, *(math.log(shift) for shift in v if shift > 0)}
    points = [low, *sorted(bend for bend in bends if low < bend < high), high]

    def chance(i: int) -> float:
        parts = [
            quad(integrand, a, b, args=(i,), epsabs=1e-14, epsrel=1e-12)[0]
            for a, b in pairwise(points)
        ]
        return math.fsum(parts)

    return np.array([chance(i) for i in range(len(v))])


@twin_for("CoupledFTPL")
def coupled_ftpl_twin(policy: Any, arms: int) -> Twin:
    return CoupledFTPLTwin(arms, policy.perturbation, policy.resampling, policy.alpha, policy.c)


@twin_for("CoupledTsallisINF")
def coupled_tsallis_twin(policy: Any, arms: int) -> Twin:
    reduced = policy.estimator == "reduced-variance"
    return CoupledTsallisTwin(arms, reduced, policy.c or (4.0 if reduced else 2.0))


@twin_for("CoupledExp3")
def coupled_exp3_twin(policy: Any, arms: int) -> Twin:
    return CoupledExp3Twin(arms, policy.c)


@twin_for("UCB1")
def ucb1_twin(policy: Any, arms: int) -> Twin:
    return UCB1Twin(arms, policy.c)


@twin_for("ThompsonSampling")
def thompson_twin(policy: Any, arms: int) -> Twin:
    return ThompsonTwin(arms)
