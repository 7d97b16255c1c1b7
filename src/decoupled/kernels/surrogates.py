"""The paper's surrogate probabilities: what an arm's gap and its rank allow, in rank order."""

from ..arrays import Floats
from .compiled import compiled
from .powers import inverse_power


@compiled
def surrogates(ranked: Floats, limit: Floats, eta: float, exponent: float, out: Floats) -> None:
    """Q in rank order: (1 + eta * gap) ** -exponent, and no more than the rank allows."""
    lowest = ranked[0]
    done = 0
    if exponent == 2.0:
        # Divisions are the cost of a round with many arms, and one serves two: 1/x = y * (1 / (x * y)).
        # At 256 arms it makes a round a fifth faster.
        half = len(ranked) // 2
        for k in range(half):
            x = 1.0 + eta * (ranked[k] - lowest)
            y = 1.0 + eta * (ranked[k + half] - lowest)
            both = 1.0 / (x * y)
            out[k] = min((y * both) * (y * both), limit[k])
            out[k + half] = min((x * both) * (x * both), limit[k + half])
        done = 2 * half
    for k in range(done, len(ranked)):
        out[k] = min(inverse_power(eta * (ranked[k] - lowest), exponent), limit[k])
