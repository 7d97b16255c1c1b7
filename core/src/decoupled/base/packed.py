"""Arrays as short text, for JSON: compressed bytes in base 64.

Writing and reading them takes milliseconds.
"""

import base64
import hashlib
import json
import zlib
from typing import Any

import numpy as np

from ..errors import StateError, shown
from .arrays import Floats, Ints


def pack_floats(values: Floats) -> str:
    """Numbers as text, bit for bit.

    >>> unpack_floats(pack_floats(np.array([0.1, -0.0, 1e300]))).tolist()
    [0.1, -0.0, 1e+300]
    """
    return _packed(np.ascontiguousarray(values, "<f8").tobytes())


def unpack_floats(text: str) -> Floats:
    """The numbers that `pack_floats` wrote."""
    return np.frombuffer(_unpacked(text), "<f8").astype(np.float64)


def pack_ints(values: Ints) -> str:
    """Whole numbers as text. Differences are packed, so sorted numbers take little space.

    >>> unpack_ints(pack_ints(np.arange(5, 8))).tolist()
    [5, 6, 7]
    """
    return _packed(np.diff(np.ascontiguousarray(values, "<i8"), prepend=0).astype("<i8").tobytes())


def unpack_ints(text: str) -> Ints:
    """The numbers that `pack_ints` wrote.

    >>> unpack_ints(pack_ints(np.array([7, 7, 9]))).tolist()
    [7, 7, 9]
    """
    return np.cumsum(np.frombuffer(_unpacked(text), "<i8")).astype(np.int64)


def _packed(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content, 1)).decode()


def _unpacked(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text))


# Signed JSON: versioned text with a checksum, so that a changed byte is noticed


def _ending(body: str) -> str:
    """What takes the place of the last brace: the checksum of the text."""
    # Altered text may not be valid UTF-8; its checksum is wrong in any case.
    digest = hashlib.sha256(body.encode(errors="surrogatepass")).hexdigest()
    return f',"checksum":"{digest}"}}'


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def seal(kind: str, version: int, content: dict[str, Any]) -> str:
    """The content as JSON text with the format's name, its version and a checksum.

    >>> seal("note", 1, {"a": 2})[:52]
    '{"format":"note","version":1,"content":{"a":2},"chec'
    """
    envelope = {"format": kind, "version": version, "content": content}
    body = json.dumps(envelope, separators=(",", ":"), allow_nan=False)
    return body[:-1] + _ending(body)


def unseal(text: str | bytes, kind: str, version: int, writer: str) -> dict[str, Any]:
    """The content of a sealed text.

    Raise `StateError` unless the text is intact and of this version.

    >>> unseal(seal("note", 1, {"a": 2}), "note", 1, "seal()")
    {'a': 2}
    """
    remedy = f"give the text that {writer} wrote"
    try:
        plain = text if isinstance(text, str) else bytes(text).decode()
        sealed = json.loads(plain, parse_constant=_refuse)
    except (ValueError, TypeError, RecursionError) as error:
        raise StateError(f"state: is not readable JSON ({error}); {remedy}") from None
    for key in ("format", "version", "content", "checksum"):
        if not isinstance(sealed, dict) or key not in sealed:
            raise StateError(f"state: has no {key!r}; {remedy}")
    if sealed["format"] != kind:
        raise StateError(f"state: its format is {shown(sealed['format'])}, not {kind!r}; {remedy}")
    if type(sealed["version"]) is not int or sealed["version"] != version:
        rule = f"its version is {shown(sealed['version'])} and this package reads {version}"
        raise StateError(f"state: {rule}; load it with the release that wrote it")
    body = plain[: -len(_ending(""))] + "}"
    if plain != body[:-1] + _ending(body):
        raise StateError(f"state: does not match its checksum, so it was altered; {remedy}")
    content: dict[str, Any] = sealed["content"]
    return content
