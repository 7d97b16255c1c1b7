"""The strongest rival of an arm: the perturbed leader among all other arms, with its score."""

import numpy as np

from ...base.arrays import Floats
from ..jit import compiled
from ..powers import inverse_power, power
from ..random.hashed import hashed_unit
from ..random.sampling import failures

_RARE = 5.0  # as in random.sampling


@compiled
def hashed_pareto_excess(alpha: float, key: np.uint64, count: int) -> float:
    """A Pareto(alpha) draw less 1."""
    if alpha == 3.0 or alpha == 2.0:
        largest = max(hashed_unit(key, count), hashed_unit(key, count + 1))
        if alpha == 3.0:
            largest = max(largest, hashed_unit(key, count + 2))
        return (1.0 - largest) / largest
    return float(hashed_unit(key, count) ** (-1.0 / alpha) - 1.0)


@compiled
def strongest_rival(
    ranked: Floats, rank: int, eta: float, alpha: float, key: np.uint64
) -> tuple[int, float]:
    """The rank of the perturbed leader among all arms but the one at `rank`, and by how much it beats 1.

    The score of an arm is its Pareto(alpha) draw less eta times its gap to the best arm other than that at `rank`. The
    search is that of `pareto_leader`, where its comments are, but the winner's score is needed too.
    """
    arms = len(ranked)
    first = 1 if rank == 0 else 0
    lowest = ranked[first]
    best, leader, place, used = 0.0, -1, first + 1, 0
    while place < arms:
        if place == rank:
            place += 1
            continue
        shift = eta * (ranked[place] - lowest)
        rarity = power(best + shift, alpha)
        mark = hashed_unit(key, used)
        used += 1
        if rarity > _RARE:
            if not (1.0 - mark) * rarity < arms - place:
                break
            bound = 1.0 / rarity
            place += failures(mark, bound, arms)
            if place >= arms:
                break
            if place == rank:  # a place without a rival: nobody was found there
                place += 1
                continue
            shift = eta * (ranked[place] - lowest)
            rarity = power(best + shift, alpha)
            mark = hashed_unit(key, used) * bound
            used += 1
        while leader < place and mark * rarity <= 1.0:
            excess = hashed_pareto_excess(alpha, key, used)
            used += 3
            if leader < 0:
                leader = first
                best = excess
                rarity = power(best + shift, alpha)
            else:
                leader = place
                best += (1.0 + (best + shift)) * excess
        place += 1
    if leader < 0:
        return first, hashed_pareto_excess(alpha, key, used)
    return leader, best


@compiled
def chance_against(
    ranked: Floats, rank: int, eta: float, alpha: float, key: np.uint64
) -> tuple[float, int]:
    """The probability that the arm at `rank` wins, given the draws of all others; and the rank of its rival.

    Its mean over the draws is the arm's probability of being the perturbed leader.
    """
    if len(ranked) == 1:
        return 1.0, rank
    rival, excess = strongest_rival(ranked, rank, eta, alpha, key)
    lowest = ranked[1] if rank == 0 else ranked[0]
    needed = excess + eta * (ranked[rank] - lowest)
    return (1.0 if needed <= 0.0 else inverse_power(needed, alpha)), rival
