"""A common style for the figures, the same as in `plots`."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ...base.extras import needed_for
from ...plots import COLOURS

if TYPE_CHECKING:
    import matplotlib.figure

Figure: TypeAlias = "matplotlib.figure.Figure"
Target: TypeAlias = str | os.PathLike[str] | None
BLUE, RED, GREEN, PURPLE, ORANGE, SKY = COLOURS[:6]


def canvas(width: float = 7.0, height: float = 4.2, panels: int = 1) -> tuple[Figure, Any]:
    """A figure and its axes (a list of axes for several panels), without the top and right spines."""
    with needed_for("a picture"):
        import matplotlib.figure  # slow to import, and seldom needed

    figure = matplotlib.figure.Figure(figsize=(width, height), layout="constrained")
    axes: Any = figure.subplots(1, panels, squeeze=False)[0]
    for each in axes:
        each.grid(alpha=0.3)
        each.spines[["top", "right"]].set_visible(False)
    return figure, axes[0] if panels == 1 else axes


def save(figure: Figure, path: Target, dpi: int = 110) -> Figure:
    """Save the figure, if a path is given."""
    if path is not None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=dpi)
    return figure
