"""Experiments on worlds that change, late feedback and judges that err: their verdicts on made-up numbers, and small runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from decoupled import FTPL, Ladder, Policy
from decoupled.plots import Panel
from decoupled_lab.paper import drift, judges, late
from decoupled_lab.paper.base import Scale
from decoupled_lab.paper.setup import BENCHMARKS, WITHOUT_MEMORY
from decoupled_lab.report.pictures import Heat
from support.made_up_results import MadeUp, measured, not_holding

SMALL = Scale(runs=4, quick=True)  # takes seconds


def test_the_best_arm_changes_in_every_world_but_one() -> None:
    for title, world in drift.worlds(2_000).items():
        table = world.table(2_000)
        best = table.rows[table.row_at].argmin(axis=1)
        assert ((table.rows >= 0) & (table.rows <= 1)).all()
        assert (len(set(best)) == 1) == (title == drift.STILL)
        if "bloomer" in title:
            assert best[0] == 0
            assert best[-1] == world.arms - 1


def test_regret_is_counted_against_the_best_arm_of_each_round() -> None:
    # Six arms in eight phases: the first is the best in two of them, and by 0.3.
    lead = drift.lead_of_moving(drift.PERIODIC, 800)
    assert lead[[99, 100, 599, 699, 799]] == pytest.approx([0.0, 0.3, 150.0, 150.0, 180.0])
    assert drift.lead_of_moving(drift.STILL, 800)[-1] == 0.0


def test_a_changing_world_is_measured_and_drawn(tmp_path: Path) -> None:
    section = measured(drift.Drift(), SMALL, tmp_path)
    rows = section.tables[0].rows
    panels: Sequence[Panel | Heat] = section.pictures[0].panels
    assert (
        [row[0] for row in rows] == [panel.title for panel in panels] == list(drift.worlds(2_500))
    )
    assert [bool(row[5]) for row in rows] == [True, *[False] * 6]
    for row, panel in zip(rows, panels, strict=True):  # the curves end at the means of the table
        ends = [f"{series.y[-1]:,.0f}" for series in panel.series]
        assert ends == [cell.split(" ")[0] for cell in row[1:6] if cell]
        assert (np.diff([series.y for series in panel.series]) >= -1e-9).all()  # it never falls
    assert [len(claim.parts) for claim in section.claims] == [6, 6, 6, 1, 1]


@pytest.mark.parametrize(
    ("changed", "failing"),
    [
        ({}, set()),
        ({"random walk, K = 6": {"Ladder(memory=None)": 24.0}}, {"memory"}),
        ({"late bloomer, K = 5": {"FTPL": 24.0}}, {"paper"}),
        ({drift.PERIODIC: {"TopTwo()": 19.0}}, {"top-two"}),
        ({drift.PERIODIC: {"Ladder(), restarted": 3.0}}, {"restarted"}),
        ({drift.STILL: {"Ladder()": 45.0}}, {"still"}),
    ],
)
def test_drift_is_judged_by_ratios(changed: dict[str, dict[str, float]], failing: set[str]) -> None:
    usual = {"FTPL": 100.0, "TopTwo()": 30.0, "Ladder(memory=None)": 40.0, "Ladder()": 20.0}
    usual["Ladder(), restarted"] = 15.0
    spread = 1.0 + 0.01 * np.random.default_rng(0).normal(size=200)
    means = {title: usual | changed.get(title, {}) for title in drift.worlds(2_000)}
    regrets = {
        title: {name: mean * spread for name, mean in of.items()} for title, of in means.items()
    }
    claims = drift.claims(regrets)
    assert len(claims) == 5
    assert not_holding(claims) == {f"drift-{name}" for name in failing}


def test_the_free_arm_of_the_square_wave_changes_after_twice_the_delay() -> None:
    table = late.square_wave(40, 1_000).table(1_000)
    assert (table.rows[table.row_at][[0, 79, 80, 639, 640]].argmin(axis=1) == [0, 0, 1, 7, 0]).all()
    assert (table.rows.sum(axis=1) == late.ARMS - 1).all()


def test_late_feedback_is_measured_and_drawn(tmp_path: Path) -> None:
    section = measured(late.Late(), SMALL, tmp_path)
    by_delay, others = section.pictures
    assert [panel.title for panel in others.panels] == list(late.worlds(2_500))[len(late.DELAYS) :]
    assert len(section.tables[0].rows) == 3 * len(late.worlds(2_500))
    ours = next(series for series in by_delay.panels[0].series if series.label == "Ladder()")
    assert ours.y[-1] > ours.y[0] > 0.0  # feedback that is 200 rounds late costs more


CASES: dict[str, tuple[dict[str, dict[Policy, float]], set[str]]] = {
    "all": ({}, set()),
    "paper": ({"delay 40, half lost": {FTPL(c=0.34): 240.0}}, {"paper"}),
    "square": ({"square wave, delay 40": {FTPL(c=0.34): 60.0}}, {"square"}),
    "memory": ({"square wave, delay 10": {WITHOUT_MEMORY: 35.0}}, {"memory"}),
    "bounds": ({"delay 0": {FTPL(c=0.34): 2_400.0}}, {"bounds"}),
    "added": ({"delay 0": {Ladder(): 5.0}}, {"added"}),
}


@pytest.mark.parametrize("case", CASES)
def test_late_feedback_is_judged(case: str) -> None:
    changed, failing = CASES[case]
    usual: dict[Policy, float] = {FTPL(c=0.34): 300.0, WITHOUT_MEMORY: 50.0, Ladder(): 50.0}
    waves: dict[Policy, float] = {FTPL(c=0.34): 40.0}
    cells: Any = {
        title: MadeUp(usual | (waves if "wave" in title else {}) | changed.get(title, {}))
        for title in late.worlds(2_000)
    }
    for made_up in cells.values():
        made_up.horizon = 10_000
    assert not_holding(late.claims(cells)) == {f"late-{name}" for name in failing}


def test_a_share_of_the_looks_is_measured_and_judged(tmp_path: Path) -> None:
    section = measured(late.Looks(), SMALL, tmp_path)
    assert len(section.tables[0].rows) == 2 * len(BENCHMARKS) * len(late.SHARES)
    for panel in section.pictures[0].panels:
        regret, least = panel.series[0].y, panel.series[3].y
        assert regret[-1] > regret[0]  # fewer looks cost more
        assert least[-1] == pytest.approx(10.0 * least[0])
    usual: dict[Policy, float] = {FTPL(c=0.34): 300.0, Ladder(): 50.0}
    for title, means, failing in (
        ("", {}, set()),
        ("alternating, share 0.01", {FTPL(c=0.34): 25_000.0}, {"looks-bounds"}),
        ("stochastic hard, share 0.3", {Ladder(): 300.0}, {"looks-price"}),
    ):
        cells: Any = {
            (name := late.by_share(world, share)): MadeUp(
                {p: mean / (10.0 if share < 1.0 else 1.0) for p, mean in usual.items()}
                | (means if name == title else {})
            )
            for world in BENCHMARKS
            for share in late.SHARES
        }
        for made_up in cells.values():
            made_up.horizon = 10_000
        found = not_holding(late.looks_claims(cells))
        assert found >= failing
        assert failing or not found


EVERY = [(title, how) for title in judges.JUDGES for how in (judges.ALONE, judges.WITH)]


def test_two_judges_favour_the_worse_arm_and_one_of_them_is_nearly_always_right() -> None:
    means = np.array(judges.MEANS)
    for title, says in judges.JUDGES.items():
        low, high = np.broadcast_to(says, (2, 2)).T
        judged = low + means * (high - low)
        assert (judged[1] > judged[0]) == (title in judges.FAVOURING)
        right = means * high + (1.0 - means) * (1.0 - low)
        assert "94 %" not in title or right == pytest.approx(0.94, abs=0.01)


@pytest.mark.parametrize("how", [judges.ALONE, judges.WITH])
def test_asking_seldom_changes_no_time_of_a_verdict(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judges, "MEANS", (0.9, 0.1))
    seldom = judges.verdict_of(("fair", how, 3))
    monkeypatch.setattr(judges, "ASK", 1)
    assert judges.verdict_of(("fair", how, 3)) == seldom
    assert seldom is not None
    assert seldom[0] % 50 != 0
    assert seldom[1]


@pytest.mark.pages
def test_it_is_measured_and_drawn(tmp_path: Path) -> None:
    scale = Scale(runs=2, quick=True)
    section = measured(judges.Judges(), scale, tmp_path)
    assert judges.Judges().units(scale) == 9 * 2 * judges.HORIZON
    regrets, verdicts = section.tables
    assert len(regrets.rows) == 9
    assert [row[0] for row in verdicts.rows] == [f"{title}{how}" for title, how in EVERY]
    assert verdicts.rows[2][1:4] == (
        "1",
        "1",
        "1",
    )  # by the judge that favours the worse arm, for that arm
    assert verdicts.rows[3][3] == "0"
    (picture,) = section.pictures
    assert [len(panel.series) for panel in picture.panels] == [3] * 4
    alone, gold, labels = picture.panels[1].series
    assert alone.y[-1] > 700.0 > 300.0 > max(gold.y[-1], labels.y[-1])


@pytest.mark.parametrize(
    ("regrets", "ends", "failing"),
    [
        ({}, {}, set()),
        ({"a coin" + judges.WITH: 70.0}, {}, {"labels"}),
        ({"right in 94 %" + judges.ALONE: 300.0}, {}, {"alone"}),
        ({}, {"fair": [[900, False]] * 30 + [[900, True]] * 270}, {"wrong"}),
        ({}, {"fair": [None] * 60 + [[900, True]] * 240}, {"decided"}),
        ({}, {"fair": [[900, True]] * 30}, {"wrong", "decided"}),  # too few to tell
    ],
)
def test_judges_are_judged(
    regrets: dict[str, float], ends: dict[str, Any], failing: set[str]
) -> None:
    verdicts: Any = {title + judges.WITH: [[900, True]] * 300 for title in judges.JUDGES}
    verdicts |= {title + judges.WITH: found for title, found in ends.items()}
    usual = {f"{title}{how}": 800.0 if how == judges.ALONE else 40.0 for title, how in EVERY}
    cells: Any = {name: MadeUp({Ladder(): mean}) for name, mean in (usual | regrets).items()}
    claims = judges.claims(cells, verdicts)
    assert len(claims) == 4
    assert not_holding(claims) == {f"judges-{name}" for name in failing}
