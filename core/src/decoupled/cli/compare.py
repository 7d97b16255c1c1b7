"""Compares arms by a file of scores, once or while it grows, and shows it: `decoupled compare`."""

import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from ..base.tables import csv_columns
from ..errors import Message, ParameterError
from .shared import aligned

if TYPE_CHECKING:
    from ..inference import ScoreComparison, ScoreDifference

# The exit statuses of a comparison; 1 and 2 are errors, as everywhere.
STATUS_OF = {"better": 0, "not better": 3, "undecided": 4}

LOOK_EVERY = 1.0  # seconds


class Growing(NamedTuple):
    """Files that grow, and the arms that they compare.

    Attributes:
        scores: the file of scores.
        labels: that of labels; None without.
        arms: the arms.
    """

    scores: Path
    labels: Path | None
    arms: list[str]

    @classmethod
    def checked(cls, scores: Path, labels: Path | None, arms: list[str] | None) -> "Growing":
        """The same from what a user gave: arms that come later would need a share of the risk."""
        if not arms or len(arms) < 2:
            remedy = "repeat it for each arm"
            raise ParameterError(Message("--arm: names too few arms to --follow", remedy))
        for path in (scores, labels):
            if path is not None and path.suffix == ".parquet":
                raise ParameterError.of("--follow", str(path), "must be a CSV file", "export it so")
        return cls(scores, labels, arms)


def follow(
    files: Growing, compare: Callable[[Any, Any], "ScoreComparison"], idle: float | None
) -> "ScoreComparison":
    """Compare at every look until it is decided; what it says until then goes to standard error.

    Args:
        files: what is read.
        compare: compares a table of scores and one of labels, or None.
        idle: after how many seconds without anything new it ends; None for never.
    """
    last_sizes = None
    comparison = None
    changed_at = time.monotonic()
    while True:
        sizes = [path.stat().st_size for path in (files.scores, files.labels) if path is not None]
        if sizes != last_sizes:
            last_sizes = sizes
            changed_at = time.monotonic()
            newer = _look(files, compare)
            if newer is not None:
                _check_same(comparison, newer)
                if comparison is None or newer.text != comparison.text:
                    typer.echo(f"{newer.items:,} items: {newer.text}", err=True)
                comparison = newer
                if comparison.state != "undecided":
                    return comparison
        elif idle is not None and time.monotonic() - changed_at >= idle:
            if comparison is None:
                problem = f"{files.scores}: has no item yet that can be counted"
                raise ParameterError(Message(problem, "give --idle more seconds"))
            return comparison
        time.sleep(LOOK_EVERY if idle is None else min(LOOK_EVERY, idle))


def _look(
    files: Growing, compare: Callable[[Any, Any], "ScoreComparison"]
) -> "ScoreComparison | None":
    """Compare what can be counted now; None if that is nothing."""
    scores = _whole_lines(files.scores)
    labels = None if files.labels is None else _whole_lines(files.labels)
    counted = counted_rows(scores, labels, files.arms)
    return None if counted is None else compare(*counted)


def _whole_lines(path: Path) -> dict[str, Any]:
    """The columns of a file, without a line that is still being written."""
    text = path.read_bytes().rpartition(b"\n")[0].decode("utf-8-sig")
    return csv_columns(io.StringIO(text, newline=""), str(path))


def counted_rows(
    scores: dict[str, Any], labels: dict[str, Any] | None, arms: list[str]
) -> tuple[dict[str, Any], dict[str, Any] | None] | None:
    """The rows of items that can be counted while files grow; None if there are none.

    An item waits until it has a row for each arm. With labels, it also waits for the label of the
    same or of a later item: until then nobody knows whether it will have one.

    >>> scores = {"item": [1, 1, 2], "arm": ["a", "b", "a"], "score": [0.5, 0.5, 0.5]}
    >>> counted_rows(scores, None, ["a", "b"])
    ({'item': [1, 1], 'arm': ['a', 'b'], 'score': [0.5, 0.5]}, None)
    """
    items = _whole_items(scores, arms)
    if labels is not None:
        labelled = set(_whole_items(labels, arms))
        places = [place for place, item in enumerate(items) if item in labelled]
        items = items[: places[-1] + 1] if places else []
    if not items:
        return None
    counted = set(items)
    if labels is None:
        return _rows_of(scores, counted), None
    return _rows_of(scores, counted), _rows_of(labels, counted & labelled)


def _whole_items(columns: dict[str, Any], arms: list[str]) -> list[Any]:
    """The items that have a row for each arm, in the order of their last one."""
    missing: dict[Any, set[str]] = {}
    whole: dict[Any, None] = {}
    for item, arm in zip(columns.get("item", ()), columns.get("arm", ()), strict=True):
        lacking = missing.setdefault(item, set(arms))
        lacking.discard(arm)
        if not lacking:
            whole.setdefault(item)
    return list(whole)


def _rows_of(columns: dict[str, Any], items: set[Any]) -> dict[str, Any]:
    """The rows of these items."""
    places = [place for place, item in enumerate(columns["item"]) if item in items]
    return {name: [column[place] for place in places] for name, column in columns.items()}


def _check_same(before: "ScoreComparison | None", now: "ScoreComparison") -> None:
    """Raise an error if what was counted at an earlier look has changed."""
    if before is None:
        return
    counted = before.records()
    if now.records()[: len(counted)] != counted:
        problem = f"one of the first {before.items:,} items has changed since it was counted"
        remedy = "append rows, and labels in the order of their items; and change none"
        raise ParameterError(Message(problem, remedy))


def comparison_text(comparison: "ScoreComparison") -> str:
    """The sentence, a line for each arm, and what to know about it.

    >>> from decoupled.inference import compare_scores
    >>> table = {"item": [1, 1], "arm": ["a", "b"], "score": [0.2, 0.4]}
    >>> print(comparison_text(compare_scores(table, baseline="a")))
    undecided
    <BLANKLINE>
    arm  mean score  minus a  from     to      state
    a    0.2
    b    0.4         0.2      -0.9884  0.9923  undecided
    <BLANKLINE>
    1 item with scores of all arms.
    With a probability of 95 % all of this holds, after every item.
    A table cannot show:
    - whether the items are a fair sample, in an order that scores do not depend on
    - whether the scores are right: a judge that favours an arm decides for it
    """
    lines = [comparison.text, "", _table(comparison), ""]
    items = f"{comparison.items:,} item{'' if comparison.items == 1 else 's'}"
    counts = f"{items} with scores of all arms"
    if comparison.labels is not None:
        counts += f", {comparison.labels:,} of them with labels"
    lines.append(f"{counts}.")
    if comparison.judge is not None:
        lines.append(f"The judge alone would say: {comparison.judge}.")
    lines += [f"{remark[0].upper()}{remark[1:]}." for remark in comparison.remarks]
    level = f"{100.0 * (1.0 - comparison.risk):.6g} %"
    lines.append(f"With a probability of {level} all of this holds, after every item.")
    lines.append("A table cannot show:")
    lines += [f"- {sentence}" for sentence in comparison.unseen]
    return "\n".join(lines)


def _table(comparison: "ScoreComparison") -> str:
    """A line for each arm: with the baseline, or else with the arm that looks best."""
    against = _arm_to_show(comparison)
    what = "mean score" if comparison.labels is None else "mean label"
    rows: list[tuple[str, ...]] = [("arm", what, f"minus {against}", "from", "to", "state")]
    for arm, mean in comparison.means.items():
        cells = [str(arm), _number(mean)]
        for each in comparison.differences:
            if {each.arm, each.against} == {arm, against}:
                cells += _cells(each, is_turned=each.arm != arm)
        rows.append(tuple(cells + [""] * (6 - len(cells))))
    return aligned(rows)


def _arm_to_show(comparison: "ScoreComparison") -> Any:
    """The arm that the table compares others with."""
    if comparison.baseline is not None:
        return comparison.baseline
    if comparison.best is not None:
        return comparison.best
    lead = dict.fromkeys(comparison.means, 0)
    for each in comparison.differences:
        is_higher = each.difference.estimate > 0.0
        lead[each.arm if is_higher == comparison.is_higher_better else each.against] += 1
    return max(lead, key=lead.__getitem__)


def _cells(each: "ScoreDifference", *, is_turned: bool) -> list[str]:
    """A difference as cells, or the opposite difference."""
    difference = each.difference
    numbers = [difference.estimate, difference.low, difference.high]
    state: str = each.state
    if is_turned:
        numbers = [-difference.estimate, -difference.high, -difference.low]
        state = {"better": "not better", "not better": "better"}.get(state, state)
    return [*map(_number, numbers), state]


def _number(value: float) -> str:
    return f"{value + 0.0:,.4g}"  # -0.0 as 0


def check_learner_file(file: Path) -> None:
    """Refuse to replace a file before any work is done."""
    if file.exists():
        raise ParameterError.of("--learner", str(file), "exists already", "choose another name")


def save_learner(comparison: "ScoreComparison", file: Path) -> None:
    """Write a learner that has learned from the scores, and the labels if there are any."""
    from ..base.files import write_atomically
    from ..learner.labels import Labels
    from ..policies import Ladder

    labels = None
    if comparison.label_share is not None:
        labels = Labels(share=comparison.label_share)
    learner = Ladder().start(list(comparison.means), labels=labels)
    learner.replay(comparison.records(), unrandomised=True)
    write_atomically(file, learner.to_json(), overwrite=False)
    typer.echo(f"The learner is in {file}", err=True)
