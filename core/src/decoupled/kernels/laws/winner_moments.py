"""More integrals of the perturbed leader: slopes, mean winning draws, the law after a move.

The proofs of the paper rest on these. The nodes are those of `winner_law`, further out, because a mean winning draw has
a heavier tail than a probability.
"""

import math
from typing import NamedTuple

import numpy as np

from ...base.arrays import Floats
from ..jit import compiled
from ..powers import inverse_power
from .winner_law import Grid, fill_hazards, grid, survival, winner_law

_FAR_TAIL = 1e-14
_LAW, _SLOPE, _PRIZE, _INVERSE = range(4)


class Moments(NamedTuple):
    """One number per arm: the `law`, and integrals under it.

    `slopes` are d w_i / d v_i; `prizes` E[r_i; i wins]; `inverses` E[1 / r_i; i wins].
    """

    law: Floats
    slopes: Floats
    prizes: Floats
    inverses: Floats


@compiled
def _add_node(share: float, above: float, shifts: Floats, hazards: Floats, out: Floats) -> None:
    peak = 0
    for i in range(len(shifts)):
        if hazards[i] > hazards[peak]:
            peak = i
    rest = 0.0  # the sum without its largest term, in which the digits of the others would be lost
    for i in range(len(shifts)):
        if i != peak:
            rest += hazards[i]
    for i in range(len(shifts)):
        wins = share * hazards[i]
        level = 1.0 + (above + shifts[i])
        out[_LAW, i] += wins
        out[_SLOPE, i] -= wins * (rest if i == peak else hazards[peak] + (rest - hazards[i]))
        if wins > 0.0:  # an arm infinitely far behind never wins
            out[_PRIZE, i] += wins * level
            out[_INVERSE, i] += wins / level


@compiled
def _add_moments(
    shifts: Floats, alpha: float, frechet: bool, at: Grid, hazards: Floats, out: Floats
) -> None:
    for node in range(len(at.above)):
        share = at.weights[node] * fill_hazards(at.above[node], shifts, alpha, frechet, hazards)
        _add_node(share, at.above[node], shifts, hazards, out)
    for i in range(len(shifts)):
        # Past the last panel no other arm matters, and f is alpha * z ** -(alpha + 1) for both families.
        excess = at.last + shifts[i]
        out[_LAW, i] += survival(excess, alpha, frechet)
        out[_PRIZE, i] += alpha / (alpha - 1.0) * inverse_power(excess, alpha - 1.0)
        out[_INVERSE, i] += alpha / (alpha + 1.0) * inverse_power(excess, alpha + 1.0)


def winner_moments(shifts: Floats, alpha: float, frechet: bool) -> Moments:
    """All of `Moments` for shifts whose smallest is 0."""
    arms = len(shifts)
    out = np.zeros((4, arms))
    _add_moments(shifts, alpha, frechet, grid(arms, alpha, frechet, _FAR_TAIL), np.empty(arms), out)
    return Moments(*out)


@compiled
def _add_moved(
    shifts: Floats, moves: Floats, alpha: float, frechet: bool, at: Grid, hazards: Floats, moved: Floats
) -> None:
    for node in range(len(at.above)):
        share = at.weights[node] * fill_hazards(at.above[node], shifts, alpha, frechet, hazards)
        for i in range(len(shifts)):
            before = at.above[node] + shifts[i]
            after = before + moves[i]
            tail = inverse_power(after, alpha)
            density = alpha * tail / (1.0 + after)
            if frechet:
                density *= math.exp(inverse_power(before, alpha) - tail)
            else:
                density /= 1.0 - inverse_power(before, alpha)
            moved[i] += share * density
    for i in range(len(shifts)):
        moved[i] += survival(at.last + shifts[i] + moves[i], alpha, frechet)


def moved_law(shifts: Floats, moves: Floats, alpha: float, frechet: bool) -> Floats:
    """The probability that arm i wins after its own shift, and no other, has grown by moves[i] >= 0."""
    arms = len(shifts)
    moved = np.zeros(arms)
    _add_moved(shifts, moves, alpha, frechet, grid(arms, alpha, frechet), np.empty(arms), moved)
    if arms > 1 and np.partition(shifts, 1)[1] > 0.0:
        # If a sole leader moves, the start of the integral moves too, so this arm needs an integral of its own.
        leader = int(np.argmin(shifts))
        after = shifts.copy()
        after[leader] = moves[leader]
        moved[leader] = winner_law(after - after.min(), alpha, frechet)[leader]
    return moved


@compiled
def _add_pairs(shifts: Floats, alpha: float, frechet: bool, at: Grid, hazards: Floats, out: Floats) -> None:
    for node in range(len(at.above)):
        share = at.weights[node] * fill_hazards(at.above[node], shifts, alpha, frechet, hazards)
        for i in range(1, len(shifts)):
            wins = share * hazards[i]
            for j in range(i):
                out[i, j] += wins * hazards[j]


def winner_jacobian(shifts: Floats, alpha: float, frechet: bool) -> Floats:
    """Every d w_i / d v_j: symmetric, positive off the diagonal, with rows that sum to zero."""
    arms = len(shifts)
    out = np.zeros((arms, arms))
    _add_pairs(shifts, alpha, frechet, grid(arms, alpha, frechet), np.empty(arms), out)
    out += out.T
    out[np.diag_indices(arms)] = -out.sum(axis=1)
    return out
