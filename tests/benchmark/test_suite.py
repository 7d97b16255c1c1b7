"""The suite is frozen, and a task counts what the plain loop counts."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import decoupled as dc
from decoupled.benchmark.data import recorded
from decoupled.benchmark.suite import GROUPS, NEED_DATA, SIZES, SUITE
from decoupled.benchmark.task import REGRET, SEGMENTS, SWITCHING, TRACKING, Task
from decoupled.kernels.random.noise import draw_loss
from decoupled.simulation.cpu import run_streams

QUICK = {task.name: task for task in SUITE.tasks("quick")}


def test_the_suite_is_frozen() -> None:
    # An entry of today is compared with entries of years ago: never write another digest here, make another suite.
    assert SUITE.name == "decoupled-1"
    assert SUITE.digest() == "319c05d4067141eea85071f33e6fe94caf36b1876790747b91e505469c161bcd"


def test_both_sizes_have_the_same_tasks_in_the_order_of_the_groups() -> None:
    standard, quick = (SUITE.tasks(size) for size in SIZES)
    assert [task.name for task in standard] == [task.name for task in quick]
    assert len({task.seed for task in standard}) == len(standard)
    assert list(dict.fromkeys(task.group for task in standard)) == [
        group for group in GROUPS if group not in NEED_DATA
    ]
    assert all(task.rounds < whole.rounds for task, whole in zip(quick, standard, strict=True))


def test_every_task_is_in_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "benchmark.md").read_text(encoding="utf-8")
    assert [group for group in GROUPS if f"`{group}`" not in page] == []
    for task in SUITE.tasks("standard"):
        if task.group != "held-out":  # which are listed by their kinds
            assert f"`{task.name}`" in page


def small(name: str, rounds: int = 60) -> Task:
    return replace(QUICK[name], rounds=rounds, runs=3)


@pytest.mark.parametrize("name", ["alternating-8", "late-stochastic-5", "punish-last-8"])
def test_regret_is_what_simulate_finds(name: str) -> None:
    task = small(name)
    assert task.unit == REGRET
    results = dc.simulate(
        dc.FTPL(), task.environment, task.rounds, task.runs, task.seed, traffic=task.traffic
    )
    assert task.play(dc.FTPL()).values.tolist() == results.final_regret("FTPL").tolist()


def test_in_contexts_regret_is_against_the_best_arm_of_each_segment() -> None:
    task, policy = small("contexts-segments-3"), dc.ContextualLadder(segments=("segment",), numbers=("x",))
    assert task.unit == SEGMENTS
    results = dc.simulate([policy, dc.FTPL()], task.environment, task.rounds, task.runs, task.seed)
    for each in (policy, dc.FTPL()):
        assert task.play(each).values.tolist() == results.segment_regret(each).tolist()


@pytest.mark.parametrize("name", ["drift-8", "switches-redrawn-16"])
def test_a_moving_best_arm_and_switches_as_counted_by_hand(name: str) -> None:
    task = small(name, rounds=200)
    table = task.environment.table(task.rounds)
    keyed = task.unit == SWITCHING
    assert keyed or task.unit == TRACKING
    found = task.play(dc.FTPL())
    for run in range(task.runs):
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


def test_a_file_with_other_losses_is_not_taken_for_the_suites(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    np.savez(tmp_path / "real" / "phishing-01.npz", losses=np.zeros((4, 2)))
    with pytest.raises(dc.ParameterError, match=r"phishing-01\.npz: holds other losses than the suite's"):
        list(recorded(tmp_path))
    assert SUITE.tasks("quick", tmp_path / "real") == SUITE.tasks("quick")  # nothing is at hand there
