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
def fill_hedge(priors: Floats, losses: Floats, regret: float, boldness: float, weights: Floats) -> None:
    """Fill the weights of the rungs; a rung with prior 0 is not there."""
    least = _least(priors, losses)
    whole = 0.0
    for m in range(len(weights)):
        weights[m] = 0.0
        if priors[m] > 0.0:
            behind = losses[m] - least
            if behind <= 0.0:
                weights[m] = priors[m]
            elif regret > 0.0:
                weights[m] = priors[m] * math.exp(-boldness * (behind / regret))
            whole += weights[m]
    for m in range(len(weights)):
        weights[m] /= whole


@compiled
def hedge_step(
    priors: Floats, losses: Floats, regret: float, boldness: float, weights: Floats, steps: Floats
) -> float:
    """Add the rungs' losses of this round, `steps`, and return the new regret."""
    mean, lowest = 0.0, math.inf
    for m in range(len(weights)):
        if weights[m] > 0.0:
            mean += weights[m] * steps[m]
            lowest = min(lowest, steps[m])
    if regret > 0.0:
        whole = 0.0
        for m in range(len(weights)):
            if weights[m] > 0.0:
                whole += weights[m] * math.exp(-boldness * ((steps[m] - lowest) / regret))
        mixed = lowest - math.log(whole) * (regret / boldness)
        _add(priors, losses, steps)
    else:
        before = _least(priors, losses)
        _add(priors, losses, steps)
        mixed = _least(priors, losses) - before
    return regret + max(mean - mixed, 0.0)


@compiled
def _add(priors: Floats, losses: Floats, steps: Floats) -> None:
    for m in range(len(losses)):
        if priors[m] > 0.0:
            losses[m] += steps[m]


@compiled
def _least(priors: Floats, losses: Floats) -> float:
    least = math.inf
    for m in range(len(losses)):
        if priors[m] > 0.0:
            least = min(least, losses[m])
    return least
