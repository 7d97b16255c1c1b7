"""Sealed JSON: a versioned text with a checksum, so that a changed byte is noticed."""

import errno
import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .errors import StateError, shown

TEMPORARY = "."  # how the names of unfinished files begin


def _ending(body: str) -> str:
    return f',"checksum":"{hashlib.sha256(body.encode()).hexdigest()}"}}'


def seal(kind: str, version: int, content: dict[str, Any]) -> str:
    """The content as JSON text, with the format's name, its version and a checksum of the text itself."""
    body = json.dumps(
        {"format": kind, "version": version, "content": content}, separators=(",", ":"), allow_nan=False
    )
    return body[:-1] + _ending(body)


def unseal(text: str | bytes, kind: str, version: int, writer: str) -> dict[str, Any]:
    """The content of a sealed text; anything but an intact text of this version is an error."""
    remedy = f"give the text that {writer} wrote"
    try:
        whole = text if isinstance(text, str) else bytes(text).decode()
        sealed = json.loads(whole)
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


def write_atomically(path: str | os.PathLike[str], content: str | bytes, *, overwrite: bool = True) -> None:
    """Write a file whole or not at all: a reader sees the old content or the new, also after a crash."""
    with replacing(path, overwrite=overwrite) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def replacing(path: str | os.PathLike[str], *, overwrite: bool = True) -> Iterator[Path]:
    """A temporary file to fill, which then takes the place of `path`; after a failure it is gone.

    Without `overwrite` a file that is there already stays, and is a `FileExistsError`.
    """
    target = Path(path)
    if not overwrite and os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(path))
    # Not tempfile's: a file made by open() has the permissions the user's settings give to new files.
    temporary = target.with_name(f"{TEMPORARY}{target.name}.{secrets.token_hex(8)}")
    try:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        if overwrite or not _linked(temporary, target):
            os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _linked(temporary: Path, target: Path) -> bool:
    """Give a finished file its name, unless another has it by now; False where files cannot have two names."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except OSError:
        if os.path.lexists(target):
            raise
        return False
    temporary.unlink()
    return True


def with_checksum(body: bytes) -> bytes:
    """Bytes to write to a file, with a checksum before them."""
    return hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def read_with_checksum(path: str | os.PathLike[str]) -> bytes | None:
    """The bytes of a file that begins with their checksum; None where it is missing, truncated or altered."""
    try:
        content = Path(path).read_bytes()
    except OSError:
        return None
    body = content.partition(b"\n")[2]
    return body if content == with_checksum(body) else None
