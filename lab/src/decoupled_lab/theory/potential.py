"""The potential of the perturbed leader, Phi(x) = E max_i (x_i + r_i), and its Bregman divergence."""

from typing import NamedTuple

import numpy as np

from decoupled.base import Floats
from decoupled.kernels.laws.winner_moments import Moments, winner_moments


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
    return Potential(losses, float(moments.prizes.sum()) - float(moments.law @ shifts) - least, moments)


def divergence(after: Potential, before: Potential) -> float:
    """The Bregman divergence D_Phi(-after, -before), at least 0. A common shift of all losses changes nothing."""
    moved = after.losses - before.losses
    common = float(np.median(moved))  # shifted out, so that a large common part loses no digits
    level = after.value - before.value + common
    return level + float(before.moments.law @ (moved - common))
