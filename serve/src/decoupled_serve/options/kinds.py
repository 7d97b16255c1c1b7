"""Kinds of options: how a value is written as text, checked, and shown."""

import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from decoupled.errors import ParameterError, near_name

from . import readers

HIDDEN = "(hidden)"
AS_POSTGRES = (
    "write postgresql://USER@HOST:PORT/DATABASE, with %40, %2F and %3F for @, / and ? in a password"
)
# As libpq reads it: user and password end at the first @, if no slash comes before it. A second @ may belong to a password
# that is not encoded, and so may anything around it.
_USER = r"(?:[\w.~+-]|%(?!3[aA])[\da-fA-F]{2})*"
_HOST = r"(?:\[[\w.:%]+\]|[\w.~%-]*)(?::\d*)?"
_PLAIN = re.compile(
    rf"postgres(?:ql)?://(?:({_USER})(?::[^@/]*)?(@))?({_HOST}(?:,{_HOST})*(?:/[^@?=\s]*)?)(?:\?[^@]*)?"
)
# Not a path, but keywords and values, or an address with another scheme.
_SECRET = re.compile(r"password\s*=|\w\w:/.*@", re.IGNORECASE | re.DOTALL)


def _unmoved(value: Any, folder: Path) -> Any:
    return value


def shown(value: Any) -> str:
    """A value as a file or a flag would have it.

    >>> shown(10_000.0), shown(("::1", 80)), shown(None), shown(False)
    ('10000', '[::1]:80', 'none', 'off')
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, tuple):
        host, port = value
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return str(value)


class Kind(NamedTuple):
    """A kind of value.

    Attributes:
        metavar: the word for it in help texts; "" for a switch.
        parse: from the text of a flag or a variable to what a TOML file would hold. Text that cannot be parsed stays
            text, and `check` refuses it.
        check: from what a TOML file holds to the value; raises an error with the given name.
        locate: a value of a file, seen from the folder of the file.
        show: a value in words, without secrets.
    """

    metavar: str
    parse: Callable[[str], object]
    check: Callable[[str, object], Any]
    locate: Callable[[Any, Path], Any] = _unmoved
    show: Callable[[Any], str] = shown


def _number_of(text: str) -> object:
    try:
        return float(text.replace("_", ""))
    except ValueError:
        return text


def _whole_of(text: str) -> object:
    try:
        return int(text)
    except ValueError:
        return text


def _switch_of(text: str) -> object:
    words = {"true": True, "1": True, "yes": True, "on": True}
    words |= {"false": False, "0": False, "no": False, "off": False}
    return words.get(text.lower(), text)


def _path_of(name: str, value: object) -> Path:
    return Path(readers.text(name, value))


def _beside(value: Path, folder: Path) -> Path:
    return folder / value


def is_postgres(address: str | os.PathLike[str]) -> bool:
    """Whether an address is one of PostgreSQL.

    >>> is_postgres("postgresql://db.internal/decoupled"), is_postgres("decisions.db")
    (True, False)
    """
    return os.fspath(address).startswith(("postgresql://", "postgres://"))


def _store_beside(value: str, folder: Path) -> str:
    return value if is_postgres(value) else str(folder / value)


def shown_store(address: str) -> str:
    """The address of a store without its password; `HIDDEN` if it is not clear where the password ends.

    >>> shown_store("postgresql://shop:se?cret@db.internal:5433/decisions?sslpassword=secret")
    'postgresql://shop@db.internal:5433/decisions'
    >>> shown_store("postgresql://shop:sec@ret@db.internal/decisions"), shown_store("decisions.db")
    ('(hidden)', 'decisions.db')
    """
    if not is_postgres(address):
        return HIDDEN if _SECRET.search(address) else address
    found = _PLAIN.fullmatch(address)
    return f"postgresql://{found[1] or ''}{found[2] or ''}{found[3]}" if found else HIDDEN


def _console_of(text: str) -> object:
    return False if _switch_of(text) is False else text


def _shown_console(value: Any) -> str:
    return "off" if value is None else shown(value)


TEXT = Kind("TEXT", str, readers.text)
PATH = Kind("PATH", str, _path_of, _beside)
STORE = Kind("PATH|postgresql://...", str, readers.text, _store_beside, shown_store)
SWITCH = Kind("", _switch_of, readers.flag)
URL = Kind("URL", str, readers.url)
ADDRESS = Kind("HOST:PORT", str, readers.address)
CONSOLE = Kind("HOST:PORT|off", _console_of, readers.console, show=_shown_console)
EXPERIMENT = Kind("NAME", str, readers.experiment_name)


def whole(low: int, high: int = 2**62) -> Kind:
    """Whole numbers from `low` to `high`."""
    return Kind("INTEGER", _whole_of, readers.whole(low, high))


def number(low: float, high: float = math.inf, *, above: bool = False) -> Kind:
    """Numbers from `low` to `high`; with `above`, `low` itself is refused."""
    return Kind("NUMBER", _number_of, readers.number(low, high, above=above))


def choice(*choices: str) -> Kind:
    """One of several words.

    >>> choice("text", "json").check("--log-format", "jsn")
    Traceback (most recent call last):
        ...
    decoupled.errors.ParameterError: --log-format = 'jsn': must be one of text, json; did you mean 'json'?
    """

    def read(name: str, value: object) -> str:
        if value in choices:
            return str(value)
        rule = f"must be one of {', '.join(choices)}"
        raise ParameterError.of(name, value, rule, near_name(value, choices))

    return Kind("|".join(choices), str, read)
