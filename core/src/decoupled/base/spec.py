"""Frozen descriptions: values that print as the call that created them and survive a JSON round
trip.
"""

import json
from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, fields
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, ClassVar, Self

import numpy as np

from ..errors import ParameterError, near_name
from .lazy import exports


class Description:
    """The base of policies and environments, which are frozen dataclasses.

    The JSON is the name of the class and its parameters, `{"name": "FTPL", "alpha": 3.0, ...}`.
    Every concrete subclass is registered by name when it is defined. Of two with one name, the
    package's own has it, so that a file means the same everywhere; the other is called by its
    module, too: `{"name": "mine.FTPL"}`.
    """

    kind: ClassVar[str]
    homes: ClassVar[dict[str, str]]  # the modules of this package's own classes, by name
    _known: ClassVar[dict[str, type["Description"]]]

    def __init_subclass__(
        cls,
        kind: str | None = None,
        package: str | None = None,
        abstract: bool = False,
        **rest: Any,
    ) -> None:
        super().__init_subclass__(**rest)
        if (
            kind is not None
        ):  # the root of a family: policies, environments; the package's stub lists it
            cls.kind = kind
            named = exports(package).items() if package else ()
            own = f"{package}."
            cls.homes = {
                name: home
                for name, home in named
                if home.startswith(own) and home != cls.__module__
            }
            cls._known = {}
            return
        if abstract:  # a base of others, which no description names
            cls.homes.pop(cls.__name__, None)
            return
        cls._load(cls.__name__)  # so that the package's own class comes first
        before = cls._known.get(cls.__name__)
        if (
            before is not None
            and before.__module__ == cls.homes.get(cls.__name__) != cls.__module__
        ):
            cls._known[f"{cls.__module__}.{cls.__name__}"] = cls
            return
        if before is not None and before.__module__ != cls.__module__:
            rule = f"{before.__module__} has a {cls.kind} of that name; choose another"
            raise ParameterError(f"class {cls.__name__}: {rule}")
        cls._known[cls.__name__] = cls

    @classmethod
    def _name(cls) -> str:
        """The name in files and tables."""
        whole = f"{cls.__module__}.{cls.__name__}"
        return whole if whole in cls._known else cls.__name__

    @property
    def label(self) -> str:
        """A short name for tables and figures: the name, and the parameters that differ from their
        defaults.

        >>> import decoupled as dc
        >>> dc.FTPL().label, dc.FTPL(c=4).label
        ('FTPL', 'FTPL(c=4)')
        """
        shown_values = [parameter_text(name, value) for name, value in self._changed().items()]
        return self._name() + (f"({', '.join(shown_values)})" if shown_values else "")

    def _changed(self, always: Container[str] = ()) -> dict[str, Any]:
        """The parameters that are not at their defaults, and those named."""
        return {
            field.name: value
            for field in fields(self)  # type: ignore[arg-type]
            if (value := getattr(self, field.name)) != field.default or field.name in always
        }

    def to_dict(self) -> dict[str, Any]:
        """The name and every parameter, also those at their defaults, which `print` may leave out,
        as plain values.

        >>> import decoupled as dc
        >>> dc.TsallisINF().to_dict()["solver"]
        'newton'
        """
        names = (field.name for field in fields(self))  # type: ignore[arg-type]
        return {"name": self._name(), **{name: _plain(getattr(self, name)) for name in names}}

    def _short_repr(self, always: tuple[str, ...] = ()) -> str:
        """The call with the parameters that are not at their defaults, and those named."""
        told = ", ".join(f"{name}={value!r}" for name, value in self._changed(always).items())
        return f"{type(self).__qualname__}({told})"

    def to_json(self) -> str:
        """The description as JSON text."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Read what `to_dict` wrote. Missing parameters take their defaults.

        Parameters that were added since it was written take the value that stands for the behaviour
        before.

        Args:
            values: what `to_dict` returned: the name of the class, and its parameters.

        Raises:
            ParameterError: if the name is not known, or a parameter is not one of its own.

        >>> import decoupled as dc
        >>> dc.Policy.from_dict({"name": "FTPL", "c": 4.0}).label
        'FTPL(c=4)'
        """
        if not isinstance(values, dict) or "name" not in values:
            raise ParameterError.of(
                cls.kind, values, "must be an object with a 'name'", "see to_dict()"
            )
        parameters = dict(values)
        name = parameters.pop("name")
        known = cls.find(name)
        if known is None:
            what = cls.kind if cls.__name__ not in cls._known else cls.__name__
            remedy = near_name(name, list(cls.known()))
            raise ParameterError.of("name", name, f"is not a known {what}", remedy)
        declared = fields(known)  # type: ignore[arg-type]
        allowed = [field.name for field in declared]
        for key in parameters:
            if key not in allowed:
                rule = f"is not a parameter of {name}"
                raise ParameterError.of(key, parameters[key], rule, near_name(key, allowed))
        for field in declared:
            if field.default is MISSING and field.name not in parameters:
                raise ParameterError(f"{field.name}: is missing; {name} needs it")
        added = {
            each.name: each.metadata["before"] for each in declared if "before" in each.metadata
        }
        if parameters.keys() == set(allowed) - added.keys():
            parameters |= added
        return known(**parameters)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote.

        Args:
            text: what `to_json` returned.
        """
        try:
            values = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ParameterError(f"{cls.kind}: is not JSON ({error}); see to_json()") from None
        return cls.from_dict(values)

    @classmethod
    def known(cls) -> dict[str, type[Self]]:
        """Every class of this kind by name: a whole family, or the subclasses of one class."""
        cls._load()
        for entry in entry_points(group=cls._group()):
            import_module(entry.value)
        return {name: known for name in sorted(cls._known) if (known := cls.find(name)) is not None}

    @classmethod
    @contextmanager
    def forget_new(cls) -> Iterator[None]:
        """Forget, at the end of the block, the names of classes of this family that were defined in
        it.

        It is for tests that define classes, so that other tests do not list them, or may use their
        names again.

        >>> import decoupled as dc
        >>> with dc.Policy.forget_new():
        ...     class Mine(dc.FTPL):
        ...         pass
        >>> dc.Policy.from_dict({"name": "Mine"})
        Traceback (most recent call last):
            ...
        decoupled.errors.ParameterError: name = 'Mine': is not a known policy; ...
        """
        before = dict(cls._known)
        try:
            yield
        finally:
            loaded = {
                name: known
                for name, known in cls._known.items()
                if known.__module__ == cls.homes.get(name)
            }
            cls._known.clear()
            cls._known.update({**loaded, **before})

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Examples to test the class with: usually the defaults, then one for each option that
        changes the behaviour.

        The contract suite of this package runs every test with every example.

        >>> import decoupled as dc
        >>> dc.Exp3.examples()[:2]
        (Exp3(c=2.0), Exp3(c=0.5))
        """
        return (cls(),)

    @classmethod
    def _group(cls) -> str:
        """The entry points by which installed packages add classes, such as `decoupled.policies`."""
        return f"decoupled.{cls.kind}s".replace("ys", "ies")

    @classmethod
    def _load(cls, name: str | None = None) -> None:
        """Import the file that defines a name, or all files."""
        wanted = dict(cls.homes) if name is None else {name: cls.homes.get(name)}
        for home in wanted.values():
            if home is not None:
                import_module(home)

    @classmethod
    def find(cls, name: object) -> type[Self] | None:
        """The class with this name, or with its module before it (`mine.FTPL`) if it is defined;
        None if there is none.
        """
        if not isinstance(name, str):
            return None
        cls._load(name)
        if name not in cls._known:  # an installed package may have it
            for entry in entry_points(group=cls._group(), name=name):
                import_module(entry.value)
        known = cls._known.get(name)
        module, _, last = name.rpartition(".")
        if (
            known is None
            and module
            and (found := cls._known.get(last))
            and found.__module__ == module
        ):
            known = found
        # A class that is not itself a dataclass is a base for others.
        if known is None or not issubclass(known, cls) or "__dataclass_fields__" not in vars(known):
            return None
        return known


def _plain(value: Any) -> Any:
    """A parameter as JSON has it."""
    if isinstance(value, Description):
        return value.to_dict()
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, tuple):
        return list(value)
    return value.tolist() if isinstance(value, np.ndarray) else value


def parameter_text(name: str, value: object) -> str:
    """A parameter as in a call, with as few digits as give the same value."""
    if isinstance(value, float) and float(f"{value:g}") == value:
        return f"{name}={value:g}"
    return f"{name}={value!r}"
