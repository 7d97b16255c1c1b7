"""Atomic writes, and files with a checksum."""

import errno
import hashlib
import os
import re
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import ParameterError

TEMPORARY = "."  # the prefix of unfinished files
# Seconds. An unfinished file that nobody wrote to for so long is left over from a killed process.
ABANDONED = 600.0


def write_atomically(
    path: str | os.PathLike[str], content: str | bytes, *, overwrite: bool = True, tidy: bool = True
) -> None:
    """Write a file atomically: a reader sees the old content or the new, even after a crash.

    With `tidy`, remove temporary files that a killed process left when it wrote this file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically(Path(folder) / "note", "new")
    ...     (Path(folder) / "note").read_text()
    'new'
    """
    with replacing(path, overwrite=overwrite, tidy=tidy) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def replacing(
    path: str | os.PathLike[str], *, overwrite: bool = True, tidy: bool = True
) -> Iterator[Path]:
    """Yield a temporary file to fill, which then replaces `path`; after a failure it is deleted.

    Without `overwrite`, an existing file stays and raises `FileExistsError`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder) / "note") as temporary:
    ...         _ = temporary.write_text("new")
    ...     [path.name for path in Path(folder).iterdir()]
    ['note']
    """
    target = Path(path)
    if not overwrite and os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(path))
    if tidy:
        remove_abandoned(target.parent, target.name)
    # Not from tempfile: a file made by open() has the user's default permissions.
    temporary = target.with_name(f"{TEMPORARY}{target.name}.{secrets.token_hex(8)}")
    try:
        yield temporary
        with open(temporary, "r+b") as file:  # Windows flushes only what may be written
            os.fsync(file.fileno())
        if overwrite or not _link(temporary, target):
            os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def remove_abandoned(folder: Path, name: str | None = None) -> None:
    """Remove unfinished files of killed processes, for the file `name` or any if it is None."""
    target = ".+" if name is None else re.escape(name)
    pattern = re.compile(rf"{re.escape(TEMPORARY)}{target}\.[0-9a-f]{{16}}")
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if pattern.fullmatch(entry.name) and time.time() - entry.stat().st_mtime > ABANDONED:
                Path(entry).unlink(missing_ok=True)


def _link(temporary: Path, target: Path) -> bool:
    """Link a finished file to its name, which must not exist.

    Return whether the file system has links.
    """
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


def flush_folder(folder: Path) -> None:
    """Flush the names of new files to disk; Windows needs and has no such thing."""
    if os.name == "posix":
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def with_checksum(body: bytes) -> bytes:
    """The bytes of a file: a checksum, then the body. `read_with_checksum` removes the checksum.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "body"
    ...     write_atomically(file, with_checksum(b"body"))
    ...     read_with_checksum(file), read_with_checksum(Path(folder) / "none")
    (b'body', None)
    """
    return hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def read_with_checksum(path: str | os.PathLike[str]) -> bytes | None:
    """The body of a file that begins with its checksum; None if it is missing, cut or altered.

    >>> read_with_checksum("no such file") is None
    True
    """
    try:
        content = Path(path).read_bytes()
    except OSError:
        return None
    body = content.partition(b"\n")[2]
    return body if content == with_checksum(body) else None


def read_secret(name: str, path: str | os.PathLike[str]) -> str:
    r"""The secret in a file, without surrounding white space. Errors never show it.

    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "key"
    >>> _ = file.write_text("dk_example\n")
    >>> read_secret("DECOUPLED_KEY_FILE", file)
    'dk_example'
    """
    path_text = os.fspath(path)
    try:
        with open(path, encoding="utf-8") as file:
            secret = file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        rule = f"cannot be read ({reason})"
        remedy = "check the path and its permissions"
        raise ParameterError.of(name, path_text, rule, remedy) from None
    if not secret or "\n" in secret:
        remedy = "write the secret to it, and nothing else"
        raise ParameterError.of(name, path_text, "must contain one line", remedy)
    return secret


def secret_variable(name: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """The value of a variable, or the content of the file that the variable `<name>_FILE` names."""
    value = environ.get(name)
    path = environ.get(f"{name}_FILE")
    if value and path:
        raise ParameterError(f"{name}, {name}_FILE: both are set; unset one of them")
    return read_secret(f"{name}_FILE", path) if path else value or None
