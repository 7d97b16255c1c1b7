"""Blocks through any executor, in a window that bounds memory.

Finished blocks are kept on disk, so that a killed run can resume.
"""

import errno
import io
import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..base.files import read_with_checksum, remove_abandoned, with_checksum, write_atomically
from ..errors import StorageError
from .cpu import BlockResult, run_block
from .plan import Block, Plan, as_rounds
from .traffic import Traffic

PLAN_FILE = "plan.json"
RESULTS_FILE = "results.nc"
TIMINGS_FILE = "timings.json"
BLOCKS = "blocks"

_FREE_SPACE = "free some space and run the same command again"
_WRITABLE = "choose a folder that can be written"
_ELSEWHERE = "choose another folder, or remove this one"
REMEDIES = {
    errno.ENOSPC: _FREE_SPACE,
    errno.EDQUOT: _FREE_SPACE,
    errno.EROFS: _WRITABLE,
    errno.EACCES: _WRITABLE,
    errno.EPERM: _WRITABLE,
}


class BlockStore:
    """A folder that holds the blocks of one plan."""

    def __init__(self, folder: str | os.PathLike[str], plan: Plan, block_size: int) -> None:
        self.folder = Path(folder)
        self._blocks = self.folder / BLOCKS
        with explained(self.folder):
            self._blocks.mkdir(parents=True, exist_ok=True)
            self.block_size = self._claim(plan, block_size)
            # The partial files of a killed run.
            remove_abandoned(self.folder)
            remove_abandoned(self._blocks)

    def _claim(self, plan: Plan, block_size: int) -> int:
        """Write the plan into a new folder, or return the block size of the plan that it holds."""
        path = self.folder / PLAN_FILE
        if not path.exists():
            content = {"digest": plan.digest(), "block_size": block_size, "plan": plan.to_dict()}
            write_atomically(path, json.dumps(content, indent=1))
            return block_size
        try:
            content = json.loads(path.read_text("utf-8"))
            digest = content["digest"]
            size = int(content["block_size"])
        except (ValueError, KeyError, TypeError):
            raise StorageError(f"{path}: cannot be read; {_ELSEWHERE}") from None
        if digest != plan.digest():
            rule = "holds the results of another specification, or of other code"
            raise StorageError(f"{self.folder}: {rule}; {_ELSEWHERE}")
        return size

    def timings(self) -> list[dict[str, float]]:
        """The timings that earlier parts of this run saved, if any."""
        try:
            saved: list[dict[str, float]] = json.loads(
                (self.folder / TIMINGS_FILE).read_text("utf-8")
            )
        except (OSError, ValueError):
            return []
        return saved

    def _path(self, block: Block) -> Path:
        return self._blocks / f"policy-{block.policy}-runs-{block.first}-{block.last}.npz"

    def load(self, block: Block) -> BlockResult | None:
        """Load a finished block, or return None if it is missing, truncated or altered."""
        body = read_with_checksum(self._path(block))
        if body is None:
            return None
        with np.load(io.BytesIO(body)) as arrays:
            return BlockResult(**arrays)

    def save(self, block: Block, result: BlockResult) -> None:
        """Write a finished block atomically."""
        buffer = io.BytesIO()
        np.savez(buffer, regret=result.regret, plays=result.plays)
        with explained(self.folder):
            # There may be very many blocks, and the store has looked for what is left of them.
            write_atomically(self._path(block), with_checksum(buffer.getvalue()), tidy=False)


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Turn a failed write into an error that names a remedy; finished blocks are kept.

    >>> with explained(Path("out")):  # doctest: +ELLIPSIS
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
    decoupled.errors.StorageError: out: cannot be written (No space left on device); finished ...
    """
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        remedy = REMEDIES.get(error.errno or 0, "make the folder writable and run it again")
        rule = f"cannot be written ({error.strerror or error}); finished blocks are kept"
        raise StorageError(f"{folder}: {rule}: {remedy}") from error


Report: TypeAlias = Callable[[int, float], None]
"""Called with the rounds of a finished block and the seconds that they took.

The seconds are 0 if the block was on disk.
"""

WINDOW = 4  # blocks under way for each worker


class Workers(NamedTuple):
    """An executor, its number of workers, and the function that each worker calls."""

    executor: Executor
    number: int
    run: Callable[..., tuple[BlockResult, float]]


@contextmanager
def cpu_workers(executor: Executor | None, workers: int | None) -> Iterator[Workers]:
    """The given executor, or threads of our own.

    Compiled code runs without the interpreter lock.
    """
    count = workers or os.cpu_count() or 1
    if executor is not None:
        yield Workers(executor, workers or max(count, 8), timed_block)
        return
    threads = ThreadPoolExecutor(max_workers=count, thread_name_prefix="decoupled")
    try:
        yield Workers(threads, count, timed_block)
    finally:
        # After an interruption, what has not begun is dropped and what runs is let finish.
        threads.shutdown(wait=True, cancel_futures=True)


def timed_block(*arguments: Any, traffic: Traffic) -> tuple[BlockResult, float]:
    """A block, and how long it took, which is no part of the results: their bits never change."""
    start = time.perf_counter()
    result = run_block(*arguments, traffic=traffic)
    return result, time.perf_counter() - start


def execute(
    plan: Plan,
    size: int,
    store: BlockStore | None,
    workers: Workers,
    report: Report,
) -> Iterator[tuple[Block, BlockResult]]:
    """Every block with its result in the plan's order; each is stored once it is finished."""
    upcoming = plan.blocks(size)
    checkpoints = as_rounds(plan)
    under_way: deque[Block] = deque()
    finished: dict[Block, BlockResult] = {}
    running: dict[Future[tuple[BlockResult, float]], Block] = {}
    try:
        while True:
            for block in islice(upcoming, WINDOW * workers.number - len(under_way)):
                under_way.append(block)
                stored = store.load(block) if store else None
                if stored is not None:
                    finished[block] = stored
                    report(_rounds(plan, block), 0.0)
                    continue
                future = workers.executor.submit(
                    workers.run,
                    plan.policies[block.policy],
                    plan.environment,
                    plan.horizon,
                    checkpoints,
                    plan.seed,
                    range(block.first, block.last),
                    traffic=plan.traffic,
                )
                running[future] = block
            if not under_way:
                return
            while under_way[0] not in finished:
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    block = running.pop(future)
                    result, seconds = future.result()
                    if store:
                        store.save(block, result)
                    finished[block] = result
                    report(_rounds(plan, block), seconds)
            block = under_way.popleft()
            yield block, finished.pop(block)
    finally:
        for future in running:
            future.cancel()


def _rounds(plan: Plan, block: Block) -> int:
    return (block.last - block.first) * plan.horizon
