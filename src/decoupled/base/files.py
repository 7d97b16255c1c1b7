"""Atomic writes, and files with a checksum."""

import errno
import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TEMPORARY = "."  # the prefix of unfinished files


def write_atomically(path: str | os.PathLike[str], content: str | bytes, *, overwrite: bool = True) -> None:
    """Write a file atomically: a reader sees the old content or the new, even after a crash."""
    with replacing(path, overwrite=overwrite) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def replacing(path: str | os.PathLike[str], *, overwrite: bool = True) -> Iterator[Path]:
    """Yield a temporary file to fill, which then replaces `path`; after a failure it is deleted.

    Without `overwrite`, an existing file stays and raises `FileExistsError`.
    """
    target = Path(path)
    if not overwrite and os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(path))
    # Not from tempfile: a file made by open() has the user's default permissions.
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
    """Link a finished file to its name, which must not exist. Return False if the file system has no links."""
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
    """The bytes of a file: a checksum, then the body."""
    return hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def read_with_checksum(path: str | os.PathLike[str]) -> bytes | None:
    """The body of a file that begins with its checksum; None if it is missing, truncated or altered."""
    try:
        content = Path(path).read_bytes()
    except OSError:
        return None
    body = content.partition(b"\n")[2]
    return body if content == with_checksum(body) else None
