"""The arms that a request may choose from."""

from operator import is_
from typing import NamedTuple

from ..base.arrays import Ints
from .arms import ArmNames, Serials
from .guard import Guard


class Subset(NamedTuple):
    """The arms that a request may choose from, by their places and by their serial numbers."""

    places: Ints
    ids: tuple[int, ...]


class Subsets:
    """Finds the arms of a request. The last answer is kept: most requests name the same arms as the one before.

    Make another one when the arms or the guardrails change.

    >>> from decoupled.learner.guardrails import Guardrails
    >>> subsets = Subsets(ArmNames.checked(["a", "b", "c"]), Serials(3), Guard(Guardrails()))
    >>> subsets.find(["c", "a"]).places.tolist(), subsets.find(None)
    ([0, 2], None)
    """

    def __init__(self, arms: ArmNames, serials: Serials, guard: Guard) -> None:
        self._arms = arms
        self._serials = serials
        self._guard = guard
        self._names: list[object] = []
        self._subset: Subset | None = None
        self._up: Subset | None = None  # the arms that are not down

    def find(self, names: list[object] | None) -> Subset | None:
        """The available arms, without those that are down; None for all."""
        if names is None:
            if self._up is None and self._guard.rules.down:
                self._up = self._without_those_down(None)
            return self._up
        # By identity, because 1.0 and True equal 1, but are no names of arms.
        if len(names) != len(self._names) or not all(map(is_, names, self._names)):
            self._subset = self._without_those_down(self._arms.places(names))
            self._names = names
        return self._subset

    def _without_those_down(self, places: Ints | None) -> Subset:
        places = self._guard.available(places, self._arms)
        assert places is not None
        return Subset(places, tuple(self._serials.of(places).tolist()))
