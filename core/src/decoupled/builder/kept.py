"""The finished parts of a build, kept so that an interrupted build need not start again."""

import hashlib
import pickle
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ..base.files import read_with_checksum, with_checksum, write_atomically


class Built(NamedTuple):
    """The result of a group: rows of the manifest, omitted functions with the reason, and processor time in seconds."""

    label: str
    functions: dict[str, dict[str, Any]]
    made_of: dict[str, list[str]]
    left_out: dict[str, str]
    seconds: float


class Kept(NamedTuple):
    """A folder with one file for each finished family of groups: what was built, and its objects."""

    folder: Path

    def keep(self, family: Sequence[str], built: list[Built], scratch: Path, kinds: Sequence[str]) -> None:
        """Keep a family whose objects are in the folders of the processors in `scratch`."""
        names = [
            f"{target}/{row['symbol']}.o"
            for target in kinds
            for group in built
            for row in group.functions.values()
        ]
        objects = {name: (scratch / name).read_bytes() for name in names}
        with suppress(OSError):  # then the next build compiles it again
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self._path(family), with_checksum(pickle.dumps((built, objects))))

    def restore(self, family: Sequence[str], scratch: Path) -> list[Built] | None:
        """What was built of a family, with its objects put back into `scratch`; None if it was not kept."""
        body = read_with_checksum(self._path(family))
        if body is None:
            return None
        built: list[Built]
        built, objects = pickle.loads(body)
        for name, code in objects.items():
            (scratch / name).write_bytes(code)
        return built

    def _path(self, family: Sequence[str]) -> Path:
        return self.folder / hashlib.sha256(repr(tuple(family)).encode()).hexdigest()[:16]
