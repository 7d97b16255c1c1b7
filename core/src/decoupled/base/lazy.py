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
    optional = _optional(package)
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
        setattr(sys.modules[package], name, value)  # the next use does not come here
        return value

    def names() -> list[str]:
        from importlib.util import find_spec

        # What the module holds as well, such as __version__ and __file__, but not its helpers.
        special = [name for name in vars(sys.modules[package]) if name.startswith("__")]
        installed = [name for name, needed in optional.items() if find_spec(needed)]
        return sorted({*exported, *installed, *special})

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
        match line.partition("#")[0].split():
            case ["from", module, "import", "*"]:
                other = _absolute(module, package)
                homes.update(dict.fromkeys(exports(other), other))
            case ["from", module, "import", name, "as", alias] if name == alias:
                homes[name] = _absolute(module, package)
            case ["from" | "import", *_]:
                remedy = "write one name a line, such as 'from .ftpl import FTPL as FTPL'"
                raise ImportError(f"{package}, {STUB}: {line.strip()!r} cannot be read; {remedy}")
    return homes


def _optional(package: str) -> dict[str, str]:
    """The optional package that a name needs, for each name that needs one."""
    optional = {}
    for line in _stub(package).splitlines():
        code, mark, needed = line.partition("# needs ")
        if mark:
            optional[code.split()[-1]] = needed.split()[0]
    return optional


def _absolute(module: str, package: str) -> str:
    """The full name of a module that a line of a package's stub imports from."""
    name = module.lstrip(".")
    dots = len(module) - len(name)
    parent = package.rsplit(".", dots - 1)[0]
    return f"{parent}.{name}" if name else parent


def _stub(package: str) -> str:
    """The text of a package's stub.

    The package itself may not be imported yet; the one at the top always is.
    """
    top, *below = package.split(".")
    path = os.path.join(sys.modules[top].__path__[0], *below, STUB)
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        rule = f"is missing, and {package} reads there what it exports"
        remedy = "install the package together with its .pyi files"
        raise ImportError(f"{path}: {rule}; {remedy}") from None
