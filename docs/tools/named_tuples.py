"""Shows the constructor of a named tuple, with its fields as parameters, as Griffe does for a dataclass."""

from typing import Any

from griffe import Class, Extension, Function, Module, Parameter, ParameterKind, Parameters
from overrides import classes_in


class NamedTuples(Extension):
    """Adds an `__init__` to every named tuple."""

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        """Rewrite the classes once all files of the package are read."""
        for kind in classes_in(pkg):
            if "NamedTuple" in map(str, kind.bases):
                kind.set_member("__init__", constructor(kind))


def constructor(kind: Class) -> Function:
    """A constructor that takes the fields in order."""
    place = ParameterKind.positional_or_keyword
    fields = (
        Parameter(name, annotation=each.annotation, kind=place, default=each.value)
        for name, each in kind.attributes.items()
        if each.annotation is not None and "property" not in each.labels
    )
    parameters = Parameters(Parameter("self", kind=place), *fields)
    return Function("__init__", parameters=parameters, returns="None", parent=kind)
