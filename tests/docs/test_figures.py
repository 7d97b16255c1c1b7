"""The committed figures are the ones that `docs/figures/make.py` draws; they are small and shown on a page."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from support.pages import PAGES, ROOT

MAKE = runpy.run_path(str(ROOT / "docs" / "figures" / "make.py"))


# Only one of the two maps, which take seconds to draw and differ only in their numbers.
@pytest.mark.parametrize("name", sorted(set(MAKE["FIGURES"]) - {"gpu-map-ftpl"}))
def test_the_committed_figure_is_up_to_date(name: str, tmp_path: Path) -> None:
    kept = ROOT / "docs" / "figures" / f"{name}.png"
    drawn = MAKE["draw"](name, tmp_path)
    # With the locked versions they are identical. On another machine, a logarithm may move a few pixels. A
    # different curve moves about 0.5 % of them.
    one, other = imread(kept), imread(drawn)
    assert one.shape == other.shape
    assert (np.abs(one - other).max(axis=2) > 0.3).mean() < 0.001
    page = name.split("-")[0]
    most = 800_000 if page == "gpu" else 150_000
    assert kept.stat().st_size < most
    shown = [each.read_text() for each in PAGES if each.stem == page or each.parent.name == "how-to"]
    assert any(f"figures/{name}.png)" in text for text in shown)
