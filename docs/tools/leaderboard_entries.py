"""Reads the entries that `leaderboard.py` shows, and refuses those that could not be compared with the others."""

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from decoupled.benchmark import entry as entries
from decoupled.benchmark import ratios
from decoupled.benchmark.suite import SUITE
from decoupled.errors import DecoupledError, ParameterError

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmark"
Entry = Mapping[str, Any]


class Taken(NamedTuple):
    """The entries that are shown, best first, and what is wrong with the others."""

    entries: list[Entry]
    refused: list[str]


def take(folder: Path = BENCHMARK) -> Taken:
    """Read every entry of a folder; one that is refused leaves the others as they are."""
    taken: dict[tuple[str, ...], Entry] = {}
    refused = []
    for file in sorted((folder / "entries").glob("*.json")):
        try:
            found = entries.read(file)
            check(found, folder / "policies")
            if identity(found) in taken:
                raise ParameterError("has the policy, version and architecture of another; leave one out")
        except DecoupledError as error:
            name = file.relative_to(folder.parent)
            refused.append(f"{name}: {str(error).removeprefix(f'{file}: ')}")
        else:
            taken[identity(found)] = found
    ranked = sorted(taken.items(), key=lambda each: (ratios.overall(each[1]).ratio, each[0]))
    return Taken([entry for _, entry in ranked], refused)


def identity(entry: Entry) -> tuple[str, ...]:
    """What no two entries may share: the policy's name and file, the version and the architecture."""
    policy, about = entry["policy"], entry["environment"]
    return policy["name"], policy["sha256"] or "", about["decoupled"], about["architecture"]


def check(entry: Entry, policies: Path) -> None:
    """Refuse an entry of another size or of other tasks, and one whose policy's file is not among `policies`."""
    if entry["size"] != "standard":
        rule = "must be standard for the leaderboard"
        raise ParameterError.of("size", entry["size"], rule, "run it without --quick")
    played = [tuple(task[field] for field in FIELDS) for task in entry["tasks"] if task["data"] is None]
    if played != standard_tasks():
        rule = f"are not those of {SUITE.name}"
        raise ParameterError.of("tasks", len(played), rule, "run decoupled benchmark again")
    name, digest = entry["policy"]["file"], entry["policy"]["sha256"]
    if name is None:
        return
    file = policies / Path(name).name
    if not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != digest:
        rule = "must lie in benchmark/policies as it was when it ran"
        raise ParameterError.of("policy.file", name, rule, "copy it there, or run it again")


FIELDS = ("name", "group", "arms", "rounds", "runs", "unit")


@cache
def standard_tasks() -> list[tuple[Any, ...]]:
    """The fields by which the tasks of an entry are told apart, of those that need no data."""
    return [
        (task.name, task.group, task.environment.arms, task.rounds, task.runs, task.unit)
        for task in SUITE.tasks("standard")
    ]
