"""The regret of what was exploited, against one arm, with its confidence sequence."""

import numpy as np

from ..kernels.betting import COMPARED, USED
from .comparisons import basis_of, leader
from .interval import Interval
from .sequences import Sequences


def best_looking(sequences: Sequences, *, drift: bool | None = None) -> int | None:
    """The arm that looks best by the evidence that compares them, of those not retired; None if no loss was seen.

    >>> from decoupled.inference.regrets import best_looking
    >>> sequences = Sequences(arms=2)
    >>> sequences.update(explore=1, weight=2.0, loss=0.25)
    >>> best_looking(sequences)
    1
    """
    if sequences.observed == 0:
        return None
    sums = sequences.sums
    live = np.array(sums.live, np.int64)
    return int(live[leader(sums, live, basis_of(sums, sequences.drift if drift is None else bool(drift)))])


def compared_rounds(sequences: Sequences, *, drift: bool | None = None) -> int:
    """The number of rounds that `regret` is over."""
    allows, sums = sequences.drift if drift is None else bool(drift), sequences.sums
    return int(sums.rounds[COMPARED] if allows else sums.counts[:, USED].sum())


def regret(
    sequences: Sequences, against: int | None = None, *, drift: bool | None = None
) -> Interval | None:
    """How much more was lost, in all, than by always exploiting one arm; with its interval.

    The intervals for all arms hold together, so you may choose the arm after you have looked.

    Args:
        sequences: the sequences.
        against: the arm; by default the one that looks best now.
        drift: as in `Sequences`. If losses may drift, the regret is over the rounds that could explore every arm there
            is now; if not, over all observed rounds that exploited an arm. None if there was no such round.

    >>> from decoupled.inference import Sequences, regret
    >>> sequences = Sequences(arms=2)
    >>> for n in range(2_000):
    ...     sequences.update(explore=n % 2, weight=2.0, loss=0.25 if n % 2 else 0.75, exploit=n // 2 % 2)
    >>> [round(each) for each in regret(sequences)]
    [500, 435, 565]
    """
    arm = best_looking(sequences, drift=drift) if against is None else against
    rounds = compared_rounds(sequences, drift=drift)
    if arm is None or rounds == 0:
        return None
    less, low, high = sequences.against_served(arm, drift=drift)
    return Interval(-less, -high, -low).scaled(0.0, float(rounds))
