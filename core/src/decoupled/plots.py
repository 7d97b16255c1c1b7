"""Figures as values, and one colour-blind-safe style to draw them.

A `Picture` describes a figure; `draw` makes a static version of it, and the report of the lab an
interactive one.
"""

import math
import re
import textwrap
from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .base.arrays import Floats, ceil_div
from .base.extras import needed_for

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette, which keeps its contrasts under the common kinds of colour blindness.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")
DASHES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# What figures call a policy with its default parameters, in the order of their colours.
NAMES = {
    "FTPL": "FTPL",
    "TsallisINF": "Tsallis-INF",
    "Exp3": "EXP3",
    "FollowTheLeader": "Follow the leader",
    "Ladder": "Ladder",
    "TopTwo": "Top two",
}

# Inches and points. A page on a phone is 358 pixels wide, and there the smallest text is 9 pixels
# high.
WIDTH = 4.8
SMALL = 9.0
DOTS_PER_INCH = 150

# Publishers refuse the fonts that Matplotlib writes to a PDF unless told otherwise (Type 3).
EMBEDDED: Any = {"pdf.fonttype": 42, "ps.fonttype": 42}


class Series(NamedTuple):
    """Labelled values, with an optional band around them.

    Attributes:
        label: the name in the legend.
        x: the places.
        y: the values.
        band: its half-width, or two rows: how far it reaches below the values, and above them; None
            for no band.
        style: the number of its colour in the palette.
        kind: "line", "points", or "fit", a thin line through points.

    >>> Series("FTPL", np.arange(1.0, 4.0), np.array([0.5, 0.8, 1.0]), style=1).kind
    'line'
    """

    label: str
    x: Floats
    y: Floats
    band: Floats | None = None
    style: int = 0
    kind: str = "line"

    @property
    def ends(self) -> tuple[Floats, Floats]:
        """The lower and the upper end of the band; NaN without one.

        >>> low, high = Series("a", np.ones(1), np.ones(1), np.array([[0.5], [2.0]])).ends
        >>> float(low[0]), float(high[0])
        (0.5, 3.0)
        """
        band = np.full(len(self.x), math.nan) if self.band is None else self.band
        below, above = band if band.ndim == 2 else (band, band)
        return self.y - below, self.y + above


def styles(labels: Sequence[str]) -> list[int]:
    """The number of each policy's colour by its label or name, the same for those in `NAMES`.

    A variant has the colour of its policy, unless the policy or another variant before it is there
    too.

    >>> styles(["FTPL(c=4)", "EXP3", "Ladder", "Ladder(memory=None)"])
    [0, 2, 4, 1]
    """
    style_of = {name: style for style, names in enumerate(NAMES.items()) for name in names}
    chosen = [style_of.get(label) for label in labels]
    for place, label in enumerate(labels):
        policy = re.split(r"[(,]", label)[0].strip()
        if chosen[place] is None and style_of.get(policy) not in chosen:
            chosen[place] = style_of.get(policy)
    free = (style for style in count() if style not in chosen)
    return [next(free) if style is None else style for style in chosen]


class Panel(NamedTuple):
    """One pair of axes; `draw` has an example."""

    title: str
    series: tuple[Series, ...]
    x_label: str = "round"
    y_label: str = "regret"
    log_x: bool = False
    log_y: bool = False


class Picture(NamedTuple):
    """One figure: panels in rows of `columns`, with a name for its files and a caption.

    `draw` has an example.
    """

    name: str
    title: str
    caption: str
    panels: tuple[Panel, ...]
    columns: int = 1


def draw(picture: Picture) -> "Figure":
    """Draw the picture as a static figure.

    >>> curve = Series("FTPL", np.arange(1.0, 4.0), np.arange(3.0))
    >>> len(draw(Picture("regret", "Regret", "", (Panel("two arms", (curve,)),))).axes)
    1
    """
    with needed_for("a picture"):
        from matplotlib.figure import Figure  # slow to import, and most of the package never draws

    columns = min(picture.columns, len(picture.panels))
    rows = ceil_div(len(picture.panels), columns)
    width = WIDTH if columns == 1 else min(3.4 * columns, 13.0)
    names = list(dict.fromkeys(series.label for panel in picture.panels for series in panel.series))
    has_legend_inside = rows * columns == 1 and len(names) <= 3
    # A legend above the panels takes as many lines as its names need.
    longest_name = max(map(len, names), default=1)
    legend_columns = max(1, min(len(names), int(width / (0.45 + 0.07 * longest_name))))
    title = textwrap.fill(drawable(picture.title), int(width / 0.09))
    lines = title.count("\n") + any(panel.title for panel in picture.panels)
    head = 0.45 + 0.19 * lines
    if not has_legend_inside:
        head += 0.1 + 0.22 * ceil_div(len(names), legend_columns)
    height = {1: 2.9, 2: 2.6}.get(rows, 2.1) * rows + head  # no taller than a screen
    # Fixed margins, whatever layout the reader's settings ask for: Matplotlib draws everything
    # twice to compute them.
    figure = Figure(figsize=(width, height))
    figure.set_layout_engine("none")
    boxes = _boxes(columns, rows, width, height, head)
    for number, (panel, box) in enumerate(zip(picture.panels, boxes, strict=False)):
        axes: Any = figure.add_axes(box)
        fill(axes, panel)
        if number % columns:
            axes.set_ylabel("")
        if has_legend_inside and names:
            axes.legend(frameon=False, fontsize=SMALL)
    figure.suptitle(title, fontsize=11, y=1.0 - 0.12 / height, va="top")
    if names and not has_legend_inside:
        top = 1.0 - (0.33 + 0.17 * title.count("\n")) / height
        _shared_legend(figure, legend_columns, y=top)
    return figure


def _boxes(
    columns: int, rows: int, width: float, height: float, head: float
) -> list[tuple[float, float, float, float]]:
    """The place and the size of each panel, row by row, as shares of the figure."""
    left = 0.75 / width
    right = 0.3 / width
    bottom = 0.55 / height
    top = head / height
    gap_x = 0.62 / width
    gap_y = 0.7 / height
    step_x = (1.0 - left - right + gap_x) / columns
    step_y = (1.0 - bottom - top + gap_y) / rows
    return [
        (left + column * step_x, bottom + (rows - 1 - row) * step_y, step_x - gap_x, step_y - gap_y)
        for row in range(rows)
        for column in range(columns)
    ]


def drawable(text: str) -> str:
    r"""A name as Matplotlib draws it: what is between dollars stays as it is if it is no formula.

    >>> drawable("$x$"), drawable("5 $")
    ('$x$', '5 \\$')
    """
    if "$" not in text:
        return text
    from matplotlib.mathtext import MathTextParser

    try:
        MathTextParser("path").parse(text.replace("\n", " "))
    except ValueError:
        return text.replace("$", r"\$")
    return text


def _shared_legend(figure: Any, columns: int, y: float) -> None:
    """Put one legend for all panels above them."""
    handles: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(
        handles.values(),
        handles,
        loc="upper center",
        ncols=columns,
        frameon=False,
        bbox_to_anchor=(0.5, y),
        fontsize=SMALL,
    )


def fill(axes: Any, panel: Panel) -> None:
    """Draw a panel into axes.

    >>> from matplotlib.figure import Figure
    >>> axes = Figure().add_subplot()
    >>> fill(axes, Panel("two arms", (Series("FTPL", np.arange(1.0, 4.0), np.arange(3.0)),)))
    >>> axes.get_title()
    'two arms'
    """
    lows = [0.0 if panel.log_y else _lowest(series) for series in panel.series]
    floor = min(0.0, *lows)
    for series in panel.series:
        _plot(axes, series, floor)
    if panel.title:
        axes.set_title(drawable(panel.title), fontsize=10)
    axes.set_xlabel(panel.x_label, fontsize=SMALL)
    axes.set_ylabel(panel.y_label, fontsize=SMALL)
    axes.tick_params(labelsize=SMALL)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    _set_x_axis(axes, panel)
    if panel.log_y:
        axes.set_yscale("log")
        _label_logs(axes.yaxis)
        return
    # Regret by mean loss can be negative if the losses change and the policy follows them.
    axes.set_ylim(bottom=1.05 * floor)
    if floor < 0.0:
        axes.axhline(0.0, color="black", linewidth=0.8)


def _set_x_axis(axes: Any, panel: Panel) -> None:
    """Set the scale, the ends and the labels of the horizontal axis."""
    ends = [float(end) for series in panel.series for end in (series.x[0], series.x[-1])]
    has_curves_only = all(series.kind == "line" for series in panel.series)
    if not panel.log_x:
        axes.set_xlim(0.0, max(ends) * (1.0 if has_curves_only else 1.02))
        return
    if max(ends) > min(ends) > 0.0:
        axes.set_xscale("log")
        pad = 1.0 if has_curves_only else 1.06  # a marker on the edge would be cut in half
        axes.set_xlim(min(ends) / pad, max(ends) * pad)
    _label_logs(axes.xaxis)


def _label_logs(axis: Any) -> None:
    """Label 1, 2, 5, 10, ... if the axis spans a few decades, else powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    is_crowded = high / low > (2_000 if high < 5_000 else 50)  # long numbers need more room
    axis.set_major_locator(LogLocator(subs=(1.0,) if is_crowded else (1.0, 2.0, 5.0)))
    has_powers = is_crowded and high >= 1e5

    def text_of(value: float, _: object) -> str:
        return f"$10^{{{round(math.log10(value))}}}$" if has_powers else f"{value:,.10g}"

    axis.set_major_formatter(FuncFormatter(text_of))
    axis.set_minor_formatter(NullFormatter())


def _lowest(series: Series) -> float:
    """The lowest end of a curve or of a point's interval; a band may be cut, being a spread."""
    low = series.ends[0] if series.kind == "points" and series.band is not None else series.y
    return float(np.nanmin(low))


def _plot(axes: Any, series: Series, floor: float) -> None:
    """Plot one series; a band is cut at `floor`."""
    colour = COLOURS[series.style % len(COLOURS)]
    if series.kind == "points":
        marker = MARKERS[(series.style + series.style // len(COLOURS)) % len(MARKERS)]
        axes.plot(
            series.x, series.y, marker, color=colour, label=drawable(series.label), markersize=3.5
        )
        if series.band is not None:
            axes.errorbar(
                series.x, series.y, yerr=series.band, fmt="none", ecolor=colour, elinewidth=1.0
            )
        return
    is_fit = series.kind == "fit"
    dash = "-" if is_fit else DASHES[series.style % len(DASHES)]
    label = None if is_fit else drawable(series.label)
    width = 0.9 if is_fit else 1.6
    axes.plot(series.x, series.y, dash, color=colour, label=label, linewidth=width)
    if series.band is not None:
        low, high = series.ends
        # The edge shows where a band ends that lies below another.
        axes.fill_between(
            series.x,
            np.maximum(low, floor),
            high,
            facecolor=(colour, 0.15),
            edgecolor=(colour, 0.6),
            linewidth=0.6,
        )
