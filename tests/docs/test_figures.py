"""The committed figures are the ones that `docs/figures/make.py` draws; they are small, readable and shown on a page."""

import csv
import re
import runpy

import numpy as np
import pytest
from matplotlib.image import imread

from support.pages import PAGES, ROOT
from support.phone import SMALLEST, smallest_on_a_phone
from support.pictures import assert_shows

MAKE = runpy.run_path(str(ROOT / "docs" / "figures" / "make.py"))


# Only one of the two maps, which take seconds to draw and differ only in their numbers.
@pytest.mark.parametrize("name", sorted(set(MAKE["FIGURES"]) - {"gpu-map-ftpl"}))
def test_the_committed_figure_is_up_to_date_and_can_be_read_on_a_phone(
    name: str,
) -> None:
    figure = MAKE["FIGURES"][name]()
    assert smallest_on_a_phone(figure) >= SMALLEST
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


@pytest.mark.parametrize("name", MAKE["DARK"])
def test_a_dark_figure_is_dark_and_as_large_as_the_light_one(name: str) -> None:
    light, dark = (imread(ROOT / "docs" / "figures" / f"{name}{kind}.png") for kind in ("", "-dark"))
    assert light.shape == dark.shape
    assert light[0, 0, :3].min() > 0.95
    assert dark[0, 0, :3].max() < 0.1


def ends_of(name: str) -> dict[tuple[str, str], int]:
    """The last mean of each curve of a figure, rounded, by panel and policy."""
    with (ROOT / f"docs/data/figures/{name}.csv").open(newline="") as file:
        ends = {(row["panel"], row["series"]): float(row["y"]) for row in csv.DictReader(file)}
    return {key: round(value) for key, value in ends.items()}


def test_the_curves_of_an_idea_end_where_its_page_says() -> None:
    page = (ROOT / "docs/how-to/compare.md").read_text()
    printed = re.findall(r"^(alternating|stochastic) +(\w.*?) {2,}(\d+)  ", page, re.MULTILINE)
    punished = page[page.index("punish last") :]
    printed += [
        ("punish last", *each) for each in re.findall(r"^(\w.*?) +(\d+) +\d+ +\d+$", punished, re.MULTILINE)
    ]
    assert len(printed) == 9
    assert {(panel, name): int(mean) for panel, name, mean in printed} == ends_of("how-to-compare")
