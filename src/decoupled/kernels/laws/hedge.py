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


@compiled
def fill_hedge(
    scalars: Floats, rungs: int, prior: int, loss: int, weight: int, regret: float, boldness: float
) -> None:
    """Fill the weights of the rungs. Priors, losses and weights begin at these places of the scalars."""
    least = math.inf
    for m in range(rungs):
        least = min(least, scalars[loss + m])
    rate = boldness / regret if regret > 0.0 else math.inf
    whole = 0.0
    for m in range(rungs):
        behind = scalars[loss + m] - least
        share = scalars[prior + m]
        if behind > 0.0:
            share *= math.exp(-rate * behind)
        scalars[weight + m] = share
        whole += share
    for m in range(rungs):
        scalars[weight + m] /= whole


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
        rate, whole = boldness / regret, 0.0
        for m in range(rungs):
            share, ahead = scalars[weight + m], scalars[step + m] - lowest
            if share > 0.0:
                whole += share * math.exp(-rate * ahead) if ahead > 0.0 else share
        mixed = lowest - math.log(whole) / rate
    return regret + max(mean - mixed, 0.0)
