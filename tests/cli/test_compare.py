"""`decoupled compare`: its exit statuses, its table, and files that grow."""

import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import decoupled as dc
from decoupled.cli import compare
from decoupled.errors import ParameterError
from decoupled.inference import ScoreComparison, compare_scores
from support.command_line import run

ITEMS = 150


def write_tables(folder: Path, gap: float, *, items: int = ITEMS) -> tuple[Path, Path]:
    """Scores by a judge that finds both arms equal, and labels of half of the items that do not."""
    rng = np.random.default_rng(1)
    scores, labels = ["item,arm,score"], ["item,arm,label"]
    for item in range(items):
        people = np.clip(rng.normal((0.5, 0.5 - gap), 0.1), 0.0, 1.0).round(3)
        is_labelled = rng.random() < 0.5
        for arm, label in zip(("old", "new"), people, strict=True):
            scores.append(f"{item},{arm},{(label + gap * (arm == 'new')).round(3)}")
            if is_labelled:
                labels.append(f"{item},{arm},{label}")
    files = folder / "scores.csv", folder / "labels.csv"
    for file, lines in zip(files, (scores, labels), strict=True):
        file.write_text("\n".join(lines) + "\n")
    return files


@pytest.mark.parametrize(
    ("gap", "baseline", "status", "text"),
    [
        (0.2, "old", 0, "new is better than old (95 %"),
        (0.2, "new", 3, "old is not better than new (95 %"),
        (0.0, "old", 4, "undecided"),
    ],
)
def test_the_exit_status_says_how_it_ends(
    tmp_path: Path, gap: float, baseline: str, status: int, text: str
) -> None:
    scores, labels = write_tables(tmp_path, gap)
    words = [scores, "--labels", labels, "--label-share", 0.5, "--baseline", baseline]
    done = run("compare", *words)
    assert (done.exit_code, done.stdout.startswith(text)) == (status, True), done.output
    assert "The judge alone would say: undecided" in done.stdout
    assert f"{ITEMS} items with scores of all arms" in done.stdout
    content = json.loads(run("compare", *words, "--json").stdout)
    assert content["baseline"] == baseline
    assert content["state"] == {0: "better", 3: "not better", 4: "undecided"}[status]


def test_errors_have_the_exit_statuses_of_every_command(tmp_path: Path) -> None:
    scores, labels = write_tables(tmp_path, 0.2)
    with_labels = ("compare", scores, "--labels", labels)
    assert run("compare", tmp_path / "none.csv").exit_code == 1
    assert run(*with_labels).exit_code == 2
    assert run(*with_labels, "--label-share", 0.5, "--risk", 2).exit_code == 2
    assert run("compare", scores, "--follow").exit_code == 2
    labels.write_text("item,arm,label\n3,old,0.5\n")
    done = run(*with_labels, "--label-share", 0.5)
    assert (done.exit_code, "item '3' has no label of arm 'new'" in done.output) == (1, True)


def test_a_learner_starts_from_a_table(tmp_path: Path) -> None:
    scores, labels = write_tables(tmp_path, 0.2)
    file = tmp_path / "learner.json"
    words = ("compare", scores, "--labels", labels, "--label-share", 0.5, "--learner", file)
    assert run(*words).exit_code == 0
    learner = dc.Learner.load(file)
    assert list(learner.arms) == ["old", "new"]
    assert learner.exploitation_probabilities()[1] > 0.9
    assert run(*words).exit_code == 2  # it exists


def followed(*words: object) -> Any:
    """`decoupled compare --follow` in these words, until nothing is new for a moment."""
    return run("compare", *words, "--follow", "--arm", "old", "--arm", "new", "--idle", 0.2)


def test_follow_stops_at_the_item_that_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare, "LOOK_EVERY", 0.001)
    scores, labels = write_tables(tmp_path, 0.2)
    words = ["--label-share", 0.5, "--baseline", "old", "--json"]
    whole = json.loads(run("compare", scores, "--labels", labels, *words).stdout)
    growing = tmp_path / "growing.csv"
    growing.write_text("item,arm,score\n0,ol")  # a line that is still being written
    lines = scores.read_text().splitlines()
    is_done = threading.Event()

    def write() -> None:
        with growing.open("a") as file:
            file.write("d," + lines[1].split(",")[2] + "\n")
            for line in lines[2:]:
                if is_done.is_set():
                    return
                file.write(line + "\n")
                file.flush()
                time.sleep(0.01)

    writer = threading.Thread(target=write)
    writer.start()
    arms = ("--arm", "old", "--arm", "new")
    done = run("compare", growing, "--labels", labels, *words, "--follow", *arms)
    is_done.set()
    writer.join()
    assert done.exit_code == 0
    content = json.loads(done.stdout)
    assert content["shown_at"] == whole["shown_at"] <= content["items"]


def test_follow_waits_for_labels_and_ends_when_nothing_comes(tmp_path: Path) -> None:
    scores, labels = write_tables(tmp_path, 0.0, items=40)
    with labels.open() as file:
        labelled = [int(line.split(",")[0]) for line in list(file)[1:]]
    done = followed(scores, "--labels", labels, "--label-share", 0.5, "--json")
    assert (done.exit_code, json.loads(done.stdout)["items"]) == (4, labelled[-1] + 1)
    labels.write_text("item,arm,label\n")
    done = followed(scores, "--labels", labels, "--label-share", 0.5)
    assert (done.exit_code, "no item yet that can be counted" in done.output) == (1, True)


def test_follow_refuses_a_label_that_comes_after_its_item_was_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare, "LOOK_EVERY", 0.001)
    scores, labels = write_tables(tmp_path, 0.0, items=40)
    lines = labels.read_text().splitlines()
    late, kept = lines[1:3], [lines[0], *lines[3:]]
    labels.write_text("\n".join(kept) + "\n")

    def compare_and_append(*tables: Any) -> ScoreComparison:
        labels.write_text("\n".join([*kept, *late]) + "\n")
        return compare_scores(*tables, label_share=0.5)

    files = compare.Growing(scores, labels, ["old", "new"])
    with pytest.raises(ParameterError, match="has changed since it was counted"):
        compare.follow(files, compare_and_append, idle=1.0)
