"""Decides which headers end at the proxy, which are credentials, and which go on to an arm."""

from collections.abc import Collection, Iterable, Sequence
from typing import TypeAlias

from .exchange import Headers

Raw: TypeAlias = Sequence[tuple[bytes, bytes]]

# They concern one connection (RFC 9110, 7.6.1), so a proxy never passes them on.
HOP_BY_HOP = frozenset(
    (b"connection", b"http2-settings", b"keep-alive", b"proxy-authenticate", b"proxy-authorization",
     b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade")
)  # fmt: skip
# The server that runs the proxy has answered `Expect` already. `Host` names the upstream.
_NEVER_SENT = HOP_BY_HOP | {b"expect", b"host"}
CREDENTIALS = (
    "authorization", "cookie", "x-api-key", "api-key", "x-goog-api-key", "x-auth-token", "x-amz-security-token",
    "x-csrf-token",
)  # fmt: skip
_FORWARDED = frozenset((b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto"))


def for_arm(
    headers: Raw,
    *,
    host: bytes,  # of the arm
    own: Raw,
    dropped: Collection[bytes],
    client: str | None = None,  # its address
    scheme: str = "http",  # by which it reached the proxy
) -> list[tuple[bytes, bytes]]:
    """The headers of a request as an arm gets them.

    What else a client's `Connection` names is passed on: with it, a client could take away the length of its own body,
    or a header that was set on its way here.

    Those of the client have names in lower case. `own`, which the configuration adds, replace them, and `dropped` names
    those that are not passed on: credentials that are not meant for this arm, and marks of copies.

    >>> sent = [(b"host", b"shop"), (b"cookie", b"id=1"), (b"accept", b"*/*"), (b"connection", b"close")]
    >>> for_arm(sent, host=b"a:80", own=[(b"x-key", b"s")], dropped={b"cookie"})[:3]
    [(b'host', b'a:80'), (b'accept', b'*/*'), (b'x-key', b's')]
    """
    replaced = {name.lower() for name, _ in own}
    seen: dict[bytes, bytes] = {}
    chunked = False
    kept = [(b"host", host)]
    for name, value in headers:
        if name in _FORWARDED:  # several lines are one list (RFC 9110, 5.3)
            seen[name] = seen[name] + b", " + value if name in seen else value
        elif name == b"host":
            seen[name] = value
        elif name == b"transfer-encoding":
            chunked = True
        elif not (name in _NEVER_SENT or name in dropped or name in replaced):
            kept.append((name, value))
    if chunked:  # the body goes on as it comes, so its length is unknown here as well
        kept = [each for each in kept if each[0] != b"content-length"]
        kept.append((b"transfer-encoding", b"chunked"))
    kept += own
    if client is not None:
        before = seen.get(b"x-forwarded-for")
        address = client.encode("latin-1")
        kept.append((b"x-forwarded-for", address if before is None else before + b", " + address))
    kept.append((b"x-forwarded-host", seen.get(b"x-forwarded-host", seen.get(b"host", host))))
    kept.append((b"x-forwarded-proto", seen.get(b"x-forwarded-proto", scheme.encode())))
    return kept


def for_client(headers: Raw) -> list[tuple[bytes, bytes]]:
    """The headers of an answer as the client gets them: all but those that concern the upstream's connection.

    Chunks overrule a length that is declared as well (RFC 9112, 6.3).

    >>> for_client([(b"Content-Type", b"text/plain"), (b"Connection", b"X-Pool"), (b"X-Pool", b"3")])
    [(b'Content-Type', b'text/plain')]
    """
    dropped = set(HOP_BY_HOP)
    for name, value in headers:
        if name.lower() == b"connection":
            dropped.update(token.strip().lower() for token in value.split(b","))
        elif name.lower() == b"transfer-encoding":
            dropped.add(b"content-length")
    return [(name, value) for name, value in headers if name.lower() not in dropped]


def as_text(headers: Iterable[tuple[bytes, bytes]], without: Collection[bytes] = ()) -> Headers:
    """Headers as text, without some of them.

    >>> as_text([(b"accept", b"*/*"), (b"cookie", b"id=1")], without={b"cookie"})
    (('accept', '*/*'),)
    """
    kept = (each for each in headers if each[0].lower() not in without)
    return tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in kept)


def as_bytes(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    """Headers as they are sent, with names in lower case.

    >>> as_bytes([("X-Key", "s")])
    [(b'x-key', b's')]
    """
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
