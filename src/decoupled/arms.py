"""The names of the arms: a number of them, or a list of names."""

import operator
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from .arrays import Ints
from .decision import Arm
from .errors import ArmError, near_name, shown

Arms: TypeAlias = int | Iterable[Arm]

MOST_ARMS = 10**9


class _Places:
    """From a name to its place, in 16 bytes an arm where a dictionary takes 75: hashes, in order."""

    def __init__(self, names: Sequence[Arm]) -> None:
        hashes = np.fromiter(map(hash, names), np.int64, len(names))
        by_hash = np.argsort(hashes, kind="stable").astype(np.int64)
        hashes = hashes[by_hash]
        self._names = names
        # Arrays of the standard library: finding one number in them is several times as fast as in NumPy's.
        self._hashes = array("q", hashes.tobytes())
        self._places = array("q", by_hash.tobytes())
        if (hashes[1:] == hashes[:-1]).any():
            self._refuse_twins()

    def __getitem__(self, name: Arm) -> int:
        sought = hash(name)
        for i in range(bisect_left(self._hashes, sought), len(self._hashes)):
            if self._hashes[i] != sought:
                break
            if self._names[self._places[i]] == name:
                return self._places[i]
        raise KeyError(name)

    def _refuse_twins(self) -> None:
        """Two names of one hash are most likely one name."""
        seen: set[Arm] = set()
        for name in self._names:
            if name in seen:
                raise ArmError(f"arms: {name!r} appears twice; give every arm a name of its own")
            seen.add(name)


class ArmNames:
    """The arms in order, and the way from a name to its place."""

    def __init__(self, arms: Arms) -> None:
        self.names: Sequence[Arm] = _checked(arms)
        # Numbered arms are their own places; a table is made only for names.
        self._places = None if isinstance(self.names, range) else _Places(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def place(self, name: object) -> int:
        """The place of one arm."""
        try:
            # 1.0 and True equal 1, but they are not the name of an arm.
            key = _checked_name(name)
            if self._places is not None:
                return self._places[key]
            if key in self.names:
                return int(key)
        except (ArmError, KeyError):
            pass
        raise ArmError(f"arm = {shown(name)}: is not an arm of this learner; {self._hint(name)}")

    def places(self, names: Iterable[object]) -> Ints:
        """The places of a set of available arms, in order."""
        if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
            raise ArmError(f"available = {shown(names)}: must be a list of arms; put the names in a list")
        places = {self.place(name) for name in names}
        if not places:
            raise ArmError("available = []: names no arm; leave it out where every arm can be had")
        return np.array(sorted(places), np.int64)

    def to_json(self) -> int | list[Arm]:
        """What `ArmNames` takes to make these again."""
        return len(self.names) if self._places is None else list(self.names)

    def _hint(self, name: object) -> str:
        if self._places is None:
            return f"the arms are 0 to {len(self.names) - 1}"
        return near_name(name, self.names)


def _checked(arms: Arms) -> Sequence[Arm]:
    if isinstance(arms, (str, bytes, bool)):
        raise ArmError(f"arms = {arms!r}: must be a number or a list of names; put the names in a list")
    if isinstance(arms, Iterable) and getattr(arms, "ndim", 1) == 1:
        names = [_checked_name(name) for name in arms]
    else:
        try:
            count = operator.index(arms)  # type: ignore[arg-type]
        except TypeError:
            raise ArmError(
                f"arms = {shown(arms)}: must be a number or a list of names; for example 3, or ['a', 'b', 'c']"
            ) from None
        if count > MOST_ARMS:
            raise ArmError(f"arms = {shown(arms)}: must not exceed {MOST_ARMS:,}; check the number")
        names = range(count)  # type: ignore[assignment]
    if len(names) < 2:
        raise ArmError(
            f"arms = {shown(arms)}: must be two at least; with one arm there is nothing to decide"
        )
    return names


def _checked_name(name: object) -> Arm:
    if isinstance(name, str):
        return str(name)
    if not isinstance(name, bool):
        try:
            return operator.index(name)  # type: ignore[arg-type]
        except TypeError:
            pass
    raise ArmError(f"arms: {shown(name)} is no name; use strings or whole numbers")
