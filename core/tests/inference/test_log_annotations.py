"""Tags and predictions in a log: which rows count, and what predictions do to the doubly robust estimate."""

import json
from typing import Any

import numpy as np
import pytest

import decoupled as dc

MEANS = {"a": 0.2, "b": 0.7}


def rows(count: int, seed: int, noise: float = 0.05, wrong: float = 0.0) -> list[dict[str, Any]]:
    """A log whose situations differ a lot; its predictions know them, up to an error."""
    stream = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        hard = stream.random() * 0.25
        arm = "a" if stream.random() < 0.5 else "b"
        expected = {name: mean + hard for name, mean in MEANS.items()}
        loss = min(max(expected[arm] + noise * stream.standard_normal(), 0.0), 1.0)
        predicted = {name: value + wrong for name, value in expected.items()}
        found.append({"explore": arm, "propensity": 0.5, "loss": loss, "baseline": json.dumps(predicted)})
    return found


def robust(log: list[dict[str, Any]]) -> list[float]:
    return [float(each.doubly_robust or 0.0) for each in dc.evaluate(log).arms]


def without(log: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "baseline"} for row in log]


def test_predictions_make_the_estimate_less_noisy_and_never_biased() -> None:
    """60 logs of 200 rows. Means are compared at five standard errors: a false alarm in a million runs."""
    truth = np.array([mean + 0.125 for mean in MEANS.values()])
    for wrong in (0.0, 0.04):
        logs = [rows(200, seed, wrong=wrong) for seed in range(60)]
        known, plain = (np.array([robust(each) for each in some]) for some in (logs, map(without, logs)))
        off = np.abs(known.mean(axis=0) - truth)
        assert np.all(off < 5 * known.std(axis=0) / np.sqrt(60) + 1e-3), (
            "unbiased, also if predictions are off"
        )
        assert np.all(known.std(axis=0) < 0.9 * plain.std(axis=0)), "less noisy"


def test_a_perfect_prediction_leaves_no_noise() -> None:
    log = [
        {"explore": arm, "propensity": p, "loss": MEANS[arm], "baseline": MEANS}
        for arm, p in [("a", 0.9), ("b", 0.1), ("a", 0.5), ("a", 0.9)]
    ]
    assert robust(log) == pytest.approx([0.2, 0.7], abs=1e-12)
    intervals = [(each.low, each.high) for each in dc.evaluate(log).arms]
    assert intervals == [(each.low, each.high) for each in dc.evaluate(without(log)).arms]


def test_some_arms_may_have_no_prediction_and_others_may_be_unknown() -> None:
    log = rows(50, 1)
    partly = [{**row, "baseline": {"a": 0.5, "gone": 0.9} if n % 2 else ""} for n, row in enumerate(log)]
    only_b = dc.evaluate(partly).arms[1]
    assert only_b == dc.evaluate(without(log)).arms[1], "no prediction for b: as without"


def test_tags_choose_rows_and_keep_all_arms() -> None:
    log = [
        {**row, "tags": json.dumps({"country": "de" if row["explore"] == "a" else "fr", "n": str(n % 3)})}
        for n, row in enumerate(rows(60, 2))
    ]
    german = dc.evaluate(log, tags={"country": "de"})
    assert german.decisions == sum(row["explore"] == "a" for row in log)
    assert [(each.name, each.telling) for each in german.arms] == [("a", german.decisions), ("b", 0)]
    both = dc.evaluate(log, tags={"country": "de", "n": "0"})
    assert both.decisions == sum('"de"' in row["tags"] and '"n": "0"' in row["tags"] for row in log)
    laws = np.tile([1.0, 0.0], (60, 1))
    assert dc.evaluate(log, laws, tags={"country": "de"}).candidate is not None, (
        "a law for each row of the log"
    )
    with pytest.raises(dc.ParameterError, match="0 decisions and no loss"):
        dc.evaluate(log, tags={"country": "it"})
    with pytest.raises(dc.ParameterError, match="tags = 'de'"):
        dc.evaluate(log, tags="de")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("baseline", "[1]", r"log\[0\].baseline = '\[1\]': is not a JSON object"),
        ("baseline", {"a": 1.5}, r"log\[0\].baseline\['a'\] = 1.5"),
        ("baseline", {"a": "low"}, r"log\[0\].baseline\['a'\] = 'low'"),
        ("tags", "de", r"log\[0\].tags = 'de'"),
    ],
)
def test_a_damaged_column_is_named(column: str, value: Any, words: str) -> None:
    log = [{**row, column: value} for row in rows(5, 3)]
    with pytest.raises(dc.ParameterError, match=words):
        dc.evaluate(log, tags={"country": "de"} if column == "tags" else None)
