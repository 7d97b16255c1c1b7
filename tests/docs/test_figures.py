"""The committed figures are the ones that `docs/figures/make.py` draws; they are small, readable and shown on a page."""

import runpy

import numpy as np
import pytest

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
