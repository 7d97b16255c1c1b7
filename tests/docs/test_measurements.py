"""Measured numbers say how they were made and are on one page; figures are the ones that their programs draw."""

import json
import platform
import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import decoupled as dc
from decoupled_lab.bench import engine
from decoupled_lab.bench.timing import Ratio
from support.browser import chromium
from support.http_service import served
from support.pages import PAGES, ROOT, tool
from support.pictures import assert_shows

measure, measurements, regrets = map(tool, ("measure", "measurements", "regrets"))
KNOWN = measurements.records()
CONTENT = json.loads(measurements.FILE.read_text())


def test_records_say_what_how_where_and_of_which_version_and_the_page_shows_them() -> None:
    for record in KNOWN.values():
        assert all((record.what, record.how, record.version)), record.name
        for script in re.findall(r"(?:docs|tests|serve)/[\w/]+\.py", record.how):
            assert (ROOT / script).exists(), script
        assert (record.low is None) == (record.high is None), record.name
        assert record.value is not None or record.low is not None, record.name
        ordered = [each for each in (record.low, record.value, record.high) if each is not None]
        assert ordered == sorted(ordered), record.name
    assert {record.machine for record in KNOWN.values()} == set(CONTENT["machines"])
    for name, group in CONTENT["groups"].items():
        assert all(record.startswith(f"{name}.") for record in group["records"]), name
        assert (f"measure.py {name}" in group["how"]) == (name in measure.GROUPS), name
    assert set(measure.GROUPS) <= set(CONTENT["groups"])
    page = measurements.tables()
    rows = [
        line for line in page.splitlines() if line.startswith("| ") and "| measured |" not in line
    ]
    assert len(rows) == len(KNOWN)
    assert all(f"| {each.what} | {measurements.text_of(each)} |" in page for each in KNOWN.values())


@pytest.mark.parametrize(("instance", "policy"), [("easy", "leader"), ("alternating", "ftpl")])
def test_regrets_are_those_of_the_code(instance: str, policy: str) -> None:
    played = regrets.CONTENDERS[policy]
    for name, fields in regrets.of_policy(
        instance, policy, played, regrets.finals(instance, played)
    ):
        record = KNOWN[name]
        if (platform.system(), platform.machine()) == ("Linux", "x86_64"):
            assert fields["value"] == record.value, name
        elif (
            record.low is not None
        ):  # elsewhere a digit of a logarithm may differ: four standard errors
            assert abs(fields["value"] - record.value) < record.high - record.low, name


def test_the_tool_writes_only_the_groups_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, rival = "FTPL compiled, K = 8", "NumPy, textbook step"
    monkeypatch.setattr(
        engine, "measure", lambda _: [Ratio(name, 1.0, rival, 9.0, 412.3, 99.0, 512.6)]
    )
    out = tmp_path / "measurements.json"
    arguments = ["measure.py", "engine", "--machine", "newer-xeon", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", arguments)
    measure.main()
    after = measurements.records(out)
    assert {each for each in KNOWN if after[each] != KNOWN[each]} == {"engine.textbook-8"}
    changed = after["engine.textbook-8"]
    assert (changed.value, changed.low, changed.high) == (412.0, 99.0, 513.0)
    assert (changed.machine, changed.version) == ("newer-xeon", dc.__version__)
    assert changed.what == KNOWN["engine.textbook-8"].what


MAKE = runpy.run_path(str(ROOT / "docs" / "figures" / "make.py"))


# Only one of the two maps, which take seconds to draw and differ only in their numbers.
@pytest.mark.parametrize("name", sorted(set(MAKE["FIGURES"]) - {"gpu-map-ftpl"}))
def test_the_committed_figure_is_up_to_date(name: str) -> None:
    figure = MAKE["FIGURES"][name]()
    kept = ROOT / "docs" / "figures" / f"{name}.png"
    assert_shows(kept, figure, "run: python docs/figures/make.py")
    assert kept.stat().st_size < 250_000
    assert any(f"figures/{name}.png" in page.read_text() for page in PAGES)


def test_another_figure_is_noticed() -> None:
    figure = MAKE["FIGURES"]["understand-rank"]()
    kept = ROOT / "docs" / "figures" / "understand-rank.png"
    assert_shows(kept, figure, "")
    line = figure.axes[0].get_lines()[0]
    line.set_ydata(np.full_like(line.get_ydata(), line.get_ydata()[0]))
    with pytest.raises(AssertionError, match="draw it"):
        assert_shows(kept, figure, "draw it")


def test_the_animation_of_the_readme_is_up_to_date_and_stands_still_for_those_who_prefer_that() -> (
    None
):
    demo = runpy.run_path(str(ROOT / "docs" / "figures" / "demo.py"))
    text = (ROOT / "docs" / "figures" / "demo.svg").read_text(encoding="utf-8")
    assert demo["picture"](demo["played"]()) == text, "run: python docs/figures/demo.py"
    before, motion = text.split("@media (prefers-reduced-motion: no-preference)")
    assert "animation:" in motion
    assert "animation:" not in before


SHOTS = runpy.run_path(str(ROOT / "docs" / "figures" / "console.py"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    yield from chromium()


@pytest.mark.parametrize("name", SHOTS["PICTURES"])
def test_the_pictures_of_the_docs_show_the_console(browser: Any, tmp_path: Path, name: str) -> None:
    kept = ROOT / "docs" / "figures" / f"{name}.png"
    with served(tmp_path) as fresh:
        taken = SHOTS["take"](name, browser, fresh.url, tmp_path, seconds=2.0)
    assert SHOTS["words_in"](taken) == SHOTS["words_in"](kept), (
        "run: python docs/figures/console.py"
    )
    on_phone = SHOTS["on_phone"](kept)
    assert SHOTS["words_in"](on_phone) == SHOTS["words_in"](kept)
    assert SHOTS["on_phone"](taken).exists()
    assert max(kept.stat().st_size, on_phone.stat().st_size) < 150_000
    assert f"(figures/{name}.png)" in (ROOT / "docs" / "console.md").read_text()
