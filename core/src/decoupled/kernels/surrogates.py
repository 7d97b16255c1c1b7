"""The paper's surrogate probabilities: the smaller of what an arm's gap and its rank allow.

The limit of a rank, rank ** -exponent, comes from a table that is the same for all runs. On a CPU
the table is a row of the state. On a GPU the threads of a block share one table in shared memory.
That leaves room in fast memory for the states of a third more runs of 64 arms, which makes a round
a quarter faster.
"""

from importlib import import_module
from typing import Any

from ..base.arrays import Floats
from .jit import compiled
from .lazy_numba import numba, on_cpu, overload
from .powers import inverse_power


@compiled
def surrogates(
    ranked: Floats, limit: Floats, eta: float, exponent: float, is_sharing: bool, out: Floats
) -> None:
    """Fill q in rank order: (1 + eta * gap) ** -exponent, limited by the rank.

    If `is_sharing`, arms with equal estimates share their limits evenly, so no arm gains by its
    number.
    """
    lowest = ranked[0]
    # Most often there are no ties, so they are only counted here.
    done = 0
    ties = 0
    if exponent == 2.0:
        # Divisions dominate a round with many arms, and one serves two: 1/x = y * (1 / (x * y)). At
        # 256 arms this makes a round a fifth faster.
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
    if ties > 0 and is_sharing:
        share_ties(ranked, out)


@compiled
def share_ties(ranked: Floats, shares: Floats) -> None:
    """Give arms with equal estimates the mean of their shares."""
    first = 0
    arms = len(ranked)
    while first < arms:
        end = first
        tied_share = 0.0
        while end < arms and ranked[end] == ranked[first]:
            tied_share += shares[end]
            end += 1
        if end - first > 1:
            mean = tied_share / (end - first)
            for k in range(first, end):
                shares[k] = mean
        first = end


@compiled
def _fill(limits: Floats, arms: int, exponent: float) -> None:
    for k in range(arms):
        limits[k] = (k + 1.0) ** -exponent


@on_cpu
def fill_limits(floats: Floats, row: int, exponent: float) -> None:
    """Fill the table in the given row of a state's floats."""
    if floats[row, 0] != 1.0:  # powers are slow, and these never change
        _fill(floats[row], floats.shape[1], exponent)


@on_cpu
def limited_surrogates(
    floats: Floats,
    row: int,
    ranked: Floats,
    eta: float,
    exponent: float,
    is_sharing: bool,
    out: Floats,
) -> None:
    """Fill the surrogates q of the arms in rank order."""
    surrogates(ranked, floats[row], eta, exponent, is_sharing, out)


# An array of length 0 in shared memory is as large as the launch says. It may hold another policy's
# values, so it is always refilled: every thread of a block writes the same numbers. Not `strict`,
# because a lambda cannot have the annotations of its overload.


@overload(fill_limits, target="cuda", strict=False)
def _fill_shared_limits(floats: Any, row: Any, exponent: Any) -> Any:
    cuda: Any = import_module("numba.cuda")
    float64 = numba().float64
    return lambda floats, row, exponent: _fill(
        cuda.shared.array(0, float64), floats.shape[1], exponent
    )


@overload(limited_surrogates, target="cuda", strict=False)
def _shared_surrogates(
    floats: Any, row: Any, ranked: Any, eta: Any, exponent: Any, is_sharing: Any, out: Any
) -> Any:
    cuda: Any = import_module("numba.cuda")
    float64 = numba().float64
    return lambda floats, row, ranked, eta, exponent, is_sharing, out: surrogates(
        ranked, cuda.shared.array(0, float64), eta, exponent, is_sharing, out
    )
