"""The suite is frozen, and a task counts what the plain loop counts."""

import json
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import decoupled as dc
from decoupled.environments.base import Adversary
from decoupled.kernels.random.sampling import draw_loss
from decoupled.simulation.cpu import run_streams
from decoupled_lab.benchmark import worlds
from decoupled_lab.benchmark.suite import GROUPS, NEED_DATA, SIZES, SUITE
from decoupled_lab.benchmark.task import REGRET, SEGMENTS, SWITCHING, TRACKING, Task

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
    task, policy = (
        small("contexts-segments-3"),
        dc.ContextualLadder(segments=("segment",), numbers=("x",)),
    )
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
    with dc.Policy.forget_new():

        @dataclass(frozen=True)
        class First(dc.PythonPolicy):
            def decide(self, known: Any) -> Any:
                return 0, np.full(known.arms, 1 / known.arms)

            def update(self, known: Any, arm: int, weight: float, loss: float) -> None: ...

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
                decision,
                draw_loss(table.noise, table.concentration, row[decision.explore], noise, local),
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
    with pytest.raises(
        dc.ParameterError, match=r"phishing-01\.npz: holds other values than the suite's"
    ):
        list(worlds.recorded(tmp_path))
    assert SUITE.tasks("quick", tmp_path / "real") == SUITE.tasks(
        "quick"
    )  # nothing is at hand there


@pytest.mark.parametrize("changed", ["wrong", "segment", "names", "length"])
def test_every_column_of_mmlu_counts(
    changed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
