"""What an entry says of its runs, in numbers, tables and a picture, and what is noticed when somebody changes it."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import decoupled as dc
from decoupled.simulation.intervals import interval
from decoupled_lab.benchmark import picture, statistics
from decoupled_lab.benchmark.entry import assembled, read, write
from decoupled_lab.benchmark.statistics import group_ratio, task_line
from decoupled_lab.benchmark.suite import GROUPS, NEED_DATA, REFERENCES, SIZES, SUITE
from decoupled_lab.benchmark.table import to_latex, to_markdown
from decoupled_lab.benchmark.task import Played
from decoupled_lab.cli.bench import write_shown
from decoupled_lab.report.text import latex as escape
from support.made_entries import LEVELS, made_up

TASK = SUITE.tasks("quick")[0]
POLICY = {"name": "Mine()", "kind": "python", "file": "mine.py", "sha256": "0" * 64}


def made_line(seed: int = 0) -> dict[str, Any]:
    draw = np.random.default_rng(seed)
    shared = draw.gamma(4.0, 10.0, TASK.runs)
    own = Played(shared + draw.normal(size=TASK.runs), None)
    return task_line(
        TASK, own, {name: 2.0 * shared + draw.normal(size=TASK.runs) for name in REFERENCES}
    )


def made_entry() -> dict[str, Any]:
    return assembled(SIZES["quick"], dict(POLICY), [made_line()], 1.0)


def test_means_and_differences_are_those_of_the_house() -> None:
    own, other = np.random.default_rng(1).normal(size=(2, TASK.runs))
    line = task_line(TASK, Played(own, None), dict.fromkeys(REFERENCES, other))
    mean, error, _, _ = interval(own, 0.95)
    assert line["regret"]["mean"] == pytest.approx(mean)
    assert line["regret"]["standard_error"] == pytest.approx(error)
    assert line["regret"]["runs"] == own.tolist()
    mean, _, low, high = interval(own - other, 0.95)
    assert line["differences"]["TopTwo()"] == pytest.approx(
        {"mean": mean, "low": low, "high": high}, rel=1e-6
    )


def test_a_ratio_knows_that_the_runs_are_the_same() -> None:
    # The delta method from the runs themselves, where an entry has means, errors and paired intervals only.
    draw = np.random.default_rng(2)
    other = draw.gamma(4.0, 10.0, TASK.runs)
    own = 0.5 * other + draw.normal(size=TASK.runs)
    line = task_line(TASK, Played(own, None), dict.fromkeys(REFERENCES, other))
    little = 0.02 * np.sqrt(TASK.environment.arms * TASK.rounds)
    slopes = np.array([1.0 / (own.mean() + little), -1.0 / (other.mean() + little)])
    error = np.sqrt(slopes @ np.cov(own, other) @ slopes / TASK.runs)
    ratio = group_ratio([line], "FTPL()")
    assert ratio["ratio"] == pytest.approx((own.mean() + little) / (other.mean() + little))
    quantile = 2.776445  # of Student's t with four degrees
    assert np.log(ratio["high"] / ratio["ratio"]) == pytest.approx(quantile * error, rel=1e-5)
    assert ratio["low"] < ratio["ratio"] < ratio["high"]


def test_a_policy_compared_with_itself_has_the_ratio_one_for_sure() -> None:
    own = np.random.default_rng(3).gamma(4.0, 10.0, TASK.runs)
    line = task_line(TASK, Played(own, None), dict.fromkeys(REFERENCES, own))
    assert group_ratio([line], "Ladder()") == pytest.approx({"ratio": 1.0, "low": 1.0, "high": 1.0})


def test_an_entry_survives_its_file(tmp_path: Path) -> None:
    entry = made_entry()
    write(tmp_path / "entry.json", entry)
    assert read(tmp_path / "entry.json") == entry
    elsewhere = {**entry, "policy": {**entry["policy"], "file": "another.py"}}
    write(tmp_path / "entry.json", elsewhere)  # the name of the file is not part of the digest
    assert read(tmp_path / "entry.json") == elsewhere


def changed(path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    entry = made_entry()
    place: Any = entry
    for each in path[:-1]:
        place = place[each]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return entry


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("suite",), "decoupled-0", "suite = 'decoupled-0': must be 'decoupled-1'"),
        (("size",), "tiny", "size = 'tiny': must be 'standard' or 'quick'"),
        (("tasks",), None, "tasks: is missing"),
        (("tasks", 0, "regret"), 7, r"tasks\[0\].regret = '7': is of the wrong kind"),
        (("tasks", 0, "group"), "mine", r"tasks\[0\]: has another group"),
        (
            ("tasks", 0, "regret", "mean"),
            0.0,
            r"tasks\[0\]\.regret: has another mean or error than",
        ),
        (("tasks", 0, "regret", "runs", 1), 9.0, "has another mean or error than its runs"),
        (("tasks", 0, "regret", "runs"), [1.0], r"regret\.runs: must be 5 numbers"),
        (
            ("tasks", 0, "regret", "runs"),
            [1e308] * 5,
            r"regret\.runs: must be 5 numbers, at most 5000",
        ),
        (("tasks", 0, "arms"), 10**400, "does not match the numbers"),
        (("tasks", 0, "data"), "mmlu", r"data = 'mmlu': does not belong to the group paper"),
        (("tasks", 0, "references", "FTPL()"), None, "has another group or other references"),
        (("tasks", 0, "references", "FTPL()", "mean"), 1e9, "is not the difference of the means"),
        (("tasks", 0, "differences", "FTPL()", "low"), 1e9, "is not the difference of the means"),
        (("policy", "sha256"), None, r"policy\.sha256: is missing"),
        (
            ("policy", "name"),
            "A()|<script>",
            r"policy\.name = .*must be printable, without \| < > `",
        ),
        (("environment", "decoupled"), "1\n2", r"environment\.decoupled = .*must be printable"),
        (("seed",), 1, "does not match the numbers"),
        (("groups", 0, "ratios", "FTPL()", "ratio"), 0.1, "does not match the numbers"),
    ],
)
def test_a_changed_entry_is_refused(path: Any, value: Any, message: str, tmp_path: Path) -> None:
    file = tmp_path / "entry.json"
    file.write_text(json.dumps(changed(path, value)))
    with pytest.raises(
        dc.StorageError, match=rf"entry\.json: .*{message}.*; run decoupled benchmark"
    ):
        read(file)


def test_what_is_not_json_is_refused(tmp_path: Path) -> None:
    for text in ("regret: 0", '{"suite": NaN}', "[" * 100_000):
        (tmp_path / "entry.json").write_text(text)
        with pytest.raises(dc.StorageError, match="is not JSON"):
            read(tmp_path / "entry.json")
    with pytest.raises(dc.StorageError, match=r"cannot be read \(Is a directory\)"):
        read(tmp_path)


def rows_of(markdown: str, head: str) -> dict[str, list[str]]:
    """The rows of the table whose first heading is `head`, by their first cells."""
    lines = markdown.splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith(f"| {head} "))
    table = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        table.append([cell.strip() for cell in line.strip("|").split("|")])
    return {first: rest for first, *rest in table if not first.startswith(":-")}


def test_every_group_and_every_task_has_a_row_with_each_reference() -> None:
    entry = made_up()
    text = to_markdown(entry)
    groups, tasks = rows_of(text, "group"), rows_of(text, "task")
    assert list(groups)[1:] == list(GROUPS.values())
    assert list(tasks)[1:] == [task["name"] for task in entry["tasks"]]
    assert groups["group"] == [f"`{name}`" for name in REFERENCES]
    assert {len(line) for line in text.splitlines() if line.startswith("| group")} == {
        len(line) for line in text.splitlines() if line.startswith("| Drift")
    }
    assert "EpsilonGreedy(epsilon=0.1)" in text
    assert "did not run" not in text


def test_bold_is_what_lies_below_the_reference() -> None:
    entry = made_up()
    text = to_markdown(entry)
    for group in entry["groups"]:
        for name, cell in zip(REFERENCES, rows_of(text, "group")[group["title"]], strict=True):
            found = statistics.of_group(group, name)
            assert cell.startswith("**") == (found.high < 1.0)
            assert cell.strip("*").startswith(f"{found.ratio:.2f}")
    for task in entry["tasks"]:
        for name, cell in zip(REFERENCES, rows_of(text, "task")[task["name"]][5:], strict=True):
            assert cell.startswith("**") == (task["differences"][name]["high"] < 0.0)


def test_groups_that_did_not_run_have_no_row_and_it_says_so() -> None:
    text = to_markdown(made_up(data=False))
    assert not {GROUPS[name] for name in NEED_DATA} & set(rows_of(text, "group"))
    assert "Tasks that need recorded data did not run." in text


def test_the_rank_leaves_out_what_needs_data() -> None:
    assert statistics.overall(made_up()) == statistics.overall(made_up(data=False))
    assert statistics.overall(made_up(levels=(2.0,) * 10)).verdict == "worse"
    assert statistics.overall(made_up(levels=(0.5,) * 10)).verdict == "better"


def test_two_entries_are_compared_run_by_run_as_with_a_reference() -> None:
    one, reference = made_up(), made_up("Ladder()", LEVELS["Ladder()"], noise=0.0)
    for group in one["groups"]:
        tasks, others = (statistics.tasks_of(entry, group["name"]) for entry in (one, reference))
        assert statistics.paired(tasks, others) == pytest.approx(
            statistics.of_group(group, "Ladder()")
        )
        assert statistics.of_reference(group, "Ladder()") == pytest.approx(
            statistics.of_group(
                next(each for each in reference["groups"] if each["name"] == group["name"])
            ).ratio
        )


def test_latex_has_the_same_rows_and_the_same_in_bold() -> None:
    entry = made_up("My_Policy(rate=0.1)")
    markdown, tables = to_markdown(entry), to_latex(entry)
    assert all(escape(group["title"]) in tables for group in entry["groups"])
    assert all(escape(task["name"]) in tables for task in entry["tasks"])
    assert tables.count(r"\textbf{") == len(re.findall(r"\| +\*\*", markdown))
    assert r"My\_Policy(rate=0.1)" in tables
    assert "16 or 64 runs, seed 0" in tables
    for text in (markdown, tables):
        assert len(re.findall(r"\(not corrected for the number of cells\)", text)) == 2
        assert "mean regret" not in text.lower()  # what is counted is another thing in some groups
        assert all(task["unit"] in text for task in entry["tasks"])


@pytest.fixture(scope="module")
def entry() -> dict[str, Any]:
    return made_up()


@pytest.fixture(scope="module")
def figure(entry: dict[str, Any]) -> Figure:
    return picture.figure(entry)


def drawn(figure: Any) -> list[tuple[list[float], list[float], str]]:
    """Every line and every set of points in the axes: x, y and colour."""
    return [
        (list(line.get_xdata()), list(line.get_ydata()), to_hex(line.get_color()))
        for line in figure.axes[0].get_lines()
        if line.get_transform() == figure.axes[0].transData
    ]


@pytest.mark.pages
def test_each_group_has_its_interval_in_its_verdicts_colour(
    entry: dict[str, Any], figure: Figure
) -> None:
    (axes,) = figure.axes
    for row, group in enumerate(entry["groups"]):
        found = statistics.of_group(group)
        colour = to_hex(picture.VERDICTS[found.verdict])
        assert ([found.ratio], [row], colour) in drawn(figure)
        assert ([found.low, found.high], [row, row], colour) in drawn(figure)
    labels = [label.get_text().replace("\n", " ") for label in axes.get_yticklabels()]
    assert labels == list(GROUPS.values())
    assert axes.get_xscale() == "log"


@pytest.mark.pages
@pytest.mark.parametrize("levels", [(1.0,), (0.03,), (0.3, 40.0)])
def test_everything_lies_on_the_axis_and_so_does_one(levels: tuple[float, ...]) -> None:
    figure = picture.figure(made_up(levels=levels * (10 // len(levels))))
    low, high = figure.axes[0].get_xlim()
    places = [x for xs, _, _ in drawn(figure) for x in xs]
    assert low < min(1.0, *places)
    assert high > max(1.0, *places)
    assert len(figure.axes[0].get_xticks()) <= 7


@pytest.mark.pages
@pytest.mark.parametrize("kind", ["png", "pdf"])
def test_the_same_entry_gives_the_same_bytes(
    entry: dict[str, Any], tmp_path: Path, kind: str
) -> None:
    for name in ("one", "other"):
        picture.draw(entry, tmp_path / f"{name}.{kind}")
    assert (tmp_path / f"one.{kind}").read_bytes() == (tmp_path / f"other.{kind}").read_bytes()


@pytest.mark.pages
def test_the_command_writes_tables_and_pictures(entry: dict[str, Any], tmp_path: Path) -> None:
    written = list(write_shown(entry, tmp_path, latex=True))
    assert written == ["table.md", "table.tex", "picture.png", "picture.pdf"]
    assert {file.name for file in tmp_path.iterdir()} == set(written)
