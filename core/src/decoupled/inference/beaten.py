"""Which arms are shown to be worse than another."""

from typing import NamedTuple

import numpy as np

from ..base.arrays import Bools, Floats, Ints
from ..base.validation import LEAST_RISK, number_in
from . import comparisons
from .comparisons import Basis
from .sequences import Sequences


class Comparison(NamedTuple):
    """The arms that are not retired, each with the smallest risk at which it is shown to be worse than another.

    `gone` marks those that were shown to be, at the risk allowed. `at` is the number of observations after which the last
    of these was, 0 if there is none or it is not known; None if they are shown to be by the evidence of now.
    """

    live: Ints
    chances: Floats
    gone: Bools
    basis: Basis
    risk: float
    at: int | None = None


def compared(sequences: Sequences, risk: float | None = None, drift: bool | None = None) -> Comparison:
    """Compare all arms; see `verdict` for the arguments.

    >>> from decoupled.inference import Sequences
    >>> sequences = Sequences(arms=2)
    >>> for n in range(200):
    ...     sequences.update(explore=n % 2, weight=2.0, loss=0.25 if n % 2 else 0.75)
    >>> compared(sequences).gone.tolist()
    [True, False]
    """
    sums = sequences.sums
    limit = sums.risk if risk is None else number_in("risk", risk, LEAST_RISK, 1.0, "the default is 0.05")
    allows = sums.drift if drift is None else bool(drift)
    basis = comparisons.basis_of(sums, allows)
    live = np.array(sums.live, np.int64)
    chances = comparisons.chances(sums, live, basis)
    if (limit, allows) == (sums.risk, sums.drift):
        # An arm that was out stays out, also if the evidence has become less since.
        first: dict[int, int] = {}
        for (worse, _), shown in sums.settled.items():
            first[worse] = min(first.get(worse, shown.at), shown.at)
        at = 0 if 0 in first.values() else max(first.values(), default=0)
        return Comparison(live, chances, np.isin(live, list(first)), basis, limit, at)
    gone = chances <= limit
    if gone.all():  # each is worse than another in the rounds that compare these two: they take turns
        gone[:] = False
    return Comparison(live, chances, gone, basis, limit)


def is_beaten(sequences: Sequences, arm: int, risk: float, drift: bool) -> bool:
    """Whether it is shown, at this risk, that another arm is better than this one, which was chosen beforehand.

    >>> from decoupled.inference import Sequences
    >>> sequences = Sequences(arms=2)
    >>> for n in range(200):
    ...     sequences.update(explore=n % 2, weight=2.0, loss=0.25 if n % 2 else 0.75)
    >>> is_beaten(sequences, 0, risk=0.05, drift=True), is_beaten(sequences, 1, risk=0.05, drift=True)
    (True, False)
    """
    sums = sequences.sums
    return comparisons.chance_of(sums, arm, comparisons.basis_of(sums, drift)) <= risk
