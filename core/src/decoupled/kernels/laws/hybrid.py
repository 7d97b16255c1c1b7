"""Hybrid weights: the minimiser over the simplex of <w, L> - C * sum log w_i - sum gamma_i * w_i ** (2/3).

Write y_i = w_i ** (-1/3) for the roots, u = L - min(L) for the gaps, g_i = 2/3 * gamma_i for the rates, and s for the
level (the multiplier relative to min(L)). The conditions for a minimum are polynomials:

    C * y_i ** 3 + g_i * y_i = u_i + s   for every arm,   and   sum_i y_i ** -3 = 1.

The left side is convex in y_i, so the solution y_i(s) is increasing and concave. So is the power mean
M(y) = (sum y_i ** -3) ** (-1/3), and therefore M(y(s)). Newton's method climbs to M = 1 from the left without
overshooting, and a step from the right lands on the left. That is the cold start. Within a run, roots and level take
their Newton steps together from the last round's solution, with one division per arm and step and no power or root.
"""

import math
from typing import NamedTuple

from ...base.arrays import Floats
from ..jit import compiled
from ..random.sampling import total

_LAST_STEP = 1e-7  # relative; the error after a step is of the order of the step squared
_SOLVED = 1e-12
_NEAR = 1e-4
_MOST_STEPS = 12
_MOST_COLD_STEPS = 200


class Hybrid(NamedTuple):
    """One problem, its solution and work space; each row has one entry per arm."""

    gaps: Floats
    rates: Floats
    roots: Floats
    weights: Floats  # y ** -3
    squares: Floats  # y ** -2; 1 / y during the Newton steps
    slopes: Floats  # this and the rest are work space
    moves: Floats
    pulls: Floats
    pulled: Floats


@compiled
def cube_root_less_one(mass: float) -> float:
    """The cube root of the mass, less 1. Near a mass of 1 a parabola suffices, since the next step corrects it."""
    excess = mass - 1.0
    if abs(excess) < 0.01:
        return excess * (1.0 / 3.0 - excess / 9.0)
    return math.expm1(math.log(mass) / 3.0)


@compiled
def settle_root(barrier: float, level: float, at: Hybrid, arm: int) -> None:
    """Solve one arm's cubic in closed form.

    In z = y * sqrt(3 C / g) / 2 it reads 4 z ** 3 + 3 z = k, and z = sinh(asinh(k) / 3).
    """
    rate = at.rates[arm]
    scale = math.sqrt(rate / (3.0 * barrier))
    target = 1.5 * (at.gaps[arm] + level) / (rate * scale)
    at.roots[arm] = 2.0 * scale * math.sinh(math.asinh(target) / 3.0)


@compiled
def cold_level(barrier: float, at: Hybrid) -> float:
    """Find the level to a few digits by Newton on M(y(s)) from below, and fill its roots."""
    level = barrier  # w <= 1 means C + g_i <= u_i + s for every arm, and u_i = 0 for the leader
    for _ in range(_MOST_COLD_STEPS):
        for i in range(len(at.gaps)):
            settle_root(barrier, level, at, i)
            y = at.roots[i]
            at.weights[i] = 1.0 / (y * y * y)
            at.pulls[i] = at.weights[i] / (y * (3.0 * barrier * y * y + at.rates[i]))
        mass = total(at.weights)
        move = mass * cube_root_less_one(mass) / total(at.pulls)
        if abs(move) <= _NEAR * level:
            break
        level = max(level + move, barrier)
    return level


@compiled
def linearise(barrier: float, level: float, at: Hybrid) -> None:
    """Compute the Newton move of each root at this level, and its slope in the level."""
    for i in range(len(at.gaps)):
        y = at.roots[i]
        square = y * y
        steep = 3.0 * barrier * square + at.rates[i]
        both = 1.0 / (y * steep)  # one division serves 1 / y and 1 / steep
        inverse = both * steep
        slope = both * y
        weight = inverse * inverse * inverse
        pull = weight * inverse
        move = slope * (at.gaps[i] + level - y * (barrier * square + at.rates[i]))
        at.weights[i] = weight
        at.squares[i] = inverse
        at.slopes[i] = slope
        at.moves[i] = move
        at.pulls[i] = pull * slope
        at.pulled[i] = pull * move


@compiled
def newton_steps(barrier: float, level: float, at: Hybrid) -> tuple[float, int]:
    """Take steps on roots and level together. Return the level and the number of steps, 0 if they did not converge.

    Every root stays positive: the cubic is convex, so after a step a root is at least the solution for the new level,
    and the level is kept above its bound.
    """
    for step in range(1, _MOST_STEPS + 1):
        linearise(barrier, level, at)
        mass = total(at.weights)
        goal = level + (mass * cube_root_less_one(mass) - total(at.pulled)) / total(at.pulls)
        goal = max(goal, barrier)
        rise = goal - level
        level = goal
        for i in range(len(at.gaps)):
            move = at.moves[i] + rise * at.slopes[i]
            at.roots[i] += move
            change = move * at.squares[i]
            at.pulled[i] = change * change
        if total(at.pulled) <= _LAST_STEP * _LAST_STEP and abs(rise) <= _LAST_STEP * level:
            return level, step
    return level, 0


@compiled
def fill_powers(at: Hybrid) -> None:
    """Fill the weights and their powers 2/3 from the roots."""
    for i in range(len(at.roots)):
        inverse = 1.0 / at.roots[i]
        at.squares[i] = inverse * inverse
        at.weights[i] = inverse * inverse * inverse


@compiled
def is_solved(barrier: float, level: float, at: Hybrid) -> bool:
    """Whether roots and level already satisfy the conditions, as those of a saved state do."""
    if not at.roots[0] > 0.0:
        return False
    linearise(barrier, level, at)
    off = 0.0
    for i in range(len(at.roots)):
        off = max(off, abs(at.moves[i] * at.squares[i]))
    return off <= _SOLVED and abs(total(at.weights) - 1.0) <= _SOLVED


@compiled
def hybrid_weights(barrier: float, level: float, at: Hybrid) -> tuple[float, int]:
    """Solve from the current roots and level, or from a cold start if the roots are 0 or do not converge.

    Fills roots, weights and squares; returns the level and the number of steps since the last start.
    """
    steps = 0
    for start in range(2):
        if start > 0 or not at.roots[0] > 0.0:
            level = cold_level(barrier, at)
        level, steps = newton_steps(barrier, level, at)
        if steps > 0:
            break
    fill_powers(at)
    return level, steps
