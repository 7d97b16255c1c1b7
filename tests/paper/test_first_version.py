"""The claims of the paper's first version, on made-up numbers and in a small run."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from decoupled import FTPL, TopTwo
from decoupled.paper import first_version
from decoupled.paper.base import Scale
from support.made_up_results import MadeUp


def test_pure_exploration_is_judged_for_both_policies() -> None:
    paper, ours, pure = FTPL(), FTPL.recommended(), TopTwo()
    cells: Any = {
        "one": MadeUp({paper: 60.0, ours: 20.0, pure: 80.0}),
        "two": MadeUp({paper: 60.0, ours: 20.0, pure: 50.0}),
    }
    verdicts = [claim.verdict for claim in first_version.pure_claims(cells)]
    assert verdicts == ["holds only for one", "holds"]


@pytest.mark.parametrize(
    ("ratio", "verdict"), [(20.0, "holds"), (3.0, "fails"), (100.0, "fails"), (9.9, "undecided")]
)
def test_about_twenty_times_is_between_ten_and_forty(ratio: float, verdict: str) -> None:
    spread = 1.0 + 0.05 * np.random.default_rng(1).normal(size=9)
    assert first_version.faster_claim({"a solver": ratio * spread / spread.mean()}).verdict == verdict


def test_solvers_that_differ_are_named() -> None:
    near = np.linspace(0.99, 1.01, 5)
    claim = first_version.faster_claim({"slow": 200.0 * near, "right": 20.0 * near, "fast": 2.0 * near})
    assert claim.verdict == "holds only for right"


def test_a_small_run_is_judged_and_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The steps that are timed take long to compile; the quick version of `runtime` and `conic` runs them.
    made_up = {"slower": {"Newton's method, compiled, K = 8": [2.0, 2.1]}, "missing": ["scs is missing"]}
    monkeypatch.setattr(first_version, "times", lambda scale: made_up)
    experiment = first_version.FirstVersion()
    experiment.measure(Scale(runs=4, quick=True), tmp_path, lambda done: None)
    section = experiment.section(tmp_path)
    assert [claim.id for claim in section.claims] == [
        "first-version-pure",
        "first-version-pure-recommended",
        "first-version-faster",
    ]
    assert [len(table.rows) for table in section.tables] == [3, 1]
    assert section.warnings == ("scs is missing",)
