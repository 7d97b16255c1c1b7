"""The figures of the page on understanding are what the package draws today."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from pages import ROOT

MAKE = runpy.run_path(str(ROOT / "docs" / "figures" / "make.py"))


@pytest.mark.parametrize("name", MAKE["FIGURES"])
def test_a_figure_is_the_one_that_is_kept(name: str, tmp_path: Path) -> None:
    kept = ROOT / "docs" / "figures" / f"{name}.png"
    drawn = MAKE["draw"](name, tmp_path)
    # Bytes are the same with the locked versions; other fonts or another logarithm move a few pixels.
    one, other = imread(kept), imread(drawn)
    assert one.shape == other.shape
    assert np.abs(one - other).mean() < 0.01
    assert kept.stat().st_size < 150_000
    assert f"(figures/{name}.png)" in (ROOT / "docs" / "understand.md").read_text()
