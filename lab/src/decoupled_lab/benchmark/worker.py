"""A process that plays tasks: `python -m decoupled_lab.benchmark.worker`.

The policy of an entry may do anything: loop for ever, end the process, write to standard output. So it runs here, and the
process that asked only reads lines of JSON. The first line that comes in says what to load; each further one is a task.
"""

import faulthandler
import json
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, TextIO

from decoupled.errors import ContractError, DecoupledError

from .loading import Source, told
from .suite import SUITE, Size
from .task import check_entry

REFUSED = "refused"
TRIAL = 60.0  # seconds


class Worker:
    """What a process has loaded."""

    def __init__(
        self, source: Source, sha256: str | None, size: list[Any], data: str | None, limit: float
    ) -> None:
        self.source, self.limit = source, limit
        if source.sha256 != sha256:
            raise ContractError("was changed while the benchmark ran; run the same command again")
        self.policy = self.source.load()
        self.references = SUITE.references
        tasks = SUITE.tasks(Size(*size), Path(data) if data else None)
        self.tasks = {task.name: task for task in tasks}

    def check(self) -> dict[str, Any]:
        """Try the policy, and say what it is."""
        first, *others = self.tasks.values()
        first.plan(self.policy)  # an error if it cannot be simulated at all
        check_entry(self.policy)
        for task in others:
            task.plan(self.policy)
        # A policy may have a label of its own, which tells nothing of its parameters.
        return {**self.source.described(self.policy), "parameters": self.policy.to_dict()}

    def play(self, name: str, references: bool) -> dict[str, Any]:
        """The runs of a task, of the references or of the entry, and the seconds that a processor took for them."""
        task, start = self.tasks[name], time.process_time()
        policies = self.references if references else {"": self.policy}
        found = {label: task.play(policy).to_lists() for label, policy in policies.items()}
        return {"found": found, "seconds": time.process_time() - start}

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        """Do what a line asks for, or say why the entry is refused."""
        name = command["task"]
        # A trial in plain Python needs no compiler, so it takes a second.
        limit = min(self.limit, TRIAL) if name is None and self.policy.in_python else self.limit
        faulthandler.dump_traceback_later(limit, exit=True)  # it says where the time went
        try:
            return self.check() if name is None else self.play(name, command["references"])
        finally:
            faulthandler.cancel_dump_traceback_later()


def guarded(source: Source, call: Callable[[], Any]) -> dict[str, Any]:
    """The answer of a call, or the reason why the entry is refused."""
    try:
        return {"answer": call()}
    except DecoupledError as error:
        return {REFUSED: str(error)}
    except BaseException as error:  # SystemExit as well
        return {REFUSED: f"{told(error, source.file)}; correct it"}


def _follow(given: TextIO, lines: "SimpleQueue[str]") -> None:
    """Pass lines on as they come, and end this process with the one that asks, even in the middle of a task."""
    for line in given:
        lines.put(line)
    os._exit(0)


def main() -> None:
    """Read lines, and answer each with a line."""
    given, taken = os.fdopen(os.dup(0), encoding="utf-8"), os.open(os.devnull, os.O_RDONLY)
    with given, os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        # What the policy prints does not get among the answers, and it reads no commands.
        os.dup2(taken, 0)
        os.dup2(2, 1)
        faulthandler.enable()

        def send(answer: dict[str, Any]) -> None:
            answers.write(json.dumps(answer) + "\n")
            answers.flush()

        lines: SimpleQueue[str] = SimpleQueue()
        Thread(target=_follow, args=(given, lines), daemon=True).start()
        loaded: list[Worker] = []
        first = json.loads(lines.get())
        source = Source(first.pop("given"), first.pop("name"))
        faulthandler.dump_traceback_later(first["limit"], exit=True)
        send(guarded(source, lambda: loaded.append(Worker(source, **first))))
        faulthandler.cancel_dump_traceback_later()
        while loaded:
            send(guarded(source, partial(loaded[0].answer, json.loads(lines.get()))))
        os._exit(0)  # without waiting for the thread


if __name__ == "__main__":
    main()
