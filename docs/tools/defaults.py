"""Shows the value of a default that is the name of a constant, which a reader does not know."""

from typing import Any

from griffe import Expr, ExprName, Extension, Module, Parameter
from typed_dicts import functions_in


class Defaults(Extension):
    """Replaces names of the package's own constants by their values."""

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        """Rewrite the functions once all files of the package are read."""
        for function in functions_in(pkg):
            for parameter in function.parameters:
                parameter.default = value_of(parameter, pkg)


def value_of(parameter: Parameter, pkg: Module) -> str | Expr | None:
    """The default of a parameter; if it is a constant of the package, the value of that."""
    default = parameter.default
    if not isinstance(default, ExprName) or not default.canonical_path.startswith(f"{pkg.path}."):
        return default
    try:
        constant = pkg.modules_collection[default.canonical_path]
    except KeyError:  # one of several that are assigned together
        return default
    return constant.value if constant.is_attribute and constant.value is not None else default
