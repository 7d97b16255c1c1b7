"""Which arms are shown to be worse than another."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..base.arrays import Floats, Ints
from ..base.validation import number_in
from . import comparisons
from .comparisons import Basis
from .sequences import Sequences


class Comparison(NamedTuple):
    """The arms that are not retired, each with the smallest risk at which it is shown to be worse than another.

    `gone` marks those for which that is at most the risk allowed.
    """

    live: Ints
    chances: Floats
    gone: NDArray[np.bool_]
    basis: Basis
    risk: float


def compared(sequences: Sequences, risk: float | None = None, drift: bool | None = None) -> Comparison:
    """Compare all arms; see `verdict` for the arguments.

    >>> from decoupled.inference import Sequences
    >>> sequences = Sequences(arms=2)
    >>> for n in range(200):
    ...     sequences.update(explore=n % 2, weight=2.0, loss=0.25 if n % 2 else 0.75)
    >>> compared(sequences).gone.tolist()
    [True, False]
    """
    limit = sequences.risk if risk is None else number_in("risk", risk, 0.0, 1.0, "the default is 0.05")
    basis = comparisons.basis_of(sequences.sums, sequences.drift if drift is None else bool(drift))
    live = np.array(sequences.live, np.int64)
    chances = comparisons.chances(sequences.sums, live, basis)
    gone = chances <= limit
    if gone.all():  # each is worse than another in the rounds that compare these two: they take turns
        gone[:] = False
    return Comparison(live, chances, gone, basis, limit)


def is_beaten(sequences: Sequences, arm: int, risk: float, drift: bool) -> bool:
    """Whether it is shown, at this risk, that another arm is better than this one.

    >>> from decoupled.inference import Sequences
    >>> sequences = Sequences(arms=2)
    >>> for n in range(200):
    ...     sequences.update(explore=n % 2, weight=2.0, loss=0.25 if n % 2 else 0.75)
    >>> is_beaten(sequences, 0, risk=0.05, drift=True), is_beaten(sequences, 1, risk=0.05, drift=True)
    (True, False)
    """
    found = compared(sequences, risk, drift)
    return bool(found.gone[found.live == arm].any())
