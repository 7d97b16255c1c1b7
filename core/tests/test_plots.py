"""The style for figures of your own is that of the package's, and the reader's settings do not disturb these."""

from typing import Any

import numpy as np
import pytest
from matplotlib import rc_context

from decoupled.plots import Panel, Picture, Series, draw

CURVE = Series("a", np.array([1.0, 2.0]), np.array([1.0, 3.0]))


@pytest.mark.parametrize("settings", [{"figure.constrained_layout.use": True}, {"figure.autolayout": True}])
def test_a_picture_has_its_own_margins_whatever_the_settings(settings: Any) -> None:
    picture = Picture("one", "title", "", (Panel("", (CURVE,)),))
    expected = draw(picture).axes[0].get_position().bounds
    with rc_context(settings):
        figure = draw(picture)
        figure.draw_without_rendering()  # warns, which is an error here, if a layout has nothing to arrange
    assert figure.axes[0].get_position().bounds == expected
