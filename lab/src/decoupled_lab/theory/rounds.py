"""One round of the centred estimator (lemma L5) and of `Ladder` (theorem T2), computed exactly."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from decoupled.base import Floats, Ints
from decoupled.extend import winner_law

from .bounds.constants import HALF, Gate
from .bounds.ladder import RECORD, Numbers
from .moment import Moment, Potential, divergence, potential


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
        return np.asarray(level ** (-0.5 * (alpha + 1.0)))

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
        return np.asarray(self.explored / self.explored.sum())

    @cached_property
    def b(self) -> Floats:
        """The baselines that the gate allows."""
        limit = self.p / self.moment.eta * (self.gate.a + self.gate.delta * self.moment.shifts)
        return np.minimum(self.mean, limit)

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
        shifts = (rate * self.moment.gaps for rate in self.rungs)
        return np.array([winner_law(each, self.moment.alpha, False) for each in shifts])

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


_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(24)
# Panels in (0, 1) that shrink towards 1, where an arm that is far behind has all that it can win.
_ENDS = np.concatenate(([0.0], 1.0 - 4.0 ** -np.arange(1.0, 13.0), [1.0]))
_HALVES = 0.5 * np.diff(_ENDS)
_AT = (_ENDS[:-1, None] + _HALVES[:, None] * (1.0 + _NODES)).ravel()
_SHARES = (_HALVES[:, None] * _NODE_WEIGHTS).ravel()


def squared_chances(shifts: Floats, alpha: float) -> Floats:
    r"""The mean square of the probability that an arm wins, given the draws of all others: $\mathbb E \hat w_i^2$.

    With $G_i$ of lemma L3 it is $2 \alpha \int_1^\infty z^{-2 \alpha - 1} G_i(z) dz$, and $z = (1 + y_i) / t$.

    >>> import numpy as np
    >>> from decoupled_lab.theory.rounds import squared_chances
    >>> squared_chances(np.zeros(3), 3.0).round(6).tolist()  # the least of two uniform variables, squared
    [0.166667, 0.166667, 0.166667]
    """
    found = np.empty(len(shifts))
    for arm, shift in enumerate(shifts):
        excess = (1.0 + shift) / _AT - shift - 1.0  # above the leader's least score
        rivals = 1.0 - (1.0 + excess[:, None] + np.delete(shifts, arm)) ** -alpha
        kept = _SHARES * _AT ** (2.0 * alpha - 1.0) * rivals.prod(axis=1)
        found[arm] = 2.0 * alpha * (1.0 + shift) ** (-2.0 * alpha) * float(kept.sum())
    return found


def shown_arms(
    leaders: Sequence[int], challengers: Sequence[int], weights: Floats, arms: int
) -> Floats:
    """v: what the leaders and their challengers have of their share, by the weights of the rungs on means.

    Without a memory there is one of each. With one there are two leaders, a challenger of each, and the recent one.

    >>> import numpy as np
    >>> from decoupled_lab.theory.rounds import shown_arms
    >>> shown_arms([0], [1], np.array([1.0]), 3).tolist()
    [0.5, 0.5, 0.0]
    >>> shown_arms([0, 1], [2, 2, 0], np.array([0.3, 0.3]), 3).tolist()  # chi = 1/2; arms that coincide add up
    [0.375, 0.25, 0.375]
    """
    parts = [0.5, 0.5] if leaders else []
    if len(leaders) > 1:
        chi = 0.25 + 0.5 * float(weights[1]) / max(float(weights.sum()), 1e-300)
        parts = [0.5 * (1.0 - chi), 0.5 * chi, 0.375 * (1.0 - chi), 0.375 * chi, 0.125]
    shown = np.zeros(arms)
    for arm, part in zip((*leaders, *challengers), parts, strict=True):
        shown[arm] += part
    return shown


@dataclass(frozen=True, eq=False, kw_only=True)
class LadderRound(CentredRound):
    """The state of a ladder from its second round on, and the losses of all arms in it.

    `mean` is B. `least` is a, the least loss seen; `unit` is r, the largest surprise; `weights` are those of the rungs,
    `leaders` the arms of those on means, which come last, and `rungs` the rates of the others. `shown` is v, which sums to
    1. `kept` is the law of exploration of a decision that arrives in this state; None if it was made here.
    """

    numbers: Numbers
    least: float
    unit: float
    weights: Floats
    leaders: tuple[int, ...]
    shown: Floats
    kept: Floats | None = None

    @property
    def range(self) -> float:
        """The range of the gate, B - a."""
        return self.mean - self.least

    @cached_property
    def q(self) -> Floats:
        """The surrogates; tied arms share theirs."""
        return self.moment.surrogates

    @property
    def explored(self) -> Floats:
        """The same: the first rung has the rate of exploration."""
        return self.q

    @property
    def lent(self) -> float:
        """tau, the share of the leaders and their challengers."""
        policy, by_means = self.numbers.policy, float(self.weights[len(self.rungs) :].sum())
        return policy.top_two_share * max(by_means, policy.top_two_floor)

    @cached_property
    def base(self) -> Floats:
        """The exploration without the share of the leaders and their challengers."""
        gamma = self.numbers.policy.uniform_share
        own = (1.0 - gamma) * (1.0 - self.lent) * self.q / self.q.sum()
        return np.asarray(own + gamma / self.moment.arms)

    @cached_property
    def p(self) -> Floats:
        """The exploration probabilities, of the decision if it was made in another state."""
        p: Floats = self.base + (1.0 - self.numbers.policy.uniform_share) * self.lent * self.shown
        return p if self.kept is None else self.kept

    def gated(self, p: Floats) -> Floats:
        """The baselines that the gate allows where arms are explored with probabilities p."""
        if self.unit == 0.0:
            return np.full(self.moment.arms, self.mean)
        fall = (1.0 + self.moment.shifts) / (2.0 * self.moment.eta)
        return np.minimum(self.mean, self.least + p * fall)

    @cached_property
    def b(self) -> Floats:
        """The baselines."""
        return self.gated(self.p)

    @cached_property
    def d(self) -> Floats:
        """What the baselines lack of the highest."""
        return np.asarray(self.b.max() - self.b)

    @cached_property
    def drift(self) -> float:
        """delta, what the drift of the baselines adds to n."""
        missing = self.b.max() - self.gated(self.base)
        unit = 4.0 * min(1.0, 2.0 * self.unit) * math.pow(self.moment.arms, -2.0 / 3.0)
        return unit * float((self.q**2) @ missing)

    # Losses: what was not yet seen, and the rest.

    @property
    def surprises(self) -> Floats:
        """By how much the loss of every arm differs from its baseline."""
        return np.abs(self.losses - self.b)

    @property
    def lows(self) -> Floats:
        """By how much a loss is below all that was seen."""
        return np.maximum(self.least - self.losses, 0.0)

    @property
    def highs(self) -> Floats:
        """By how much a loss is above B + r."""
        return np.maximum(self.losses - self.mean - self.unit, 0.0)

    @property
    def records(self) -> Floats:
        """The surprises upwards that are records."""
        records = (self.losses >= self.b) & (self.surprises > RECORD * self.unit)
        return np.where(records, self.surprises, 0.0)

    @property
    def plain(self) -> Floats:
        """The surprises without records, and without what is below all that was seen."""
        fall = np.maximum(self.b - np.maximum(self.losses, self.least), 0.0)
        return np.where(self.losses >= self.b, self.surprises * (self.records == 0.0), fall)

    @property
    def unseen(self) -> float:
        """What losses beyond all that was seen add to the stability of the round, by lemma L10."""
        law = self.moment.moments.law
        beyond = float(law @ self.highs) + self.numbers.record_factor * float(law @ self.records)
        return float(self.lows.sum()) + beyond

    @cached_property
    def chances(self) -> Floats:
        """E w_hat^2 of every perturbed rung, one row each."""
        shifts = (rate * self.moment.gaps for rate in self.rungs)
        return np.array([squared_chances(each, self.moment.alpha) for each in shifts])
