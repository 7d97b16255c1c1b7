"""Expands compressed answers, up to a limit: a small one may have gigabytes in it."""

import zlib
from dataclasses import replace

from .exchange import Answer

# The windows that zlib is tried with. Some servers send `deflate` without the frame that it should have.
_WINDOWS = {"gzip": (31,), "x-gzip": (31,), "deflate": (15, -15)}
_MOST_CODINGS = 3  # each may take as long as the whole answer
_DROPPED = ("content-encoding", "content-length")


def expanded(answer: Answer, limit: int) -> Answer:
    """The answer without its codings. It is cut at the limit, as a plain one is, and nothing beyond it is expanded.

    One that is broken, or has a coding other than gzip and deflate, or more than three, stays as it is.

    >>> import gzip
    >>> small = Answer("a", 200, (("content-encoding", "gzip"),), gzip.compress(bytes(10**6)), complete=True)
    >>> len(expanded(small, 10**6).body), len(expanded(small, 1000).body), expanded(small, 1000).complete
    (1000000, 1000, False)
    """
    named = ",".join(value for name, value in answer.headers if name.lower() == "content-encoding")
    codings = [each for each in "".join(named.lower().split()).split(",") if each not in ("", "identity")]
    if not 1 <= len(codings) <= _MOST_CODINGS or not _WINDOWS.keys() >= set(codings):
        return answer
    body, complete = answer.body, answer.complete
    for coding in reversed(codings):
        found = _inflated(body, coding, limit)
        if found is None:
            return answer
        body, complete = found[0], complete and found[1]
    headers = tuple(each for each in answer.headers if each[0].lower() not in _DROPPED)
    return replace(answer, body=body, headers=headers, complete=complete)


def _inflated(body: bytes, coding: str, limit: int) -> tuple[bytes, bool] | None:
    """At most so many bytes, and whether they are all; None if this is not the coding."""
    for window in _WINDOWS[coding]:
        inflating = zlib.decompressobj(window)
        try:
            found = inflating.decompress(body, limit + 1)
        except zlib.error:
            continue
        whole = inflating.eof or not body  # an empty answer, such as one to HEAD
        return found[:limit], whole and not inflating.unused_data and len(found) <= limit
    return None
