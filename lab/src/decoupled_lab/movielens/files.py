"""Finds the data: in a folder, in the cache or at the publisher."""

import hashlib
import io
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from decoupled.base import write_atomically
from decoupled.errors import ParameterError, StorageError

from .ratings import parse_ratings

FOLDER, DATA_FILE, TITLE_FILE = "ml-100k", "u.data", "u.item"

SILENCE = 10.0  # seconds to wait for a byte
PATIENCE = 60.0  # seconds to wait in all
LARGEST = 64 * 2**20  # bytes; the archive has 5 million


class Publication(NamedTuple):
    """An archive on the network, and the SHA-256 of the `u.data` in it."""

    url: str
    sha256: str


ML_100K = Publication(
    "https://files.grouplens.org/datasets/movielens/ml-100k.zip",
    "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490",
)


def download(publication: Publication) -> dict[str, bytes]:
    """The files of the archive that we use, the ratings last and checked against their checksum."""
    url, expected = publication
    files = _unpacked(_fetched(url), url)
    digest = hashlib.sha256(files[DATA_FILE]).hexdigest()
    if digest != expected:
        raise StorageError(f"{url}: its {DATA_FILE} has SHA-256 {digest}, not {expected}")
    return files


def _fetched(url: str) -> bytes:
    # These take 50 ms to import, and few runs need them.
    from http.client import HTTPException
    from urllib.request import urlopen

    until = time.monotonic() + PATIENCE
    body = bytearray()
    try:
        with urlopen(url, timeout=SILENCE) as response:
            while chunk := response.read(2**16):
                body += chunk
                if time.monotonic() > until or len(body) > LARGEST:
                    raise StorageError(f"{url}: is too slow or too large")
    except (OSError, HTTPException, ValueError) as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"{url}: cannot be fetched: {error}") from error
    return bytes(body)


def _unpacked(archive: bytes, url: str) -> dict[str, bytes]:
    import zipfile
    import zlib

    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as files:
            held = set(files.namelist())
            wanted = [name for name in (TITLE_FILE, DATA_FILE) if f"{FOLDER}/{name}" in held]
            found = {name: files.read(f"{FOLDER}/{name}") for name in wanted}
    # An archive may need a password (RuntimeError) or an unknown method (a subclass of it).
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise StorageError(f"{url}: is not a readable archive: {error}") from error
    if DATA_FILE not in found:
        raise StorageError(f"{url}: holds no {FOLDER}/{DATA_FILE}")
    return found


FOLDER_VARIABLE = "DECOUPLED_DATA"
OFFLINE_VARIABLE = "DECOUPLED_OFFLINE"


class Source(NamedTuple):
    """Where ratings came from: "local folder", "cache" or "download"; `folder` holds the files."""

    kind: str
    folder: Path


def find(
    folder: str | os.PathLike[str] | None = None, *, fetch: bool | None = None,
    publication: Publication = ML_100K,
) -> tuple[bytes, Source]:  # fmt: skip
    """The content of `u.data`, and where it was found. Raises `StorageError` if it is not available.

    Args:
        folder: holds `u.data` or `ml-100k/u.data`. By default the environment variable DECOUPLED_DATA names it; if that
            is not set, the cache and then the publisher are tried.
        fetch: whether downloading is allowed. By default it is, unless DECOUPLED_OFFLINE is set.
        publication: what is published, and where.
    """
    if (given := _given_folder(folder)) is not None:
        return _checked(given / DATA_FILE, publication), Source("local folder", given)
    kept = cache_root() / FOLDER
    with suppress(OSError):  # nothing was downloaded
        content = (kept / DATA_FILE).read_bytes()
        if hashlib.sha256(content).hexdigest() == publication.sha256:
            return content, Source("cache", kept)
    if not (os.environ.get(OFFLINE_VARIABLE, "") in ("", "0") if fetch is None else fetch):
        raise _unavailable("there is no local copy, and no download is allowed")
    try:
        files = download(publication)
    except StorageError as error:
        raise _unavailable(str(error)) from error
    with suppress(OSError):  # if it cannot be cached, it is fetched again next time
        kept.mkdir(parents=True, exist_ok=True)
        for name, body in files.items():
            write_atomically(kept / name, body)
    return files[DATA_FILE], Source("download", kept)


def cache_root() -> Path:
    """The user's cache folder for this package."""
    base = os.environ.get("XDG_CACHE_HOME")
    # Without a home folder the name keeps its "~"; such a folder does not exist and cannot be made.
    return Path(base or os.path.expanduser("~/.cache")) / "decoupled"


def _given_folder(folder: str | os.PathLike[str] | None) -> Path | None:
    name, value = "folder", folder
    if folder is None:
        name, value = FOLDER_VARIABLE, os.environ.get(FOLDER_VARIABLE) or None
    if value is None:
        return None
    for choice in (Path(value), Path(value) / FOLDER):
        if (choice / DATA_FILE).is_file():
            return choice
    rule = f"holds neither {DATA_FILE} nor {FOLDER}/{DATA_FILE}"
    raise ParameterError.of(name, os.fspath(value), rule, "name the folder of MovieLens 100K")


def _checked(path: Path, publication: Publication) -> bytes:
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if digest == publication.sha256:
        return content
    parse_ratings(content, str(path))  # naming a damaged line helps more than a checksum
    raise ParameterError(
        f"{path}: is not MovieLens 100K's {DATA_FILE} (its SHA-256 is {digest}, not {publication.sha256}); "
        f"download {publication.url} again"
    )


def _unavailable(reason: str) -> StorageError:
    remedy = (
        f"set {FOLDER_VARIABLE} to a folder that holds {FOLDER}/{DATA_FILE}, or use data='stand-in'"
    )
    return StorageError.of("data", FOLDER, f"is not available ({reason})", remedy)
