"""Signed JSON: versioned text with a checksum, so that a changed byte is noticed."""

import hashlib
import json
from typing import Any

from ..errors import StateError, shown


def _ending(body: str) -> str:
    # Altered text may not be valid UTF-8; its checksum is wrong in any case.
    digest = hashlib.sha256(body.encode(errors="surrogatepass")).hexdigest()
    return f',"checksum":"{digest}"}}'


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def seal(kind: str, version: int, content: dict[str, Any]) -> str:
    """The content as JSON text with the format's name, its version and a checksum."""
    body = json.dumps(
        {"format": kind, "version": version, "content": content}, separators=(",", ":"), allow_nan=False
    )
    return body[:-1] + _ending(body)


def unseal(text: str | bytes, kind: str, version: int, writer: str) -> dict[str, Any]:
    """The content of a sealed text. Raise `StateError` unless the text is intact and of this version."""
    remedy = f"give the text that {writer} wrote"
    try:
        whole = text if isinstance(text, str) else bytes(text).decode()
        sealed = json.loads(whole, parse_constant=_refuse)
    except (ValueError, TypeError, RecursionError) as error:
        raise StateError(f"state: is not readable JSON ({error}); {remedy}") from None
    for key in ("format", "version", "content", "checksum"):
        if not isinstance(sealed, dict) or key not in sealed:
            raise StateError(f"state: has no {key!r}; {remedy}")
    if sealed["format"] != kind:
        raise StateError(f"state: its format is {shown(sealed['format'])}, not {kind!r}; {remedy}")
    if type(sealed["version"]) is not int or sealed["version"] != version:
        raise StateError(
            f"state: its version is {shown(sealed['version'])} and this package reads {version}; "
            "load it with the release that wrote it"
        )
    body = whole[: -len(_ending(""))] + "}"
    if whole != body[:-1] + _ending(body):
        raise StateError(f"state: does not match its checksum, so it was altered; {remedy}")
    content: dict[str, Any] = sealed["content"]
    return content
