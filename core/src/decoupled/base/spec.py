"""Frozen descriptions, which print as their call and survive a JSON round trip."""

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
    _classes: ClassVar[dict[str, type["Description"]]]  # those that were defined so far, by name

    def __init_subclass__(
        cls,
        *,
        kind: str | None = None,
        package: str | None = None,
        abstract: bool = False,
        **options: Any,
    ) -> None:
        super().__init_subclass__(**options)
        if kind is not None:  # the root of a family: policies, environments
            cls._begin_family(kind, package)
        elif abstract:  # a base of others, which no description names
            cls.homes.pop(cls.__name__, None)
        else:
            cls._register()

    @classmethod
    def _begin_family(cls, kind: str, package: str | None) -> None:
        """Note the modules of the package's own classes, which its stub lists."""
        cls.kind = kind
        homes = exports(package) if package else {}
        cls.homes = {
            name: home
            for name, home in homes.items()
            if home.startswith(f"{package}.") and home != cls.__module__
        }
        cls._classes = {}

    @classmethod
    def _register(cls) -> None:
        """Register a class by its name, and by its module if the package has one of that name."""
        cls._load(cls.__name__)  # so that the package's own class comes first
        registered = cls._classes.get(cls.__name__)
        if registered is None or registered.__module__ == cls.__module__:
            cls._classes[cls.__name__] = cls
        elif registered.__module__ == cls.homes.get(cls.__name__):
            cls._classes[f"{cls.__module__}.{cls.__name__}"] = cls
        else:
            rule = f"{registered.__module__} has a {cls.kind} of that name; choose another"
            raise ParameterError(f"class {cls.__name__}: {rule}")

    @classmethod
    def _name(cls) -> str:
        """The name in files and tables."""
        full_name = f"{cls.__module__}.{cls.__name__}"
        return full_name if full_name in cls._classes else cls.__name__

    @property
    def label(self) -> str:
        """The name, with the parameters that differ from their defaults.

        >>> import decoupled as dc
        >>> dc.FTPL().label, dc.FTPL(c=4).label
        ('FTPL', 'FTPL(c=4)')
        """
        texts = [parameter_text(name, value) for name, value in self._changed().items()]
        return f"{self._name()}({', '.join(texts)})" if texts else self._name()

    def _changed(self, always: Container[str] = ()) -> dict[str, Any]:
        """The parameters that are not at their defaults, and those named in `always`."""
        changed = {}
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if value != field.default or field.name in always:
                changed[field.name] = value
        return changed

    def to_dict(self) -> dict[str, Any]:
        """The name and every parameter as plain values, also those at their defaults.

        >>> import decoupled as dc
        >>> dc.TsallisINF().to_dict()["solver"]
        'newton'
        """
        content = {"name": self._name()}
        for field in fields(self):  # type: ignore[arg-type]
            content[field.name] = _plain(getattr(self, field.name))
        return content

    def _short_repr(self, always: tuple[str, ...] = ()) -> str:
        """The call with the parameters that are not at their defaults, and those named."""
        changed = self._changed(always)
        parameters = ", ".join(f"{name}={value!r}" for name, value in changed.items())
        return f"{type(self).__qualname__}({parameters})"

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
            rule = "must be an object with a 'name'"
            raise ParameterError.of(cls.kind, values, rule, "see to_dict()")
        parameters = dict(values)
        name = parameters.pop("name")
        described = cls.find(name)
        if described is None:
            what = cls.__name__ if cls.__name__ in cls._classes else cls.kind
            remedy = near_name(name, list(cls.known()))
            raise ParameterError.of("name", name, f"is not a known {what}", remedy)
        return described(**_complete(described, name, parameters))

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
        classes = {name: cls.find(name) for name in sorted(cls._classes)}
        return {name: described for name, described in classes.items() if described is not None}

    @classmethod
    @contextmanager
    def forget_new(cls) -> Iterator[None]:
        """Forget, at the end of a block, the classes of this family that were defined in it.

        Tests that define classes use this, so that other tests do not list them, or may use their
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
        classes_before = dict(cls._classes)
        try:
            yield
        finally:
            own = {
                name: described
                for name, described in cls._classes.items()
                if described.__module__ == cls.homes.get(name)
            }
            cls._classes.clear()
            cls._classes.update({**own, **classes_before})

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Examples to test the class with.

        Usually they are the defaults, then one for each option that changes the behaviour.

        The contract suite of this package runs every test with every example.

        >>> import decoupled as dc
        >>> dc.Exp3.examples()[:2]
        (Exp3(c=2.0), Exp3(c=0.5))
        """
        return (cls(),)

    @classmethod
    def _group(cls) -> str:
        """The group of entry points by which installed packages add classes."""
        return "decoupled.policies" if cls.kind == "policy" else f"decoupled.{cls.kind}s"

    @classmethod
    def _load(cls, name: str | None = None) -> None:
        """Import the file that defines a name, or all files."""
        homes = cls.homes.values() if name is None else [cls.homes.get(name)]
        for home in list(homes):
            if home is not None:
                import_module(home)

    @classmethod
    def find(cls, name: object) -> type[Self] | None:
        """The class with this name; None if there is none.

        Another package's class may also be named with its module before it (`mine.FTPL`).
        """
        if not isinstance(name, str):
            return None
        cls._load(name)
        if name not in cls._classes:  # an installed package may have it
            for entry in entry_points(group=cls._group(), name=name):
                import_module(entry.value)
        described = cls._classes.get(name)
        if described is None:
            module, _, short_name = name.rpartition(".")
            candidate = cls._classes.get(short_name)
            if candidate is not None and module and candidate.__module__ == module:
                described = candidate
        # A class that is not itself a dataclass is a base for others.
        if described is None or "__dataclass_fields__" not in vars(described):
            return None
        return described if issubclass(described, cls) else None


def _complete(described: type[Any], name: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a class, with those that were added since they were written."""
    declared = fields(described)
    allowed = [field.name for field in declared]
    for key in parameters:
        if key not in allowed:
            rule = f"is not a parameter of {name}"
            raise ParameterError.of(key, parameters[key], rule, near_name(key, allowed))
    for field in declared:
        if field.default is MISSING and field.name not in parameters:
            raise ParameterError(f"{field.name}: is missing; {name} needs it")
    added = {
        field.name: field.metadata["before"] for field in declared if "before" in field.metadata
    }
    if parameters.keys() == set(allowed) - added.keys():
        return {**parameters, **added}
    return parameters


def _plain(value: Any) -> Any:
    """A parameter as JSON has it."""
    if isinstance(value, Description):
        return value.to_dict()
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items()}
    if isinstance(value, tuple):
        return list(value)
    return value.tolist() if isinstance(value, np.ndarray) else value


def parameter_text(name: str, value: object) -> str:
    """A parameter as in a call, with as few digits as give the same value."""
    if isinstance(value, float) and float(f"{value:g}") == value:
        return f"{name}={value:g}"
    return f"{name}={value!r}"
