"""Downloads the data from its publisher."""

import hashlib
import io
import time
from typing import NamedTuple

from decoupled.errors import StorageError

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
    files = _unpacked(_fetched(publication.url), publication.url)
    digest = hashlib.sha256(files[DATA_FILE]).hexdigest()
    if digest != publication.sha256:
        raise StorageError(
            f"{publication.url}: its {DATA_FILE} has SHA-256 {digest}, not {publication.sha256}"
        )
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
