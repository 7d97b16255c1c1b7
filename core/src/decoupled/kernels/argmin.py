"""The lowest value of a row, ties at random: what policies do that follow a mean or an index.

Such a policy keeps the three scalars below as the first of its own.
"""

import math

from ..base.arrays import Floats, Words
from .jit import compiled
from .random.stream import below
from .state import SHARED_SCALARS, State, places_of

LOWEST_SCALARS = ("lowest", "leader", "tied")
S = places_of((*SHARED_SCALARS, *LOWEST_SCALARS))


@compiled
def lowest_of(values: Floats) -> float:
    """The lowest value."""
    lowest = math.inf
    for i in range(len(values)):
        lowest = min(lowest, values[i])
    return lowest


@compiled
def fill_gaps(estimates: Floats, rate: float, gaps: Floats) -> None:
    """Fill `rate` times the distance of each estimate from the lowest.

    Args:
        estimates: a number for each arm.
        rate: the factor.
        gaps: where the result goes.

    >>> import numpy as np
    >>> gaps = np.zeros(2)
    >>> fill_gaps(np.array([3.0, 1.0]), 0.5, gaps)
    >>> gaps.tolist()
    [1.0, 0.0]
    """
    lowest = lowest_of(estimates)
    for i in range(len(estimates)):
        gaps[i] = rate * (estimates[i] - lowest)


@compiled
def sample_mean(loss_sum: float, count: float) -> float:
    """The mean of an arm's losses; -1, below every loss, for an arm not yet seen.

    Args:
        loss_sum: the sum of its losses.
        count: how many there were.

    >>> sample_mean(3.0, 4.0), sample_mean(0.0, 0.0)
    (0.75, -1.0)
    """
    return loss_sum / count if count > 0 else -1.0


@compiled
def find_lowest(state: State, row: int) -> None:
    """Store the lowest value of a row, the first arm that has it, and how many arms have it in the
    scalars `LOWEST_SCALARS`, which come first among the policy's own in its `Layout`.

    Args:
        state: the state.
        row: the row of `state.floats` to search.

    >>> from decoupled.extend import LOWEST_SCALARS, Layout
    >>> state = Layout(LOWEST_SCALARS, floats=("means",), learned=("means",)).new_state(3)
    >>> state.floats[0] = 0.5, 0.25, 0.25
    >>> find_lowest(state, 0)
    >>> lowest_law(state, 0).tolist()
    [0.0, 0.5, 0.5]
    """
    values = state.floats[row]
    lowest = math.inf
    first = 0
    tied = 0
    for i in range(len(values)):
        if values[i] < lowest:
            lowest = values[i]
            first = i
            tied = 1
        elif values[i] == lowest:
            tied += 1
    state.scalars[S.lowest] = lowest
    state.scalars[S.leader] = first
    state.scalars[S.tied] = tied


@compiled
def pick_lowest(state: State, row: int, stream: Words) -> int:
    """Draw one of the arms that `find_lowest` found. Without a tie this uses no random number.

    Args:
        state: the state.
        row: the row that `find_lowest` searched.
        stream: the random stream.
    """
    lowest = state.scalars[S.lowest]
    place = int(state.scalars[S.leader])
    tied = int(state.scalars[S.tied])
    if tied > 1:
        skip = below(tied, stream)
        while skip > 0:
            place += 1
            if state.floats[row, place] == lowest:
                skip -= 1
    return place


def lowest_law(state: State, row: int) -> Floats:
    """The law of `pick_lowest`: uniform over the arms with the lowest value.

    `find_lowest` has an example.

    Args:
        state: the state.
        row: the row that `find_lowest` searched.
    """
    leads = state.floats[row] == state.scalars[S.lowest]
    law: Floats = leads / leads.sum()
    return law
