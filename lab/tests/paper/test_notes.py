"""What the report says beside its experiments: how we read the paper, and slips that are true."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import decoupled as dc
from decoupled_lab import theory
from decoupled_lab.paper import EXPERIMENTS, GROUPS
from decoupled_lab.paper.base import read_texts
from decoupled_lab.paper.notes import notes, reading_of, slips
from decoupled_lab.report.page import build_page

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("slip", slips(), ids=lambda slip: slip["place"][:40])
def test_the_code_of_a_slip_shows_what_it_says(slip: dict[str, str]) -> None:
    *start, last = slip["code"].strip().splitlines()
    names: dict[str, Any] = {"dc": dc, "theory": theory}
    exec("\n".join(start), names)
    assert repr(eval(last, names)) == slip["shows"]


def test_files_named_by_slips_exist() -> None:
    named = re.findall(r"`(\w+/tests/[^`]+)`", " ".join(slip["evidence"] for slip in slips()))
    assert len(named) > 0
    assert all((ROOT / name).exists() for name in named)


def test_every_experiment_that_is_not_beyond_the_paper_has_a_reading() -> None:
    papers = set(EXPERIMENTS) - set(GROUPS["beyond"])
    assert set(read_texts("readings.toml")["experiments"]) == papers
    for name in EXPERIMENTS:
        assert bool(reading_of(name)) == (name in papers)
        assert not re.search(r"<(flat|ended)>", reading_of(name))


class Text(HTMLParser):
    """The text of a page outside of its scripts, and the number of its formulas."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.formulas = 0
        self.in_script = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.formulas += tag == "math"
        self.in_script = tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self.in_script = False

    def handle_data(self, data: str) -> None:
        if not self.in_script:
            self.text += data


def test_the_report_shows_every_slip_choice_and_limit_with_typeset_formulas() -> None:
    page = Text()
    page.feed(build_page("a title", "", {}, notes()))
    words = " ".join(page.text.split())
    assert words.count("Printed:") == words.count("Should be:") == words.count("How we know:") == 11
    for slip in slips():
        assert " ".join(slip["code"].split()) in words
        assert f"# {slip['shows']}" in words
    readings = read_texts("readings.toml")
    for name in (*readings["choices"], *readings["limits"]):
        assert f"{name}." in words
    assert "$" not in words.replace("`$", "")
    written = [
        text for slip in slips() for key, text in slip.items() if key not in ("code", "shows")
    ]
    assert page.formulas > sum(text.count("$") // 2 for text in written) > 50


def test_a_reading_is_typeset_too() -> None:
    from decoupled_lab.report.text import typeset

    for name in EXPERIMENTS:
        assert "$" not in typeset(reading_of(name))
