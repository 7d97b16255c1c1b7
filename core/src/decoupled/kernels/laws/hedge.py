"""AdaHedge over the rungs of a ladder: weights from the rungs' estimated losses.

The weights are proportional to prior * exp(-rate * loss), with rate = `hedge_rate` / regret, where regret is the sum of
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
    scalars: Floats, rungs: int, prior: int, loss: int, weight: int, regret: float, hedge_rate: float
) -> float:
    """Fill the weights of the rungs and return their sum before scaling, which `hedge_step` takes.

    Priors, losses and weights begin at these places of the scalars.
    """
    least = math.inf
    for m in range(rungs):
        least = min(scalars[loss + m], least)
    rate = hedge_rate / max(regret, SMALLEST_REGRET)
    whole = 0.0
    for m in range(rungs):
        share = scalars[prior + m] * math.exp(-rate * (scalars[loss + m] - least))
        scalars[weight + m] = share
        whole += share
    inverse = 1.0 / whole
    for m in range(rungs):
        scalars[weight + m] *= inverse
    return whole


@compiled
def hedge_step(
    scalars: Floats,
    rungs: int,
    prior: int,
    loss: int,
    weight: int,
    step: int,
    whole: float,
    regret: float,
    hedge_rate: float,
) -> float:
    """Add the rungs' losses of this round, at place `step`, and return the new regret.

    The mix loss comes from the summed losses. From the weights it would be wrong: a rung whose weight is too small for
    a float would be missing from the sum, even if it overtakes all others with this step.
    """
    mean, before, after = 0.0, math.inf, math.inf
    for m in range(rungs):
        mean += scalars[weight + m] * scalars[step + m]
        before = min(before, scalars[loss + m])
        scalars[loss + m] += scalars[step + m]
        after = min(after, scalars[loss + m])
    rate, shifted = hedge_rate / max(regret, SMALLEST_REGRET), 0.0
    for m in range(rungs):
        shifted += scalars[prior + m] * math.exp(-rate * (scalars[loss + m] - after))
    mixed = after - before - math.log(shifted / whole) / rate
    return regret + max(mean - mixed, 0.0)
