"""The suite is frozen and counts what the plain loop counts; entries are equal to the bit, whoever plays them."""

import json
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import decoupled as dc
from decoupled.cli.main import app
from decoupled.environments.base import Adversary
from decoupled.kernels.random.sampling import draw_loss
from decoupled.simulation.cpu import run_streams
from decoupled_lab.benchmark import suite, worlds
from decoupled_lab.benchmark.loading import Source
from decoupled_lab.benchmark.run import run
from decoupled_lab.benchmark.suite import GROUPS, NEED_DATA, REFERENCES, SIZES, SUITE, Size
from decoupled_lab.benchmark.task import REGRET, SEGMENTS, SWITCHING, TRACKING, Task
from support.entries import SOFT, with_line

QUICK = {task.name: task for task in SUITE.tasks("quick")}


def test_the_suite_is_frozen() -> None:
    # An entry of today is compared with entries of years ago: never write another digest here, make another suite.
    assert SUITE.name == "decoupled-1"
    assert SUITE.digest() == "330fe25003f294e01dfdba4d67861afbae643dd991b5cfa8b1d99efe12405eb5"


def test_both_sizes_have_the_same_tasks_in_the_order_of_the_groups() -> None:
    standard, quick = (SUITE.tasks(size) for size in SIZES)
    assert [task.name for task in standard] == [task.name for task in quick]
    assert len({task.seed for task in standard}) == len(standard)
    assert list(dict.fromkeys(task.group for task in standard)) == [
        group for group in GROUPS if group not in NEED_DATA
    ]
    assert all(task.rounds < whole.rounds for task, whole in zip(quick, standard, strict=True))


def small(name: str, rounds: int = 60) -> Task:
    return replace(QUICK[name], rounds=rounds, runs=3)


@pytest.mark.parametrize("name", ["alternating-8", "late-stochastic-5", "punish-last-8"])
def test_regret_is_what_simulate_finds(name: str) -> None:
    task = small(name)
    assert task.unit == REGRET
    for run, value in enumerate(task.play(dc.FTPL()).values):
        results = dc.simulate(
            dc.FTPL(), task.world(run), task.rounds, task.runs, task.seed, traffic=task.traffic
        )
        assert value == results.final_regret("FTPL")[run]


def test_in_contexts_regret_is_against_the_best_arm_of_each_segment() -> None:
    task, policy = small("contexts-segments-3"), dc.ContextualLadder(segments=("segment",), numbers=("x",))
    assert task.unit == SEGMENTS
    for each in (policy, dc.FTPL()):
        for run, value in enumerate(task.play(each).values):
            results = dc.simulate(each, task.world(run), task.rounds, task.runs, task.seed)
            assert value == results.segment_regret(each)[run]


@pytest.mark.parametrize("task", SUITE.tasks("standard"), ids=lambda task: task.name)
def test_the_number_of_an_arm_tells_nothing(task: Task) -> None:
    places = [task.places(run) for run in range(task.runs)]
    assert all(sorted(each) == list(range(task.environment.arms)) for each in places)
    assert len({tuple(each) for each in places}) > 3
    given, here = task.environment, task.world(1)
    if isinstance(given, Adversary):
        assert here.best == places[1].tolist().index(0)  # type: ignore[attr-defined]
        return
    before, after = given.table(task.rounds), here.table(task.rounds)
    assert after.rows.tolist() == before.rows[:, places[1]].tolist()
    assert after.row_at.tolist() == before.row_at.tolist()
    assert (after.noise, after.concentration) == (before.noise, before.concentration)


def test_a_policy_that_knows_an_arm_gains_nothing() -> None:
    @dataclass(frozen=True)
    class First(dc.PythonPolicy):
        def decide(self, known: Any) -> Any:
            return 0, np.full(known.arms, 1 / known.arms)

        def update(self, known: Any, arm: int, weight: float, loss: float) -> None: ...

    dc.Policy._known.pop("First")
    mean = replace(QUICK["alternating-8"], rounds=16, runs=200).play(First()).values.mean()
    assert mean == pytest.approx(16 * 0.125 * 7 / 8, rel=0.1)  # as of an arm at random


@pytest.mark.parametrize("name", ["drift-8", "switches-redrawn-16"])
def test_a_moving_best_arm_and_switches_as_counted_by_hand(name: str) -> None:
    task = small(name, rounds=200)
    keyed = task.unit == SWITCHING
    assert keyed or task.unit == TRACKING
    found = task.play(dc.FTPL())
    for run in range(task.runs):
        table = task.world(run).table(task.rounds)
        noise, _ = run_streams(task.seed, run)
        local = np.zeros(2, np.uint64)
        learner = dc.FTPL().start(
            task.environment.arms, np.random.SeedSequence(task.seed, spawn_key=(run, 1))
        )
        behind, changes, last = 0.0, 0, None
        for row in table.rows[table.row_at]:
            decision = learner.decide(key="key-0") if keyed else learner.decide()
            learner.observe(
                decision, draw_loss(table.noise, table.concentration, row[decision.explore], noise, local)
            )
            behind += row[decision.exploit] - row.min()
            changes += last not in (None, decision.exploit)
            last = decision.exploit
        assert found.values[run] == pytest.approx(behind + keyed * changes, abs=1e-9)
        if keyed:
            assert found.switches is not None
            assert found.switches[run] == changes


def test_a_file_with_other_values_is_not_taken_for_the_suites(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    np.savez(tmp_path / "real" / "phishing-01.npz", losses=np.zeros((4, 2)))
    with pytest.raises(dc.ParameterError, match=r"phishing-01\.npz: holds other values than the suite's"):
        list(worlds.recorded(tmp_path))
    assert SUITE.tasks("quick", tmp_path / "real") == SUITE.tasks("quick")  # nothing is at hand there


@pytest.mark.parametrize("changed", ["wrong", "segment", "names", "length"])
def test_every_column_of_mmlu_counts(changed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns: dict[str, Any] = {
        "wrong": np.eye(3)[:, :2],
        "segment": np.array([0, 1, 1]),
        "names": np.array(["law", "art"]),
        "length": np.array([3, 1, 2]),
    }
    (tmp_path / "context").mkdir()
    file = tmp_path / "context" / "mmlu.npz"
    np.savez(file, **columns)
    subjects = columns["names"][columns["segment"]]
    text = json.dumps([each.tolist() for each in (columns["wrong"], subjects, columns["length"])])
    monkeypatch.setattr(worlds, "MMLU", sha256(text.encode()).hexdigest())
    assert worlds.mmlu(tmp_path) is not None
    np.savez(file, **{**columns, changed: columns[changed][::-1]})
    with pytest.raises(dc.ParameterError, match=r"mmlu\.npz: holds other values"):
        worlds.mmlu(tmp_path)


# A whole benchmark compiles the loops of its references for most of a minute: `make test-docs`.
pytestmark = pytest.mark.pages

TINY = Size("tiny", 2, 400)
KILLED = "import sys; from decoupled_lab.benchmark.run import run, Size; run(sys.argv[1], Size('tiny', 2, 400), sys.argv[2], workers=1)"


@pytest.fixture(scope="module")
def entered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A policy's file, and its entry with one worker, made by the command."""
    folder = tmp_path_factory.mktemp("entered")
    file, out = folder / "soft.py", folder / "out"
    file.write_text(SOFT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(suite.SIZES, "quick", TINY)
        patch.delenv("DECOUPLED_DATA", raising=False)
        command = ["benchmark", str(file), "--quick", "--workers", "1", "--out", str(out)]
        done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "Soft() on decoupled-1, tiny" in done.output
    assert "Late or lost feedback" in done.output
    return file, json.loads((out / "entry.json").read_text())


def test_an_entry_has_every_task_and_group(entered: tuple[Path, dict[str, Any]]) -> None:
    _, entry = entered
    assert entry["policy"]["name"] == "Soft()"
    assert (entry["policy"]["kind"], entry["policy"]["file"]) == ("python", "soft.py")
    assert [task["name"] for task in entry["tasks"]] == [task.name for task in SUITE.tasks(TINY)]
    assert [group["name"] for group in entry["groups"]] == [
        name for name in GROUPS if name not in NEED_DATA
    ]
    for task, line in zip(SUITE.tasks(TINY), entry["tasks"], strict=True):
        assert (line["switches"] is not None) == (line["group"] == "switches")
        assert set(line["references"]) == set(line["differences"]) == set(REFERENCES)
        if line["group"] in ("paper", "contexts"):
            found = task.play(dc.Ladder()).values
            assert line["references"]["Ladder()"]["mean"] == pytest.approx(found.mean())


def test_killed_runs_go_on_and_workers_agree(entered: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    file, entry = entered
    out = tmp_path / "out"
    with subprocess.Popen([sys.executable, "-c", KILLED, str(file), str(out)]) as process:
        while not (kept := sorted(out.glob("blocks/entry-*/*.json"))) and process.poll() is None:
            time.sleep(0.01)
        process.kill()
    assert kept
    assert not (out / "entry.json").exists()
    before = {block: block.stat().st_mtime_ns for block in kept}
    kept[0].write_bytes(kept[0].read_bytes()[:-9])  # as after a crash of the machine
    again = run(file, TINY, out, workers=2)
    assert again["digest"] == entry["digest"]
    assert again["groups"] == entry["groups"]
    assert [block.stat().st_mtime_ns for block in kept[1:]] == [before[block] for block in kept[1:]]


def test_files_that_changed_or_were_refused(entered: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    file, entry = entered
    out, changed = file.parent / "out", tmp_path / "soft.py"
    changed.write_text(with_line("assert known.arms != 40, 'too many'"))  # the trial has fewer
    before = sorted(out.glob("blocks/*/*.json"))
    message = r"^soft\.py, in the task held-out-alternating-40: raised AssertionError: too many \(decide"
    with pytest.raises(dc.ContractError, match=message):
        run(changed, TINY, out, workers=1)
    after = sorted(out.glob("blocks/*/*.json"))
    new = {block.parent.name for block in set(after) - set(before)}
    assert len(new) == 1  # what the changed policy finished
    assert min(new).startswith("entry-")
    assert json.loads((out / "entry.json").read_text()) == entry


def test_a_policy_object_is_its_call() -> None:
    for policy in (dc.Forgetting(dc.FTPL(c=1), period=50), dc.ContextualLadder(segments=("segment",))):
        assert Source(repr(policy)).load() == policy
    assert Source("FTPL(c=1)").described(dc.FTPL(c=1)) == {
        "name": "FTPL(c=1)", "kind": "compiled", "file": None, "sha256": None,
    }  # fmt: skip
