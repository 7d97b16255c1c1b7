"""Powers, with the exponents that policies use most written out.

A general power costs about ten multiplications. The exponents below are those of alpha = 3, 2 and
beta = 2/3, 1/2; the branch does not depend on the loop around it, so the compiler lifts it out.
"""

import math

from .compiled import compiled


@compiled
def power(base: float, exponent: float) -> float:
    """Base ** exponent, for base >= 0."""
    if exponent == 3.0:
        return base * base * base
    if exponent == 2.0:
        return base * base
    if exponent == 1.5:
        return base * math.sqrt(base)
    general: float = base**exponent
    return general


@compiled
def inverse_root(base: float, degree: float) -> float:
    """Base ** (-1 / degree), for base > 0."""
    if degree == 2.0:
        return 1.0 / math.sqrt(base)
    return math.exp(-math.log(base) / degree)


def tidy_exponent(exponent: float) -> float:
    """The half-integer that rounding missed by a hair: 1 / (1 - 2/3) is not quite 3 in floating point."""
    half = round(2.0 * exponent) / 2.0
    return half if abs(exponent - half) < 1e-12 else exponent
