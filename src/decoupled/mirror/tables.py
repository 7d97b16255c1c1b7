"""Reading a table of TOML with errors that name the place: `arm[1].url = 7: must be text; ...`."""

import os
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ..base.secret_files import read_secret
from ..errors import ParameterError, invalid_value, near_name
from ..options.readers import text, texts

T = TypeVar("T")
_PLACEHOLDER = re.compile(r"\$\{(file:[^}]+|\w+)\}")
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

    def know(self, keys: Iterable[str]) -> None:
        """Accept keys that are read elsewhere."""
        self._known.update(keys)

    def finish(self) -> None:
        """Refuse keys that were not read."""
        for key in self._values:
            if key not in self._known:
                raise ParameterError(
                    f"{self.name(key)}: is not a key here; {near_name(key, sorted(self._known))}"
                )


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
    """Headers and their values, in which `${NAME}` is an environment variable and `${file:PATH}` a file.

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


def _filled(place: str, value: str) -> str:
    """A text with the values of the environment variables, and the contents of the files, that it names."""
    return _PLACEHOLDER.sub(lambda match: _secret(place, match[1]), value)


def _secret(place: str, name: str) -> str:
    path = name.removeprefix("file:")
    if path != name:
        if not os.path.isabs(path):
            raise ParameterError(
                invalid_value(
                    place,
                    f"${{{name}}}",
                    "must have an absolute path",
                    "for example ${file:/run/secrets/key}",
                )
            )
        return read_secret(place, path)
    value = os.environ.get(name)
    if not value:
        rule = f"the environment variable {name} is not set"
        raise ParameterError(f"{place}: {rule}; set it before the mirror starts")
    return value
