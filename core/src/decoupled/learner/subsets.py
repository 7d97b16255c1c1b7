"""The arms that a request may choose from."""

from collections.abc import Sequence
from operator import is_
from typing import NamedTuple

import numpy as np

from ..base.arrays import Ints
from ..decision import Arm
from ..errors import ArmError
from .arms import ArmNames, Serials


class Subset(NamedTuple):
    """The arms that a request may choose from, by their places and by their serial numbers."""

    places: Ints
    ids: tuple[int, ...]


class Subsets:
    """Finds the arms of a request. The last answer is kept: most requests name the same arms as the
    one before.

    Make another one when the arms, or those that are `down`, change.

    >>> subsets = Subsets(ArmNames.checked(["a", "b", "c"]), Serials(3), down=["b"])
    >>> subsets.find(["c", "b"]).places.tolist(), subsets.find(None).places.tolist()
    ([2], [0, 2])
    """

    def __init__(self, arms: ArmNames, serials: Serials, down: Sequence[Arm]) -> None:
        self._arms = arms
        self._serials = serials
        self._down = arms.places(list(down)) if down else None
        self._names: list[object] = []
        self._subset: Subset | None = None
        self._up: Subset | None = None  # the arms that are not down

    def find(self, names: list[object] | None) -> Subset | None:
        """The available arms, without those that are down; None for all."""
        if names is None:
            if self._up is None and self._down is not None:
                self._up = self._without_those_down(np.arange(len(self._arms)), self._down)
            return self._up
        # By identity, because 1.0 and True equal 1, but are no names of arms.
        if len(names) != len(self._names) or not all(map(is_, names, self._names)):
            places = self._arms.places(names)
            self._subset = self._without_those_down(places, places)
            self._names = names
        return self._subset

    def _without_those_down(self, places: Ints, named: Ints) -> Subset:
        """The arms at these places that are not down; an error shows those that were `named`."""
        if self._down is not None:
            places = np.setdiff1d(places, self._down, assume_unique=True)
        if len(places) == 0:
            names = ", ".join(repr(self._arms.names[place]) for place in named)
            problem = f"available: every arm of this decision is down ({names})"
            raise ArmError(f"{problem}; see guardrails.down")
        return Subset(places, tuple(self._serials.ids(places).tolist()))
