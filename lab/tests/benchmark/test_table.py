"""The tables of an entry, in Markdown and in LaTeX."""

import re

import pytest

from decoupled_lab.benchmark import statistics
from decoupled_lab.benchmark.suite import GROUPS, NEED_DATA, REFERENCES
from decoupled_lab.benchmark.table import to_latex, to_markdown
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
