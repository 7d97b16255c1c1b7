"""What a figure shows, as a short text that is kept in its file: its words, and where its curves and points lie.

A test draws the figure again and compares the texts. Pixels would not do: those of another machine's fonts differ.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

KEY = "Description"  # of the text in a PNG file


def shown(figure: Any) -> str:
    """The words of a figure, and for each curve, band, bar, map or set of points four numbers for x and for y.

    The numbers are mean, spread, lowest and highest, as shares of the axes; for the colours of a map, of their range.
    """
    from matplotlib.text import Text

    figure.draw_without_rendering()  # so that all limits and labels are known
    words = [each.get_text() for each in figure.findobj(Text) if each.get_visible()]
    parts = [
        [[round(float(number), 4) for number in _summary(column)] for column in columns]
        for axes in figure.axes
        for columns in _columns(axes)
    ]
    return json.dumps({"words": sorted({word for word in words if word.strip()}), "parts": parts})


def shown_in(file: Path) -> Any:
    """What was kept in a file, with its words and its parts."""
    from PIL import Image

    with Image.open(file) as picture:
        return json.loads(picture.info[KEY])


def _columns(axes: Any) -> Iterator[list[Any]]:
    """The coordinates of everything that was drawn into axes, in shares of them, by x and y."""
    from matplotlib.collections import PathCollection, QuadMesh

    to_shares = axes.transAxes.inverted()

    def shares(points: Any, transform: Any) -> list[Any]:
        return list(to_shares.transform(transform.transform(np.asarray(points, np.float64))).T)

    for line in axes.get_lines():
        yield shares(line.get_xydata(), line.get_transform())
    for each in axes.collections:
        if isinstance(each, QuadMesh):
            yield [each.norm(each.get_array()).ravel()]
        elif isinstance(each, PathCollection):
            yield shares(each.get_offsets(), each.get_offset_transform())
        else:
            paths = [path.vertices for path in each.get_paths() if len(path.vertices)]
            if paths:
                yield shares(np.concatenate(paths), each.get_transform())
    for each in axes.patches:
        yield shares(each.get_path().vertices, each.get_transform())
    for each in axes.images:
        yield [each.norm(each.get_array()).ravel()]


def _summary(values: Any) -> tuple[float, ...]:
    found = np.asarray(values, np.float64)
    found = found[np.isfinite(found)]
    if not found.size:
        return 0.0, 0.0, 0.0, 0.0
    return found.mean(), found.std(), found.min(), found.max()
