"""Tsallis weights: the point of the simplex that follow-the-regularised-leader chooses.

With a = 1 / (1 - beta), gaps u and rate = (1 - beta) * eta, the weights are
w_i = (rate * u_i + z) ** -a, where z solves S(z) = sum_i w_i = 1. The root lies in [1, K ** (1/a)]
whatever the estimates, which is why z is sought and not the multiplier x = min(L) - z / rate.
"""

import math

from ..arrays import Floats
from .compiled import compiled
from .powers import power
from .sampling import total

_LAST_STEP = 1e-8
_MOST_STEPS = 200


@compiled
def tsallis_weights(gaps: Floats, root: float, a: float, weights: Floats, slopes: Floats) -> float:
    """Fill w = (gap + z) ** -a and the slopes w / (gap + z); return the sum of w."""
    for i in range(len(gaps)):
        inverse = 1.0 / (gaps[i] + root)
        weights[i] = power(inverse, a)
        slopes[i] = weights[i] * inverse
    return total(weights)


@compiled
def tsallis_root(
    gaps: Floats, start: float, a: float, weights: Floats, slopes: Floats
) -> tuple[float, int]:
    """The root z of S(z) = 1 by safeguarded Newton from any start, and the number of steps taken.

    Newton is applied to S(z) ** (-1/a), which is increasing, concave and nearly straight (exactly so
    where all gaps are equal or one arm has all the weight). From the left of the root it climbs
    without overshooting; from the right one step lands on the left. The bracket catches that step.
    `weights` and `slopes` are work space.
    """
    highest = float(len(gaps)) ** (1.0 / a)
    root = min(max(start, 1.0), highest)
    for step in range(1, _MOST_STEPS + 1):
        mass = tsallis_weights(gaps, root, a, weights, slopes)
        move = mass * math.expm1(math.log(mass) / a) / total(slopes)
        root = min(max(root + move, 1.0), highest)
        # The error after a step is of the order of its square, so this step was the last one needed.
        if a * abs(move) <= _LAST_STEP * root:
            return root, step
    return root, _MOST_STEPS
