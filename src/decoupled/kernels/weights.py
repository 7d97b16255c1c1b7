"""Exact probabilities of the perturbed leader, by quadrature.

Arm i wins with probability w_i = integral of f(z + v_i) * prod_{j != i} F(z + v_j) over the z that the
perturbations can take, where v is eta times the gaps. As functions of s = log z all factors are analytic
and vary on the scale 1 / alpha whatever the gaps, so Gauss-Legendre panels of that width converge
geometrically.
"""

import math

import numpy as np

from ..arrays import Floats
from .compiled import compiled
from .powers import inverse_power

_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(16)
_TAIL = 1e-8
_NEVER = 40.0  # a Frechet draw below 40 ** (-1/alpha) has probability exp(-40)


@compiled
def _pareto_integral(
    shifts: Floats,
    alpha: float,
    panels: int,
    width: float,
    nodes: Floats,
    node_weights: Floats,
    tails: Floats,
    law: Floats,
) -> None:
    arms = len(shifts)
    for panel in range(panels):
        for node in range(len(nodes)):
            place = (panel + 0.5 * (1.0 + nodes[node])) * width
            above = math.expm1(place)  # z - 1, exact also where alpha is so large that z is all but 1
            everyone = 1.0
            for i in range(arms):
                tails[i] = inverse_power(above + shifts[i], alpha)
                everyone *= 1.0 - tails[i]
            # dz = z ds; the density of arm i is alpha * tail / (z + v_i).
            share = 0.5 * width * node_weights[node] * math.exp(place) * alpha * everyone
            for i in range(arms):
                law[i] += share * tails[i] / ((1.0 + (above + shifts[i])) * (1.0 - tails[i]))
    last = math.expm1(panels * width)
    for i in range(arms):
        # Past the last panel another arm's draw matters less than one part in 10^8 of this tail.
        law[i] += inverse_power(last + shifts[i], alpha)


def pareto_winner_law(shifts: Floats, alpha: float) -> Floats:
    """W for shifts v = eta * gap (the smallest is 0) and Pareto(alpha) perturbations.

    The absolute error is below 1e-12 for any shifts; the cost is about 450 evaluations an arm.
    """
    width = min(1.0 / alpha, 1.0)
    panels = math.ceil(math.log(len(shifts) / _TAIL) / (alpha * width))
    law = np.zeros(len(shifts))
    tails = np.empty(len(shifts))
    _pareto_integral(shifts, alpha, panels, width, _NODES, _NODE_WEIGHTS, tails, law)
    return law


@compiled
def _frechet_integral(
    shifts: Floats,
    alpha: float,
    start: float,
    panels: int,
    width: float,
    nodes: Floats,
    node_weights: Floats,
    tails: Floats,
    law: Floats,
) -> None:
    arms = len(shifts)
    for panel in range(panels):
        for node in range(len(nodes)):
            place = start + (panel + 0.5 * (1.0 + nodes[node])) * width
            above = math.expm1(place)
            hazard = 0.0
            for i in range(arms):
                tails[i] = inverse_power(above + shifts[i], alpha)
                hazard += tails[i]
            # The density of arm i is alpha * tail / (z + v_i) times its share of exp(-hazard).
            share = 0.5 * width * node_weights[node] * math.exp(place) * alpha * math.exp(-hazard)
            for i in range(arms):
                law[i] += share * tails[i] / (1.0 + (above + shifts[i]))
    last = math.expm1(start + panels * width)
    for i in range(arms):
        law[i] -= math.expm1(-inverse_power(last + shifts[i], alpha))


def frechet_winner_law(shifts: Floats, alpha: float) -> Floats:
    """W for shifts v = eta * gap (the smallest is 0) and Frechet(alpha) perturbations.

    As accurate as `pareto_winner_law`; F(z) = exp(-z ** -alpha), so the integral begins at 0 and not at 1.
    """
    width = min(1.0 / alpha, 1.0)
    start = -math.log(_NEVER) / alpha
    panels = math.ceil(math.log(_NEVER * len(shifts) / _TAIL) / (alpha * width))
    law = np.zeros(len(shifts))
    tails = np.empty(len(shifts))
    _frechet_integral(shifts, alpha, start, panels, width, _NODES, _NODE_WEIGHTS, tails, law)
    return law
