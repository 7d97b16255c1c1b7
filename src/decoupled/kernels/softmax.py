"""Exponential weights and their square roots."""

import math

from ..arrays import Floats
from .compiled import compiled


@compiled
def exponential_weights(estimates: Floats, half_rate: float, weights: Floats, roots: Floats) -> None:
    """Fill exp(-rate * gap) and its square root, from the gaps: no exponent is ever positive."""
    lowest = math.inf
    for i in range(len(estimates)):
        lowest = min(lowest, estimates[i])
    for i in range(len(estimates)):
        root = math.exp(half_rate * (lowest - estimates[i]))
        roots[i] = root
        weights[i] = root * root
