"""Finds the key and the context of a request.

Requests with the same key are served by the same arm. One whose key is missing, empty or too long is served like one
without. Keys are never logged. A context has the fields by which a contextual policy learns, and verdicts are given by
segment. Clients send these values, so they are bounded: a text is cut, and what does not fit its type counts as missing.
"""

from collections.abc import Mapping
from typing import Any

from decoupled.errors import ParameterError
from decoupled.learner import LARGEST_NUMBER, key_text

from ..nested import at
from ..service.experiment.context import LONGEST_VALUE, Value
from ..service.experiment.records import FieldType
from .config import FieldConfig, StickyConfig
from .headers import Raw


class KeyFinder:
    """Finds keys where the configuration says. `in_body` is whether it has to read the body for that."""

    def __init__(self, config: StickyConfig) -> None:
        self._header = None if config.header is None else config.header.lower().encode()
        self._cookie = None if config.cookie is None else config.cookie.encode()
        self._place = config.body
        self.in_body = config.body is not None

    def find(self, headers: Raw, content: Any) -> str | None:
        """The key of a request, whose body is read as JSON; None if it has none.

        >>> KeyFinder(StickyConfig(header="X-Session-Id")).find([(b"x-session-id", b"17")], None)
        '17'
        >>> KeyFinder(StickyConfig(cookie="sid")).find([(b"cookie", b'theme=dark; sid="a b"')], None)
        'a b'
        >>> KeyFinder(StickyConfig(json="user.id")).find([], {"user": {"id": 17}})
        '17'
        """
        if self._header is not None:
            return _checked(next((value for name, value in headers if name == self._header), None))
        if self._cookie is not None:
            return _checked(self._in_cookies(headers))
        return None if self._place is None else _checked(at(content, self._place))

    def _in_cookies(self, headers: Raw) -> bytes | None:
        for name, value in headers:
            for each in value.split(b";") if name == b"cookie" else ():
                key, _, found = each.partition(b"=")
                if key.strip() == self._cookie:
                    return found.strip().removeprefix(b'"').removesuffix(b'"')
        return None


def _checked(found: object) -> str | None:
    if isinstance(found, bytes):
        found = found.decode("utf-8", "replace").strip()
    try:
        return key_text(found)
    except ParameterError:
        return None


_TRUTH = {"true": True, "1": True, "false": False, "0": False}


class ContextFinder:
    """Finds contexts where the configuration says. `in_body` is whether it has to read the body for that."""

    def __init__(self, fields: Mapping[str, FieldConfig]) -> None:
        self._fields = fields
        named = {name: field.header for name, field in fields.items()}
        self._headers = {name: each.lower().encode() for name, each in named.items() if each is not None}
        self.in_body = any(field.body is not None for field in fields.values())

    def find(self, method: str, path: bytes, headers: Raw, content: Any) -> dict[str, Value]:
        """What is known of a request, whose body is read as JSON.

        >>> fields = {"subject": {"header": "X-Subject"}, "tokens": {"json": "max_tokens", "type": "number"}, "api": {"path": 2}}
        >>> finder = ContextFinder({name: FieldConfig.model_validate(field) for name, field in fields.items()})
        >>> finder.find("POST", b"/v1/chat", [(b"x-subject", b"law")], {"max_tokens": 312})
        {'subject': 'law', 'tokens': 312.0, 'api': 'chat'}
        """
        found = {}
        for name, field in self._fields.items():
            value: Any = None
            if field.header is not None:
                value = next((each for key, each in headers if key == self._headers[name]), None)
            elif field.body is not None:
                value = at(content, field.body)
            elif field.path is not None:
                value = path if field.path == 0 else _part(path, field.path)
            else:
                value = method
            fitted = _fitted(value, field.type)
            if fitted is not None:
                found[name] = fitted
        return found


def _part(path: bytes, number: int) -> bytes | None:
    parts = path.split(b"/")
    return parts[number] if number < len(parts) else None


def _fitted(value: Any, kind: FieldType) -> Value | None:
    """A value as its type takes it; None if it does not fit."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace").strip()
    if kind == "text":
        text = str(value) if type(value) is int and abs(value) < 10**LONGEST_VALUE else value
        return text[:LONGEST_VALUE] if isinstance(text, str) and text and text.isprintable() else None
    if kind == "boolean":
        return value if isinstance(value, bool) else _TRUTH.get(str(value).lower())
    try:
        plain = isinstance(value, (str, int, float)) and not isinstance(value, bool)
        number = float(value) if plain else None
    except (ValueError, OverflowError):
        return None
    return number if number is not None and abs(number) <= LARGEST_NUMBER else None
