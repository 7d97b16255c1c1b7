"""Which requests may be sent a second time."""

import re
from dataclasses import dataclass
from typing import Self
from urllib.parse import unquote

from ..errors import ParameterError, invalid_value

_RULE = re.compile(r"(\*|[A-Za-z]+) +(/\S*)")
# An upstream may resolve these, so that a path leads elsewhere than a rule says: `..`, `//`, and both encoded.
_EVASIVE = re.compile(rb"//|/\.{1,2}(/|$)|%2e|%2f|%5c|\\", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Rule:
    """A method and a pattern of paths, in which `*` stands for anything.

    >>> rule = Rule.parse("repeat", "POST /v1/chat/*")
    >>> rule.covers("POST", "/v1/chat/completions"), rule.covers("GET", "/v1/chat/completions")
    (True, False)
    >>> Rule.parse("repeat", "/v1/chat")
    Traceback (most recent call last):
        ...
    decoupled.errors.ParameterError: repeat = '/v1/chat': must be a method and a path; for example "GET /*" or "POST /v1/search"
    """

    method: str
    path: re.Pattern[str]

    @classmethod
    def parse(cls, place: str, text: object) -> Self:
        """The rule that a text such as "GET /*" spells."""
        found = _RULE.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            remedy = 'for example "GET /*" or "POST /v1/search"'
            raise ParameterError(invalid_value(place, text, "must be a method and a path", remedy))
        pattern = ".*".join(re.escape(part) for part in found[2].split("*"))
        return cls(found[1].upper(), re.compile(pattern, re.DOTALL))

    def covers(self, method: str, path: str) -> bool:
        """Whether a request is one of those that the rule is about."""
        return self.method in ("*", method) and self.path.fullmatch(path) is not None


@dataclass(frozen=True, slots=True)
class Repeatable:
    """The rules of a mirror.

    Attributes:
        repeat: requests that are safe to send twice.
        skip: exceptions to them.
        dry_run: a header that marks a request as harmless, whatever its method; None if there is none.

    >>> rules = Repeatable((Rule.parse("repeat", "GET /*"),), (Rule.parse("skip", "GET /logout"),), b"x-dry-run")
    >>> rules.allows("GET", b"/items", []), rules.allows("GET", b"/logout", []), rules.allows("GET", b"/a/../logout", [])
    (True, False, False)
    >>> rules.allows("POST", b"/orders", []), rules.allows("POST", b"/orders", [(b"x-dry-run", b"1")])
    (False, True)
    """

    repeat: tuple[Rule, ...]
    skip: tuple[Rule, ...]
    dry_run: bytes | None

    def allows(self, method: str, raw_path: bytes, headers: list[tuple[bytes, bytes]]) -> bool:
        """Whether a request may be sent twice."""
        if _EVASIVE.search(raw_path):
            return False
        path = unquote(raw_path.decode("latin-1"))
        if any(rule.covers(method, path) for rule in self.skip):
            return False
        if self.dry_run is not None and any(name == self.dry_run for name, _ in headers):
            return True
        return any(rule.covers(method, path) for rule in self.repeat)
