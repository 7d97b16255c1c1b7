"""Finds the key of a request: requests with the same key are served by the same arm.

A request whose key is missing, empty or too long is served like one without. Keys are never logged.
"""

import json
from collections.abc import Sequence
from typing import TypeAlias

from ..errors import ParameterError
from ..learner.keys import key_text
from .config import StickyConfig

Headers: TypeAlias = Sequence[tuple[bytes, bytes]]


class KeyFinder:
    """Finds keys where the configuration says. `in_body` is whether it has to read the body for that."""

    def __init__(self, config: StickyConfig) -> None:
        self._header = None if config.header is None else config.header.lower().encode()
        self._cookie = None if config.cookie is None else config.cookie.encode()
        self._path = () if config.body is None else tuple(config.body.split("."))
        self.in_body = bool(self._path)

    def find(self, headers: Headers, body: bytes | None) -> str | None:
        """The key of a request; None if it has none.

        >>> KeyFinder(StickyConfig(header="X-Session-Id")).find([(b"x-session-id", b"17")], None)
        '17'
        >>> KeyFinder(StickyConfig(cookie="sid")).find([(b"cookie", b'theme=dark; sid="a b"')], None)
        'a b'
        >>> KeyFinder(StickyConfig(json="user.id")).find([], b'{"user": {"id": 17}}')
        '17'
        """
        if self._header is not None:
            return _checked(next((value for name, value in headers if name == self._header), None))
        if self._cookie is not None:
            return _checked(self._in_cookies(headers))
        return None if body is None else self._in_json(body)

    def _in_cookies(self, headers: Headers) -> bytes | None:
        for name, value in headers:
            for each in value.split(b";") if name == b"cookie" else ():
                key, _, found = each.partition(b"=")
                if key.strip() == self._cookie:
                    return found.strip().removeprefix(b'"').removesuffix(b'"')
        return None

    def _in_json(self, body: bytes) -> str | None:
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            return None
        for step in self._path:
            found = found.get(step) if isinstance(found, dict) else None
        return _checked(found)


def _checked(found: object) -> str | None:
    if isinstance(found, bytes):
        found = found.decode("utf-8", "replace").strip()
    try:
        return key_text(found)
    except ParameterError:
        return None
