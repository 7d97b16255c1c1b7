"""Finds the key of a request: requests with the same key are served by the same arm.

A request whose key is missing, empty or too long is served like one without. Keys are never logged.
"""

from typing import Any

from decoupled.errors import ParameterError
from decoupled.learner import key_text

from ..nested import at
from .config import StickyConfig
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
