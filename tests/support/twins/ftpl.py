"""Twins of FTPL: every arm gets its draw, and ranks come from a full sort."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import quad

from support.twins import Floats, Ints, Twin, twin_for


class FTPLTwin(Twin):
    """Follow the perturbed leader: every arm gets its Pareto draw, ranks come from a full sort."""

    def __init__(self, arms: int, alpha: float = 3.0, c: float = 2.0) -> None:
        super().__init__(arms, c)
        self.alpha = alpha

    @property
    def eta(self) -> float:
        return self.c * math.pow(self.problem_arms, 1 / self.alpha - 1 / 2) / math.sqrt(self.round)

    def ranks(self) -> Ints:
        """1 for the smallest estimate; equal estimates in the order of their arms."""
        ranks = np.empty(len(self.estimates), np.int64)
        by_estimate = sorted(range(len(ranks)), key=lambda arm: (self.estimates[arm], arm))
        ranks[by_estimate] = np.arange(1, len(ranks) + 1)
        return ranks

    def rank_surrogates(self) -> Floats:
        """The paper's q, where ranks settle ties by the arms' numbers."""
        by_gap = 1 / (1 + self.eta * self.gaps())
        by_rank = self.ranks() ** (-1 / self.alpha)
        q: Floats = np.minimum(by_gap, by_rank) ** ((self.alpha + 1) / 2)
        return q

    def shared_among_ties(self, values: Floats) -> Floats:
        """For each arm the mean over all arms that have its estimate."""
        order = np.argsort(self.estimates, kind="stable")
        ranked, shared = self.estimates[order], np.empty_like(values)
        for tied in np.split(order, 1 + np.flatnonzero(ranked[1:] != ranked[:-1])):
            shared[tied] = values[tied].mean()
        return shared

    def surrogates(self) -> Floats:
        return self.shared_among_ties(self.rank_surrogates())

    def exploration_law(self) -> Floats:
        q = self.surrogates()
        law: Floats = q / q.sum()
        return law

    def exploitation_law(self) -> Floats:
        return pareto_law_by_quad(self.eta * self.gaps(), self.alpha)

    def draw_exploits(self, count: int, generator: np.random.Generator) -> Ints:
        """Perturb every arm, `count` times over."""
        uniforms = 1 - generator.random((count, len(self.estimates)))
        perturbations = uniforms ** (-1 / self.alpha)
        winners: Ints = np.argmin(self.gaps() - perturbations / self.eta, axis=1)
        return winners


class StrataTwin(FTPLTwin):
    """The same, but a decision multiplies by an estimate of sum q that is drawn apart from the arm."""

    knows_propensity = False

    def strata(self) -> list[Floats]:
        """Q by rank, cut: the stratum from rank r on, counted from 1, has half of r ranks, but one at least."""
        return cut_into_strata(np.sort(self.rank_surrogates())[::-1])

    def second_moment_of_weights(self) -> Floats:
        """E[weight^2; the arm is explored]."""
        strata = self.strata()
        whole = sum(q.sum() for q in strata)
        spread = sum(len(q) ** 2 * q.var() for q in strata)
        second: Floats = (1 + spread / whole**2) / self.exploration_law()
        return second

    def estimate_variance(self, losses: Floats) -> Floats:
        variance: Floats = losses**2 * (self.second_moment_of_weights() - 1)
        return variance


def cut_into_strata(by_rank: Floats) -> list[Floats]:
    """The ranks 1, 2, 3, 4-5, 6-8, 9-12, ... of what is given by rank."""
    cut, r = [], 1
    while r <= len(by_rank):
        cut.append(by_rank[r - 1 : r - 1 + max(1, r // 2)])
        r += len(cut[-1])
    return cut


def pareto_law_by_quad(shifts: ArrayLike, alpha: float) -> Floats:
    """w_i = integral_1^inf f(z + v_i) prod_{j != i} F(z + v_j) dz, with s = 1/z and one `quad` an arm."""
    v = [float(shift) for shift in np.asarray(shifts)]

    def integrand(s: float, i: int) -> float:
        # f(z + v) dz = alpha (z + v)^-(alpha + 1) dz, and (z + v) = (1 + s v) / s.
        value = alpha * math.pow(s, alpha - 1) * math.pow(1 + s * v[i], -alpha - 1)
        for j in range(len(v)):
            if j != i:
                value *= 1 - math.pow(s / (1 + s * v[j]), alpha)
        return value

    # The integrand bends where z is about as large as a shift.
    bends = sorted({1 / (1 + shift) for shift in v if shift > 0}) or None

    def chance(i: int) -> float:
        return quad(
            integrand, 0, 1, args=(i,), points=bends, epsabs=1e-12, epsrel=1e-11, limit=200
        )[0]

    return np.array([chance(i) for i in range(len(v))])


@twin_for("FTPL")
def ftpl_twin(policy: Any, arms: int) -> Twin:
    return (StrataTwin if policy.ranking == "strata" else FTPLTwin)(arms, policy.alpha, policy.c)
