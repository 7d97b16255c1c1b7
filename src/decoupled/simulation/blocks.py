"""Finished blocks on disk, so that a killed run goes on where it was."""

import errno
import io
import json
import os
import time
from pathlib import Path

import numpy as np

from ..base.files import TEMPORARY, read_with_checksum, with_checksum, write_atomically
from ..errors import StorageError
from .cpu import BlockResult
from .plan import Block, Plan

PLAN_FILE = "plan.json"
RESULTS_FILE = "results.nc"
TIMINGS_FILE = "timings.json"
BLOCKS = "blocks"


class BlockStore:
    """A folder that holds the blocks of one plan."""

    def __init__(self, folder: str | os.PathLike[str], plan: Plan, block_size: int) -> None:
        self.folder = Path(folder)
        self._blocks = self.folder / BLOCKS
        with explained(self.folder):
            self._blocks.mkdir(parents=True, exist_ok=True)
            self.block_size = self._claim(plan, block_size)
            self._sweep()

    def _claim(self, plan: Plan, block_size: int) -> int:
        """Write the plan into a new folder; go on with the block size of a folder that holds it."""
        path = self.folder / PLAN_FILE
        if not path.exists():
            content = {"digest": plan.digest(), "block_size": block_size, "plan": plan.to_dict()}
            write_atomically(path, json.dumps(content, indent=1))
            return block_size
        try:
            held = json.loads(path.read_text())
            digest, size = held["digest"], int(held["block_size"])
        except (ValueError, KeyError, TypeError):
            raise StorageError(
                f"{path}: is not readable; choose another folder, or remove this one"
            ) from None
        if digest != plan.digest():
            raise StorageError(
                f"{self.folder}: holds the results of another specification, or of other code; "
                "choose another folder, or remove this one"
            )
        return size

    def _sweep(self) -> None:
        """Remove what a killed run was writing; a run that goes on in another process has younger files."""
        for path in self.folder.rglob(f"{TEMPORARY}*"):
            if time.time() - path.stat().st_mtime > 60.0:
                path.unlink(missing_ok=True)

    def timings(self) -> list[dict[str, float]]:
        """What earlier legs of this run took, as far as they were written down."""
        try:
            told: list[dict[str, float]] = json.loads((self.folder / TIMINGS_FILE).read_text())
        except (OSError, ValueError):
            return []
        return told

    def _path(self, block: Block) -> Path:
        return self._blocks / f"policy-{block.policy}-runs-{block.first}-{block.last}.npz"

    def load(self, block: Block) -> BlockResult | None:
        """A finished block, or None where it is missing, truncated or altered."""
        body = read_with_checksum(self._path(block))
        if body is None:
            return None
        with np.load(io.BytesIO(body)) as arrays:
            return BlockResult(arrays["regret"], arrays["plays"])

    def save(self, block: Block, result: BlockResult) -> None:
        """Write a finished block, whole or not at all."""
        buffer = io.BytesIO()
        np.savez(buffer, regret=result.regret, plays=result.plays)
        with explained(self.folder):
            write_atomically(self._path(block), with_checksum(buffer.getvalue()))


class explained:  # noqa: N801, reads as a word in a with statement
    """Turn a failure to write into an error that says what to do; finished blocks are kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, OSError) or isinstance(error, StorageError):
            return
        remedies = {
            errno.ENOSPC: "free some space and run the same command again",
            errno.EDQUOT: "free some space and run the same command again",
            errno.EROFS: "choose a folder that can be written",
            errno.EACCES: "choose a folder that can be written",
            errno.EPERM: "choose a folder that can be written",
        }
        remedy = remedies.get(error.errno or 0, "see that the folder can be written, and run it again")
        raise StorageError(
            f"{self._folder}: cannot be written ({error.strerror or error}); finished blocks are kept: {remedy}"
        ) from error
