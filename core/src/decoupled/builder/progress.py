"""The progress of a build, which several processes report."""

from collections.abc import Callable
from multiprocessing.context import SpawnContext
from threading import Thread
from types import TracebackType
from typing import Self


class Progress:
    """Tells of each finished group, with its number, as soon as a process puts it into `reports`."""

    def __init__(self, context: SpawnContext, total: int, tell: Callable[[str], None]) -> None:
        self.reports = context.SimpleQueue()
        self._total, self._tell = total, tell
        self._thread = Thread(target=self._follow)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.reports.put(None)
        self._thread.join()

    def _follow(self) -> None:
        done = 0
        while (report := self.reports.get()) is not None:
            done += 1
            self._tell(f"{f'{done}/{self._total}':>7} {report}")
