"""Verdicts follow only from where the intervals lie."""

import json

import numpy as np
import pytest

from decoupled_lab.report.claims import (
    FAILS,
    HOLDS,
    UNDECIDED,
    Claim,
    Measure,
    judged_above,
    judged_below,
    mean_of,
    not_judged,
    quotient_of,
    ratio_of,
)


def measure(of: str, low: float, high: float) -> Measure:
    return Measure(of, (low + high) / 2, low, high)


ABOVE, ACROSS, UNDER = measure("above", 1.5, 2.0), measure("across", 0.5, 1.5), measure("under", 0.2, 0.7)


def claim_above(*parts: Measure) -> Claim:
    return judged_above("id", "place", "statement", "statistic", parts, 1.0)


def claim_below(*parts: Measure) -> Claim:
    return judged_below("id", "place", "statement", "statistic", parts, 1.0)


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
    values = json.loads(
        json.dumps(claim_above(ABOVE, Measure("one run", 3.0, -np.inf, np.inf)).to_dict(), allow_nan=False)
    )
    assert {"id", "statement", "measured", "interval", "verdict", "place", "threshold"} <= set(values)
    assert values["measured"] == 3.0
    assert values["interval"] == [None, None]
    assert values["verdict"] == UNDECIDED
    assert len(values["parts"]) == 2


def test_not_judged_keeps_what_was_measured() -> None:
    claim = not_judged(claim_above(ABOVE), "a stand-in")
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
        part = ratio_of("x", 1.5 * below + rng.normal(0.0, 1.0, 200), below)
        covered += part.low <= 1.5 <= part.high
    assert abs(covered / 2_000 - 0.95) < 5 * np.sqrt(0.95 * 0.05 / 2_000)


def test_intervals_of_quotients_cover_what_they_say_or_a_little_more() -> None:
    # Over the median of the five values below, as if it were exact, the coverage is 0.62.
    rng = np.random.default_rng(2)
    parts = [quotient_of("x", [rng.normal(6.0, 0.6, 60)], [rng.normal(2.0, 0.1, 5)]) for _ in range(2_000)]
    assert 0.935 < np.mean([part.low <= 3.0 <= part.high for part in parts]) < 0.98
