"""One round of FTPL as the proofs see it: everything they name, computed exactly."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..base.arrays import Bools, Floats, Ints
from ..kernels.laws.winner_moments import Moments, moved_law, winner_moments


@dataclass(frozen=True, eq=False)
class Moment:
    """The state in one round, and what follows from it.

    `best` is the arm that the proofs call i*; a `round` of 0 says that there is no round, only a state.
    """

    estimates: Floats
    eta: float
    alpha: float
    best: int = 0
    zeta: float = 0.1
    round: int = 0

    @property
    def arms(self) -> int:
        """K."""
        return len(self.estimates)

    @cached_property
    def gaps(self) -> Floats:
        """The estimates less the smallest."""
        gaps: Floats = self.estimates - self.estimates.min()
        return gaps

    @cached_property
    def shifts(self) -> Floats:
        """Eta times the gaps."""
        return self.eta * self.gaps

    @cached_property
    def others(self) -> Bools:
        """All arms but the best one."""
        others: Bools = np.arange(self.arms) != self.best
        return others

    @cached_property
    def ranks(self) -> Ints:
        """How many arms have an estimate no larger: of equal ones each has the last rank, where the proofs are sharpest."""
        ranks: Ints = np.searchsorted(np.sort(self.estimates), self.estimates, side="right")
        return ranks

    @cached_property
    def surrogates(self) -> Floats:
        """Q, equation (7); arms with equal estimates share what their ranks allow evenly."""
        order = np.argsort(self.estimates, kind="stable")
        limit = np.minimum(
            1.0 / (1.0 + self.shifts[order]), np.arange(1.0, self.arms + 1) ** (-1.0 / self.alpha)
        )
        by_rank = limit ** (0.5 * (self.alpha + 1.0))
        _, tie = np.unique(self.estimates, return_inverse=True)
        q: Floats = (np.bincount(tie[order], by_rank) / np.bincount(tie))[tie]
        return q

    @cached_property
    def surrogate_sum(self) -> float:
        """The sum of q."""
        return float(self.surrogates.sum())

    @cached_property
    def exploration(self) -> Floats:
        """P, equation (7)."""
        return self.surrogates / self.surrogate_sum

    @cached_property
    def moments(self) -> Moments:
        """W, its slopes, and the moments of the winning draw."""
        return winner_moments(self.shifts, self.alpha, False)

    @cached_property
    def stability(self) -> Floats:
        """E[hat_l_i (phi_i(eta hat_L_t) - phi_i(eta hat_L_{t+1})) | hat_L_t] at a loss of 1, where it is largest.

        The arm is explored with probability p and its estimate then grows by 1/p: the two cancel.
        """
        moves = self.eta / self.exploration
        return self.moments.law - moved_law(self.shifts, moves, self.alpha, False)

    @cached_property
    def event_sum(self) -> float:
        """The sum that defines D_t, equation (10).

        Each term is written so that an arm without a gap adds exactly 1/2.
        """
        terms = (1.0 + 2.0 ** (-1.0 / self.alpha) * self.shifts[self.others]) ** -self.alpha
        return 0.5 * float(terms.sum())

    @property
    def on_event(self) -> bool:
        """Whether D_t holds with the strict inequality, which is what the lemmas need."""
        return self.event_sum < 0.5 and float(self.gaps[self.best]) == 0.0

    @property
    def on_event_as_printed(self) -> bool:
        """Whether D_t holds as the paper writes it, with <= 1/2."""
        if self.gaps[self.best] > 0.0:
            # Some rival leads and adds exactly 1/2; every further rival adds more, if only by less
            # than a rounding error.
            return self.arms == 2
        return self.event_sum <= 0.5
