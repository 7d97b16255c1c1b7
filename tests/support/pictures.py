"""Pictures in files, compared by what they show."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from support.pages import NUMBER, tool


def assert_shows(kept: Path, figure: Any, again: str) -> None:
    """Check that a file shows a figure; otherwise `again` says how to draw it.

    On another kind of machine a digit of a logarithm may differ, and the runs of a simulation with it, so a tenth of
    an axis is no difference.
    """
    tools = tool("shown")
    old, new = tools.shown_in(kept), json.loads(tools.shown(figure))
    assert _words(old) == _words(new), again
    assert [np.shape(part) for part in old["parts"]] == [np.shape(part) for part in new["parts"]], (
        again
    )
    for one, other in zip(old["parts"], new["parts"], strict=True):
        assert np.abs(np.subtract(one, other)).max() < 0.1, again


def _words(shown: Any) -> list[str]:
    return sorted({NUMBER.sub("0", word) for word in shown["words"]})


def far_away(picture: Any) -> Any:
    """A picture as one sees it from afar, where neither fonts nor a pixel of a curve can be told apart."""
    from PIL import Image

    small = picture.convert("RGB").resize((32, 24), Image.Resampling.BOX)
    return np.asarray(small, np.float64) / 255.0
