"""Integrals that the proofs rest on: slopes of the perturbed leader's law, mean winning draws, the law after a move.

Each is a sum over the nodes of `winner_law`: a row of a matrix here is a node, a column an arm. The nodes of `Moments`
reach further out, because a mean winning draw has a heavier tail than a probability.
"""

from typing import NamedTuple

import numpy as np

from decoupled.base import Floats
from decoupled.kernels.laws.winner_law import Grid, grid, winner_law

_FAR_TAIL = 1e-14


class Moments(NamedTuple):
    """One number per arm: the `law`, and integrals under it.

    `slopes` are d w_i / d v_i; `prizes` E[r_i; i wins]; `inverses` E[1 / r_i; i wins].
    """

    law: Floats
    slopes: Floats
    prizes: Floats
    inverses: Floats


def _power(excess: Floats, exponent: float) -> Floats:
    """(1 + excess) ** -exponent, accurate even for a small excess and a large exponent."""
    return np.asarray(np.exp(-exponent * np.log1p(excess)))


def _survival(excess: Floats, alpha: float, frechet: bool) -> Floats:
    """The probability that a draw exceeds 1 + excess."""
    tail = _power(excess, alpha)
    return -np.expm1(-tail) if frechet else tail


def _hazards(shifts: Floats, alpha: float, frechet: bool, at: Grid) -> tuple[Floats, Floats]:
    """The hazard f / F of every arm at every node, and the weight of each node times the product of all F."""
    excess = at.above[:, None] + shifts
    tail = _power(excess, alpha)
    hazards = alpha * tail / (1.0 + excess)
    if frechet:
        return hazards, at.weights * np.exp(-tail.sum(axis=1))
    return hazards / (1.0 - tail), at.weights * (1.0 - tail).prod(axis=1)


def winner_moments(shifts: Floats, alpha: float, frechet: bool) -> Moments:
    """All of `Moments` for shifts v = eta * gap, whose smallest is 0."""
    at = grid(len(shifts), alpha, frechet, _FAR_TAIL)
    hazards, shares = _hazards(shifts, alpha, frechet, at)
    # The largest hazard of a node stands apart from the sum of the others, in which their digits would be lost.
    node, peak = np.arange(len(hazards)), hazards.argmax(axis=1)
    smaller, largest = hazards.copy(), hazards[node, peak]
    smaller[node, peak] = 0.0
    rest = smaller.sum(axis=1)
    rivals = largest[:, None] + (rest[:, None] - smaller)
    rivals[node, peak] = rest
    wins = shares[:, None] * hazards
    levels = np.where(
        wins > 0.0, 1.0 + (at.above[:, None] + shifts), 1.0
    )  # an arm infinitely far behind never wins
    # Past the last panel no other arm matters, and f is alpha * z ** -(alpha + 1) for both families.
    past = at.last + shifts
    return Moments(
        wins.sum(axis=0) + _survival(past, alpha, frechet),
        -(wins * rivals).sum(axis=0),
        (wins * levels).sum(axis=0) + alpha / (alpha - 1.0) * _power(past, alpha - 1.0),
        (wins / levels).sum(axis=0) + alpha / (alpha + 1.0) * _power(past, alpha + 1.0),
    )


def moved_law(shifts: Floats, moves: Floats, alpha: float, frechet: bool) -> Floats:
    """The probability that arm i wins after its own shift, and no other, has grown by moves[i] >= 0."""
    at = grid(len(shifts), alpha, frechet)
    _, shares = _hazards(shifts, alpha, frechet, at)
    before = at.above[:, None] + shifts
    after = before + moves
    tail, own = _power(after, alpha), _power(before, alpha)
    densities = alpha * tail / (1.0 + after)
    densities = densities * np.exp(own - tail) if frechet else densities / (1.0 - own)
    moved: Floats = shares @ densities + _survival(at.last + shifts + moves, alpha, frechet)
    if len(shifts) > 1 and np.partition(shifts, 1)[1] > 0.0:
        # If a sole leader moves, the start of the integral moves too, so this arm needs an integral of its own.
        leader = int(np.argmin(shifts))
        alone = shifts.copy()
        alone[leader] = moves[leader]
        moved[leader] = winner_law(alone - alone.min(), alpha, frechet)[leader]
    return moved


def winner_jacobian(shifts: Floats, alpha: float, frechet: bool) -> Floats:
    """Every d w_i / d v_j: symmetric, positive off the diagonal, with rows that sum to zero."""
    hazards, shares = _hazards(shifts, alpha, frechet, grid(len(shifts), alpha, frechet))
    jacobian: Floats = (shares[:, None] * hazards).T @ hazards
    np.fill_diagonal(jacobian, 0.0)
    np.fill_diagonal(jacobian, -jacobian.sum(axis=1))
    return jacobian
