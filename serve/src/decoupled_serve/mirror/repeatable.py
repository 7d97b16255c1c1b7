"""Decides which requests may be sent a second time."""

import posixpath
import re
import unicodedata
from dataclasses import dataclass
from typing import Self
from urllib.parse import unquote

from decoupled.errors import ParameterError

_RULE = re.compile(r"(\*|[A-Za-z]+) +(/\S*)")
# Encoded separators, which some upstreams decode before they look at a path and some after.
_SEPARATORS = re.compile(rb"%2f|%5c", re.IGNORECASE)
# Parameters, queries, other separators, and what no name contains: an upstream may cut a path there.
_SPECIAL = re.compile(r"[;?#\\\x00-\x1f\x7f]")
# With these headers, some upstreams take a request for one with another method or another path.
_OVERRIDES = frozenset(
    (
        b"x-http-method",
        b"x-http-method-override",
        b"x-method-override",
        b"x-original-url",
        b"x-rewrite-url",
    )
)
_NOT_DRY = frozenset((b"", b"0", b"false", b"no", b"off"))


def normal_path(raw: bytes) -> str | None:
    """A path as every upstream understands it; None if two of them might understand it differently.

    >>> normal_path(b"/v1/my%20items/"), normal_path(b"/log%6fut")
    ('/v1/my items/', '/logout')
    >>> [normal_path(each) for each in (b"/a/../b", b"//b", b"/b;x=1", b"/b%00", b"/b%20", b"/b%2fc", b"/b%2541")]
    [None, None, None, None, None, None, None]
    """
    if _SEPARATORS.search(raw):
        return None
    try:
        path = unquote(raw.decode("ascii"), errors="strict")
    except UnicodeDecodeError:
        return None
    if (
        _SPECIAL.search(path)
        or unquote(path) != path
        or unicodedata.normalize("NFKC", path) != path
    ):
        return None
    # Some servers cut off spaces and dots at the ends.
    if any(each != each.strip() or each.endswith(".") for each in path.split("/")):
        return None
    return (
        path if posixpath.normpath(path) == (path.rstrip("/") or "/") and "//" not in path else None
    )


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
    def parse(cls, place: str, text: object, *, loosely: bool = False) -> Self:
        """The rule that a text such as "GET /*" spells; `loosely`, also for paths in any case and with a slash at their end."""
        found = _RULE.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            remedy = 'for example "GET /*" or "POST /v1/search"'
            raise ParameterError.of(place, text, "must be a method and a path", remedy)
        pattern = ".*".join(re.escape(part) for part in found[2].split("*"))
        if loosely:
            pattern = f"(?i:{pattern.removesuffix('/')}/?)"
        return cls(found[1].upper(), re.compile(pattern, re.DOTALL))

    def covers(self, method: str, path: str) -> bool:
        """Whether a request is one of those that the rule is about."""
        return self.method in ("*", method) and self.path.fullmatch(path) is not None


@dataclass(frozen=True, slots=True)
class Repeatable:
    """The rules of a mirror. If in doubt, a request may not be sent twice.

    >>> skip = Rule.parse("skip", "GET /logout", loosely=True)
    >>> rules = Repeatable((Rule.parse("repeat", "GET /*"),), (skip,), b"x-dry-run")
    >>> rules.allows("GET", b"/items", []), rules.allows("GET", b"/Logout/", []), rules.allows("GET", b"/a/../logout", [])
    (True, False, False)
    >>> rules.allows("POST", b"/orders", []), rules.allows("POST", b"/orders", [(b"x-dry-run", b"1")])
    (False, True)
    >>> rules.allows("POST", b"/orders", [(b"x-dry-run", b"0")])
    False
    """

    repeat: tuple[Rule, ...]  # requests that are safe to send twice
    skip: tuple[Rule, ...]  # exceptions to them, in any case and with or without a slash at the end
    # a header that marks a request as harmless, whatever its method; None if there is none
    dry_run: bytes | None

    def allows(self, method: str, raw_path: bytes, headers: list[tuple[bytes, bytes]]) -> bool:
        """Whether a request may be sent twice."""
        path = normal_path(raw_path)
        if path is None or any(name in _OVERRIDES for name, _ in headers):
            return False
        if any(rule.covers(method, path) for rule in self.skip):
            return False
        marks = [value.strip().lower() for name, value in headers if name == self.dry_run]
        if marks and not any(each in _NOT_DRY for each in marks):
            return True
        return any(rule.covers(method, path) for rule in self.repeat)
