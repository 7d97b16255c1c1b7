"""What an entry says of its runs, and what is noticed when somebody changes it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import decoupled as dc
from decoupled.simulation.intervals import interval
from decoupled_lab.benchmark.entry import assembled, read, write
from decoupled_lab.benchmark.statistics import group_ratio, task_line
from decoupled_lab.benchmark.suite import REFERENCES, SIZES, SUITE
from decoupled_lab.benchmark.task import Played

TASK = SUITE.tasks("quick")[0]
POLICY = {"name": "Mine()", "kind": "python", "file": "mine.py", "sha256": "0" * 64}


def made_line(seed: int = 0) -> dict[str, Any]:
    draw = np.random.default_rng(seed)
    shared = draw.gamma(4.0, 10.0, TASK.runs)
    own = Played(shared + draw.normal(size=TASK.runs), None)
    return task_line(TASK, own, {name: 2.0 * shared + draw.normal(size=TASK.runs) for name in REFERENCES})


def made_entry() -> dict[str, Any]:
    return assembled(SIZES["quick"], dict(POLICY), [made_line()], 1.0)


def test_means_and_differences_are_those_of_the_house() -> None:
    own, other = np.random.default_rng(1).normal(size=(2, TASK.runs))
    line = task_line(TASK, Played(own, None), dict.fromkeys(REFERENCES, other))
    mean, error, _, _ = interval(own, 0.95)
    assert line["regret"]["mean"] == pytest.approx(mean)
    assert line["regret"]["standard_error"] == pytest.approx(error)
    assert line["regret"]["runs"] == own.tolist()
    mean, _, low, high = interval(own - other, 0.95)
    assert line["differences"]["TopTwo()"] == pytest.approx(
        {"mean": mean, "low": low, "high": high}, rel=1e-6
    )


def test_a_ratio_knows_that_the_runs_are_the_same() -> None:
    # The delta method from the runs themselves, where an entry has means, errors and paired intervals only.
    draw = np.random.default_rng(2)
    other = draw.gamma(4.0, 10.0, TASK.runs)
    own = 0.5 * other + draw.normal(size=TASK.runs)
    line = task_line(TASK, Played(own, None), dict.fromkeys(REFERENCES, other))
    little = 0.02 * np.sqrt(TASK.environment.arms * TASK.rounds)
    slopes = np.array([1.0 / (own.mean() + little), -1.0 / (other.mean() + little)])
    error = np.sqrt(slopes @ np.cov(own, other) @ slopes / TASK.runs)
    ratio = group_ratio([line], "FTPL()")
    assert ratio["ratio"] == pytest.approx((own.mean() + little) / (other.mean() + little))
    quantile = 2.776445  # of Student's t with four degrees
    assert np.log(ratio["high"] / ratio["ratio"]) == pytest.approx(quantile * error, rel=1e-5)
    assert ratio["low"] < ratio["ratio"] < ratio["high"]


def test_a_policy_compared_with_itself_has_the_ratio_one_for_sure() -> None:
    own = np.random.default_rng(3).gamma(4.0, 10.0, TASK.runs)
    line = task_line(TASK, Played(own, None), dict.fromkeys(REFERENCES, own))
    assert group_ratio([line], "Ladder()") == pytest.approx({"ratio": 1.0, "low": 1.0, "high": 1.0})


def test_an_entry_survives_its_file(tmp_path: Path) -> None:
    entry = made_entry()
    write(tmp_path / "entry.json", entry)
    assert read(tmp_path / "entry.json") == entry
    elsewhere = {**entry, "policy": {**entry["policy"], "file": "another.py"}}
    write(tmp_path / "entry.json", elsewhere)  # the name of the file is not part of the digest
    assert read(tmp_path / "entry.json") == elsewhere


def changed(path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    entry = made_entry()
    place: Any = entry
    for each in path[:-1]:
        place = place[each]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return entry


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("suite",), "decoupled-0", "suite = 'decoupled-0': must be 'decoupled-1' or 'decoupled-2'"),
        (("suite",), "decoupled-2", r"tasks\[0\]: has another group or other references"),
        (("size",), "tiny", "size = 'tiny': must be 'standard' or 'quick'"),
        (("tasks",), None, "tasks: is missing"),
        (("tasks", 0, "regret"), 7, r"tasks\[0\].regret = '7': is of the wrong kind"),
        (("tasks", 0, "group"), "mine", r"tasks\[0\]: has another group"),
        (("tasks", 0, "regret", "mean"), 0.0, r"tasks\[0\]\.regret: has another mean or error than"),
        (("tasks", 0, "regret", "runs", 1), 9.0, "has another mean or error than its runs"),
        (("tasks", 0, "regret", "runs"), [1.0], r"regret\.runs: must be 5 numbers"),
        (("tasks", 0, "regret", "runs"), [1e308] * 5, r"regret\.runs: must be 5 numbers, at most 5000"),
        (("tasks", 0, "arms"), 10**400, "does not match the numbers"),
        (("tasks", 0, "data"), "mmlu", r"data = 'mmlu': does not belong to the group paper"),
        (("tasks", 0, "references", "FTPL()"), None, "has another group or other references"),
        (("tasks", 0, "references", "FTPL()", "mean"), 1e9, "is not the difference of the means"),
        (("tasks", 0, "differences", "FTPL()", "low"), 1e9, "is not the difference of the means"),
        (("policy", "sha256"), None, r"policy\.sha256: is missing"),
        (("policy", "name"), "A()|<script>", r"policy\.name = .*must be printable, without \| < > `"),
        (("environment", "decoupled"), "1\n2", r"environment\.decoupled = .*must be printable"),
        (("seed",), 1, "does not match the numbers"),
        (("groups", 0, "ratios", "FTPL()", "ratio"), 0.1, "does not match the numbers"),
    ],
)
def test_a_changed_entry_is_refused(path: Any, value: Any, message: str, tmp_path: Path) -> None:
    file = tmp_path / "entry.json"
    file.write_text(json.dumps(changed(path, value)))
    with pytest.raises(dc.StorageError, match=rf"entry\.json: .*{message}.*; run decoupled benchmark"):
        read(file)


def test_what_is_not_json_is_refused(tmp_path: Path) -> None:
    for text in ("regret: 0", '{"suite": NaN}', "[" * 100_000):
        (tmp_path / "entry.json").write_text(text)
        with pytest.raises(dc.StorageError, match="is not JSON"):
            read(tmp_path / "entry.json")
    with pytest.raises(dc.StorageError, match=r"cannot be read \(Is a directory\)"):
        read(tmp_path)
