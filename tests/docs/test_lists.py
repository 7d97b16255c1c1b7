"""Lists and measured numbers that are written in the Markdown, from the package and from the file of measurements."""

import tomllib
from typing import Any

import pytest

from decoupled_lab.paper import EXPERIMENTS
from support.doc_tools import tool
from support.pages import ROOT

lists, measurements = map(tool, ("lists", "measurements"))
WRITTEN = "<!-- list: experiments -->\n\n| stale |\n\n<!-- end of list -->\n\nMore.\n"


@pytest.mark.parametrize("page", measurements.PAGES, ids=lambda page: page.stem)
def test_lists_and_measured_numbers_are_up_to_date(page: Any) -> None:
    assert lists.renewed(page.read_text()) == page.read_text(), "run: python docs/tools/lists.py"


def test_the_table_of_experiments_is_in_the_markdown() -> None:
    text = (ROOT / "docs" / "reproduce.md").read_text()
    assert all(f"| `{name}` |" in text for name in EXPERIMENTS)


def test_every_extra_is_in_the_table_and_measured() -> None:
    project = tomllib.loads((ROOT / "core/pyproject.toml").read_text())["project"]
    expected = {"core", *project["optional-dependencies"]}
    measured = {name.split(".")[1] for name in measurements.records() if name.startswith("extras.")}
    named, used = tool("measured_tables").WHAT_EXTRAS_ADD, tool("extras").FIRST_USE
    assert set(named) == measured == set(used) == expected


def test_a_stale_list_is_written_anew_and_the_site_has_it_once() -> None:
    table = lists.experiments("")
    assert lists.renewed(WRITTEN) == WRITTEN.replace("| stale |", table)
    assert lists.on_page_markdown(WRITTEN) == f"{table}\n\nMore.\n"


def test_a_list_for_the_site_alone_stays_one_line() -> None:
    page = "<!-- list: experiments -->\n\nMore.\n"
    assert lists.renewed(page) == page
    assert lists.on_page_markdown(page).startswith("| experiment |")
