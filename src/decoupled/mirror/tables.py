"""Reading a table of TOML with errors that name the place: `arm[1].url = 7: must be text; ...`."""

import math
import os
import re
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

from ..base.validation import as_float
from ..errors import ParameterError, invalid_value, near_name

T = TypeVar("T")
A_URL = "for example http://127.0.0.1:9001"
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


class Table:
    """A table and its place. Every key is read once; `finish` refuses those that are left."""

    def __init__(self, values: object, place: str = "") -> None:
        if not isinstance(values, dict):
            raise ParameterError(
                invalid_value(place, values, "must be a table", f"write [{place}] above its keys")
            )
        self._values, self.place, self._known = dict(values), place, set[str]()

    def name(self, key: str) -> str:
        """The full name of a key."""
        return f"{self.place}.{key}" if self.place else key

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def get(self, key: str, read: Callable[[str, Any], T], default: T) -> T:
        """The value of a key, read by `read(name, value)`; the default if the key is not there."""
        self._known.add(key)
        return read(self.name(key), self._values[key]) if key in self._values else default

    def required(self, key: str, read: Callable[[str, Any], T], remedy: str) -> T:
        """The value of a key that must be there."""
        self._known.add(key)
        if key not in self._values:
            raise ParameterError(f"{self.name(key)}: is missing; {remedy}")
        return read(self.name(key), self._values[key])

    def finish(self) -> None:
        """Refuse keys that were not read."""
        for key in self._values:
            if key not in self._known:
                raise ParameterError(
                    f"{self.name(key)}: is not a key here; {near_name(key, sorted(self._known))}"
                )


def text(name: str, value: object) -> str:
    """Text that is not empty."""
    if isinstance(value, str) and value:
        return value
    raise ParameterError(invalid_value(name, value, "must be text", "put it in quotation marks"))


def texts(name: str, value: object) -> tuple[str, ...]:
    """A list of texts."""
    if not isinstance(value, list):
        raise ParameterError(invalid_value(name, value, "must be a list", 'for example ["one", "two"]'))
    return tuple(text(f"{name}[{place}]", each) for place, each in enumerate(value))


def flag(name: str, value: object) -> bool:
    """True or false."""
    if isinstance(value, bool):
        return value
    raise ParameterError(
        invalid_value(name, value, "must be true or false", "write it without quotation marks")
    )


def number(low: float, high: float = math.inf, *, above: bool = False) -> Callable[[str, object], float]:
    """A reader of numbers from `low` to `high`; with `above`, `low` itself is refused."""

    def read(name: str, value: object) -> float:
        found = as_float(value)
        if found is None or not low <= found <= high or (above and found == low):
            ends = f"{'above' if above else 'from'} {low:g}" + (
                f" to {high:g}" if high < math.inf else " on"
            )
            ends = ends.removesuffix(" on") if above else ends
            raise ParameterError(invalid_value(name, value, f"must be a number {ends}", "choose another"))
        return found

    return read


def whole(low: int, high: int = 2**62) -> Callable[[str, object], int]:
    """A reader of whole numbers from `low` to `high`."""

    def read(name: str, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            ends = f"from {low} to {high}" if high < 2**62 else f"from {low} on"
            raise ParameterError(
                invalid_value(name, value, f"must be a whole number {ends}", "choose another")
            )
        return value

    return read


def header_names(name: str, value: object) -> tuple[str, ...]:
    """A list of names of headers."""
    return tuple(header_name(f"{name}[{place}]", each) for place, each in enumerate(texts(name, value)))


def header_name(name: str, value: object) -> str:
    """The name of a header."""
    found = text(name, value)
    if not _HEADER_NAME.fullmatch(found):
        raise ParameterError(
            invalid_value(name, value, "must be the name of a header", 'for example "X-Dry-Run"')
        )
    return found


def headers(name: str, value: object) -> tuple[tuple[str, str], ...]:
    """Headers and their values, in which `${NAME}` is an environment variable.

    >>> import os
    >>> os.environ["MODEL_KEY"] = "secret"
    >>> headers("arm[0].headers", {"Authorization": "Bearer ${MODEL_KEY}"})
    (('Authorization', 'Bearer secret'),)
    >>> headers("arm[0].headers", {"Authorization": "Bearer ${NOT_SET}"})
    Traceback (most recent call last):
        ...
    decoupled.errors.ParameterError: arm[0].headers.Authorization: the environment variable NOT_SET is not set; set it before the mirror starts
    """
    if not isinstance(value, dict):
        raise ParameterError(
            invalid_value(name, value, "must be a table", 'for example { X-Team = "search" }')
        )
    found = []
    for key, content in value.items():
        place = f"{name}.{key}"
        filled = _filled(place, text(place, content))
        if not _HEADER_VALUE.fullmatch(filled):  # the value may be a secret, so the error does not show it
            raise ParameterError(f"{place}: must be one line of Latin-1 characters; check it")
        found.append((header_name(place, key), filled))
    return tuple(found)


def url(name: str, value: object) -> str:
    """An address of HTTP."""
    found = text(name, value)
    try:
        parts = urlsplit(found)
        good = (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and not parts.query
            and parts.port != 0
        )
        good = good and found.isascii() and parts.username is None
    except ValueError:
        good = False
    if not good:
        rule = "must be an address that begins with http:// or https://, without a user or a query"
        raise ParameterError(invalid_value(name, value, rule, A_URL))
    return found


def _filled(place: str, value: str) -> str:
    """A text with the values of the environment variables that it names."""
    for variable in _VARIABLE.findall(value):
        if not os.environ.get(variable):
            rule = f"the environment variable {variable} is not set"
            raise ParameterError(f"{place}: {rule}; set it before the mirror starts")
    return _VARIABLE.sub(lambda match: os.environ[match[1]], value)
