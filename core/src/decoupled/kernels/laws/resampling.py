"""Geometric resampling: the number of fresh draws until the same arm wins again.

A perturbed leader does not know its own probability w of winning, but the number M of fresh draws until it wins again
is geometric with mean 1/w. An arm of rank s can win only if its perturbation is the largest of the first s, which by
symmetry happens once in s times. So M can be counted among such draws only, and s * M has mean 1/w as well.

A draw here does not perturb every arm. It takes the arm's own perturbation and one more number, and compares that
number with the chance that no rival exceeds the perturbation, one rival at a time until the result is known. The count
has the same law as if every perturbation were drawn (and, in the conditional case, the arm's swapped with the largest
of the first s), and nothing is stored.

Neu, G. and Bartok, G. (2016). Importance weighting without importance weights. JMLR 17(154).
Chen, B., Lee, J. and Honda, J. (2025). Geometric resampling in nearly linear time for
follow-the-perturbed-leader with best-of-both-worlds guarantee in bandit problems. ICML.
"""

import math

from ...base.arrays import Floats, Words
from ..jit import compiled
from ..powers import inverse_power
from ..random.sampling import inverse_root_excess
from ..random.stream import uniform


@compiled
def draws_until_win(
    ranked: Floats, rank: int, among: int, eta: float, alpha: float, pareto: bool, cap: float, stream: Words
) -> float:
    """min(M, cap): fresh draws until the arm at `rank` (from 0) wins, including the winning draw.

    `among` is 1 for plain draws, or rank + 1 for draws in which the arm's perturbation is the largest up to its rank.
    """
    draws = 1.0
    while draws < cap:
        if pareto:
            won = _wins_pareto(ranked, rank, among, eta, alpha, stream)
        else:
            won = _wins_frechet(ranked, rank, among, eta, alpha, stream)
        if won:
            break
        draws += 1.0
    return draws


@compiled
def _wins_frechet(ranked: Floats, rank: int, among: int, eta: float, alpha: float, stream: Words) -> bool:
    # A perturbation is t ** (-1/alpha) with t exponential; the largest of several has the smallest t.
    tail = -math.log(uniform(stream)) / among
    own = inverse_root_excess(tail, alpha)
    # All rivals stay behind with probability exp(-sum of their levels), given that `among - 1` of them have t > tail.
    life = (among - 1) * tail - math.log(uniform(stream))
    for k in range(len(ranked)):
        if k != rank:
            excess = own + eta * (ranked[k] - ranked[rank])
            if excess <= -1.0:
                return False
            life -= inverse_power(excess, alpha)
            if not life >= 0.0:
                return False
    return True


@compiled
def _wins_pareto(ranked: Floats, rank: int, among: int, eta: float, alpha: float, stream: Words) -> bool:
    # A perturbation is t ** (-1/alpha) with t uniform.
    tail = uniform(stream)
    mark = uniform(stream)
    if among > 1:
        tail = -math.expm1(math.log(tail) / among)
        mark *= math.exp((among - 1) * math.log1p(-tail))
    own = inverse_root_excess(tail, alpha)
    chance = 1.0
    for k in range(len(ranked)):
        if k != rank:
            excess = own + eta * (ranked[k] - ranked[rank])
            if excess <= 0.0:
                return False
            chance *= 1.0 - inverse_power(excess, alpha)
            if not chance >= mark:
                return False
    return True
