"""The comparison of all systems, in small: its claims are judged."""

from pathlib import Path

import pytest

from decoupled_lab.paper.base import Scale
from decoupled_lab.paper.systems import SYSTEMS, Systems


@pytest.mark.pages
def test_systems_are_run_and_judged(tmp_path: Path) -> None:
    experiment, scale = Systems(), Scale(runs=8, quick=True)
    done: list[int] = []
    experiment.measure(scale, tmp_path, done.append)
    assert sum(done) == experiment.units(scale)
    section = experiment.section(tmp_path)
    claims = {claim.id: claim for claim in section.claims}
    assert len(claims["systems-geometric"].parts) == 3
    # The expectation is exactly 1; eight runs of 1,000 rounds at K = 8 estimate it within a factor of two.
    part = next(part for part in claims["systems-conditional"].parts if part.of == "K = 8")
    assert 0.5 < part.value < 2.0
    assert [row[0] for row in section.tables[0].rows] == [name for name, _ in SYSTEMS.values()]
