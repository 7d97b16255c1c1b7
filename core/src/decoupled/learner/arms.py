"""The names of the arms: 0, 1, ..., or a list of names."""

import operator
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from ..base.arrays import Ints
from ..decision import Arm
from ..errors import ArmError, near_name, shown
from .name_index import NameTable

Arms: TypeAlias = int | Iterable[Arm]
"""A number of arms, which are then called 0, 1, 2 and so on, or their names."""

MOST_ARMS = 10**9
MOST_BITS = 1_000  # of a whole number that is a name; Python does not spell any number


class ArmNames:
    """The arms in order, and the place of each name."""

    def __init__(self, names: Sequence[Arm], table: NameTable | None = None) -> None:
        self.names = names
        # The place of a numbered arm is its number; only names need a table.
        self._places = table or (None if isinstance(names, range) else NameTable.of(names))

    @classmethod
    def checked(cls, arms: Arms) -> "ArmNames":
        """Check the arms that a user gave."""
        return cls(_checked(arms))

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return self._find(name) is not None

    def place(self, name: object) -> int:
        """The place of one arm."""
        place = self._find(name)
        if place is None:
            raise ArmError(f"arm = {shown(name)}: is not an arm of this learner; {self._hint(name)}")
        return place

    def places(self, names: Iterable[object]) -> Ints:
        """The places of a set of arms, in order."""
        return np.array(sorted({self.place(name) for name in names}), np.int64)

    def _find(self, name: object) -> int | None:
        try:
            # 1.0 and True equal 1, but they are not names of arms.
            key = checked_name(name)
            if self._places is not None:
                return self._places[key]
            return int(key) if key in self.names else None
        except (ArmError, KeyError):
            return None

    def extended(self, names: Iterable[object]) -> "ArmNames":
        """A copy with these arms added at the end."""
        newcomers = self._newcomers(names)
        count = len(self) + len(newcomers)
        if count > MOST_ARMS:
            rule = f"would make {count:,} arms, and there must not be more than {MOST_ARMS:,}"
            raise ArmError.of("names", newcomers, rule, "retire others first")
        if isinstance(self.names, range) and newcomers == list(range(len(self), count)):
            return ArmNames(range(count))
        together = [*self.names, *newcomers]
        return ArmNames(together, None if self._places is None else self._places.extended(together))

    def without(self, gone: Ints) -> "ArmNames":
        """A copy without the arms at these places."""
        if len(self) - len(gone) < 2:
            named = [self.names[place] for place in gone]
            rule = f"would leave {len(self) - len(gone)} of {len(self)} arms, and at least two must stay"
            raise ArmError.of("names", named, rule, "add others first")
        left = [self.names[place] for place in np.delete(np.arange(len(self)), gone).tolist()]
        return ArmNames(left, None if self._places is None else self._places.without(gone, left))

    def _newcomers(self, names: Iterable[object]) -> list[Arm]:
        newcomers = [checked_name(name, "names") for name in names]
        seen: set[Arm] = set()
        for name in newcomers:
            if name in seen:
                raise ArmError(f"names: {name!r} appears twice; give every arm a name of its own")
            if name in self:
                remedy = "choose another name, or retire that arm first"
                raise ArmError(f"names: {name!r} is already an arm of this learner; {remedy}")
            seen.add(name)
        return newcomers

    def to_json(self) -> int | list[Arm]:
        """The number of arms or the list of names, as `ArmNames.checked` takes it."""
        return len(self.names) if self._places is None else list(self.names)

    def _hint(self, name: object) -> str:
        if self._places is None:
            return f"the arms are 0 to {len(self.names) - 1}"
        return near_name(name, self.names)


def _checked(arms: Arms) -> Sequence[Arm]:
    if isinstance(arms, (str, bytes, bool)):
        raise ArmError(f"arms = {arms!r}: must be a number or a list of names; put the names in a list")
    refuse_set("arms", arms)
    if isinstance(arms, Iterable) and getattr(arms, "ndim", 1) == 1:
        names = [checked_name(name) for name in arms]
    else:
        try:
            count = operator.index(arms)  # type: ignore[arg-type]
        except TypeError:
            rule, example = "must be a number or a list of names", "for example 3, or ['a', 'b', 'c']"
            raise ArmError(f"arms = {shown(arms)}: {rule}; {example}") from None
        if count > MOST_ARMS:
            raise ArmError(f"arms = {shown(arms)}: must not exceed {MOST_ARMS:,}; check the number")
        names = range(count)  # type: ignore[assignment]
    if len(names) < 2:
        raise ArmError(
            f"arms = {shown(arms)}: must be at least two; with one arm there is nothing to decide"
        )
    return names


def refuse_set(argument: str, arms: object) -> None:
    """Raise an error if arms whose order counts have none."""
    if isinstance(arms, (set, frozenset)):
        rule = "is a set, whose order differs from one process to the next"
        raise ArmError(f"{argument} = {shown(arms)}: {rule}; give a list, such as sorted(...)")


def listed(argument: str, names: object) -> list[object]:
    """The arms that a user named in an iterable, as a list."""
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable) or getattr(names, "ndim", 1) != 1:
        raise ArmError(f"{argument} = {shown(names)}: must be a list of arms; put the names in a list")
    return list(names)


def listed_available(available: Iterable[Arm] | None) -> list[object] | None:
    """The available arms as a list, made before the lock is taken because the iterable may use the learner."""
    some = None if available is None else listed("available", available)
    if some == []:
        raise ArmError("available = []: names no arm; leave it out if every arm is available")
    return some


def checked_name(name: object, argument: str = "arms") -> Arm:
    """The name of an arm as a string or a whole number of Python."""
    if isinstance(name, str):
        return str.__str__(name)  # that of an enum is the name of its member
    if not isinstance(name, bool):
        try:
            if (number := operator.index(name)).bit_length() <= MOST_BITS:  # type: ignore[arg-type]
                return number
            raise ArmError(f"{argument}: {shown(name)} is too large for a name; use a string")
        except TypeError:
            pass
    raise ArmError(f"{argument}: {shown(name)} is not a valid name; use strings or whole numbers")
