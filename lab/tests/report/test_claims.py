"""Verdicts follow only from where the intervals lie, the runs that an undecided claim needs decide it, and LaTeX reads the tables."""

import json
from pathlib import Path

import numpy as np
import pytest

import decoupled as dc
import decoupled_lab as lab
from decoupled_lab.benchmark.table import to_latex
from decoupled_lab.report import claims
from decoupled_lab.report.claims import (
    FAILS,
    HOLDS,
    LEAST_RUNS,
    UNDECIDED,
    Claim,
    Measure,
    judged,
    mean_of,
)
from decoupled_lab.report.page import claims_table, needed_runs
from support.made_entries import made_up
from support.tex import compiled, pdflatex_or_skip


def measure(of: str, low: float, high: float) -> Measure:
    return Measure(of, (low + high) / 2, low, high)


ABOVE, ACROSS, UNDER = (
    measure("above", 1.5, 2.0),
    measure("across", 0.5, 1.5),
    measure("under", 0.2, 0.7),
)


def claim_above(*parts: Measure) -> Claim:
    return judged("id", "place", "statement", "statistic", parts, 1.0)


def claim_below(*parts: Measure) -> Claim:
    return judged("id", "place", "statement", "statistic", parts, high=1.0)


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        ([ABOVE], HOLDS),
        ([ABOVE, ABOVE], HOLDS),
        ([ACROSS], UNDECIDED),
        ([ABOVE, ACROSS], UNDECIDED),
        ([UNDER], FAILS),
        ([UNDER, ACROSS], FAILS),
        ([ABOVE, UNDER], "holds only for above"),
        ([ABOVE, ACROSS, UNDER], "holds only for above"),
    ],
)
def test_verdicts(parts: list[Measure], verdict: str) -> None:
    assert claim_above(*parts).verdict == verdict


def test_below_is_the_mirror_of_above() -> None:
    assert claim_below(UNDER).verdict == HOLDS
    assert claim_below(ACROSS).verdict == UNDECIDED
    assert claim_below(ABOVE).verdict == FAILS
    assert claim_below(ABOVE, UNDER).verdict == "holds only for under"
    assert claim_below(ABOVE, UNDER).parts == (ABOVE, UNDER)


def test_what_decides_comes_first() -> None:
    wide = measure("wide", -9.0, 9.0)
    assert claim_above(ABOVE, wide, UNDER).parts[0] == UNDER  # it fails; the wide one is undecided
    assert claim_above(ABOVE, ACROSS).parts[0] == ACROSS


def test_a_long_list_is_given_by_its_exceptions_or_its_number() -> None:
    many = [measure(f"cell {number}", 1.5, 2.0) for number in range(10)]
    assert claim_above(*many, UNDER).verdict == "holds only without under"
    bad = [measure(f"bad {number}", 0.1, 0.2) for number in range(6)]
    assert claim_above(*many, *bad).verdict == "holds only for 10 of 16"


def test_a_claim_is_plain_json_and_has_what_readers_need() -> None:
    claim = claim_above(ABOVE, Measure("one run", 3.0, -np.inf, np.inf))
    values = json.loads(json.dumps(claim.to_dict(), allow_nan=False))
    assert {"id", "statement", "measured", "interval", "verdict", "place", "threshold"} <= set(
        values
    )
    assert values["measured"] == 3.0
    assert values["interval"] == [None, None]
    assert values["verdict"] == UNDECIDED
    assert len(values["parts"]) == 2


def test_not_judged_keeps_what_was_measured() -> None:
    claim = claims.not_judged(claim_above(ABOVE), "a stand-in")
    assert claim.verdict == "not judged: a stand-in"
    assert claim.parts == (ABOVE,)
    assert (claim_above(ABOVE).judged, claim.judged) == (True, False)


def coverage(comparisons: int, trials: int = 2_000) -> float:
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(trials):
        part = mean_of("x", rng.normal(1.0, 2.0, 20), comparisons)
        covered += part.low <= 1.0 <= part.high
    return covered / trials


def test_intervals_of_means_have_their_coverage() -> None:
    # Binomial, five standard deviations: a false alarm for 1 seed in two million. With a normal quantile
    # instead of Student's t the coverage is 0.936; only the case of ten comparisons, at 0.987, catches it.
    assert abs(coverage(1) - 0.95) < 5 * np.sqrt(0.95 * 0.05 / 2_000)
    assert abs(coverage(10) - 0.995) < 5 * np.sqrt(0.995 * 0.005 / 2_000)


def test_intervals_of_ratios_have_their_coverage() -> None:
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(2_000):
        below = rng.gamma(4.0, 1.0, 200)
        part = claims.ratio_of("x", 1.5 * below + rng.normal(0.0, 1.0, 200), below)
        covered += part.low <= 1.5 <= part.high
    assert abs(covered / 2_000 - 0.95) < 5 * np.sqrt(0.95 * 0.05 / 2_000)


def test_intervals_of_quotients_cover_what_they_say_or_a_little_more() -> None:
    # Over the median of the five values below, as if it were exact, the coverage is 0.62.
    rng = np.random.default_rng(2)
    parts = [
        claims.quotient_of("x", [rng.normal(6.0, 0.6, 60)], [rng.normal(2.0, 0.1, 5)])
        for _ in range(2_000)
    ]
    assert 0.935 < np.mean([part.low <= 3.0 <= part.high for part in parts]) < 0.98


def test_so_many_runs_decide_with_the_stated_power() -> None:
    # The value so far is the true one, 0.3 standard deviations above the threshold.
    so_far = Measure("all", 0.3, 0.3 - 1.96 / np.sqrt(20), 0.3 + 1.96 / np.sqrt(20), runs=20)
    needed = claims.runs_to_decide([so_far], [0.0])
    assert needed == 120
    rng = np.random.default_rng(0)
    decided = np.mean(
        [mean_of("all", rng.normal(0.3, 1.0, needed)).low > 0.0 for _ in range(2_000)]
    )
    # Binomial, five standard deviations: a false alarm for 1 seed in two million. Without the room for the value
    # to move, so many runs would be 43, and decide half of the time.
    assert abs(decided - claims.POWER) < 5 * np.sqrt(claims.POWER * (1 - claims.POWER) / 2_000)


def test_the_part_that_needs_most_counts() -> None:
    numbers = {"a": (1.2, 0.9, 1.5, 100), "b": (1.1, 0.9, 1.3, 400), "c": (9.0, 8.0, 10.0, 70)}
    parts = [Measure(of, *each) for of, each in numbers.items()]
    above = judged("id", "", "", "", parts, 1.0)
    negated = [Measure(of, -value, -high, -low, runs) for of, value, low, high, runs in parts]
    for claim in (above, judged("id", "", "", "", negated, high=-1.0)):
        assert claim.verdict == UNDECIDED
        assert claim.runs_to_decide == 4_400  # 400 * (0.2 / 0.1 * 1.654)^2, rounded up
        assert claim.to_dict()["runs_to_decide"] == 4_400
        assert needed_runs(claim) == "about 4,400 runs would decide it; it has 70"


def test_between_two_numbers_the_nearer_edge_counts_and_a_decided_claim_needs_none() -> None:
    claim = judged("id", "", "", "", [Measure("a", 11.0, 9.0, 13.0, 50)], 10.0, 40.0)
    assert claim.runs_to_decide == 550  # 50 * (2 / 1 * 1.654)^2, rounded up
    claim = judged("id", "", "", "", [Measure("a", 2.0, 1.5, 2.5, 50)], 1.0)
    assert (claim.runs_to_decide, needed_runs(claim)) == (None, "")


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (Measure("on the threshold", 1.0, 0.5, 1.5, 100), "far from decided with 100 runs"),
        (
            Measure("too near", 1.0 + 1e-7, 0.5, 1.5, claims.MOST // 1_000),
            "far from decided with 100,000 runs",
        ),
        (Measure("one run", 3.0, -np.inf, np.inf, 1), "1 runs are too few for a verdict"),
        (Measure("no runs", 1.1, 0.5, 1.7), "its intervals include the threshold"),
    ],
)
def test_what_cannot_be_told_is_not_told(part: Measure, words: str) -> None:
    claim = judged("id", "", "", "", [part], 1.0)
    assert (claim.verdict, claim.runs_to_decide) == (UNDECIDED, None)
    assert needed_runs(claim) == words


def test_an_estimate_far_beyond_the_runs_is_not_given() -> None:
    # 20 (0.5 / 0.01 1.654)^2 = 136,731 runs, rounded up.
    claim = judged("id", "", "", "", [Measure("a", 1.01, 0.51, 1.51, 20)], 1.0)
    assert claim.runs_to_decide == 140_000
    assert needed_runs(claim) == "far from decided with 20 runs"


@pytest.mark.parametrize(("runs", "verdict"), [(LEAST_RUNS - 1, UNDECIDED), (LEAST_RUNS, FAILS)])
def test_too_few_runs_decide_nothing(runs: int, verdict: str) -> None:
    found = [
        judged("id", "", "", "", [Measure("a", at, at - 1, at + 1, runs)], 5.0) for at in (1.0, 9.0)
    ]
    assert [each.verdict for each in found] == [verdict, HOLDS if verdict == FAILS else UNDECIDED]


@pytest.mark.pages  # drawing the figure takes longest
def test_a_comparison_writes_its_table(tmp_path: Path) -> None:
    results = dc.simulate([dc.Ladder(), dc.FTPL()], dc.environments.Bernoulli([0.2, 0.7]), 400, 20)
    lab.compare({"easy_1": results}, tmp_path, latex=True)
    assert (tmp_path / "comparison" / "table.tex").read_text().startswith(r"\begin{table}")
    assert not (tmp_path / "claims.tex").exists()


@pytest.fixture(scope="module")
def pdflatex() -> str:
    return pdflatex_or_skip()


@pytest.mark.usefixtures("pdflatex")
def test_long_tables_break_over_pages(tmp_path: Path) -> None:
    parts = (Measure("K = 8", 1.0, 0.5, 1.5, 9),)
    claim = Claim("a", "Section 4", r"It is of order $\sqrt{KT}$.", "", "above 0", parts, "holds")
    text = compiled(tmp_path, claims_table([claim] * 60), "booktabs, longtable")
    if text:
        assert text.count("\f") > 1
        assert text.count("Verdict ") == text.count("\f")  # a head on every page
        assert text.count("claimed: above 0; K = 8") == 60


@pytest.mark.usefixtures("pdflatex")
def test_the_tables_of_a_benchmark_compile(tmp_path: Path) -> None:
    text = compiled(tmp_path, to_latex(made_up("My_Policy(rate=0.1)")), "booktabs, longtable")
    assert not text or "Drift" in text
    assert "Overfull" not in (tmp_path / "article.log").read_text()  # it fits into the page
