"""Draws from p = q / sum q in O(log K), and an unbiased sum of q, where q never grows with rank.

Ranks are cut into strata: the first few alone, then blocks that grow with their first rank, so that a
stratum from rank r on (counted from 1) ends before rank `GROWTH` * r. The *envelope* holds q at its
value on the first rank of each stratum. Its sum is at most `GROWTH` times sum q: both sums are linear in
q, a q that never grows is a mixture of steps that fall from 1 to 0 after some rank n, and for such a step
the ratio is the last rank of n's stratum over n.

Ranks settle ties by the arms' numbers here, so an arm is drawn anew among those that tie with the one at
the rank drawn: all of them are explored equally often, and the weight 1 / q of the *rank* stays unbiased,
since an arm i of a tie g is then drawn with sum_{k in g} q_k / |g| / sum q and each rank k of it adds
q_k * (1 / q_k) / |g| to the expectation.
"""

from typing import NamedTuple

from ..arrays import Floats, Words
from .compiled import compiled
from .powers import inverse_power
from .sampling import categorical
from .stream import below, uniform
from .tier_blocks import count_before, home_of
from .tiers import Tiers, count_of, value_at

GROWTH = 1.5


class Surrogate(NamedTuple):
    """What q takes besides the rank: q = min((1 + eta * gap) ** -exponent, limit[rank])."""

    ranked: Tiers
    limit: Floats
    lowest: float
    eta: float
    exponent: float


@compiled
def surrogate_at(q: Surrogate, rank: int) -> float:
    """Q of the arm at a rank, counted from 0."""
    by_gap = inverse_power(q.eta * (value_at(q.ranked, rank) - q.lowest), q.exponent)
    share: float = min(by_gap, q.limit[rank])
    return share


@compiled
def stratum_size(first: int, arms: int) -> int:
    """How many ranks the stratum has that begins with rank `first`, counted from 0."""
    return min(max(1, (first + 1) // 2), arms - first)


@compiled
def fill_envelope(q: Surrogate, envelope: Floats) -> tuple[int, float]:
    """The envelope's share on each stratum; returns the number of strata and the sum."""
    arms = count_of(q.ranked)
    first, stratum, whole = 0, 0, 0.0
    while first < arms:
        size = stratum_size(first, arms)
        envelope[stratum] = size * surrogate_at(q, first)
        whole += envelope[stratum]
        first += size
        stratum += 1
    return stratum, whole


@compiled
def ranks_above(q: Surrogate, least: float, most: int) -> int:
    """How many of the first ranks, up to `most`, have a q of at least `least`."""
    low, high = 0, min(most, count_of(q.ranked))
    while low < high:
        middle = (low + high) // 2
        if surrogate_at(q, middle) >= least:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def draw_rank(q: Surrogate, envelope: Floats, whole: float, stream: Words) -> int:
    """A rank drawn with probability q / sum q exactly; more than two tries in three succeed."""
    arms = count_of(q.ranked)
    while True:
        stratum = categorical(envelope, whole, stream)
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

    It is at least q at the first rank, which is 1, and at most the sum of the envelope.
    """
    arms = count_of(q.ranked)
    first, whole = 0, 0.0
    for stratum in range(len(envelope)):
        size = stratum_size(first, arms)
        if size == 1:
            whole += envelope[stratum]
        else:
            whole += size * surrogate_at(q, first + below(size, stream))
        first += size
    return whole


@compiled
def draw_tied(tiers: Tiers, rank: int, stream: Words) -> int:
    """A rank drawn evenly among those whose estimate is that of `rank`."""
    value, last = value_at(tiers, rank), tiers.length - 1
    alone_before = rank == 0 or value_at(tiers, rank - 1) != value
    if alone_before and (rank == last or value_at(tiers, rank + 1) != value):
        return rank
    first = _rank_before(tiers, value, -1)
    return first + below(_rank_before(tiers, value, tiers.length) - first, stream)


@compiled
def _rank_before(tiers: Tiers, value: float, arm: int) -> int:
    """How many arms come before (value, arm)."""
    block = home_of(tiers, value, arm)
    rank: int = tiers.starts[block] + count_before(tiers, block, value, arm)
    return rank
