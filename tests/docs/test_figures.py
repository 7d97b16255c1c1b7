"""The committed figures, and the pictures of the console, are the ones that their programs draw; they are small and shown on a page."""

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.browser import chromium
from support.http_service import served
from support.pages import PAGES, ROOT
from support.pictures import assert_shows

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


def test_the_animation_of_the_readme_is_up_to_date_and_stands_still_for_those_who_prefer_that() -> None:
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
    assert SHOTS["words_in"](taken) == SHOTS["words_in"](kept), "run: python docs/figures/console.py"
    on_phone = SHOTS["on_phone"](kept)
    assert SHOTS["words_in"](on_phone) == SHOTS["words_in"](kept)
    assert SHOTS["on_phone"](taken).exists()
    assert max(kept.stat().st_size, on_phone.stat().st_size) < 150_000
    assert f"(figures/{name}.png)" in (ROOT / "docs" / "console.md").read_text()
