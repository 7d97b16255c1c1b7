"""Processes that play tasks, each led by a thread: an entry that breaks its process breaks nothing else."""

import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from importlib import import_module
from queue import Empty, SimpleQueue
from threading import Lock, Thread, local
from typing import Any, Self

from decoupled.errors import ContractError, ParameterError

from .loading import Source
from .worker import REFUSED

ARGUMENTS = ("policy = ", "--policy = ")  # what refusals of a wrong command line begin with
TAIL = 65_536  # bytes of what a process wrote to standard error that are read when it has ended
GRACE = 10.0  # seconds after which a process that did not end itself is killed
Command = dict[str, Any]


class Process:
    """A worker's process: a command is answered, or raises an error that says why the entry is refused."""

    def __init__(self, first: Command) -> None:
        source = Source(first["given"])
        self._limit, self._what = first["limit"], source.file.name if source.file else source.given
        self._lines: SimpleQueue[str] = SimpleQueue()
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        self._child = subprocess.Popen(
            # -P: a file beside the policy, such as random.py, is no module.
            [sys.executable, "-P", "-m", "decoupled_lab.benchmark.worker"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, env=same_everywhere(), text=True,
            encoding="utf-8",
            start_new_session=True,  # so that Ctrl-C reaches this process only, which then ends them
        )  # fmt: skip
        # A thread reads: a process that the policy has started may keep the pipe open, and reading does not end then.
        Thread(target=self._read, daemon=True).start()
        try:
            self.ask(first, "")
        except BaseException:
            self.end()
            self.close()
            raise

    def ask(self, command: Command, when: str) -> Any:
        """Send a command and wait for its answer, at most for the limit."""
        stdin, start = self._child.stdin, time.monotonic()
        assert stdin is not None
        with suppress(OSError):  # it has ended, and the line is empty
            stdin.write(json.dumps(command) + "\n")
            stdin.flush()
        try:
            line = self._lines.get(timeout=self._limit + GRACE)
        except Empty:
            self.end()
            line = ""
        if not line.endswith("\n"):
            raise self._ended(when, time.monotonic() - start)
        answer = json.loads(line)
        if REFUSED in answer:
            reason = answer[REFUSED]
            if reason.startswith(ARGUMENTS):
                raise ParameterError(reason)
            raise ContractError(f"{self._place(when)}: {reason}")
        return answer["answer"]

    def end(self) -> None:
        """End the process and all that it started."""
        with suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(self._child.pid, signal.SIGKILL)
            else:
                self._child.kill()
        self._child.wait()
        self._lines.put("")  # for a thread that waits

    def close(self) -> None:
        """Close its files, when no thread uses them any more."""
        for file in (self._child.stdin, self._said):
            with suppress(OSError):
                file.close()  # type: ignore[union-attr]

    def _read(self) -> None:
        assert self._child.stdout is not None
        with self._child.stdout as stdout, suppress(ValueError):  # bytes that are no text
            for line in stdout:
                self._lines.put(line)
        self._lines.put("")

    def _place(self, when: str) -> str:
        return f"{self._what}, {when}" if when else self._what

    def _ended(self, when: str, seconds: float) -> ContractError:
        """Why a process is no more, and where in the policy's file it was."""
        code = self._child.wait()
        self._said.seek(max(0, self._said.seek(0, os.SEEK_END) - TAIL))
        told = self._said.read().decode(errors="replace")
        places = re.findall(r'File "([^"]+)", line (\d+) in (\w+)', told)
        own = [place for place in places if os.path.basename(place[0]) == self._what]
        where = f" ({own[0][2]}, line {own[0][1]} of {self._what})" if own else ""
        if "Timeout (" in told or seconds >= self._limit:
            rule = f"took more than {seconds:.0f} seconds{where}"
            return ContractError(
                f"{self._place(when)}: {rule}; make it faster, or raise --time-limit"
            )
        how = f"the signal {signal.Signals(-code).name}" if code < 0 else f"the exit status {code}"
        return ContractError(
            f"{self._place(when)}: ended its process with {how}{where}; correct it"
        )


def same_everywhere() -> dict[str, str]:
    """The variables of a worker's process: nothing depends on what this processor has more than others of its kind."""
    try:
        inside = import_module(
            "numpy._core._multiarray_umath"
        )  # the lists that numpy.show_runtime() shows
        features = list(inside.__cpu_dispatch__)
    except (ImportError, AttributeError):
        features = []
    fixed = {
        "NPY_DISABLE_CPU_FEATURES": " ".join(features),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_CORETYPE": {"x86_64": "Nehalem", "aarch64": "ARMV8"}.get(platform.machine(), ""),
        "PYTHONHASHSEED": "0",  # the order of sets of strings
    }
    return {**os.environ, **{name: value for name, value in fixed.items() if value}}


class Pool:
    """As many processes as there is work for, each started when it is needed.

    With `fresh` each task has a process of its own, so that nothing which a policy in Python keeps passes to another.
    """

    def __init__(self, first: Command, workers: int) -> None:
        self._first, self.fresh = first, False
        self._started: list[Process] = []
        self._mine, self._guard = local(), Lock()
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="decoupled")

    def answers(self, commands: Sequence[tuple[Command, str]]) -> Iterator[tuple[Command, Any]]:
        """Each command with its answer, as they come."""
        asked = {
            self._threads.submit(self._lead, command, when): command for command, when in commands
        }
        for future in as_completed(asked):
            yield asked[future], future.result()

    def _lead(self, command: Command, when: str) -> Any:
        if self.fresh and hasattr(self._mine, "process"):
            with self._guard:
                self._started.remove(old := self._mine.process)
            del self._mine.process
            old.end()
            old.close()
        if not hasattr(self._mine, "process"):
            self._mine.process = Process(self._first)
            with self._guard:
                self._started.append(self._mine.process)
        return self._mine.process.ask(command, when)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """End all processes, whatever they are doing."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._end()
        self._threads.shutdown(wait=True)
        self._end()  # one that was being started
        for process in self._started:
            process.close()

    def _end(self) -> None:
        with self._guard:
            for process in self._started:
                process.end()
