"""Files that are written whole or not at all, and files that carry a checksum."""

import errno
import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TEMPORARY = "."  # how the names of unfinished files begin


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
