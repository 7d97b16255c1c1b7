"""Who an arm is: a number that no other arm has or will have, whatever names and places do."""

from typing import NamedTuple

import numpy as np

from ..base.arrays import Ints


class Serials(NamedTuple):
    """The serial numbers of the arms, in the order of their places, which is that of their arrival.

    What is pending speaks of arms by their serials: places shift when an arm is retired, and a name may
    come back for another arm.
    """

    born: int  # how many arms there ever were; the next one's serial
    kept: Ints | None = (
        None  # of each place, ascending; None while no arm was retired: all are their places
    )

    def of(self, places: Ints) -> Ints:
        """From places to serials."""
        return places if self.kept is None else self.kept[places]

    def of_one(self, place: int) -> int:
        """From a place to its serial."""
        return place if self.kept is None else int(self.kept[place])

    def place(self, serial: int) -> int | None:
        """From a serial to its place, None where the arm was retired."""
        if self.kept is None:
            return serial
        place = int(np.searchsorted(self.kept, serial))
        return place if place < len(self.kept) and self.kept[place] == serial else None

    def places(self, serials: Ints) -> tuple[Ints, Ints]:
        """The places of those serials whose arms are still there, and which of the serials these are."""
        if self.kept is None:
            return serials, np.arange(len(serials))
        places = np.searchsorted(self.kept, serials)
        found = np.flatnonzero(self.kept[np.minimum(places, len(self.kept) - 1)] == serials)
        return places[found], found

    def first_from(self, serial: int) -> int:
        """The place from which on all arms have this serial or a later one."""
        return serial if self.kept is None else int(np.searchsorted(self.kept, serial))

    def extended(self, newcomers: int) -> "Serials":
        """With so many arms more."""
        born = self.born + newcomers
        if self.kept is None:
            return Serials(born)
        return Serials(born, np.concatenate([self.kept, np.arange(self.born, born)]))

    def only(self, places: Ints) -> "Serials":
        """With the arms of these places alone, which are in order."""
        return self._replace(kept=self.of(places))
