"""Names that a package imports when they are first used, so that importing the package is quick.

The stub `__init__.pyi` is the one list of what a package exports: type checkers and editors read
it, and at run time `attach` does. It holds three kinds of lines:

    from .ftpl import FTPL as FTPL              # a name, and the file that defines it
    from . import environments as environments  # a module of the package
    from .policies import *                     # every name of another package's stub

A comment such as `# needs httpx` after a name says which optional package it needs. `import *`
leaves that name out, and `dir()` does where the package is not installed.
"""

import os
import sys
from importlib import import_module

# Type checkers know the name. Importing it from `typing` takes longer than all of this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

STUB = "__init__.pyi"


def attach(package: str) -> "tuple[Callable[[str], object], Callable[[], list[str]], list[str]]":
    """The `__getattr__`, `__dir__` and `__all__` of a package whose stub names what it exports.

    >>> get, names, exported = attach("decoupled.policies")
    >>> get("FTPL")
    <class 'decoupled.policies.ftpl.FTPL'>
    >>> "FTPL" in names(), "FTPL" in exported
    (True, True)
    """
    homes = exports(package)
    # The optional package that a name needs, for each name that needs one.
    marked = (line.partition("# needs ") for line in _stub(package).splitlines())
    optional = {line.split()[3]: needed.split()[0] for line, mark, needed in marked if mark}
    exported = sorted(homes.keys() - optional)

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if homes[name] == package:
            return import_module(f"{package}.{name}")
        try:
            value: object = getattr(import_module(homes[name]), name)
        except ModuleNotFoundError as error:
            from .extras import as_missing_extra  # only now: importing the package has to be quick

            raise (as_missing_extra(error, f"{package}.{name}") or error) from None
        setattr(sys.modules[package], name, value)  # found without this function from now on
        return value

    def names() -> list[str]:
        from importlib.util import find_spec

        # All that the module holds as well, such as __version__ and __file__, but not its helpers.
        held = [name for name in vars(sys.modules[package]) if name.startswith("__")]
        found = [name for name, needed in optional.items() if find_spec(needed)]
        return sorted({*exported, *found, *held})

    return get, names, exported


def exports(package: str) -> dict[str, str]:
    """The module that each exported name of a package comes from.

    >>> exports("decoupled.policies")["FTPL"]
    'decoupled.policies.ftpl'
    >>> exports("decoupled")["FTPL"]
    'decoupled.policies'
    """
    homes: dict[str, str] = {}
    for line in _stub(package).splitlines():
        words = line.partition("#")[0].split()
        if words[:1] == ["from"] and words[2:] == ["import", "*"]:
            other = _absolute(words[1], package)
            homes.update(dict.fromkeys(exports(other), other))
        elif (
            words[:1] == ["from"] and words[2:3] == ["import"] and words[4:] == ["as", *words[3:4]]
        ):
            homes[words[3]] = _absolute(words[1], package)
        elif words[:1] in (["from"], ["import"]):
            remedy = "write one name a line, such as 'from .ftpl import FTPL as FTPL'"
            raise ImportError(f"{package}, {STUB}: {line.strip()!r} cannot be read; {remedy}")
    return homes


def _absolute(module: str, package: str) -> str:
    """The full name of a module that a line of a package's stub imports from."""
    name = module.lstrip(".")
    dots = len(module) - len(name)
    parent = package.rsplit(".", dots - 1)[0]
    return f"{parent}.{name}" if name else parent


def _stub(package: str) -> str:
    # The package itself may not be imported yet; the one at the top always is.
    top, *below = package.split(".")
    root = sys.modules[top]
    path = os.path.join(root.__path__[0], *below, STUB)
    loader = root.__spec__.loader if root.__spec__ else None
    try:
        text: bytes = loader.get_data(path)  # type: ignore[union-attr] # also from a zip file
    except OSError:
        rule = f"is missing, and {package} reads there what it exports"
        raise ImportError(
            f"{path}: {rule}; install the package together with its .pyi files"
        ) from None
    return text.decode()
