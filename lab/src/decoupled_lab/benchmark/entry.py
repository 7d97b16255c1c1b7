"""`entry.json`: what a policy did in the suite, with all that is needed to tell whether two entries are the same."""

import hashlib
import json
import math
import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from decoupled import __version__
from decoupled.base import write_atomically
from decoupled.errors import StorageError

from .statistics import group_lines, mean
from .suite import NEED_DATA, SIZES, SUITE, Size

FILE = "entry.json"
_COVERED = ("suite", "size", "policy", "seed", "tasks")
_FIELDS = {
    "suite": str, "size": str, "policy": dict, "environment": dict, "seed": int, "digest": str, "tasks": list,
    "groups": list,
}  # fmt: skip
_POLICY_FIELDS = {"name": str, "kind": str, "file": str | None, "sha256": str | None}
_ENVIRONMENT_FIELDS = {
    "decoupled": str, "python": str, "numpy": str, "architecture": str, "system": str, "seconds": int | float,
    "made": str,
}  # fmt: skip
_MEAN_FIELDS = {"mean": float, "standard_error": float}
_DIFFERENCE_FIELDS = {"mean": float, "low": float, "high": float}
_TASK_FIELDS = {
    "name": str, "group": str, "arms": int, "rounds": int, "runs": int, "data": str | None, "unit": str,
    "regret": dict, "switches": dict | None, "references": dict, "differences": dict,
}  # fmt: skip


def assembled(
    size: Size,
    policy: dict[str, Any],
    tasks: Sequence[dict[str, Any]],
    seconds: float,
) -> dict[str, Any]:
    """The entry of a policy, from the lines of its tasks."""
    entry: dict[str, Any] = {
        "suite": SUITE.name,
        "size": size.name,
        "policy": policy,
        "environment": {
            "decoupled": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "architecture": platform.machine(),
            "system": platform.system(),
            "seconds": round(seconds, 1),
            "made": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        },
        "seed": SUITE.seed,
        "digest": "",
        "tasks": list(tasks),
        "groups": group_lines(tasks),
    }
    return {**entry, "digest": digest(entry)}


def digest(entry: dict[str, Any]) -> str:
    """The SHA-256 of all that two equal entries share: suite, size, policy without its file name, seed and tasks.

    >>> digest({"suite": "decoupled-1", "size": "quick", "policy": {"name": "FTPL()"}, "seed": 0, "tasks": []})[:8]
    'aba90b4e'
    """
    covered = {name: entry[name] for name in _COVERED}
    covered["policy"] = {name: value for name, value in entry["policy"].items() if name != "file"}
    text = json.dumps(covered, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def write(path: str | os.PathLike[str], entry: dict[str, Any]) -> None:
    """Write an entry atomically, with a line for each field, task and group, so that two entries can be compared."""
    lines = (f" {json.dumps(name)}: {_spread(value)}" for name, value in entry.items())
    write_atomically(path, "{\n" + ",\n".join(lines) + "\n}\n")


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read an entry of the suite, and check that it is whole and that its numbers fit together.

    That they came from a run cannot be seen in a file: whoever doubts it runs the policy again and compares digests.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "entry.json"
    >>> _ = path.write_text('{"suite": "decoupled-0"}')
    >>> try:
    ...     read(path)
    ... except StorageError as error:
    ...     print(str(error).removeprefix(str(path)))
    : suite = 'decoupled-0': must be 'decoupled-1'; run decoupled benchmark again
    """
    try:
        entry = json.loads(Path(path).read_text(encoding="utf-8"), parse_constant=_no_number)
    except OSError as error:
        _refuse(path, f"cannot be read ({error.strerror})")
    except (ValueError, RecursionError) as error:
        _refuse(path, f"is not JSON ({error})")
    found = entry.get("suite") if isinstance(entry, dict) else entry
    if not isinstance(entry, dict) or found != SUITE.name:
        _refuse(path, f"suite = {found!r}: must be {SUITE.name!r}")
    _check_fields(path, "", entry, _FIELDS)
    _check_fields(path, "policy.", entry["policy"], _POLICY_FIELDS)
    _check_fields(path, "environment.", entry["environment"], _ENVIRONMENT_FIELDS)
    if entry["size"] not in SIZES:
        _refuse(path, f"size = {entry['size']!r}: must be {' or '.join(map(repr, SIZES))}")
    for place in ("policy", "environment"):  # what pages show
        for name, value in entry[place].items():
            if isinstance(value, str) and (not value.isprintable() or set(value) & set("|<>`")):
                _refuse(
                    path, f"{place}.{name} = {value[:60]!r}: must be printable, without | < > `"
                )
    try:
        for number, task in enumerate(entry["tasks"]):
            _check_task(path, f"tasks[{number}]", task)
        groups = group_lines(entry["tasks"])
        whole = entry["digest"] == digest(entry) and _alike(entry["groups"], groups)
    except (KeyError, TypeError, ValueError, ArithmeticError):
        whole = False
    if not whole:
        _refuse(path, f"digest = {entry['digest']!r}: does not match the numbers in the file")
    return entry


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _check_task(path: object, place: str, task: Any) -> None:
    """Refuse a line of a task whose numbers do not fit together."""
    if not isinstance(task, dict):
        _refuse(path, f"{place}: must be an object")
    _check_fields(path, f"{place}.", task, _TASK_FIELDS)
    compared = [set(task["references"]), set(task["differences"])]
    if task["group"] not in SUITE.groups or compared != [set(SUITE.references)] * 2:
        _refuse(path, f"{place}: has another group or other references than the suite")
    if (task["data"] is not None) != (task["group"] in NEED_DATA):
        _refuse(
            path, f"{place}.data = {task['data']!r}: does not belong to the group {task['group']}"
        )
    own = task["regret"]
    _check_fields(path, f"{place}.regret.", own, {**_MEAN_FIELDS, "runs": list})
    most = 2.0 * task["rounds"]  # a loss and a switch in each
    good = [isinstance(each, float) and abs(each) <= most for each in own["runs"]]
    if len(good) != task["runs"] or not all(good):
        _refuse(path, f"{place}.regret.runs: must be {task['runs']} numbers, at most {most:g}")
    if task["runs"] < 2 or {**mean(np.array(own["runs"])), "runs": own["runs"]} != own:
        _refuse(path, f"{place}.regret: has another mean or error than its runs")
    for name in SUITE.references:
        other, apart = task["references"][name], task["differences"][name]
        for what, found, fields in (
            ("references", other, _MEAN_FIELDS), ("differences", apart, _DIFFERENCE_FIELDS),
        ):  # fmt: skip
            if not isinstance(found, dict):
                _refuse(path, f"{place}.{what}: must hold objects")
            _check_fields(path, f"{place}.{what}[{name!r}].", found, fields)
        scale = max(abs(own["mean"]), abs(other["mean"]))
        near = math.isclose(apart["mean"], own["mean"] - other["mean"], abs_tol=1e-9 * scale)
        if not (near and apart["low"] <= apart["mean"] <= apart["high"]):
            _refuse(path, f"{place}.differences[{name!r}]: is not the difference of the means")


def _spread(value: Any) -> str:
    if isinstance(value, list):
        return (
            "[\n" + ",\n".join(f"  {json.dumps(each, allow_nan=False)}" for each in value) + "\n ]"
        )
    return json.dumps(value, allow_nan=False)


def _alike(groups: Any, computed: list[dict[str, Any]]) -> bool:
    """Whether groups are those computed here; logarithms of another architecture may differ in the last digit."""
    names = [[(each["name"], each["title"]) for each in some] for some in (groups, computed)]
    return names[0] == names[1] and all(
        math.isclose(each["ratios"][reference][end], ratio[end], rel_tol=1e-12)
        for each, one in zip(groups, computed, strict=True)
        for reference, ratio in one["ratios"].items()
        for end in ratio
    )


def _check_fields(path: object, place: str, found: dict[str, Any], wanted: dict[str, Any]) -> None:
    for name, kind in wanted.items():
        if name not in found:
            _refuse(path, f"{place}{name}: is missing")
        if not isinstance(found[name], kind):
            _refuse(path, f"{place}{name} = {str(found[name])[:60]!r}: is of the wrong kind")


def _refuse(path: object, problem: str) -> NoReturn:
    raise StorageError(f"{path}: {problem}; run decoupled benchmark again")
