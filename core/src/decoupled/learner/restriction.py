"""A state of its own for some of the arms, which is filled anew for every request that may choose
from so many.
"""

import numpy as np

from ..base.arrays import Ints
from ..kernels.state import PERIOD, SHARED_SCALARS, Layout, State


class Restriction:
    """Copies what a state has learned of some arms into a state that has room for so many, again
    and again.

    >>> layout = Layout(scalars=("level",), floats=("sums", "law"), learned=("level", "sums"))
    >>> state = layout.new_state(3)
    >>> layout.row(state, "sums")[:] = [1.0, 2.0, 3.0]
    >>> restriction = Restriction(layout, layout, arms=2)
    >>> restriction.refill(state, np.array([0, 2]))
    >>> layout.row(restriction.state, "sums").tolist()
    [1.0, 3.0]
    """

    def __init__(self, source: Layout, target: Layout, arms: int) -> None:
        self.state = target.new_state(arms)
        self._empty_scalars = self.state.scalars.copy()
        learned = [name for name in source.learned if name in target.learned]
        shared = [*SHARED_SCALARS[:PERIOD], *learned]
        self._from_scalars, self._to_scalars = _places(
            shared, source.all_scalars, target.all_scalars
        )
        self._from_floats, self._to_floats = _places(learned, source.floats, target.floats)
        self._from_ints, self._to_ints = _places(learned, source.ints, target.ints)
        self._pairs = [name for name in learned if name in source.pairs]
        self._source = source
        self._target = target
        # The arms copied last, and where the numbers that are learned of them stand.
        self._places: Ints | None = None
        self._floats_of_places = np.empty((0, arms), np.int64)
        self._ints_of_places = np.empty((0, arms), np.int64)

    def is_of(self, places: Ints) -> bool:
        """Whether these are the arms that were copied last."""
        return places is self._places

    def refill(self, state: State, places: Ints) -> None:
        """Copy what is learned of the arms at these places.

        What is derived of each arm stays as it was. The policy's `init` fills it, and starts from
        the old rank order.
        """
        if places is not self._places:
            arms = state.floats.shape[1]
            self._places = places
            self._floats_of_places = _in_rows(self._from_floats, places, arms)
            self._ints_of_places = _in_rows(self._from_ints, places, arms)
        scalars, floats, ints = self.state
        scalars[:] = self._empty_scalars
        scalars[self._to_scalars] = state.scalars.take(self._from_scalars)
        floats[self._to_floats] = state.floats.take(self._floats_of_places)
        if len(self._to_ints) > 0:
            ints[self._to_ints] = state.ints.take(self._ints_of_places)
        for name in self._pairs:
            square = self._source.row(state, name)
            self._target.row(self.state, name)[:] = square[np.ix_(places, places)]


def _in_rows(rows: Ints, places: Ints, arms: int) -> Ints:
    """Where these places of some rows stand in an array of `arms` columns that is read row by
    row.
    """
    return np.asarray(rows[:, None] * arms + places)


def _places(
    names: list[str], source: tuple[str, ...], target: tuple[str, ...]
) -> tuple[Ints, Ints]:
    """Where those of the names that stand in `source` are, and where they go."""
    own = [name for name in names if name in source]
    from_places = np.array([source.index(name) for name in own], np.int64)
    to_places = np.array([target.index(name) for name in own], np.int64)
    return from_places, to_places
