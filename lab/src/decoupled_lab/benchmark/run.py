"""Runs the suite with a policy: `decoupled benchmark`."""

import hashlib
import json
import os
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from decoupled import base
from decoupled.base import check_number, one_of, progress_bar, whole_number
from decoupled.errors import ParameterError
from decoupled.kernels.jit import is_ours, source_digest
from decoupled.policies import Policy
from decoupled.simulation import explained

from .entry import FILE, assembled, write
from .loading import Source
from .processes import Command, Pool
from .statistics import task_line
from .suite import SIZES, SUITE, Size
from .task import Played, Task

BLOCKS = "blocks"
TIME_LIMIT = 900.0  # seconds for all runs of a task, ten times what a policy in plain Python takes
REFERENCE_POLICY = "Ladder()"  # what a process that plays the references loads
NO_LIMIT = 1e6  # seconds


def run(
    policy: str | os.PathLike[str] | Policy,
    size: str | Size = "standard",
    out: str | os.PathLike[str] = "out/benchmark",
    *,
    name: str | None = None,
    workers: int | None = None,
    data: str | os.PathLike[str] | None = None,
    time_limit: float = TIME_LIMIT,
    quiet: bool = True,
) -> dict[str, Any]:
    """Run the suite with a policy and with the references, and write `entry.json` into the folder `out`.

    The policy runs in processes of its own. What they finish is kept in the folder, so the same call goes on where a
    killed one was. The numbers depend on the policy and the size alone.

    Args:
        policy: the path of a Python file, a call such as "Ladder()", or a policy of this package.
        size: "standard" or "quick".
        out: a folder.
        name: which policy of the file, if it has several: a name, or a call such as "MyPolicy(rate=0.2)".
        workers: processes to use; all cores if not given.
        data: a folder with recorded tables (`real/NAME.npz`) and MMLU (`context/mmlu.npz`); None leaves out their tasks.
        time_limit: the most seconds that all runs of one task may take; a policy that takes longer is refused.
        quiet: whether to show no progress.

    Raises:
        ContractError: if the policy is refused; nothing but finished work was written.

    >>> try:
    ...     run("Lader()", "quick")
    ... except ParameterError as error:
    ...     print(error)
    policy = 'Lader()': calls Lader, which is no policy; did you mean 'Ladder'?
    """
    source = _source(policy, name)
    chosen = size if isinstance(size, Size) else SIZES[one_of("size", size, tuple(SIZES))]
    count = whole_number("workers", workers or os.cpu_count() or 1, 1, "leave it out for all cores")
    limit = check_number(
        "time_limit", time_limit, f"the default is {TIME_LIMIT:g}", above=0.0, below=1e6
    )
    folder, extra = Path(out), None if data is None else Path(data)
    tasks = SUITE.tasks(chosen, extra)
    first: Command = {
        "given": source.given,
        "name": source.name,
        "sha256": source.sha256,
        "size": list(chosen),
        "data": None if extra is None else str(extra.resolve()),
        "limit": limit,
    }
    versions = [source_digest(), platform.python_version(), np.__version__]
    keys = [SUITE.name, SUITE.digest(), list(chosen), *versions]
    trusted = {**first, "given": REFERENCE_POLICY, "name": None, "sha256": None, "limit": NO_LIMIT}
    with (
        explained(folder),
        Pool(first, count) as pool,
        progress_bar(_rounds(tasks), quiet=quiet, label="playing") as report,
    ):
        [(_, described)] = pool.answers([({"task": None}, "in a short trial")])
        pool.fresh = described["kind"] == "python"
        parameters = described.pop("parameters")
        own = _Blocks(folder, "entry", [*keys, {**described, "file": None}, parameters])
        for task in own.fill(tasks, pool):
            report(task.rounds * task.runs, 0.0)
    # In processes that have not run the entry's code.
    theirs, count_of = _Blocks(folder, "references", keys), len(SUITE.references)
    with (
        explained(folder),
        Pool(trusted, count) as pool,
        progress_bar(count_of * _rounds(tasks), quiet=quiet, label="references") as report,
    ):
        for task in theirs.fill(tasks, pool):
            report(count_of * task.rounds * task.runs, 0.0)
    seconds = sum(each["seconds"] for blocks in (own, theirs) for each in blocks.found.values())
    lines = [_line(task, own, theirs) for task in tasks]
    entry = assembled(chosen, described, lines, seconds)
    with explained(folder):
        write(folder / FILE, entry)
    return entry


def _source(policy: str | os.PathLike[str] | Policy, name: str | None) -> Source:
    if isinstance(policy, Policy):
        if not is_ours(type(policy)):
            rule = "is not of this package, and its file is part of an entry"
            raise ParameterError.of("policy", policy, rule, "give the name of the file")
        return Source(repr(policy), name)
    source = Source(os.fspath(policy), name)
    if source.file is None:
        source.load()  # nothing of others runs, and a mistake is told at once
        return source
    if not source.file.is_file():
        raise ParameterError.of("policy", str(source.file), "is no file", "give its path")
    return Source(str(source.file.resolve()), name)


def _rounds(tasks: Sequence[Task]) -> int:
    return sum(task.rounds * task.runs for task in tasks)


def _line(task: Task, own: "_Blocks", theirs: "_Blocks") -> dict[str, Any]:
    found = Played.of(**own.found[task.name]["found"][""])
    references = theirs.found[task.name]["found"]
    return task_line(
        task, found, {name: Played.of(**each).values for name, each in references.items()}
    )


class _Blocks:
    """The finished tasks of an entry, or of the references, on disk: what they depend on names their folder."""

    def __init__(self, folder: Path, kind: str, key: object) -> None:
        digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
        self._folder, self._references = folder / BLOCKS / f"{kind}-{digest[:16]}", kind != "entry"
        self.found: dict[str, Any] = {}

    def fill(self, tasks: Sequence[Task], pool: Pool) -> Iterator[Task]:
        """Play the tasks that are not on disk yet; each task, as soon as it is there."""
        self._folder.mkdir(parents=True, exist_ok=True)
        missing = {}
        for task in tasks:
            body = base.read_with_checksum(self._file(task.name))
            if body is None:
                missing[task.name] = task
            else:
                self.found[task.name] = json.loads(body)
                yield task
        # The longest first, so that no process is left with one at the end.
        order = sorted(missing.values(), key=lambda task: -task.rounds * task.runs)
        names = [task.name for task in order]
        asked = ({"task": name, "references": self._references} for name in names)
        commands = [(each, f"in the task {each['task']}") for each in asked]
        for command, answer in pool.answers(commands):
            name = command["task"]
            self.found[name] = answer
            base.write_atomically(self._file(name), base.with_checksum(json.dumps(answer).encode()))
            yield missing[name]

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.json"
