"""A slow, obvious twin of the ladder: centred losses, a soft gate, and AdaHedge over exploitation rates.

Written from the recursion on the page "The ladder: theorems and proofs", line by line, and from no compiled code.
Nothing is cached and every arm gets its draw. `decide` shows everything that a round is made of, so that tests can
compare a policy with it or evaluate the lemmas along its path.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from support.twins import Floats, Ints
from support.twins.ftpl import pareto_law_by_quad

Law = Callable[[Floats, float], Floats]  # exploitation probabilities from scaled gaps and alpha


class Soft(NamedTuple):
    """b_i = min(B, p_i / eta_1 (a + delta eta_1 u_i)), at the first rung's rate."""

    a: float = 0.5
    delta: float = 0.5


class Hard(NamedTuple):
    """b_i = B where p_i >= kappa eps, and 0 elsewhere."""

    kappa: float = 0.1


HALF = Soft(0.5, 0.5)


@dataclass(frozen=True, eq=False)
class View:
    """What a round is made of before anything is drawn."""

    scale: float  # kap
    eps: float
    gaps: Floats
    ranks: Ints
    q: Floats
    p: Floats
    b: Floats
    mean: float  # B
    pi: Floats


@dataclass(frozen=True, eq=False)
class Decided:
    """A decision and the draws behind it."""

    exploit: int
    explore: int
    weight: float
    rung: int
    draws: Floats  # Pareto(alpha), one per arm, shared by the rungs
    view: View


class LadderTwin:
    """The ladder; `what` is "exact" (the probability w_j) or "cheap" (given the draws of the other arms)."""

    def __init__(
        self,
        arms: int,
        rng: np.random.Generator,
        *,
        alpha: float = 3.0,
        c: float = 0.5,
        rungs: Sequence[float] = (0.5, 8.0),
        prior: Sequence[float] = (0.05, 0.95),
        l0: float = 3.0,
        lam: float = 0.1,
        theta: float = 0.01,
        schedule: str = "losses",
        gate: Soft | Hard = HALF,
        what: str = "cheap",
        law: Law = pareto_law_by_quad,
    ) -> None:
        assert schedule in ("rounds", "losses")
        assert what in ("exact", "cheap")
        assert len(rungs) == len(prior)
        assert c <= min(rungs)
        self.arms, self.rng, self.alpha, self.c, self.rungs = arms, rng, alpha, c, tuple(rungs)
        self.prior: Floats = np.array(prior) / sum(prior)
        self.l0, self.lam, self.theta = l0, lam, theta
        self.schedule, self.gate, self.what, self.law = schedule, gate, what, law
        self.estimates: Floats = np.zeros(arms)
        self.mean = 0.5  # B
        self.spread = 0.0  # V
        self.rung_losses: Floats = np.zeros(len(rungs))  # H
        self.delta = 0.0  # Delta
        self.observations = 0

    @property
    def passed(self) -> float:
        """n_t."""
        if self.schedule == "rounds":
            return 1.0 + self.observations
        return 1.0 + self.spread + self.theta * self.observations

    def ranks(self, gaps: Floats) -> Ints:
        """1 for the smallest estimate; equal estimates in the order of their arms."""
        ranks = np.empty(self.arms, np.int64)
        ranks[sorted(range(self.arms), key=lambda arm: (gaps[arm], arm))] = np.arange(1, self.arms + 1)
        return ranks

    def view(self) -> View:
        scale = self.arms ** (1 / self.alpha - 1 / 2) / math.sqrt(self.passed)
        eps = self.c * scale
        gaps: Floats = self.estimates - self.estimates.min()
        ranks = self.ranks(gaps)
        limits = np.minimum(1 / (1 + eps * gaps), ranks ** (-1 / self.alpha))
        q: Floats = limits ** ((self.alpha + 1) / 2)
        p: Floats = q / q.sum()
        b = self.baselines(p, gaps, scale)
        return View(scale, eps, gaps, ranks, q, p, b, self.mean, self.mixture())

    def baselines(self, p: Floats, gaps: Floats, scale: float) -> Floats:
        if isinstance(self.gate, Hard):
            closed: Floats = np.where(p >= self.gate.kappa * self.c * scale, self.mean, 0.0)
            return closed
        eta = self.rungs[0] * scale
        b: Floats = np.minimum(self.mean, p / eta * (self.gate.a + self.gate.delta * eta * gaps))
        return b

    def mixture(self) -> Floats:
        ahead = self.rung_losses - self.rung_losses.min()
        pi: Floats = self.prior * (ahead == 0.0)
        if self.delta > 0.0:
            pi = self.prior * np.exp(-(self.l0 / self.delta) * ahead)
        law: Floats = pi / pi.sum()
        return law

    def scores(self, view: View, rung: int, draws: Floats) -> Floats:
        """r_i - c_m kap u_i; at an infinite rate only the leaders are left, and the draws split their tie."""
        if math.isinf(self.rungs[rung]):
            scores: Floats = np.where(view.gaps == 0.0, draws, -math.inf)
            return scores
        return draws - self.rungs[rung] * view.scale * view.gaps

    def rung_law(self, view: View, rung: int) -> Floats:
        """The exploitation probabilities of one rung."""
        if math.isinf(self.rungs[rung]):
            leads = view.gaps == 0.0
            law: Floats = leads / leads.sum()
            return law
        return self.law(self.rungs[rung] * view.scale * view.gaps, self.alpha)

    def decide(self) -> Decided:
        view = self.view()
        explore = int(self.rng.choice(self.arms, p=view.p))
        draws: Floats = (1 - self.rng.random(self.arms)) ** (-1 / self.alpha)
        rung = int(self.rng.choice(len(self.rungs), p=view.pi))
        exploit = int(np.argmax(self.scores(view, rung, draws)))
        return Decided(exploit, explore, 1 / float(view.p[explore]), rung, draws, view)

    def conditional_probability(self, view: View, rung: int, draws: Floats, arm: int) -> float:
        """The probability that the arm wins, given the draws of the other arms."""
        if math.isinf(self.rungs[rung]) and view.gaps[arm] > 0.0:
            return 0.0
        others = np.delete(self.scores(view, rung, draws), arm)
        own = 0.0 if math.isinf(self.rungs[rung]) else self.rungs[rung] * view.scale * float(view.gaps[arm])
        return float(max(1.0, float(others.max()) + own) ** -self.alpha)

    def estimated_losses(self, decided: Decided, loss: float) -> Floats:
        """g_m: an unbiased estimate of each rung's loss in this round, minus B."""
        view, j = decided.view, decided.explore
        d = view.mean - view.b
        found = np.empty(len(self.rungs))
        for rung in range(len(self.rungs)):
            if self.what == "exact":
                law = self.rung_law(view, rung)
                wins, missing = float(law[j]), float(law @ d)
            else:
                wins = self.conditional_probability(view, rung, decided.draws, j)
                missing = float(d[int(np.argmax(self.scores(view, rung, decided.draws)))])
            found[rung] = wins * (loss - view.b[j]) / view.p[j] - missing
        return found

    def update(self, decided: Decided, loss: float) -> Floats:
        """Learn from the loss of the explored arm; return the rungs' estimated losses."""
        view, j = decided.view, decided.explore
        g = self.estimated_losses(decided, loss)
        if self.delta > 0.0:
            # -(Delta / L0) ln sum pi exp(-(L0 / Delta) g), where pi may underflow.
            rate = self.l0 / self.delta
            logs = np.log(self.prior) - rate * (self.rung_losses - self.rung_losses.min())
            mix = (np.logaddexp.reduce(logs) - np.logaddexp.reduce(logs - rate * g)) / rate
        else:
            mix = (self.rung_losses + g).min() - self.rung_losses.min()
        self.delta += max(0.0, float(view.pi @ g) - float(mix))
        self.rung_losses = self.rung_losses + g
        estimate = view.b.copy()
        estimate[j] += (loss - view.b[j]) / view.p[j]
        self.estimates = self.estimates + estimate
        drift = float((view.mean - view.b) @ view.q**2)
        self.spread += 4 * (loss - view.b[j]) ** 2 + 4 * self.arms ** (1 / self.alpha - 1) * drift
        self.mean += self.lam * (loss - self.mean)
        self.observations += 1
        return g
