"""Exact probabilities by quadrature, of the perturbed leader and of the smallest Beta variable.

Arm i wins with probability w_i = integral of f(z + v_i) * prod_{j != i} F(z + v_j) over z, where v
is eta times the gaps. As functions of s = log z all factors are analytic and vary on the scale 1 /
alpha for any gaps, so Gauss-Legendre panels of that width converge geometrically.

Every integral here is a sum over the same nodes of the product of all F times a function of the
arms' *hazards* f / F. All summands are positive, so small probabilities keep their digits.

For Beta variables the quadrature is adaptive: P(i is smallest) = integral over [0, 1] of f_i(x) *
prod_{j != i} S_j(x), with S the survival function.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..base.arrays import Floats
from ..base.extras import needed_for
from ..errors import UnsupportedError
from .jit import compiled
from .powers import inverse_power

_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(16)
_TAIL = 1e-8
MOST_ARMS = 100_000
_FRECHET_FLOOR = 40.0  # if z ** -alpha is above this, the leader's F is below exp(-40)


class Grid(NamedTuple):
    """Nodes as z - 1, which is accurate even if a large alpha makes z nearly 1, and weights dz."""

    above: Floats
    weights: Floats
    last: float


@lru_cache(maxsize=64)
def grid(arms: int, alpha: float, frechet: bool = False, tail: float = _TAIL) -> Grid:
    """Nodes up to the z that the largest of `arms` draws exceeds with probability `tail`."""
    width = min(1.0 / alpha, 1.0)
    start = -math.log(_FRECHET_FLOOR) / alpha if frechet else 0.0
    panels = math.ceil((math.log(arms / tail) / alpha - start) / width)
    places = start + ((np.arange(panels)[:, None] + 0.5 * (1.0 + _NODES)) * width).ravel()
    share = 0.5 * width * np.tile(_NODE_WEIGHTS, panels) * np.exp(places)  # dz = z ds
    return Grid(np.expm1(places), share, math.expm1(start + panels * width))


@compiled
def fill_hazards(
    above: float, shifts: Floats, alpha: float, frechet: bool, hazards: Floats
) -> float:
    """Fill f / F of every arm at z = 1 + above, and return the product of all F."""
    everyone = 1.0
    exponent = 0.0
    for i in range(len(shifts)):
        excess = above + shifts[i]
        tail = inverse_power(excess, alpha)
        hazards[i] = alpha * tail / (1.0 + excess)
        if frechet:
            exponent += tail
        else:
            everyone *= 1.0 - tail
            hazards[i] /= 1.0 - tail
    return everyone * math.exp(-exponent)


@compiled
def survival(excess: float, alpha: float, frechet: bool) -> float:
    """The probability that a draw exceeds 1 + excess."""
    tail = inverse_power(excess, alpha)
    return -math.expm1(-tail) if frechet else tail


@compiled
def _add_law(
    shifts: Floats, alpha: float, frechet: bool, nodes: Grid, hazards: Floats, law: Floats
) -> None:
    """Add the integral over all nodes to the law: the chance of each arm to win."""
    for node in range(len(nodes.above)):
        share = nodes.weights[node] * fill_hazards(
            nodes.above[node], shifts, alpha, frechet, hazards
        )
        for i in range(len(shifts)):
            law[i] += share * hazards[i]
    for i in range(len(shifts)):
        # Past the last panel another arm's draw changes this tail by less than one part in 10^8.
        law[i] += survival(nodes.last + shifts[i], alpha, frechet)


def winner_law(shifts: Floats, alpha: float, frechet: bool) -> Floats:
    """The law w for shifts v = eta * gap (the smallest is 0), with Pareto(alpha) or Frechet(alpha).

    The absolute error is below 1e-12 for any shifts; the cost is about 450 evaluations per arm
    (Frechet 510). So there may not be more than `MOST_ARMS`, for which it takes half a second.
    """
    if len(shifts) > MOST_ARMS:
        raise UnsupportedError(
            f"arms: there are {len(shifts):,}, and exact probabilities of a perturbed leader are "
            f"computed for at most {MOST_ARMS:,}, because many more take minutes; name the arms "
            "you ask about with available=[...]"
        )
    law = np.zeros(len(shifts))
    _add_law(shifts, alpha, frechet, grid(len(shifts), alpha, frechet), np.empty(len(shifts)), law)
    return law


def pareto_winner_law(shifts: Floats, alpha: float) -> Floats:
    """The law w under the paper's perturbations."""
    return winner_law(shifts, alpha, False)


def frechet_winner_law(shifts: Floats, alpha: float) -> Floats:
    """The law w under the perturbations of Honda, Ito and Tsuchiya (2023)."""
    return winner_law(shifts, alpha, True)


_LEAST = 1e-300
_MOST_HALVINGS = 60


def smallest_beta_law(a: Floats, b: Floats) -> Floats:
    """The probability that each of the independent Beta(a_i, b_i) is the smallest; a, b >= 1.

    The absolute error is below 1e-12 for parameters up to thousands, and 1e-9 for millions, where
    the logarithm of a density loses digits. Variables with equal parameters are computed once.
    """
    # Loaded here, because a policy that never asks for its law needs no SciPy.
    with needed_for("exact probabilities of ThompsonSampling"):
        from scipy.special import betainc, betaln, xlog1py, xlogy

    pairs, which, count = np.unique(
        np.column_stack((a, b)), axis=0, return_inverse=True, return_counts=True
    )
    first, second = pairs.T
    constant = betaln(first, second)

    def integrand(x: Floats) -> Floats:
        at = x[..., None]
        # By symmetry: SciPy's own complement, betaincc, takes hundreds of times as long.
        log_above = np.log(np.maximum(betainc(second, first, 1.0 - at), _LEAST))
        rivals = (log_above * count).sum(axis=-1, keepdims=True) - log_above
        log_density = xlogy(first - 1.0, at) + xlog1py(second - 1.0, -at) - constant
        value: Floats = np.exp(log_density + rivals)
        return value

    mean = first / (first + second)
    spread = np.sqrt(mean * (1.0 - mean) / (first + second + 1.0))
    # The quadrature misses a narrow density unless a panel begins there.
    marks = mean + spread * np.array([-8.0, -4.0, -1.5, 0.0, 1.5, 4.0, 8.0])[:, None]
    edges = np.unique(np.concatenate(([0.0, 1.0], marks[(marks > 0.0) & (marks < 1.0)])))
    tolerance = 1e-14 + 2e-16 * float((first + second).max())
    mass = _integrate(integrand, edges, tolerance)
    mass /= mass @ count
    law: Floats = mass[which.ravel()]
    return law


def _integrate(integrand: Callable[[Floats], Floats], edges: Floats, tolerance: float) -> Floats:
    """Integrate a vector of functions, halving panels until that no longer changes them."""
    low = edges[:-1]
    high = edges[1:]
    whole_panels = _panels(integrand, low, high)
    integral: Floats = np.zeros(whole_panels.shape[1])
    for _ in range(_MOST_HALVINGS):
        middle = 0.5 * (low + high)
        left_halves = _panels(integrand, low, middle)
        right_halves = _panels(integrand, middle, high)
        is_rough = np.abs(left_halves + right_halves - whole_panels).max(axis=1) > tolerance
        integral += (left_halves + right_halves)[~is_rough].sum(axis=0)
        rough_middle = middle[is_rough]
        low = np.append(low[is_rough], rough_middle)
        high = np.append(rough_middle, high[is_rough])
        whole_panels = np.concatenate((left_halves[is_rough], right_halves[is_rough]))
        if not is_rough.any():
            break
    integral += whole_panels.sum(axis=0)
    return integral


def _panels(integrand: Callable[[Floats], Floats], low: Floats, high: Floats) -> Floats:
    """The integral over each panel from `low` to `high`, by one quadrature."""
    half = 0.5 * (high - low)
    values = integrand(low[:, None] + half[:, None] * (1.0 + _NODES))
    integral: Floats = np.einsum("pna,n,p->pa", values, _NODE_WEIGHTS, half)
    return integral
