"""The style for figures of your own is that of the package's, and the reader's settings do not disturb these."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib import rc_context
from matplotlib.colors import to_hex

from decoupled.plots import COLOURS, SMALL, WIDTH, Panel, Picture, Series, draw

CURVE = Series("a", np.array([1.0, 2.0]), np.array([1.0, 3.0]))


def test_the_style_has_the_colours_and_sizes_of_the_package() -> None:
    with plt.style.context("decoupled.plots"):
        style: Any = dict(plt.rcParams)
    colours = [to_hex(each["color"]).upper() for each in style["axes.prop_cycle"]]
    assert colours == [each.upper() for each in COLOURS]
    assert style["figure.figsize"][0] == WIDTH
    assert min(style[name] for name in ("font.size", "axes.titlesize")) >= SMALL
    named = ("axes.labelsize", "legend.fontsize", "xtick.labelsize", "ytick.labelsize")
    assert {style[name] for name in named} == {"medium"}, "of the font's size"


@pytest.mark.parametrize("settings", [{"figure.constrained_layout.use": True}, {"figure.autolayout": True}])
def test_a_picture_has_its_own_margins_whatever_the_settings(settings: Any) -> None:
    picture = Picture("one", "title", "", (Panel("", (CURVE,)),))
    expected = draw(picture).axes[0].get_position().bounds
    with rc_context(settings):
        figure = draw(picture)
        figure.draw_without_rendering()  # warns, which is an error here, if a layout has nothing to arrange
    assert figure.axes[0].get_position().bounds == expected
