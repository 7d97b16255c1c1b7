"""Sealed JSON: a versioned text with a checksum, so that a changed byte is noticed."""

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from .errors import StateError


def _checksum(content: Any) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def seal(kind: str, version: int, content: dict[str, Any]) -> str:
    """The content as JSON text, with the format's name, its version and a checksum."""
    body = {"format": kind, "version": version, "content": content}
    sealed = {**body, "checksum": _checksum(body)}
    return json.dumps(sealed, separators=(",", ":"), allow_nan=False)


def _strict_float(text: str) -> float:
    number = float(text)
    if repr(number) != text:  # "1E-05" would be the same number, but no one wrote it so
        raise ValueError(f"{text} is not written as this package writes numbers")
    return number


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not a number")


def unseal(text: str | bytes, kind: str, version: int, writer: str) -> dict[str, Any]:
    """The content of a sealed text; anything but an intact text of this version is an error."""
    remedy = f"give the text that {writer} wrote"
    try:
        sealed = json.loads(text, parse_float=_strict_float, parse_constant=_refuse)
    except (ValueError, TypeError, RecursionError) as error:
        raise StateError(f"state: is not readable JSON ({error}); {remedy}") from None
    for key in ("format", "version", "content", "checksum"):
        if not isinstance(sealed, dict) or key not in sealed:
            raise StateError(f"state: has no {key!r}; {remedy}")
    if sealed["format"] != kind:
        raise StateError(f"state: its format is {sealed['format']!r}, not {kind!r}; {remedy}")
    if sealed["version"] != version or isinstance(sealed["version"], bool):
        raise StateError(
            f"state: its version is {sealed['version']!r} and this package reads {version}; "
            "load it with the release that wrote it"
        )
    checksum = sealed.pop("checksum")
    if checksum != _checksum(sealed):
        raise StateError(f"state: does not match its checksum, so it was altered; {remedy}")
    content: dict[str, Any] = sealed["content"]
    return content


def write_atomically(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file whole or not at all: a reader sees the old content or the new, also after a crash."""
    target = Path(path)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
