"""Reads the entries that `leaderboard.py` shows, and refuses those that could not be compared with the others."""

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from decoupled.errors import DecoupledError, ParameterError
from decoupled.policies import Policy
from decoupled_lab.benchmark import entry as entries
from decoupled_lab.benchmark import statistics
from decoupled_lab.benchmark.loading import Source
from decoupled_lab.benchmark.suite import NEED_DATA, SIZES, SUITE
from decoupled_lab.benchmark.task import REGRET, SEGMENTS
from decoupled_lab.benchmark.worlds import SHAPES

BENCHMARK = Path(__file__).resolve().parents[2] / "lab" / "benchmark"
Entry = Mapping[str, Any]


class Taken(NamedTuple):
    """The entries that are shown, best first, and what is wrong with the others."""

    entries: list[Entry]
    refused: list[str]


def take(folder: Path = BENCHMARK) -> Taken:
    """Read every entry in a folder; one that is refused leaves the others as they are."""
    found: dict[Path, Entry] = {}
    refused = {}
    for file in sorted((folder / "entries").glob("*.json")):
        try:
            found[file] = entries.read(file)
            check(found[file], folder / "policies")
        except DecoupledError as error:
            found.pop(file, None)
            refused[file] = str(error).removeprefix(f"{file}: ")
    for rule in (same, unlike):
        reasons = {file: rule(entry, list(found.values())) for file, entry in found.items()}
        refused |= {file: reason for file, reason in reasons.items() if reason}
        found = {file: entry for file, entry in found.items() if not reasons[file]}
    ranked = sorted(
        found.values(), key=lambda entry: (statistics.overall(entry).ratio, identity(entry))
    )
    return Taken(
        ranked,
        [f"{file.relative_to(folder.parent)}: {why}" for file, why in sorted(refused.items())],
    )


def identity(entry: Entry) -> tuple[str, ...]:
    """What no two entries may share: the policy's name and file, the version and the architecture."""
    policy, about = entry["policy"], entry["environment"]
    return policy["name"], policy["sha256"] or "", about["decoupled"], about["architecture"]


def same(entry: Entry, board: Sequence[Entry]) -> str:
    """Why an entry is refused that has the identity of another; both are, since nobody knows which one is right."""
    alike = [identity(each) for each in board].count(identity(entry))
    return "has the policy, version and architecture of another; leave one out" if alike > 1 else ""


def unlike(entry: Entry, board: Sequence[Entry]) -> str:
    """Why an entry is refused whose references are not those of most entries of its version and architecture."""
    peers = [each for each in board if identity(each)[2:] == identity(entry)[2:]]
    for task in entry["tasks"]:
        theirs = [
            other["references"]
            for each in peers
            for other in each["tasks"]
            if other["name"] == task["name"]
        ]
        if 2 * theirs.count(task["references"]) <= len(theirs):
            return f"has other references in {task['name']} than most entries of its version and architecture; run it again"
    return ""


def check(entry: Entry, policies: Path) -> None:
    """Refuse an entry of another size or of other tasks, and one whose policy is not at hand."""
    if entry["size"] != "standard":
        rule = "must be standard for the leaderboard"
        raise ParameterError.of("size", entry["size"], rule, "run it without --quick")
    played = [tuple(task[field] for field in FIELDS) for task in entry["tasks"]]
    free = [task for task in played if task[1] not in NEED_DATA]
    if (
        free != standard_tasks()
        or not set(played[len(free) :]) <= data_tasks()
        or len(set(played)) < len(played)
    ):
        rule = f"are not those of {entry['suite']}"
        raise ParameterError.of("tasks", len(played), rule, "run decoupled benchmark again")
    policy = entry["policy"]
    check_policy(policies, policy["name"], policy["file"], policy["sha256"])


def check_policy(policies: Path, name: str, file: str | None, sha256: str | None) -> None:
    """Refuse a policy whose file is not among `policies`, or without a file one that is not of the package."""
    if sha256 is None:
        try:
            source = Source(name)
            known = (
                file is None
                and source.file is None
                and source.described(source.load())["name"] == name
            )
        except DecoupledError:
            known = False
        if not known:
            rule = "is no policy of the package, and has no file"
            raise ParameterError.of("policy.name", name, rule, "run its file again")
        return
    path = policies / Path(file or "").name
    if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
        rule = "must lie in lab/benchmark/policies as it was when it ran"
        raise ParameterError.of("policy.file", file, rule, "copy it there, or run it again")
    if name.partition("(")[0] in Policy.homes:
        rule = "is the name of a policy of the package, and the entry has a file"
        raise ParameterError.of("policy.name", name, rule, "choose another label")


FIELDS = ("name", "group", "arms", "rounds", "runs", "unit")


@cache
def standard_tasks() -> list[tuple[Any, ...]]:
    """The fields by which the tasks of an entry are told apart, of those that need no data."""
    return [
        (task.name, task.group, task.environment.arms, task.rounds, task.runs, task.unit)
        for task in SUITE.tasks("standard")
    ]


def data_tasks() -> set[tuple[Any, ...]]:
    """The same of the tasks that need data."""
    runs = SIZES["standard"].runs
    return {
        ("mmlu-2", "mmlu", *shape, runs, SEGMENTS)
        if name == "mmlu"
        else (f"recorded-{name}", "recorded", *shape, runs, REGRET)
        for name, shape in SHAPES.items()
    }
