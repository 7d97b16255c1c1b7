"""What the rank allows, tabulated: rank ** -exponent, the same for all runs of a policy.

On a CPU the table is a row of the state. On a GPU the threads of a block have one table, in the memory that
they share: there the states of a third more runs of 64 arms stay near the processor, which makes it a
quarter faster.
"""

from importlib import import_module
from typing import Any

from ...base.arrays import Floats
from ..jit import compiled
from ..numba_later import numba, overload
from .surrogates import surrogates


@compiled
def _fill(limits: Floats, arms: int, exponent: float) -> None:
    for k in range(arms):
        limits[k] = (k + 1.0) ** -exponent


def fill_limits(floats: Floats, row: int, exponent: float) -> None:
    """Fill the table, of which `row` is the number in a state's floats."""
    _fill(floats[row], floats.shape[1], exponent)


def limited_surrogates(
    floats: Floats, row: int, ranked: Floats, eta: float, exponent: float, sharing: float, out: Floats
) -> None:
    """The surrogates q of the arms in rank order."""
    surrogates(ranked, floats[row], eta, exponent, sharing, out)


@overload(fill_limits, target="cpu")
def _fill_limits(floats: Any, row: Any, exponent: Any) -> Any:
    def implementation(floats: Any, row: Any, exponent: Any) -> Any:
        if floats[row, 0] != 1.0:  # powers are dear, and these stay as they are
            _fill(floats[row], floats.shape[1], exponent)

    return implementation


@overload(limited_surrogates, target="cpu")
def _limited_surrogates(
    floats: Any, row: Any, ranked: Any, eta: Any, exponent: Any, sharing: Any, out: Any
) -> Any:
    def implementation(
        floats: Any, row: Any, ranked: Any, eta: Any, exponent: Any, sharing: Any, out: Any
    ) -> Any:
        surrogates(ranked, floats[row], eta, exponent, sharing, out)

    return implementation


# An array of no length in shared memory is as large as the launch says. It may hold what another policy
# left there, so it is always filled anew: every thread of a block writes the same.


@overload(fill_limits, target="cuda")
def _fill_shared_limits(floats: Any, row: Any, exponent: Any) -> Any:
    cuda: Any = import_module("numba.cuda")
    float64 = numba().float64

    def implementation(floats: Any, row: Any, exponent: Any) -> Any:
        _fill(cuda.shared.array(0, float64), floats.shape[1], exponent)

    return implementation


@overload(limited_surrogates, target="cuda")
def _shared_surrogates(
    floats: Any, row: Any, ranked: Any, eta: Any, exponent: Any, sharing: Any, out: Any
) -> Any:
    cuda: Any = import_module("numba.cuda")
    float64 = numba().float64

    def implementation(
        floats: Any, row: Any, ranked: Any, eta: Any, exponent: Any, sharing: Any, out: Any
    ) -> Any:
        surrogates(ranked, cuda.shared.array(0, float64), eta, exponent, sharing, out)

    return implementation
