"""Kinds of options: how a value is written as text, checked, and shown."""

import ipaddress
import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from decoupled.base import as_float, is_name, name_rule
from decoupled.errors import ParameterError, near_name

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
_SWITCHES = {"true": True, "1": True, "yes": True, "on": True}
_SWITCHES |= {"false": False, "0": False, "no": False, "off": False}
Location: TypeAlias = str | os.PathLike[str]  # of a store: a path, or an address of PostgreSQL


def is_postgres(address: Location) -> bool:
    """Whether an address is one of PostgreSQL.

    >>> is_postgres("postgresql://db.internal/decoupled"), is_postgres("decisions.db")
    (True, False)
    """
    return os.fspath(address).startswith(("postgresql://", "postgres://"))


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a service that listens on `host`.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


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


def text(name: str, value: object) -> str:
    """Text that is not empty."""
    if isinstance(value, str) and value:
        return value
    raise ParameterError.of(name, value, "must be text", "put it in quotation marks")


def _switch(name: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise ParameterError.of(
        name, value, "must be true or false", "write it without quotation marks"
    )


def url(name: str, value: object) -> str:
    """An address of HTTP."""
    found = text(name, value)
    try:
        parts = urlsplit(found)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and found.isascii()
        good = known and not parts.query and parts.username is None and parts.port != 0
    except ValueError:
        good = False
    if not good:
        rule = "must be an address that begins with http:// or https://, without a user or a query"
        raise ParameterError.of(name, value, rule, "for example http://127.0.0.1:9001")
    return found


def address(name: str, value: object) -> tuple[str, int]:
    """An address and a port to listen on.

    >>> address("listen", "[::1]:8080")
    ('::1', 8080)
    """
    host, colon, port = text(name, value).rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        rule = "must be an address and a port"
        raise ParameterError.of(name, value, rule, 'for example "127.0.0.1:8080"')
    return host, int(port)


def _console(name: str, value: object) -> tuple[str, int] | None:
    """An address and a port on loopback, or False for none."""
    if value is False:
        return None
    host, port = address(name, value)
    if not is_loopback(host):
        rule = "must be loopback: everyone who can reach it can see and change everything"
        remedy = (
            "use 127.0.0.1, or run `decoupled serve` with keys and give its address as `service`"
        )
        raise ParameterError.of(name, value, rule, remedy)
    return host, port


def experiment_name(name: str, value: object) -> str:
    """The name of an experiment."""
    found = text(name, value)
    if not is_name(found):
        raise ParameterError.of(name, value, name_rule(), "choose another name")
    return found


class Kind(NamedTuple):
    """A kind of value."""

    metavar: str  # the word for it in help texts; "" for a switch
    # from the name of a setting and what a TOML file holds to the value; raises an error with that name
    check: Callable[[str, object], Any]
    # from the text of a flag or a variable to what a TOML file would hold. Text that cannot be parsed stays text, and `check`
    # refuses it.
    parse: Callable[[str], object] = str
    # a value of a file, seen from the folder of the file
    locate: Callable[[Any, Path], Any] = lambda value, folder: value
    show: Callable[[Any], str] = shown  # a value in words, without secrets


def _parsed_switch(written: str) -> object:
    return _SWITCHES.get(written.lower(), written)


TEXT = Kind("TEXT", text)
PATH = Kind(
    "PATH", lambda name, value: Path(text(name, value)), locate=lambda path, folder: folder / path
)
STORE = Kind(
    "PATH|postgresql://...",
    text,
    locate=lambda value, folder: value if is_postgres(value) else str(folder / value),
    show=shown_store,
)
SWITCH = Kind("", _switch, _parsed_switch)
URL = Kind("URL", url)
ADDRESS = Kind("HOST:PORT", address)
CONSOLE = Kind(
    "HOST:PORT|off",
    _console,
    lambda written: False if _parsed_switch(written) is False else written,
    show=lambda value: "off" if value is None else shown(value),
)
EXPERIMENT = Kind("NAME", experiment_name)


def whole(low: int, high: int = 2**62) -> Kind:
    """Whole numbers from `low` to `high`."""
    rule = f"must be a whole number from {low} " + (f"to {high}" if high < 2**62 else "on")
    check = _within(low, high, rule, lambda value: value if type(value) is int else None)
    return Kind("INTEGER", check, _as(int))


def number(low: float, high: float = math.inf) -> Kind:
    """Numbers from `low` to `high`."""
    rule = f"must be a number from {low:g} " + (f"to {high:g}" if high < math.inf else "on")
    return Kind("NUMBER", _within(low, high, rule, as_float), _as(float))


def _within(
    low: float, high: float, rule: str, read: Callable[[object], float | None]
) -> Callable[[str, object], float]:
    def check(name: str, value: object) -> float:
        found = read(value)
        if found is None or not low <= found <= high:
            raise ParameterError.of(name, value, rule, "choose another")
        return found

    return check


def _as(kind: Callable[[str], object]) -> Callable[[str], object]:
    def parse(written: str) -> object:
        try:
            return kind(written)
        except ValueError:
            return written

    return parse


def choice(*choices: str) -> Kind:
    """One of several words.

    >>> choice("text", "json").check("--log-format", "jsn")
    Traceback (most recent call last):
        ...
    decoupled.errors.ParameterError: --log-format = 'jsn': must be one of text, json; did you mean 'json'?
    """

    def check(name: str, value: object) -> str:
        if value in choices:
            return str(value)
        rule = f"must be one of {', '.join(choices)}"
        raise ParameterError.of(name, value, rule, near_name(value, choices))

    return Kind("|".join(choices), check)
