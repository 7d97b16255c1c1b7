"""Requests and answers, as judges see them and as the queue stores them, and how compressed ones are expanded."""

import base64
import json
import zlib
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Self, TypeAlias

from .chat import conversation

Headers: TypeAlias = tuple[tuple[str, str], ...]
"""HTTP headers, as pairs of name and value."""


def body_to_json(body: bytes) -> dict[str, str]:
    r"""A body as fields of JSON: `body` if it is UTF-8, else `body_base64`.

    >>> body_to_json(b"hello"), body_to_json(b"\xff")
    ({'body': 'hello'}, {'body_base64': '/w=='})
    """
    try:
        return {"body": body.decode()}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(body).decode()}


class _Message:
    """What a request and an answer share."""

    __slots__ = ()
    headers: Headers
    body: bytes

    def header(self, name: str) -> str | None:
        """The first header with this name, None if there is none.

        Args:
            name: the name of the header, in any case.
        """
        wanted = name.lower()
        return next((value for each, value in self.headers if each.lower() == wanted), None)

    def json(self) -> Any:
        """The body as JSON; `ValueError` if it is not JSON."""
        return json.loads(self.body)

    def to_dict(self) -> dict[str, Any]:
        """The request or the answer as JSON."""
        others = [each.name for each in fields(self) if each.name not in ("headers", "body")]  # type: ignore[arg-type]
        content = {name: getattr(self, name) for name in others}
        return (
            content | {"headers": [list(each) for each in self.headers]} | body_to_json(self.body)
        )

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Self:
        """What `to_dict` wrote.

        Args:
            content: what `to_dict` returned.
        """
        others = {
            name: content[name] for name in content.keys() - {"body", "body_base64", "headers"}
        }
        headers = tuple((name, value) for name, value in content["headers"])
        text: str | None = content.get("body")
        body = base64.b64decode(content["body_base64"]) if text is None else text.encode()
        return cls(headers=headers, body=body, **others)  # type: ignore[call-arg]


@dataclass(frozen=True, slots=True)
class Request(_Message):
    """What the client asked for.

    Args:
        method: such as "GET".
        target: the path and the query, such as "/v1/items?page=2".
        headers: pairs of name and value, without credentials.
        body: the bytes that the client sent.

    >>> request = Request("POST", "/v1/sum", (("content-type", "application/json"),), b"[1, 2]")
    >>> request.json(), request.header("Content-Type"), request.text
    ([1, 2], 'application/json', '[1, 2]')
    """

    method: str
    target: str
    headers: Headers = ()
    body: bytes = b""

    @property
    def text(self) -> str:
        """What the user says: the user's messages if it is a chat, else the body as text.

        >>> Request("POST", "/v1/chat", (), b'{"messages": [{"role": "user", "content": "hi"}]}').text
        'hi'
        """
        messages = conversation(self.body)
        said = [text for role, text in messages if role == "user"]
        return "\n".join(said) if messages else self.body.decode(errors="replace")


@dataclass(frozen=True, slots=True)
class Answer(_Message):
    """What an arm answered.

    Args:
        arm: the name of the arm.
        status: the HTTP status; None if no answer came.
        headers: pairs of name and value, without cookies.
        body: the bytes that came, without gzip or deflate, up to `answer_limit`.
        size: the number of bytes that came, before they were expanded.
        latency: seconds from the end of the request to the first byte of the answer; None without one.
        duration: seconds from the end of the request to the last byte that came.
        cost: what the call cost, as the answer states it or the configuration says; None if nobody knows.
        complete: whether `body` is the whole answer; one that is longer than `answer_limit` is cut.
        problem: why no answer came, or why it broke off; None if neither happened.

    >>> Answer("small", 200, (), b'{"text": "hi"}', 14, latency=0.1, duration=0.2).json()["text"]
    'hi'
    """

    arm: str
    status: int | None
    headers: Headers = ()
    body: bytes = b""
    size: int = 0
    latency: float | None = None
    duration: float = 0.0
    cost: float | None = 0.0
    complete: bool = True
    problem: str | None = None

    @property
    def text(self) -> str:
        """The body as text; bytes that are not UTF-8 are replaced."""
        return self.body.decode(errors="replace")


Served: TypeAlias = Answer | None  # what a client got; None if nobody sees it

# The windows that zlib is tried with. Some servers send `deflate` without the frame that it should have.
_WINDOWS = {"gzip": (31,), "x-gzip": (31,), "deflate": (15, -15)}
_MOST_CODINGS = 3  # each may take as long as the whole answer
_DROPPED = ("content-encoding", "content-length")


class Unreadable(Exception):  # noqa: N818
    """An answer that cannot be read or priced. It has failed: no arm gains by what nobody can read.

    Args:
        reason: how it is counted, one of `UNREADABLE` in `counts.py`.
        problem: what is wrong with it.
        cost: what its call counts as; None for what the answer has already.
    """

    def __init__(self, reason: str, problem: str, cost: float | None = None) -> None:
        super().__init__(problem)
        self.reason = reason
        self.problem = problem
        self.cost = cost

    @classmethod
    def of(cls, error: Exception, cost: float | None = None) -> Self:
        """What an error means that was raised while an answer was read, whatever it is.

        Its text is left out if it is not one of these, because it may have what a user wrote.
        """
        if isinstance(error, Unreadable):
            return cls(error.reason, error.problem, error.cost if cost is None else cost)
        return cls("error", f"reading it raised {type(error).__name__}", cost)


def expanded(answer: Answer, limit: int) -> Answer:
    """The answer without its codings. It is cut at the limit, as a plain one is, and nothing beyond it is expanded.

    One that is broken, or has a coding other than gzip and deflate, or more than three, stays as it is.

    >>> import gzip
    >>> small = Answer("a", 200, (("content-encoding", "gzip"),), gzip.compress(bytes(10**6)), complete=True)
    >>> len(expanded(small, 10**6).body), len(expanded(small, 1000).body), expanded(small, 1000).complete
    (1000000, 1000, False)
    """
    return _expansion(answer, limit)[0]


def readable(answer: Answer, limit: int) -> Answer:
    """The answer without its codings, as `expanded` returns it; `Unreadable` if they cannot be undone.

    >>> readable(Answer("a", 200, (("content-encoding", "br"),), b"?"), 1000)
    Traceback (most recent call last):
        ...
    decoupled_serve.mirror.exchange.Unreadable: its Content-Encoding 'br' cannot be undone
    """
    found, problem = _expansion(answer, limit)
    if problem is not None:
        raise Unreadable("encoding", problem)
    return found


def _expansion(answer: Answer, limit: int) -> tuple[Answer, str | None]:
    """The answer as far as it can be expanded, and why that is not all that was meant; None if it is."""
    named = ",".join(value for name, value in answer.headers if name.lower() == "content-encoding")
    codings = [
        each for each in "".join(named.lower().split()).split(",") if each not in ("", "identity")
    ]
    if not codings:
        return answer, None
    refused = f"its Content-Encoding {named[:50]!r} cannot be undone" if answer.body else None
    if len(codings) > _MOST_CODINGS or not _WINDOWS.keys() >= set(codings):
        return answer, refused
    body, complete = answer.body, answer.complete
    problem: str | None = None
    for coding in reversed(codings):
        inflated = _inflated(body, coding, limit)
        if inflated is None:
            return answer, refused
        if complete and inflated.breaks_off:  # what was cut at the limit has to break off
            problem = "its compressed body breaks off"
        body = inflated.body
        complete = complete and inflated.is_whole
    headers = tuple(each for each in answer.headers if each[0].lower() not in _DROPPED)
    return replace(answer, body=body, headers=headers, complete=complete), problem


class _Inflated(NamedTuple):
    body: bytes  # at most as many bytes as the limit says
    is_whole: bool  # whether they are all
    breaks_off: bool  # whether the end is missing, and the limit is not the reason


def _inflated(body: bytes, coding: str, limit: int) -> _Inflated | None:
    """What a coding stands for; None if this is not the coding."""
    for window in _WINDOWS[coding]:
        inflating = zlib.decompressobj(window)
        try:
            found = inflating.decompress(body, limit + 1)
        except zlib.error:
            continue
        has_ended = inflating.eof or not body  # an empty answer, such as one to HEAD
        is_whole = has_ended and not inflating.unused_data and len(found) <= limit
        return _Inflated(found[:limit], is_whole, not has_ended and len(found) <= limit)
    return None
