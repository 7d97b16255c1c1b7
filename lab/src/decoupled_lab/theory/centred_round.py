"""One round of the centred estimator in the terms of lemma L5: every quantity, computed exactly."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from decoupled.base import Floats, Ints
from decoupled.extend import winner_law

from .bounds.gates import HALF, Gate
from .moment import Moment
from .potential import Potential, divergence, potential


@dataclass(frozen=True, eq=False)
class CentredRound:
    """The state before a round, the losses of all arms in it, and the estimator's parameters.

    `moment` holds the state at the exploitation rate eta, of the first rung if there are several; `eps` is the
    exploration rate, at most eta; `mean` is B; `rungs` are exploitation rates, of which the smallest is eta.
    """

    moment: Moment
    eps: float
    mean: float
    losses: Floats
    gate: Gate = HALF
    rungs: Sequence[float] = ()

    @cached_property
    def ranks(self) -> Ints:
        """1 for the smallest estimate; ties are split by the arm's number, as the lemma allows."""
        ranks = np.empty(self.moment.arms, np.int64)
        ranks[np.argsort(self.moment.estimates, kind="stable")] = np.arange(1, self.moment.arms + 1)
        return ranks

    def _surrogates(self, rate: float) -> Floats:
        alpha = self.moment.alpha
        level = np.maximum(1.0 + rate * self.moment.gaps, self.ranks ** (1.0 / alpha))
        q: Floats = level ** (-0.5 * (alpha + 1.0))
        return q

    @cached_property
    def q(self) -> Floats:
        """The surrogates at the exploitation rate."""
        return self._surrogates(self.moment.eta)

    @cached_property
    def explored(self) -> Floats:
        """The surrogates at the exploration rate."""
        return self._surrogates(self.eps)

    @property
    def explored_sum(self) -> float:
        """Their sum, Q."""
        return float(self.explored.sum())

    @cached_property
    def p(self) -> Floats:
        """The exploration probabilities."""
        p: Floats = self.explored / self.explored.sum()
        return p

    @cached_property
    def b(self) -> Floats:
        """The baselines that the gate allows."""
        limit = self.p / self.moment.eta * (self.gate.a + self.gate.delta * self.moment.shifts)
        b: Floats = np.minimum(self.mean, limit)
        return b

    @cached_property
    def d(self) -> Floats:
        """What the baselines lack, B - b."""
        return self.mean - self.b

    @property
    def late(self) -> bool:
        """Whether eta (Q + 1) <= zeta, from where on theorem C uses self-bounding."""
        return self.moment.eta * (self.explored_sum + 1.0) <= self.moment.zeta

    @cached_property
    def rung_laws(self) -> Floats:
        """The exploitation probabilities of every rung, one row each."""
        return np.array(
            [winner_law(rate * self.moment.gaps, self.moment.alpha, False) for rate in self.rungs]
        )

    def jump(self, arm: int, losses: Floats) -> Potential:
        """The potential after this arm's observation, from the scaled losses given."""
        after = losses.copy()
        after[arm] += self.moment.eta * (self.losses[arm] - self.b[arm]) / self.p[arm]
        return potential(after, self.moment.alpha)

    @cached_property
    def stability(self) -> float:
        """E[D_t / eta_t], exactly: the divergence after every possible observation, weighted by its probability."""
        eta = self.moment.eta
        before = potential(self.moment.shifts, self.moment.alpha)
        drifted = self.moment.shifts + eta * (self.b - self.mean)  # all arms less the common B
        costs = [divergence(self.jump(arm, drifted), before) for arm in range(self.moment.arms)]
        return float(self.p @ costs) / eta
