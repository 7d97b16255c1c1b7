"""Requests with a context as a table: files, orders, segments, and what is refused."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import decoupled as dc

ContextTable = dc.environments.ContextTable
LOSSES = [[0.1, 0.9], [0.8, 0.2], [0.3, 0.6], [0.5, 0.4]]
CONTEXT: dict[str, Any] = {
    "subject": ["law", None, "law", "art"],
    "grade": [3, 4, None, 3],
    "tokens": [120.5, 80, 300, None],
    "paid": [True, False, True, None],
}


def test_files_and_arrays_make_the_same_table(tmp_path: Path) -> None:
    whole = ContextTable(LOSSES, CONTEXT)
    frame = pd.DataFrame(
        {**CONTEXT, "small": [row[0] for row in LOSSES], "large": [row[1] for row in LOSSES]}
    )
    frame.to_csv(tmp_path / "log.csv", index=False)
    frame.to_parquet(tmp_path / "log.parquet")
    for name in ("log.csv", "log.parquet"):
        assert ContextTable(tmp_path / name, list(CONTEXT)) == whole
    arrays = {name: np.array(column, object) for name, column in CONTEXT.items()}
    assert ContextTable(np.array(LOSSES), arrays) == whole
    assert whole.segments == ("subject", "paid")
    assert ContextTable(LOSSES, CONTEXT, segments=["grade"]) != whole
    assert ContextTable(LOSSES, CONTEXT, order="shuffled") != whole


def test_a_missing_value_is_a_segment_and_a_whole_number_its_digits() -> None:
    table = ContextTable(LOSSES, {**CONTEXT, "text": ["3", 3, "true", True]})
    assert table.segment_at(["subject"]).tolist() == [0, 1, 0, 2]
    assert table.segment_at(["grade"]).tolist() == [0, 1, 2, 0]
    assert table.segment_at(["text"]).tolist() == [0, 0, 1, 1]
    assert table.segment_at(["subject", "grade"]).tolist() == [0, 1, 2, 3]
    assert table.segment_at([]).tolist() == [0, 0, 0, 0]
    np.testing.assert_equal(table.numbers("tokens"), [120.5, 80.0, 300.0, math.nan])
    table = ContextTable(LOSSES, CONTEXT, order="shuffled")
    row_at = table.row_at(10, seed=1, run=2)
    assert (row_at == table.row_at(10, seed=1, run=2)).all()
    assert [sorted(each) for each in (row_at[:4], row_at[4:8])] == [[0, 1, 2, 3]] * 2
    orders = {tuple(table.row_at(4, seed, run).tolist()) for seed in range(5) for run in range(40)}
    assert len(orders) == 24
    assert ContextTable(LOSSES, CONTEXT).row_at(6, seed=1, run=2).tolist() == [0, 1, 2, 3, 0, 1]


def test_what_is_available_is_the_gain_of_the_best_arm_for_each_segment() -> None:
    draw = np.random.default_rng(0)
    losses, segments = draw.random((50, 3)), draw.integers(0, 4, 50)
    table = ContextTable(losses, {"s": [f"{each}" for each in segments]}, order="shuffled")
    row_at = table.row_at(70, seed=0, run=0)
    seen, of = losses[row_at], segments[row_at]
    apart = sum(seen[of == each].sum(axis=0).min() for each in range(4))
    assert table.available(row_at) == pytest.approx(seen.sum(axis=0).min() - apart)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ContextTable([[0.1, 1.9]], {}), r"losses\[0\]\[1\] = 1.9: must lie in \[0, 1\]"),
        (lambda: ContextTable([[0.1, 0.9], [0.1]], {}), r"losses\[1\]: has length 1"),
        (lambda: ContextTable(LOSSES, ["subject"]), "context = .*: must be a mapping of names to columns"),
        (lambda: ContextTable(LOSSES, {"s": ["a"]}), r"context\['s'\]: is 1 values, and there are 4 rounds"),
        (lambda: ContextTable(LOSSES, {"s": "abcd"}), r"context\['s'\]: is a str"),
        (lambda: ContextTable(LOSSES, {"s": [1, 2, 3, math.nan]}), r"context\['s'\]\[3\] = nan: .*use None"),
        (lambda: ContextTable(LOSSES, {"s": [1, 2, 3, [4]]}), r"context\['s'\]\[3\] = \[4\]: must be text"),
        (lambda: ContextTable(LOSSES, CONTEXT, ["subjct"]), "segments = 'subjct': .* did you mean 'subject'"),
        (lambda: ContextTable(LOSSES, CONTEXT, "subject"), "segments = 'subject': must be a list of names"),
        (lambda: ContextTable(LOSSES, CONTEXT, ["tokens"]), "segments = 'tokens': has the fraction 120.5 in row 0"),
        (lambda: ContextTable(LOSSES, CONTEXT, order="random"), "order = 'random'"),
        (lambda: ContextTable("log.csv", CONTEXT["subject"]), "context = 'law': must be a list of names"),
    ],
)  # fmt: skip
def test_tables_that_cannot_be(make: Any, said: str) -> None:
    with pytest.raises(dc.ParameterError, match=f"^{said}"):
        make()


def test_files_that_are_no_such_table(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("subject,small,large\nlaw,0.1,0.9\nart,high,0.2\n")
    with pytest.raises(dc.ParameterError, match=r"^log\.csv: has no column 'subjct'; did you mean"):
        ContextTable(path, ["subjct"])
    with pytest.raises(dc.ParameterError, match=r"^log\.csv: row 2, column 'small' = 'high': is not"):
        ContextTable(path, ["subject"])
    with pytest.raises(dc.ParameterError, match=r"^log\.csv: has one column, 'large'"):
        ContextTable(path, ["subject", "small"])
