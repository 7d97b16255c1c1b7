"""The table of rank limits, rank ** -exponent, which is the same for all runs of a policy.

On a CPU the table is a row of the state. On a GPU the threads of a block share one table in shared memory. That leaves
room in fast memory for the states of a third more runs of 64 arms, which makes a round a quarter faster.
"""

from importlib import import_module
from typing import Any

from ...base.arrays import Floats
from ..jit import compiled
from ..lazy_numba import numba, on_cpu, overload
from .surrogates import surrogates


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
    floats: Floats, row: int, ranked: Floats, eta: float, exponent: float, sharing: float, out: Floats
) -> None:
    """Fill the surrogates q of the arms in rank order."""
    surrogates(ranked, floats[row], eta, exponent, sharing, out)


# An array of length 0 in shared memory is as large as the launch says. It may hold another policy's values, so it is
# always refilled: every thread of a block writes the same numbers. Not `strict`, because a lambda cannot have the
# annotations of its overload.


@overload(fill_limits, target="cuda", strict=False)
def _fill_shared_limits(floats: Any, row: Any, exponent: Any) -> Any:
    cuda: Any = import_module("numba.cuda")
    float64 = numba().float64
    return lambda floats, row, exponent: _fill(cuda.shared.array(0, float64), floats.shape[1], exponent)


@overload(limited_surrogates, target="cuda", strict=False)
def _shared_surrogates(
    floats: Any, row: Any, ranked: Any, eta: Any, exponent: Any, sharing: Any, out: Any
) -> Any:
    cuda: Any = import_module("numba.cuda")
    float64 = numba().float64
    return lambda floats, row, ranked, eta, exponent, sharing, out: surrogates(
        ranked, cuda.shared.array(0, float64), eta, exponent, sharing, out
    )
