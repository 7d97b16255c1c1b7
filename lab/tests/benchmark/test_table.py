"""An entry's tables, in Markdown and in LaTeX, and its picture: what it draws, and that it can be read."""

import re
from pathlib import Path
from typing import Any

import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from decoupled_lab.benchmark import picture, statistics
from decoupled_lab.benchmark.suite import GROUPS, NEED_DATA, REFERENCES
from decoupled_lab.benchmark.table import to_latex, to_markdown
from decoupled_lab.cli.bench import write_shown
from decoupled_lab.report.text import latex as escape
from support.made_entries import LEVELS, made_up


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
        assert statistics.paired(tasks, others) == pytest.approx(statistics.of_group(group, "Ladder()"))
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


pytestmark = pytest.mark.pages


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


def test_each_group_has_its_interval_in_its_verdicts_colour(entry: dict[str, Any], figure: Figure) -> None:
    (axes,) = figure.axes
    for row, group in enumerate(entry["groups"]):
        found = statistics.of_group(group)
        colour = to_hex(picture.VERDICTS[found.verdict])
        assert ([found.ratio], [row], colour) in drawn(figure)
        assert ([found.low, found.high], [row, row], colour) in drawn(figure)
    labels = [label.get_text().replace("\n", " ") for label in axes.get_yticklabels()]
    assert labels == list(GROUPS.values())
    assert axes.get_xscale() == "log"


@pytest.mark.parametrize("levels", [(1.0,), (0.03,), (0.3, 40.0)])
def test_everything_lies_on_the_axis_and_so_does_one(levels: tuple[float, ...]) -> None:
    figure = picture.figure(made_up(levels=levels * (10 // len(levels))))
    low, high = figure.axes[0].get_xlim()
    places = [x for xs, _, _ in drawn(figure) for x in xs]
    assert low < min(1.0, *places)
    assert high > max(1.0, *places)
    assert len(figure.axes[0].get_xticks()) <= 7


@pytest.mark.parametrize("kind", ["png", "pdf"])
def test_the_same_entry_gives_the_same_bytes(entry: dict[str, Any], tmp_path: Path, kind: str) -> None:
    for name in ("one", "other"):
        picture.draw(entry, tmp_path / f"{name}.{kind}")
    assert (tmp_path / f"one.{kind}").read_bytes() == (tmp_path / f"other.{kind}").read_bytes()


def test_the_command_writes_tables_and_pictures(entry: dict[str, Any], tmp_path: Path) -> None:
    written = list(write_shown(entry, tmp_path, latex=True))
    assert written == ["table.md", "table.tex", "picture.png", "picture.pdf"]
    assert {file.name for file in tmp_path.iterdir()} == set(written)
