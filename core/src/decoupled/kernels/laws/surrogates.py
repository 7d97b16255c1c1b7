"""The paper's surrogate probabilities, in rank order: the smaller of what an arm's gap and its rank allow."""

from ...base.arrays import Floats
from ..jit import compiled
from ..powers import inverse_power


@compiled
def surrogates(
    ranked: Floats, limit: Floats, eta: float, exponent: float, sharing: float, out: Floats
) -> None:
    """Fill q in rank order: (1 + eta * gap) ** -exponent, limited by the rank.

    If `sharing` is above 0, arms with equal estimates share their limits evenly, so no arm gains by its number.
    """
    lowest = ranked[0]
    done, ties = 0, 0  # most often there are no ties, so they are only counted here
    if exponent == 2.0:
        # Divisions dominate a round with many arms, and one serves two: 1/x = y * (1 / (x * y)). At 256 arms this makes
        # a round a fifth faster.
        half = len(ranked) // 2
        for k in range(half):
            x = 1.0 + eta * (ranked[k] - lowest)
            y = 1.0 + eta * (ranked[k + half] - lowest)
            both = 1.0 / (x * y)
            out[k] = min((y * both) * (y * both), limit[k])
            out[k + half] = min((x * both) * (x * both), limit[k + half])
            ties += ranked[k + 1] == ranked[k]
            ties += ranked[k + half] == ranked[k + half - 1]
        done = 2 * half
    for k in range(done, len(ranked)):
        out[k] = min(inverse_power(eta * (ranked[k] - lowest), exponent), limit[k])
        if k > 0:
            ties += ranked[k] == ranked[k - 1]
    if ties > 0 and sharing > 0.0:
        share_ties(ranked, out)


@compiled
def share_ties(ranked: Floats, shares: Floats) -> None:
    """Give arms with equal estimates the mean of their shares."""
    first, arms = 0, len(ranked)
    while first < arms:
        end, whole = first, 0.0
        while end < arms and ranked[end] == ranked[first]:
            whole += shares[end]
            end += 1
        if end - first > 1:
            mean = whole / (end - first)
            for k in range(first, end):
                shares[k] = mean
        first = end
