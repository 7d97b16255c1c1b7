"""Powers of 1 + excess, with the most common exponents written out.

A general power costs about ten multiplications. The exponents below belong to alpha = 3 and 2 and
beta = 2/3 and 1/2. The branch does not depend on the loop around it, so the compiler hoists it.
"""

import math

from .jit import compiled


@compiled
def power(excess: float, exponent: float) -> float:
    """(1 + excess) ** exponent for excess >= 0, also for a small excess and a large exponent."""
    if exponent == 3.0:
        return (1.0 + excess) * (1.0 + excess) * (1.0 + excess)
    if exponent == 2.0:
        return (1.0 + excess) * (1.0 + excess)
    return math.exp(exponent * math.log1p(excess))


@compiled
def inverse_power(excess: float, exponent: float) -> float:
    """(1 + excess) ** -exponent for excess >= 0, also for a small excess and a large exponent."""
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
    """Correct a rounding error near a half-integer: as floats, 1 / (1 - 2/3) is not quite 3."""
    half = round(2.0 * exponent) / 2.0
    return half if abs(exponent - half) < 1e-12 else exponent
