"""Pictures in files, compared."""

from pathlib import Path

import numpy as np
from matplotlib.image import imread


def assert_same_picture(kept: Path, drawn: Path) -> None:
    """Check that two files show the same picture.

    With the locked versions they are identical. On another machine, a logarithm may move a few pixels. A different
    curve moves about 0.5 % of them.
    """
    one, other = imread(kept), imread(drawn)
    assert one.shape == other.shape
    assert (np.abs(one - other).max(axis=2) > 0.3).mean() < 0.001
