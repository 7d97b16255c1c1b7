"""The regret of what was exploited, against one arm, with its confidence sequence."""

import numpy as np

from .comparisons import basis_of
from .interval import Interval
from .sequences import Sequences


def best_looking(sequences: Sequences, *, drift: bool | None = None) -> int | None:
    """The arm with the lowest estimated mean loss, of those that are not retired; None if no loss was seen.

    >>> from decoupled.inference.regrets import best_looking
    >>> sequences = Sequences(arms=2)
    >>> sequences.update(explore=1, weight=2.0, loss=0.25)
    >>> best_looking(sequences)
    1
    """
    if sequences.observed == 0:
        return None
    basis = basis_of(sequences.sums, sequences.drift if drift is None else bool(drift))
    live = sequences.live
    return live[int(np.argmin(sequences.estimates(drift=basis == "running")[live]))]


def compared_rounds(sequences: Sequences, *, drift: bool | None = None) -> int:
    """The number of rounds that `regret` is over."""
    allows = sequences.drift if drift is None else bool(drift)
    return sequences.sums.compared if allows else sum(each.used for each in sequences.sums.arms)


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
