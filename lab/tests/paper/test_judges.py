"""The experiment on judges that err: its judges, its verdicts on made-up numbers, and a small run."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from decoupled import Ladder
from decoupled_lab.paper import judges
from decoupled_lab.paper.base import Scale
from support.made_up_results import MadeUp, measured, not_holding

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
def test_asking_seldom_changes_no_time_of_a_verdict(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert verdicts.rows[2][1:4] == ("1", "1", "1")  # by the judge that favours the worse arm, for that arm
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
def test_judges_are_judged(regrets: dict[str, float], ends: dict[str, Any], failing: set[str]) -> None:
    verdicts: Any = {title + judges.WITH: [[900, True]] * 300 for title in judges.JUDGES}
    verdicts |= {title + judges.WITH: found for title, found in ends.items()}
    usual = {f"{title}{how}": 800.0 if how == judges.ALONE else 40.0 for title, how in EVERY}
    cells: Any = {name: MadeUp({Ladder(): mean}) for name, mean in (usual | regrets).items()}
    claims = judges.claims(cells, verdicts)
    assert len(claims) == 4
    assert not_holding(claims) == {f"judges-{name}" for name in failing}
