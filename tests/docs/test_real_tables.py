"""The table of recorded losses in choosing.md: its script runs, and produces the numbers on the page."""

import os
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import decoupled as dc
from support.pages import ROOT

SCRIPT = runpy.run_path(str(ROOT / "docs" / "tools" / "real_tables.py"))
PAGE = (ROOT / "docs" / "choosing.md").read_text()
DATA = Path(os.environ.get("DECOUPLED_DATA") or "nowhere")
CELL = re.compile(r"\*{0,2}(-?[\d,]+) ± ([\d.]+)\*{0,2}")
FEWER = 100  # runs; the page has 1,000


def shown() -> dict[str, list[tuple[float, float]]]:
    """The rows of the table on the page: for each policy, a mean and a half-width in each column."""
    section = PAGE.split("## What we saw on recorded losses")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if re.match(r"\| [^|]*`", line)]
    cells = {name: [CELL.fullmatch(cell) for cell in rest] for name, *rest in rows}
    assert all(all(row) for row in cells.values())
    return {
        name: [(float(cell[1].replace(",", "")), float(cell[2])) for cell in row if cell]
        for name, row in cells.items()
    }


def test_the_page_has_a_row_for_each_policy_and_a_cell_for_each_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shown().keys() == SCRIPT["POLICIES"].keys()
    # One policy is enough here, and avoids compiling the others.
    one = {name: policy for name, policy in SCRIPT["POLICIES"].items() if policy == dc.FTPL()}
    monkeypatch.setitem(SCRIPT["columns"].__globals__, "POLICIES", one)
    (tmp_path / "real").mkdir()
    rng = np.random.default_rng(0)
    for name in SCRIPT["TABLES"]:
        np.savez(tmp_path / "real" / f"{name}.npz", losses=rng.random((250, 3)) * [0.2, 1.0, 1.0])
    made = list(SCRIPT["columns"](tmp_path, 2))
    assert {len(row) for row in shown().values()} == {len(made)}
    for head, cells in made:
        assert cells.keys() == one.keys()
        runs = {len(regret) for regret in cells.values()}
        assert runs == ({4} if "late" in head else {2})
    late = dict(made)["flights-carrier, 200 rounds late, 4 runs"]
    # No loss is seen in the first 201 of 250 rounds; about two thirds of them cost 0.4.
    assert all(20 < regret.mean() < 90 for regret in late.values())


@pytest.mark.skipif(
    not (DATA / "real").is_dir(), reason="DECOUPLED_DATA names no folder with recorded tables"
)
@pytest.mark.parametrize("column", range(4))
def test_the_table_agrees_with_the_recorded_losses(column: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Every process compiles a wrapped policy, which takes longer than the rest of the test.
    plain = {name: each for name, each in SCRIPT["POLICIES"].items() if not isinstance(each, dc.Forgetting)}
    monkeypatch.setitem(SCRIPT["recorded"].__globals__, "POLICIES", plain)
    losses = SCRIPT["losses_of"](DATA, SCRIPT["TABLES"][column])
    measured = SCRIPT["recorded"](losses, FEWER)
    for name in plain:
        mean, half = shown()[name][column]
        error = np.hypot(half / 1.96, measured[name].std(ddof=1) / np.sqrt(FEWER))
        # Sixteen cells, each wrong by chance once in 15,000 times. Means are shown as whole numbers.
        assert abs(measured[name].mean() - mean) < 4 * error + 0.5, name
