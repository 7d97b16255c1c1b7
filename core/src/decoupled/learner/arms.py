"""The names of the arms: 0, 1, ..., or a list of names; and their serial numbers."""

import operator
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..base.arrays import Ints
from ..decision import Arm
from ..errors import ArmError, near_name, shown

Arms: TypeAlias = int | Iterable[Arm]
"""The names of the arms, or their number: they are then called 0, 1, 2 and so on."""

MOST_ARMS = 10**9
MOST_BITS = 1_000  # of a whole number that is a name; Python does not spell any number


class ArmNames:
    """The arms in order, and the place of each name.

    >>> arms = ArmNames.checked(["red", "green"])
    >>> arms.place("green"), "blue" in arms, len(arms)
    (1, False, 2)
    """

    def __init__(self, names: Sequence[Arm]) -> None:
        self.names = names
        # The place of a numbered arm is its number; only names need a table.
        self._places: dict[Arm, int] | None = None
        if not isinstance(names, range):
            self._places = {name: place for place, name in enumerate(names)}
            if len(self._places) < len(names):
                twice = next(
                    name for place, name in enumerate(names) if self._places[name] != place
                )
                raise ArmError(f"arms: {twice!r} appears twice; give every arm a name of its own")

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
            numbered = f"the arms are 0 to {len(self.names) - 1}"
            hint = numbered if self._places is None else near_name(name, self.names)
            raise ArmError(f"arm = {shown(name)}: is not an arm of this learner; {hint}")
        return place

    def places(self, names: Collection[Any]) -> Ints:
        """The places of a set of arms, in order."""
        if self._places is not None and set(map(type, names)) == {str}:  # nearly always
            try:
                return np.array(sorted({self._places[name] for name in names}), np.int64)
            except KeyError:
                pass  # the error says which name
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
        newcomers = [checked_name(name, "names") for name in names]
        seen: set[Arm] = set()
        for name in newcomers:
            if name in seen:
                raise ArmError(f"names: {name!r} appears twice; give every arm a name of its own")
            if name in self:
                remedy = "choose another name, or retire that arm first"
                raise ArmError(f"names: {name!r} is already an arm of this learner; {remedy}")
            seen.add(name)
        count = len(self) + len(newcomers)
        if count > MOST_ARMS:
            rule = f"would make {count:,} arms, and there must not be more than {MOST_ARMS:,}"
            raise ArmError.of("names", newcomers, rule, "retire others first")
        if isinstance(self.names, range) and newcomers == list(range(len(self), count)):
            return ArmNames(range(count))
        return ArmNames([*self.names, *newcomers])

    def without(self, gone: Ints) -> "ArmNames":
        """A copy without the arms at these places."""
        if len(self) - len(gone) < 2:
            named = [self.names[place] for place in gone]
            left = len(self) - len(gone)
            rule = f"would leave {left} of {len(self)} arms, and at least two must stay"
            raise ArmError.of("names", named, rule, "add others first")
        return ArmNames(
            [self.names[place] for place in np.delete(np.arange(len(self)), gone).tolist()]
        )

    def to_json(self) -> int | list[Arm]:
        """The number of arms or the list of names, as `ArmNames.checked` takes it."""
        return len(self.names) if self._places is None else list(self.names)


def _checked(arms: Arms) -> Sequence[Arm]:
    """The names of arms that a user gave, in a list or as a number; an error if they are none."""
    if isinstance(arms, (str, bytes, bool)):
        raise ArmError(
            f"arms = {arms!r}: must be a number or a list of names; put the names in a list"
        )
    refuse_set("arms", arms)
    if isinstance(arms, Iterable) and getattr(arms, "ndim", 1) == 1:
        names = [checked_name(name) for name in arms]
    else:
        try:
            count = operator.index(arms)  # type: ignore[arg-type]
        except TypeError:
            rule = "must be a number or a list of names"
            example = "for example 3, or ['a', 'b', 'c']"
            raise ArmError(f"arms = {shown(arms)}: {rule}; {example}") from None
        if count > MOST_ARMS:
            raise ArmError(f"arms = {shown(arms)}: must not exceed {MOST_ARMS:,}; check the number")
        names = range(count)  # type: ignore[assignment]
    if len(names) < 2:
        rule = "must be at least two; with one arm there is nothing to decide"
        raise ArmError(f"arms = {shown(arms)}: {rule}")
    return names


def refuse_set(argument: str, arms: object) -> None:
    """Raise an error if arms whose order counts have none."""
    if isinstance(arms, (set, frozenset)):
        rule = "is a set, whose order differs from one process to the next"
        raise ArmError(f"{argument} = {shown(arms)}: {rule}; give a list, such as sorted(...)")


def listed(argument: str, names: object) -> list[object]:
    """The arms that a user named in an iterable, as a list."""
    if type(names) is list or type(names) is tuple:  # nearly always
        return [*names]
    if (
        isinstance(names, (str, bytes))
        or not isinstance(names, Iterable)
        or getattr(names, "ndim", 1) != 1
    ):
        raise ArmError(
            f"{argument} = {shown(names)}: must be a list of arms; put the names in a list"
        )
    return list(names)


def listed_available(available: Iterable[Arm] | None) -> list[object] | None:
    """The available arms as a list, made before the lock is taken because the iterable may use the
    learner.
    """
    names = None if available is None else listed("available", available)
    if names == []:
        raise ArmError("available = []: names no arm; leave it out if every arm is available")
    return names


def checked_name(name: object, argument: str = "arms") -> Arm:
    """The name of an arm as a string or a whole number of Python.

    >>> checked_name("red"), checked_name(np.int64(3))
    ('red', 3)
    """
    if isinstance(name, str):
        return str.__str__(name)  # that of an enum is the name of its member
    if not isinstance(name, bool):
        try:
            number = operator.index(name)  # type: ignore[arg-type]
            if number.bit_length() <= MOST_BITS:
                return number
            raise ArmError(f"{argument}: {shown(name)} is too large for a name; use a string")
        except TypeError:
            pass
    raise ArmError(f"{argument}: {shown(name)} is not a valid name; use strings or whole numbers")


# Serial numbers of arms: an arm's identity, whatever happens to names and places


class Serials(NamedTuple):
    """The serial numbers of the arms in the order of their places, which is the order of their
    arrival.

    Pending decisions refer to arms by serial: places shift when an arm is retired, and a new arm
    may reuse a name.

    Attributes:
        n_ever: the number of arms ever added, and the next arm's serial.
        kept: the serials by place, ascending; None while no arm was retired and serials equal
            places.
    """

    n_ever: int
    kept: Ints | None = None

    def ids(self, places: Ints) -> Ints:
        """The serials at these places."""
        return places if self.kept is None else self.kept[places]

    def id_at(self, place: int) -> int:
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
        indices = np.flatnonzero(self.kept[np.minimum(places, len(self.kept) - 1)] == serials)
        return places[indices], indices

    def first_from(self, serial: int) -> int:
        """The first place with this serial or a later one."""
        return serial if self.kept is None else int(np.searchsorted(self.kept, serial))

    def extended(self, newcomers: int) -> "Serials":
        """A copy with this many more arms."""
        n_ever = self.n_ever + newcomers
        if self.kept is None:
            return Serials(n_ever)
        return Serials(n_ever, np.concatenate([self.kept, np.arange(self.n_ever, n_ever)]))

    def restricted_to(self, places: Ints) -> "Serials":
        """A copy with only the arms at these places, which are in order."""
        return self._replace(kept=self.ids(places))
