"""AdaHedge over the rungs of a ladder: weights from the rungs' estimated losses.

The weights are proportional to prior * exp(-rate * loss), with rate = `boldness` / regret, where regret is the sum of
the mixability gaps so far. While it is 0, the rungs with the smallest loss share the weight. Losses may have any sign
and scale.

De Rooij, S., van Erven, T., Grunwald, P. D. and Koolen, W. M. (2014). Follow the leader if you can, hedge if you must.
JMLR 15.
"""

import math

from ...base.arrays import Floats
from ..jit import compiled

SMALLEST_REGRET = (
    1e-200  # in place of 0: the rate is then so large that only the best rungs have any weight
)


@compiled
def fill_hedge(
    scalars: Floats, rungs: int, prior: int, loss: int, weight: int, regret: float, boldness: float
) -> None:
    """Fill the weights of the rungs. Priors, losses and weights begin at these places of the scalars."""
    least = math.inf
    for m in range(rungs):
        least = min(scalars[loss + m], least)
    rate = boldness / max(regret, SMALLEST_REGRET)
    whole = 0.0
    for m in range(rungs):
        share = scalars[prior + m] * math.exp(-rate * (scalars[loss + m] - least))
        scalars[weight + m] = share
        whole += share
    inverse = 1.0 / whole
    for m in range(rungs):
        scalars[weight + m] *= inverse


@compiled
def hedge_step(
    scalars: Floats, rungs: int, loss: int, weight: int, step: int, regret: float, boldness: float
) -> float:
    """Add the rungs' losses of this round, at place `step`, and return the new regret."""
    mean, lowest, before, after = 0.0, math.inf, math.inf, math.inf
    for m in range(rungs):
        mean += scalars[weight + m] * scalars[step + m]
        if scalars[weight + m] > 0.0:  # weights may underflow
            lowest = min(lowest, scalars[step + m])
        before = min(before, scalars[loss + m])
        scalars[loss + m] += scalars[step + m]
        after = min(after, scalars[loss + m])
    mixed = after - before
    if regret > 0.0:
        rate, whole = boldness / max(regret, SMALLEST_REGRET), 0.0
        for m in range(rungs):
            whole += scalars[weight + m] * math.exp(-rate * max(scalars[step + m] - lowest, 0.0))
        mixed = lowest - math.log(whole) / rate
    return regret + max(mean - mixed, 0.0)
