"""The experiment on keys, in small: it is measured, judged and drawn, and its verdicts follow the numbers."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from decoupled_lab.paper import sticky
from decoupled_lab.paper.base import Scale


@pytest.mark.pages
def test_it_is_measured_judged_and_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sticky, "HORIZON", 2_000)  # a tenth of it in the quick version
    experiment, scale = sticky.Sticky(), Scale(runs=4, quick=True)
    done: list[int] = []
    experiment.measure(scale, tmp_path, done.append)
    assert sum(done) == experiment.units(scale) == 3 * 2 * 7 * 4 * 200
    section = experiment.section(tmp_path)
    claims = {claim.id: claim for claim in section.claims}
    assert claims["sticky-bound"].verdict == "holds"
    assert [len(claim.parts) for claim in claims.values()] == [9, 9, 3]
    rows = section.tables[0].rows
    assert rows[3][0].endswith("Tsallis-INF, standard game")
    assert rows[3][1] == rows[3][3] == ""
    assert all(float(row[3]) < float(row[4]) for row in rows if row[3])
    assert [len(panel.series) for panel in section.pictures[0].panels] == [7, 7, 7]


def made_up(regret: float, switches: float) -> Any:
    spread = 1.0 + 0.01 * np.random.default_rng(int(regret)).normal(size=100)
    return SimpleNamespace(
        horizon=10_000,
        data=SimpleNamespace(sizes={"arm": 4}),
        final_regret=lambda policy: regret * spread,
        switches=lambda policy: switches * spread,
    )


def worlds(keyed: tuple[float, float], fresh: tuple[float, float]) -> Any:
    return {name: (made_up(*keyed), made_up(*fresh)) for name in sticky.worlds(200)}


def test_verdicts_follow_the_numbers() -> None:
    alone, many = worlds((100.0, 5.0), (100.0, 20.0)), worlds((101.0, 4.0), (100.0, 20.0))
    assert [claim.verdict for claim in sticky.claims(alone, many)] == ["holds"] * 3
    moved = worlds((100.0, 19.0), (100.0, 20.0))
    assert [claim.verdict for claim in sticky.claims(moved, many)][1] == "fails"
    worse = worlds((190.0, 4.0), (100.0, 20.0))
    assert next(iter(sticky.claims(alone, worse))).verdict == "fails"
    often = worlds((100.0, 6_000.0), (100.0, 20_000.0))
    assert [claim.verdict for claim in sticky.claims(often, many)][2] == "fails"
