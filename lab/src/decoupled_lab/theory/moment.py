"""One round of FTPL in the terms of the proofs, and the potential of the perturbed leader, both exact."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from decoupled.base import Bools, Floats, Ints

from .probabilities import Moments, moved_law, winner_moments


@dataclass(frozen=True, eq=False)
class Moment:
    """The state in one round, and the quantities derived from it.

    `best` is the arm that the proofs call i*. A `round` of 0 means a state that belongs to no round.
    """

    estimates: Floats
    eta: float
    alpha: float
    best: int = 0
    zeta: float = 0.1
    round: int = 0

    @property
    def arms(self) -> int:
        """The number of arms, K."""
        return len(self.estimates)

    @cached_property
    def gaps(self) -> Floats:
        """The gaps u: the estimates minus the smallest one."""
        return np.asarray(self.estimates - self.estimates.min())

    @cached_property
    def shifts(self) -> Floats:
        """Eta times the gaps."""
        return self.eta * self.gaps

    @cached_property
    def others(self) -> Bools:
        """A mask of all arms except the best one."""
        return np.asarray(np.arange(self.arms) != self.best)

    @cached_property
    def ranks(self) -> Ints:
        """How many arms have an estimate no larger. Tied arms all get the last rank, where the proofs are tightest."""
        return np.searchsorted(np.sort(self.estimates), self.estimates, side="right")

    @cached_property
    def levels(self) -> Floats:
        """The larger of 1 + eta u and rank^(1/alpha), which lemmas L3 to L6 call m; tied arms have the last rank."""
        return np.asarray(np.maximum(1.0 + self.shifts, self.ranks ** (1.0 / self.alpha)))

    @cached_property
    def surrogates(self) -> Floats:
        """The surrogates q of equation (7); tied arms share the limits of their ranks evenly."""
        order = np.argsort(self.estimates, kind="stable")
        ranks = np.arange(1.0, self.arms + 1)
        limit = np.minimum(1.0 / (1.0 + self.shifts[order]), ranks ** (-1.0 / self.alpha))
        by_rank = limit ** (0.5 * (self.alpha + 1.0))
        _, tie = np.unique(self.estimates, return_inverse=True)
        return (np.bincount(tie[order], by_rank) / np.bincount(tie))[tie]

    @cached_property
    def surrogate_sum(self) -> float:
        """The sum of q."""
        return float(self.surrogates.sum())

    @cached_property
    def exploration(self) -> Floats:
        """The exploration probabilities p of equation (7)."""
        return self.surrogates / self.surrogate_sum

    @cached_property
    def moments(self) -> Moments:
        """The exploitation probabilities w, their slopes, and the moments of the winning draw."""
        return winner_moments(self.shifts, self.alpha, False)

    @cached_property
    def stability(self) -> Floats:
        """E[hat_l_i (phi_i(eta hat_L_t) - phi_i(eta hat_L_{t+1})) | hat_L_t] at a loss of 1, where it is largest.

        The arm is explored with probability p, and its estimate then grows by 1/p. The two cancel.
        """
        moves = self.eta / self.exploration
        return self.moments.law - moved_law(self.shifts, moves, self.alpha, False)

    @cached_property
    def event_sum(self) -> float:
        """The sum that defines D_t, equation (10).

        Each term is written so that an arm with gap 0 adds exactly 1/2.
        """
        terms = (1.0 + 2.0 ** (-1.0 / self.alpha) * self.shifts[self.others]) ** -self.alpha
        return 0.5 * float(terms.sum())

    @property
    def on_event(self) -> bool:
        """Whether D_t holds with the strict inequality that the lemmas need."""
        return self.event_sum < 0.5 and float(self.gaps[self.best]) == 0.0

    @property
    def on_event_as_printed(self) -> bool:
        """Whether D_t holds as the paper prints it, with <= 1/2."""
        if self.gaps[self.best] > 0.0:
            # Some rival leads and adds exactly 1/2. Every other rival adds more, even if by less than a
            # rounding error.
            return self.arms == 2
        return self.event_sum <= 0.5


class Potential(NamedTuple):
    """Phi at -losses, and the moments of the winner there; `moments.law` is its gradient."""

    losses: Floats
    value: float
    moments: Moments


def potential(losses: Floats, alpha: float) -> Potential:
    """Phi(-losses) for Pareto(alpha) perturbations: the mean winning draw minus the mean loss of the winner."""
    least = float(losses.min())
    shifts = losses - least
    moments = winner_moments(shifts, alpha, False)
    return Potential(
        losses, float(moments.prizes.sum()) - float(moments.law @ shifts) - least, moments
    )


def divergence(after: Potential, before: Potential) -> float:
    """The Bregman divergence D_Phi(-after, -before), at least 0. A common shift of all losses changes nothing."""
    moved = after.losses - before.losses
    common = float(np.median(moved))  # shifted out, so that a large common part loses no digits
    level = after.value - before.value + common
    return level + float(before.moments.law @ (moved - common))
