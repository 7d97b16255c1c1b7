"""Draws: the perturbed leader, and an index with given weights."""

import math

from ..arrays import Floats, Words
from .compiled import compiled
from .powers import inverse_power, inverse_root
from .stream import uniform


@compiled
def pareto_leader(ranked: Floats, eta: float, alpha: float, stream: Words) -> int:
    """The rank of the arm that wins when each score is a Pareto(alpha) draw less eta times the gap.

    `ranked` holds the estimates in increasing order. The winner has exactly the law of drawing every
    arm, yet only about log K arms are looked at. An arm beats the best score so far with chance
    (best + eta * gap) ** -alpha, and in rank order that chance only falls. So the distance to the next
    *candidate* is geometric under the chance at hand, and the candidate is accepted with the ratio of
    its own chance to that bound.
    """
    arms = len(ranked)
    lowest = ranked[0]
    best = inverse_root(
        uniform(stream), alpha
    )  # scores are kept less 1: large alphas leave little above it
    leader = 0
    place = 1
    while place < arms:
        bound = inverse_power(best + eta * (ranked[place] - lowest), alpha)
        draw = uniform(stream)
        # (1 - bound) ** m >= 1 - m * bound: most often this says, without logarithms, that no arm is left.
        if draw <= 1.0 - (arms - place) * bound:
            break
        place += int(math.log(draw) / math.log1p(-bound))
        if place >= arms:
            break
        shift = eta * (ranked[place] - lowest)
        mark = uniform(stream) * bound
        if mark <= inverse_power(best + shift, alpha):
            # Given acceptance, mark is uniform on (0, chance]: it is the winner's own Pareto draw.
            best = inverse_root(mark, alpha) - shift
            leader = place
        place += 1
    return leader


@compiled
def total(weights: Floats) -> float:
    """The sum, in eight lanes: additions need not wait for each other, on any processor in one order."""
    count = len(weights)
    a = b = c = d = e = f = g = h = 0.0
    whole = count - count % 8
    for k in range(0, whole, 8):
        a += weights[k]
        b += weights[k + 1]
        c += weights[k + 2]
        d += weights[k + 3]
        e += weights[k + 4]
        f += weights[k + 5]
        g += weights[k + 6]
        h += weights[k + 7]
    for k in range(whole, count):
        a += weights[k]
    return ((a + b) + (c + d)) + ((e + f) + (g + h))


@compiled
def categorical(weights: Floats, weight_sum: float, stream: Words) -> int:
    """An index drawn with probability weights[k] / weight_sum; one of weight zero is never drawn."""
    target = uniform(stream) * weight_sum
    for k in range(len(weights)):
        target -= weights[k]
        if target <= 0.0 and weights[k] > 0.0:
            return k
    # Rounding left a remainder. The heaviest index takes it, whose probability it changes the least.
    heaviest = 0
    for k in range(len(weights)):
        if weights[k] > weights[heaviest]:
            heaviest = k
    return heaviest
