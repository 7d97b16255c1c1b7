"""An index from names to places by sorted hashes: 16 bytes per arm, while a dictionary takes 75."""

from array import array
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from ..base.arrays import Ints
from ..decision import Arm
from ..errors import ArmError


class NameTable:
    """The places of names. Adding or removing names makes a new table without hashing all names again."""

    def __init__(self, names: Sequence[Arm], hashes: Ints, by_hash: Ints) -> None:
        self._names = names
        # Arrays of the standard library: a search for one number is several times faster than in NumPy's.
        self._hashes = array("q", hashes.tobytes())
        self._places = array("q", by_hash.tobytes())

    @classmethod
    def of(cls, names: Sequence[Arm]) -> "NameTable":
        """Build a table, and raise an error if a name appears twice."""
        hashes = _hashes(names)
        by_hash = np.argsort(hashes, kind="stable").astype(np.int64)
        hashes = hashes[by_hash]
        if (hashes[1:] == hashes[:-1]).any():  # equal hashes are most likely equal names
            _check_unique(names)
        return cls(names, hashes, by_hash)

    def __getitem__(self, name: Arm) -> int:
        sought = hash(name)
        for i in range(bisect_left(self._hashes, sought), len(self._hashes)):
            if self._hashes[i] != sought:
                break
            if self._names[self._places[i]] == name:
                return self._places[i]
        raise KeyError(name)

    def extended(self, names: Sequence[Arm]) -> "NameTable":
        """A table of these names: those of this table, then new ones."""
        first = len(self._names)
        newcomers = _hashes(names[first:])
        by_hash = np.argsort(newcomers, kind="stable").astype(np.int64)
        hashes, places = np.frombuffer(self._hashes, np.int64), np.frombuffer(self._places, np.int64)
        added = newcomers[by_hash]
        at = np.searchsorted(hashes, added, side="right")
        return NameTable(names, np.insert(hashes, at, added), np.insert(places, at, first + by_hash))

    def without(self, gone: Ints, names: Sequence[Arm]) -> "NameTable":
        """A table of these names: those of this table without the places that are gone."""
        hashes, places = np.frombuffer(self._hashes, np.int64), np.frombuffer(self._places, np.int64)
        leaves = np.zeros(len(places), np.bool_)
        leaves[gone] = True
        stays = ~leaves[places]
        left = places[stays]
        return NameTable(names, hashes[stays], left - np.cumsum(leaves)[left])


def _hashes(names: Sequence[Arm]) -> Ints:
    return np.fromiter(map(hash, names), np.int64, len(names))


def _check_unique(names: Sequence[Arm]) -> None:
    seen: set[Arm] = set()
    for name in names:
        if name in seen:
            raise ArmError(f"arms: {name!r} appears twice; give every arm a name of its own")
        seen.add(name)
