"""The runs that an undecided claim is said to need do decide it."""

import numpy as np
import pytest

from decoupled_lab.report.claims import (
    MOST,
    POWER,
    UNDECIDED,
    Measure,
    judged_above,
    judged_below,
    judged_within,
    mean_of,
    runs_to_decide,
)
from decoupled_lab.report.page import needed_runs


def test_so_many_runs_decide_with_the_stated_power() -> None:
    # The value so far is the true one, 0.3 standard deviations above the threshold.
    so_far = Measure("all", 0.3, 0.3 - 1.96 / np.sqrt(20), 0.3 + 1.96 / np.sqrt(20), runs=20)
    needed = runs_to_decide([so_far], [0.0])
    assert needed == 120
    rng = np.random.default_rng(0)
    decided = np.mean([mean_of("all", rng.normal(0.3, 1.0, needed)).low > 0.0 for _ in range(2_000)])
    # Binomial, five standard deviations: a false alarm for 1 seed in two million. Without the room for the value
    # to move, so many runs would be 43, and decide half of the time.
    assert abs(decided - POWER) < 5 * np.sqrt(POWER * (1 - POWER) / 2_000)


def test_the_part_that_needs_most_counts() -> None:
    parts = [
        Measure("a", 1.2, 0.9, 1.5, 100),
        Measure("b", 1.1, 0.9, 1.3, 400),
        Measure("c", 9.0, 8.0, 10.0, 7),
    ]
    above = judged_above("id", "", "", "", parts, 1.0)
    below = judged_below("id", "", "", "", [part.turned() for part in parts], -1.0)
    for claim in (above, below):
        assert claim.verdict == UNDECIDED
        assert claim.runs_to_decide == 4_400  # 400 * (0.2 / 0.1 * 1.654)^2, rounded up
        assert claim.to_dict()["runs_to_decide"] == 4_400
        assert needed_runs(claim) == "about 4,400 runs would decide it; it has 7"


def test_between_two_numbers_the_nearer_edge_counts() -> None:
    claim = judged_within("id", "", "", "", [Measure("a", 11.0, 9.0, 13.0, 50)], 10.0, 40.0)
    assert claim.runs_to_decide == 550  # 50 * (2 / 1 * 1.654)^2, rounded up


def test_a_decided_claim_needs_none() -> None:
    claim = judged_above("id", "", "", "", [Measure("a", 2.0, 1.5, 2.5, 50)], 1.0)
    assert claim.runs_to_decide is None
    assert needed_runs(claim) == ""


@pytest.mark.parametrize(
    "part",
    [
        Measure("on the threshold", 1.0, 0.5, 1.5, 100),
        Measure("too near", 1.0 + 1e-7, 0.5, 1.5, MOST // 1_000),
        Measure("one run", 3.0, -np.inf, np.inf, 1),
        Measure("no runs", 1.1, 0.5, 1.7),
    ],
    ids=lambda part: part.of,
)
def test_what_cannot_be_told_is_not_told(part: Measure) -> None:
    claim = judged_above("id", "", "", "", [part], 1.0)
    assert (claim.verdict, claim.runs_to_decide) == (UNDECIDED, None)
    assert "does not tell" in needed_runs(claim)
