"""Powers of one plus something, with the exponents that policies use most written out.

A general power costs about ten multiplications. The exponents below are those of alpha = 3, 2 and
beta = 2/3, 1/2; the branch does not depend on the loop around it, so the compiler lifts it out.
"""

import math

from .jit import compiled


@compiled
def power(excess: float, exponent: float) -> float:
    """(1 + excess) ** exponent, for excess >= 0; exact also for a small excess and a large exponent."""
    if exponent == 3.0:
        return (1.0 + excess) * (1.0 + excess) * (1.0 + excess)
    if exponent == 2.0:
        return (1.0 + excess) * (1.0 + excess)
    return math.exp(exponent * math.log1p(excess))


@compiled
def inverse_power(excess: float, exponent: float) -> float:
    """(1 + excess) ** -exponent, for excess >= 0; exact also for a small excess and a large exponent."""
    if exponent == 3.0:
        inverse = 1.0 / (1.0 + excess)
        return inverse * inverse * inverse
    if exponent == 2.0:
        inverse = 1.0 / (1.0 + excess)
        return inverse * inverse
    if exponent == 1.5:
        inverse = 1.0 / (1.0 + excess)
        return inverse * math.sqrt(inverse)
    return math.exp(-exponent * math.log1p(excess))


def tidy_exponent(exponent: float) -> float:
    """The half-integer that rounding missed by a hair: 1 / (1 - 2/3) is not quite 3 in floating point."""
    half = round(2.0 * exponent) / 2.0
    return half if abs(exponent - half) < 1e-12 else exponent
