"""Tsallis weights: the point of the simplex that follow-the-regularised-leader chooses.

With a = 1 / (1 - beta), gaps u and rate = (1 - beta) * eta, the weights are
w_i = (1 + rate * u_i + x) ** -a, where the excess x solves S(x) = sum_i w_i = 1. It lies in
[0, K ** (1/a) - 1] whatever the estimates, and it is small where a is large, so nothing is lost to
rounding; the multiplier of the estimates would be min(L) - (1 + x) / rate.
"""

import math

from ..arrays import Floats
from .compiled import compiled
from .powers import inverse_power
from .sampling import total

_LAST_STEP = 1e-8
_MOST_STEPS = 200


@compiled
def tsallis_weights(gaps: Floats, excess: float, a: float, weights: Floats, slopes: Floats) -> float:
    """Fill w = (1 + gap + x) ** -a and the slopes w / (1 + gap + x); return the sum of w."""
    for i in range(len(gaps)):
        weights[i] = inverse_power(gaps[i] + excess, a)
        slopes[i] = weights[i] * (1.0 / (1.0 + (gaps[i] + excess)))  # a division the power has made already
    return total(weights)


@compiled
def tsallis_excess(
    gaps: Floats, start: float, a: float, weights: Floats, slopes: Floats
) -> tuple[float, int]:
    """The root x of S(x) = 1 by safeguarded Newton from any start, and the number of steps taken.

    Newton is applied to S(x) ** (-1/a), which is increasing, concave and nearly straight (exactly so
    where all gaps are equal or one arm has all the weight). From the left of the root it climbs
    without overshooting; from the right one step lands on the left. The bracket catches that step.
    `weights` and `slopes` are work space.
    """
    highest = math.expm1(math.log(float(len(gaps))) / a)
    excess = min(max(start, 0.0), highest)
    for step in range(1, _MOST_STEPS + 1):
        mass = tsallis_weights(gaps, excess, a, weights, slopes)
        move = mass * math.expm1(math.log(mass) / a) / total(slopes)
        excess = min(max(excess + move, 0.0), highest)
        # The error after a step is of the order of its square, so this step was the last one needed.
        if a * abs(move) <= _LAST_STEP * (1.0 + excess):
            return excess, step
    return excess, _MOST_STEPS
