"""Frozen descriptions: values that print as the call that created them and survive a JSON round trip."""

import json
from dataclasses import MISSING, asdict, fields, replace
from importlib import import_module
from typing import Any, ClassVar, Self, cast

from ..errors import ParameterError, near_name, shown
from .lazy import exports


class Description:
    """The base of policies and environments, which are frozen dataclasses.

    The JSON is the name of the class and its parameters, `{"name": "FTPL", "alpha": 3.0, ...}`. Every concrete
    subclass is registered by name when it is defined. A class may have *presets*, class methods without arguments,
    which have names too: `{"name": "FTPL.recommended"}`.
    """

    kind: ClassVar[str]
    homes: ClassVar[dict[str, str]]  # the modules of this package's own classes, by name
    presets: ClassVar[tuple[str, ...]] = ()

    # Parameters added later, with the values that descriptions from before implied: see `from_saved`.
    before: ClassVar[dict[str, Any]] = {}
    _known: ClassVar[dict[str, type["Description"]]]

    def __init_subclass__(
        cls, kind: str | None = None, package: str | None = None, **keywords: Any
    ) -> None:
        super().__init_subclass__(**keywords)
        if kind is not None:  # the root of a family: policies, environments; the package's stub lists it
            cls.kind = kind
            named = exports(package).items() if package else ()
            cls.homes = {
                name: home
                for name, home in named
                if home.startswith(f"{package}.") and home != cls.__module__
            }
            cls._known = {}
            return
        cls._load(cls.__name__)  # so that the package's own class comes first
        before = cls._known.get(cls.__name__)
        if before is not None and before.__module__ != cls.__module__:
            raise ParameterError(
                f"class {cls.__name__}: {before.__module__} has a {cls.kind} of that name; choose another"
            )
        cls._known[cls.__name__] = cls

    @property
    def label(self) -> str:
        """A short name for tables and figures: the name, and the parameters that differ from the nearest preset.

        >>> import decoupled as dc
        >>> dc.FTPL().label, dc.FTPL(c=4).label, dc.FTPL.recommended().label
        ('FTPL', 'FTPL(c=4)', 'FTPL recommended')
        """
        name = type(self).__name__
        shown_values = self._differences({field.name: field.default for field in fields(self)})  # type: ignore[arg-type]
        for preset in self.presets:
            differences = self._differences(vars(getattr(type(self), preset)()))
            if len(differences) < len(shown_values):
                name, shown_values = f"{type(self).__name__} {preset}", differences
        return name + (f"({', '.join(shown_values)})" if shown_values else "")

    def _differences(self, known: dict[str, Any]) -> list[str]:
        """The parameters that differ from the known values, as in a call."""
        return [
            parameter_text(name, value)
            for name in (field.name for field in fields(self))  # type: ignore[arg-type]
            if (value := getattr(self, name)) != known[name]
        ]

    def to_dict(self) -> dict[str, Any]:
        """The name and every parameter, as plain values."""
        nested = {
            field.name: value.to_dict()
            for field in fields(self)  # type: ignore[arg-type]
            if isinstance(value := getattr(self, field.name), Description)
        }
        return {"name": type(self).__name__, **asdict(self), **nested}  # type: ignore[call-overload]

    def to_json(self) -> str:
        """The description as JSON text."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Read what `to_dict` wrote. Missing parameters take their defaults, or the preset's values.

        Args:
            values: what `to_dict` returned: the name of the class or of a preset, and its parameters.

        Raises:
            ParameterError: if the name is not known, or a parameter is not one of its own.

        >>> import decoupled as dc
        >>> dc.Policy.from_dict({"name": "FTPL.recommended"}) == dc.FTPL.recommended()
        True
        >>> dc.Policy.from_dict({"name": "FTPL.recommended", "ranking": "improved"}).label
        "FTPL recommended(ranking='improved')"
        """
        if not isinstance(values, dict) or "name" not in values:
            raise ParameterError(
                f"{cls.kind} = {shown(values)}: must be an object with a 'name'; see to_dict()"
            )
        parameters = dict(values)
        name = parameters.pop("name")
        known = cls.find(name)
        if known is None:
            what = cls.kind if cls.__name__ not in cls._known else cls.__name__
            raise ParameterError(
                f"name = {shown(name)}: is not a known {what}; {near_name(name, cls.names())}"
            )
        allowed = [field.name for field in fields(known)]  # type: ignore[arg-type]
        for key in parameters:
            if key not in allowed:
                raise ParameterError(
                    f"{key} = {shown(parameters[key])}: is not a parameter of {name}; {near_name(key, allowed)}"
                )
        _, _, preset = name.partition(".")
        if preset:
            return cast(Self, replace(getattr(known, preset)(), **parameters))
        for field in fields(known):  # type: ignore[arg-type]
            if field.default is MISSING and field.name not in parameters:
                raise ParameterError(f"{field.name}: is missing; {name} needs it")
        return known(**parameters)

    @classmethod
    def from_saved(cls, values: dict[str, Any]) -> Self:
        """Read what `to_dict` wrote, perhaps in an earlier version, and keep that version's behaviour.

        >>> import decoupled as dc
        >>> saved = {"name": "FTPL", "alpha": 3.0, "c": 2.0, "ranking": "improved"}  # before there was `ties`
        >>> dc.Policy.from_saved(saved).ties, dc.Policy.from_dict(saved).ties
        ('numbered', 'shared')
        """
        return cls.from_dict(cls.completed(values))

    @classmethod
    def completed(cls, values: Any) -> Any:
        """The values, completed with what descriptions from before implied for newer parameters."""
        known = cls.find(values.get("name")) if isinstance(values, dict) else None
        if known is None:
            return values
        nested = {key: cls.completed(value) for key, value in values.items()}
        return {**known.before, **nested}

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
        return {name: known for name in sorted(cls._known) if (known := cls.find(name)) is not None}

    @classmethod
    def names(cls) -> list[str]:
        """Every name that `from_dict` accepts: those of `known`, each followed by its presets.

        >>> import decoupled as dc
        >>> [name for name in dc.Policy.names() if name.startswith("FTPL")]
        ['FTPL', 'FTPL.recommended']
        """
        return [
            each
            for name, known in cls.known().items()
            for each in (name, *(f"{name}.{preset}" for preset in known.presets))
        ]

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Examples to test the class with: usually the defaults, then one for each option that changes the behaviour.

        The contract suite of this package runs every test with every example.

        >>> import decoupled as dc
        >>> dc.Exp3.examples()[:2]
        (Exp3(c=2.0), Exp3(c=0.5))
        """
        return (cls(),)

    @classmethod
    def _load(cls, name: str | None = None) -> None:
        """Import the file that defines a name, or all files."""
        for each in cls.homes if name is None else {name} & cls.homes.keys():
            import_module(cls.homes[each])

    @classmethod
    def find(cls, name: object) -> type[Self] | None:
        """The class with this name or with a preset of this name; None if there is none."""
        if not isinstance(name, str):
            return None
        kind, dot, preset = name.partition(".")
        cls._load(kind)
        known = cls._known.get(kind)
        # A class that is not itself a dataclass is a base for others.
        if known is None or not issubclass(known, cls) or "__dataclass_fields__" not in vars(known):
            return None
        return known if not dot or preset in known.presets else None


def parameter_text(name: str, value: object) -> str:
    """A parameter as in a call, with as few digits as give the same value.

    >>> parameter_text("c", 2.0), parameter_text("ranking", "strata")
    ('c=2', "ranking='strata'")
    """
    if isinstance(value, float) and float(f"{value:g}") == value:
        return f"{name}={value:g}"
    return f"{name}={value!r}"
