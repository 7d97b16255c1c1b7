"""The surrogates q of very many arms, as a function of the rank, and draws from them.

Ranks are divided into strata: the first few alone, then blocks that grow with their first rank, so
that a stratum that begins at rank r (counted from 1) ends before rank `GROWTH` * r. The *envelope*
is constant on each stratum, with the value of q at its first rank. Its sum is at most `GROWTH`
times sum q: both sums are linear in q, a q that never grows is a mixture of steps from 1 to 0 after
a rank n, and the ratio for such a step is the last rank of n's stratum over n.

Ranks order tied arms by number. If tied arms share their limits, each has the mean of q over the
ranks of the tie, so no arm gains by its number. A mean over thousands of arms is as quick as one
over two, because the sum of rank ** -s over a range has a closed form.
"""

import math
from typing import NamedTuple

from ...base.arrays import Floats, Words
from ...kernels.jit import compiled
from ...kernels.order.tiers import Tiers, count_before, count_of, home_of, value_at
from ...kernels.powers import inverse_power
from ...kernels.random.sampling import categorical
from ...kernels.random.stream import below, uniform

GROWTH = 1.5


class Surrogate(NamedTuple):
    """The surrogate q = min((1 + eta * gap) ** -exponent, limit[rank]), by rank.

    Attributes:
        ranked: the estimates in rank order.
        limit: (1 + rank) ** -power by rank.
        lowest: the lowest estimate, from which gaps count.
        eta: the learning rate.
        exponent: how fast q falls with the gap.
        power: how fast the limit falls with the rank.
        sharing: whether tied arms share evenly.
    """

    ranked: Tiers
    limit: Floats
    lowest: float
    eta: float
    exponent: float
    power: float
    sharing: bool


@compiled
def surrogate_at(q: Surrogate, rank: int) -> float:
    """The q of the arm at a rank, counted from 0."""
    by_gap = inverse_power(q.eta * (value_at(q.ranked, rank) - q.lowest), q.exponent)
    share: float = min(by_gap, q.limit[rank])
    return share


@compiled
def stratum_size(first: int, arms: int) -> int:
    """The size of the stratum that begins at rank `first`, counted from 0."""
    return min(max(1, (first + 1) // 2), arms - first)


@compiled
def fill_envelope(q: Surrogate, envelope: Floats) -> tuple[int, float]:
    """Fill the envelope's share of each stratum. Return the number of strata and the sum."""
    arms = count_of(q.ranked)
    first = 0
    stratum = 0
    mass = 0.0
    while first < arms:
        size = stratum_size(first, arms)
        envelope[stratum] = size * surrogate_at(q, first)
        mass += envelope[stratum]
        first += size
        stratum += 1
    return stratum, mass


@compiled
def draw_rank(q: Surrogate, envelope: Floats, mass: float, stream: Words) -> int:
    """Draw a rank with probability exactly q / sum q, by rejection.

    More than two tries in three succeed.
    """
    arms = count_of(q.ranked)
    while True:
        stratum = categorical(envelope, mass, stream)
        first = 0
        for _ in range(stratum):
            first += stratum_size(first, arms)
        size = stratum_size(first, arms)
        if size == 1:
            return first
        rank = first + below(size, stream)
        if uniform(stream) * envelope[stratum] <= size * surrogate_at(q, rank):
            return rank


@compiled
def draw_sum(q: Surrogate, envelope: Floats, stream: Words) -> float:
    """An unbiased estimate of sum q: each stratum's size times q at one of its ranks.

    The estimate is at least 1, the q of the first rank, and at most the sum of the envelope.
    """
    arms = count_of(q.ranked)
    first = 0
    mass = 0.0
    for stratum in range(len(envelope)):
        size = stratum_size(first, arms)
        if size == 1:
            mass += envelope[stratum]
        else:
            mass += size * surrogate_at(q, first + below(size, stream))
        first += size
    return mass


@compiled
def tie_at(q: Surrogate, rank: int) -> tuple[int, int]:
    """The ranks that share their q with `rank`, from the first to one past the last: those with its
    estimate, or `rank` alone.
    """
    first = rank
    end = rank + 1
    if not q.sharing:
        return first, end
    tiers = q.ranked
    value = value_at(tiers, rank)
    last = tiers.length - 1
    if rank > 0 and value_at(tiers, rank - 1) == value:
        first = _rank_before(tiers, value, -1)
    if rank < last and value_at(tiers, rank + 1) == value:
        end = _rank_before(tiers, value, tiers.length)
    return first, end


@compiled
def _rank_before(tiers: Tiers, value: float, arm: int) -> int:
    """How many arms come before (value, arm)."""
    block = home_of(tiers, value, arm)
    rank: int = tiers.starts[block] + count_before(tiers, block, value, arm)
    return rank


@compiled
def shared_surrogate(q: Surrogate, first: int, end: int) -> float:
    """The mean of q over the ranks of a tie."""
    if end - first == 1:
        return surrogate_at(q, first)
    by_gap = inverse_power(q.eta * (value_at(q.ranked, first) - q.lowest), q.exponent)
    low, high = first, end  # before `low` the gap limits q, from there on the rank
    if q.limit[first] <= by_gap:
        high = first
    elif q.limit[end - 1] >= by_gap:
        low = end
    while low < high:
        middle = (low + high) // 2
        if q.limit[middle] >= by_gap:
            low = middle + 1
        else:
            high = middle
    mass = (low - first) * by_gap + sum_of_powers(q.limit, q.power, low, end)
    return mass / (end - first)


_DIRECT = 24  # from here on the series below is accurate to the last digit or two


@compiled
def sum_of_powers(limit: Floats, power: float, first: int, end: int) -> float:
    """The sum of limit[first:end] for limit[k] = (k + 1) ** -power, 0 < power < 1.

    The first few are added one by one, the others by the Euler-Maclaurin formula.
    """
    sum_of_first = 0.0
    for k in range(first, min(end, max(first + 4, _DIRECT))):
        sum_of_first += limit[k]
    start = max(first + 4, _DIRECT)
    if start >= end:
        return sum_of_first
    a = start + 1.0
    b = float(end)
    integral = a * limit[start] * math.expm1((1.0 - power) * math.log(b / a)) / (1.0 - power)
    ends = limit[start] * _corrections(a, power, 0.5) - limit[end - 1] * _corrections(
        b, power, -0.5
    )
    sum_of_others: float = integral + ends
    return sum_of_first + sum_of_others


@compiled
def _corrections(x: float, s: float, half: float) -> float:
    """The correction terms at one end of a sum of x ** -s, relative to the summand there."""
    inverse = 1.0 / x
    square = inverse * inverse
    first = s * inverse
    third = first * (s + 1.0) * (s + 2.0) * square
    fifth = third * (s + 3.0) * (s + 4.0) * square
    return half + first / 12.0 - third / 720.0 + fifth / 30240.0


@compiled
def ranks_above(q: Surrogate, least: float, most: int) -> int:
    """How many of the first ranks, up to `most`, have a shared q of at least `least`.

    Ties are not split.
    """
    low = 0
    high = min(most, count_of(q.ranked))
    if high < count_of(q.ranked):  # a tie that continues past the last of them does not count
        first, end = tie_at(q, high - 1)
        if end > high:
            high = first
    while low < high:  # shares never grow with rank and are equal within a tie
        middle = (low + high) // 2
        first, end = tie_at(q, middle)
        if shared_surrogate(q, first, end) >= least:
            low = end
        else:
            high = first
    return low
