"""Serial numbers of arms: an arm's identity, whatever happens to names and places."""

from typing import NamedTuple

import numpy as np

from ..base.arrays import Ints


class Serials(NamedTuple):
    """The serial numbers of the arms in the order of their places, which is the order of their arrival.

    Pending decisions refer to arms by serial: places shift when an arm is retired, and a new arm may reuse a name.
    """

    born: int  # the number of arms ever added, and the next arm's serial
    kept: Ints | None = None  # by place, ascending; None while no arm was retired and serials equal places

    def of(self, places: Ints) -> Ints:
        """The serials at these places."""
        return places if self.kept is None else self.kept[places]

    def of_one(self, place: int) -> int:
        """The serial at a place."""
        return place if self.kept is None else int(self.kept[place])

    def place(self, serial: int) -> int | None:
        """The place of a serial, or None if the arm was retired."""
        if self.kept is None:
            return serial
        place = int(np.searchsorted(self.kept, serial))
        return place if place < len(self.kept) and self.kept[place] == serial else None

    def places(self, serials: Ints) -> tuple[Ints, Ints]:
        """The places of the serials that are still there, and the indices of those serials."""
        if self.kept is None:
            return serials, np.arange(len(serials))
        places = np.searchsorted(self.kept, serials)
        found = np.flatnonzero(self.kept[np.minimum(places, len(self.kept) - 1)] == serials)
        return places[found], found

    def first_from(self, serial: int) -> int:
        """The first place with this serial or a later one."""
        return serial if self.kept is None else int(np.searchsorted(self.kept, serial))

    def extended(self, newcomers: int) -> "Serials":
        """A copy with this many more arms."""
        born = self.born + newcomers
        if self.kept is None:
            return Serials(born)
        return Serials(born, np.concatenate([self.kept, np.arange(self.born, born)]))

    def only(self, places: Ints) -> "Serials":
        """A copy with only the arms at these places, which are in order."""
        return self._replace(kept=self.of(places))
