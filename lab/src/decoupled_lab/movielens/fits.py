"""A disk cache of fitted oracles, so that other runs and workers need not fit again."""

import hashlib
import io
import json
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np

from decoupled.base import read_with_checksum, with_checksum, write_atomically

from .files import cache_root
from .model_selection import Choice
from .oracle import Oracle, fit_oracle
from .ratings import parse_ratings

ARRAYS = ("rewards", "movies", "sequence")


def fitted(content: bytes) -> Oracle:
    """The oracle of a file of ratings, from the user's cache folder or fitted now and stored there.

    A cached oracle is used only if it is intact and was made from the same ratings by the same code.
    """
    digest = hashlib.sha256(content).hexdigest()
    path = cache_root() / "movielens" / f"fit-{digest[:16]}.npz"
    kept = _load(path, digest)
    if kept is not None:
        return kept
    oracle = fit_oracle(parse_ratings(content))
    with suppress(OSError):  # if it cannot be cached, it is fitted again next time
        path.parent.mkdir(parents=True, exist_ok=True)
        _save(path, oracle)
    return oracle


@cache
def _version() -> str:
    """A digest of the sources that make an oracle, so that no version number can be forgotten."""
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def _save(path: Path, oracle: Oracle) -> None:
    header = {"version": _version(), "digest": oracle.digest, "choice": oracle.choice._asdict()}
    buffer = io.BytesIO()
    np.savez(buffer, header=json.dumps(header), **{name: getattr(oracle, name) for name in ARRAYS})
    write_atomically(path, with_checksum(buffer.getvalue()))


def _load(path: Path, digest: str) -> Oracle | None:
    body = read_with_checksum(path)
    if body is None:
        return None
    with np.load(io.BytesIO(body)) as held:
        if "header" not in held:  # written by other code
            return None
        header = json.loads(str(held["header"]))
        if (header["version"], header["digest"]) != (_version(), digest):
            return None
        rewards, movies, sequence = (held[name] for name in ARRAYS)
        return Oracle(rewards, movies, sequence, Choice(**header["choice"]), digest)
