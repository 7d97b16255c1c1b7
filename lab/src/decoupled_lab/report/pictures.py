"""The figures of a report: heat maps beside the panels of `decoupled.plots`, and the files of a figure."""

import csv
import io
import math
import os
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from decoupled import plots
from decoupled.base import Floats
from decoupled.plots import DOTS_PER_INCH, EMBEDDED, SMALL, WIDTH, Picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WORST = 10.0  # the value of a map's darkest colour

# Keep the time and random names out of files, so that the same picture gives the same bytes.
REPRODUCIBLE: dict[str, Any] = {
    "png": {"metadata": {"Software": None}},
    "svg": {"metadata": {"Date": None}},
    "pdf": {"metadata": {"CreationDate": None, "Producer": None, "Creator": None}},
}


class Heat(NamedTuple):
    """One heat map: a colour for each column and row, by the logarithm of the value."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    values: Floats  # rows x columns, from 1 on
    x_label: str
    y_label: str
    series: tuple[plots.Series, ...] = ()  # always empty


class Maps(NamedTuple):
    """One figure of heat maps, with the fields of a `Picture`."""

    name: str
    title: str
    caption: str
    panels: tuple[Heat, ...]
    columns: int = 1


def numbers_of(picture: Picture | Maps) -> str:
    """The numbers behind a picture as CSV, one line per point.

    >>> curve = plots.Series("FTPL", np.array([1.0]), np.array([0.5]))
    >>> numbers_of(Picture("regret", "Regret", "", (plots.Panel("two arms", (curve,)),))).splitlines()[1]
    'two arms,FTPL,1.0,0.5,,'
    """
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(("panel", "series", "x", "y", "low", "high"))
    for panel in picture.panels:
        points = _of_map(panel) if isinstance(panel, Heat) else _of_curves(panel)
        lines.writerows((panel.title, *point) for point in points)
    return text.getvalue()


def _of_map(heat: Heat) -> Iterator[tuple[str, ...]]:
    for row, values in zip(heat.rows, heat.values, strict=True):
        for column, value in zip(heat.columns, values, strict=True):
            yield row, column, repr(float(value)), "", ""


def _of_curves(panel: plots.Panel) -> Iterator[tuple[str, ...]]:
    for series in panel.series:
        for x, y, *ends in zip(series.x, series.y, *series.ends, strict=True):
            shown = ("" if math.isnan(end) else repr(float(end)) for end in ends)
            yield series.label, repr(float(x)), repr(float(y)), *shown


def draw(picture: Picture | Maps) -> "Figure":
    """Draw a picture as a static figure."""
    return _draw_maps(picture) if isinstance(picture, Maps) else plots.draw(picture)


def _draw_maps(picture: Maps) -> "Figure":
    """Small maps beside each other, with one scale of colours. The numbers are in the picture's data."""
    from matplotlib.figure import Figure

    columns = min(picture.columns, len(picture.panels))
    rows = -(-len(picture.panels) // columns)
    figure = Figure(figsize=(max(WIDTH, 1.2 * columns), 1.35 * rows + 1.2), layout="constrained")
    grid: Any = figure.subplots(rows, columns, squeeze=False)
    common = [
        row for row in picture.panels[0].rows if all(row in heat.rows for heat in picture.panels)
    ]
    for number, (axes, heat) in enumerate(zip(grid.flat, picture.panels, strict=False)):
        outer = number % columns == 0, number >= len(picture.panels) - columns
        painted = _paint(axes, heat, common, outer)
    bar = figure.colorbar(painted, ax=grid, location="bottom", aspect=40, shrink=0.95)
    ticks = (1.0, 1.5, 2.0, 3.0, 5.0, WORST)
    bar.set_ticks([math.log(value) for value in ticks], labels=[f"{value:g}" for value in ticks])
    bar.ax.tick_params(labelsize=SMALL)
    bar.set_label(f"times the lowest (dark: {WORST:g} times or more)", fontsize=SMALL)
    figure.suptitle(textwrap.fill(picture.title, 52), fontsize=11)
    return figure


def _paint(axes: Any, heat: Heat, common: list[str], outer: tuple[bool, bool]) -> Any:
    """One map, with a dot at its lowest value; labels, of rows that all have, in the outer column and the last row."""
    scale = {"cmap": "viridis_r", "vmin": 0.0, "vmax": math.log(WORST)}
    painted = axes.imshow(np.log(heat.values), origin="lower", aspect="auto", **scale)
    row, column = np.unravel_index(np.nanargmin(heat.values), heat.values.shape)
    axes.plot(column, row, "o", color="white", markeredgecolor="black", markersize=5)
    axes.set_title(heat.title.replace(", ", "\n"), fontsize=SMALL)
    across, up = 3 if len(heat.columns) > 8 else 1, 1 + len(common) // 6  # labels side by side
    axes.set_xticks(range(0, len(heat.columns), across), heat.columns[::across])
    axes.set_yticks([heat.rows.index(row) for row in common[::up]], common[::up])
    axes.tick_params(labelsize=SMALL)
    axes.tick_params(labelleft=outer[0], labelbottom=outer[1])
    if outer[0]:
        axes.set_ylabel(heat.y_label, fontsize=SMALL)
    if outer[1]:
        axes.set_xlabel(heat.x_label, fontsize=SMALL)
    return painted


def save_static(picture: Picture | Maps, folder: str | os.PathLike[str]) -> None:
    """Write the picture as PNG, SVG and PDF, and its numbers as CSV; the same picture gives the same bytes."""
    from matplotlib import rc_context

    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    with rc_context({"svg.hashsalt": picture.name, "svg.fonttype": "none", **EMBEDDED}):
        figure = draw(picture)
        for kind, options in REPRODUCIBLE.items():
            figure.savefig(target / f"{picture.name}.{kind}", dpi=DOTS_PER_INCH, **options)
    (target / f"{picture.name}.csv").write_text(numbers_of(picture), encoding="utf-8")
