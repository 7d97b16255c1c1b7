"""A common style for the figures, the same as in `plots`."""

import os
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from decoupled.base import needed_for
from decoupled.plots import COLOURS, DOTS_PER_INCH, WIDTH
from decoupled.plots import SMALL as SMALL

if TYPE_CHECKING:
    import matplotlib.figure

Figure: TypeAlias = "matplotlib.figure.Figure"
"""A figure of Matplotlib."""
Target: TypeAlias = str | os.PathLike[str] | None
"""The file to save a figure to; None saves nothing."""
BLUE, RED, GREEN, PURPLE, ORANGE, SKY = COLOURS[:6]


def canvas(height: float = 3.6, panels: int = 1) -> tuple[Figure, Any]:
    """A figure and its axes (a list of axes for several panels, stacked), without the top and right spines."""
    with needed_for("a picture"):
        import matplotlib.figure  # slow to import, and seldom needed

    figure = matplotlib.figure.Figure(figsize=(WIDTH, height * panels), layout="constrained")
    axes: Any = figure.subplots(panels, 1, squeeze=False)[:, 0]
    for each in axes:
        each.grid(alpha=0.3)
        each.spines[["top", "right"]].set_visible(False)
        each.tick_params(labelsize=SMALL)
        each.xaxis.label.set_fontsize(SMALL)
        each.yaxis.label.set_fontsize(SMALL)
    return figure, axes[0] if panels == 1 else axes


def explain(axes: Any, title: str, *, columns: int = 1, above: bool = False) -> None:
    """A title that fits, and the legend outside of the axes, where it covers no curve."""
    axes.set_title(textwrap.fill(title, int(WIDTH / 0.085)), fontsize=10, loc="left")
    place: dict[str, Any] = {
        "loc": "outside upper left" if above else "outside lower left",
        "fontsize": SMALL,
    }
    axes.figure.legend(*axes.get_legend_handles_labels(), frameon=False, ncols=columns, **place)


def save(figure: Figure, path: Target) -> Figure:
    """Save the figure, if a path is given."""
    if path is not None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(
            path, dpi=DOTS_PER_INCH, metadata={"Software": None} if str(path).endswith(".png") else None
        )
    return figure
