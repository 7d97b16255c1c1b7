"""One picture of an entry: where a policy is good, and where it is not."""

import math
import os
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decoupled.plots import COLOURS, DOTS_PER_INCH, SMALL, WIDTH

from ..report.pictures import REPRODUCIBLE
from . import statistics
from .statistics import YARDSTICK
from .suite import SUITE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, RED, *_, GREY = COLOURS
VERDICTS = {"better": BLUE, "worse": RED, "even": "#4D4D4D"}
MARKERS = ("s", "^", "D", "v")  # the other references are told apart by their shapes
HOLLOW = {"color": "black", "markerfacecolor": "white", "markeredgewidth": 0.8}
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
LINE = 17  # letters of a group's name beside its row
# Inches: the height of a row, and what is around all rows.
ROW, HEAD, FOOT, LEFT, RIGHT = 0.42, 0.84, 0.96, 1.42, 0.62


def draw(entry: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write the picture of an entry, as PNG, PDF or SVG by the ending of the path; an entry always gives the same bytes."""
    from matplotlib import rc_context

    kind = Path(path).suffix.removeprefix(".")
    with rc_context({"svg.hashsalt": "benchmark", "svg.fonttype": "none"}):
        figure(entry).savefig(path, dpi=DOTS_PER_INCH, **REPRODUCIBLE[kind])


def figure(entry: Mapping[str, Any]) -> "Figure":
    """The picture: a row for each group, with regret as a multiple of the yardstick's on a logarithmic axis."""
    from matplotlib.figure import Figure

    groups = entry["groups"]
    title = textwrap.fill(entry["policy"]["name"], 52)
    head = HEAD + 0.17 * title.count("\n")
    height = head + ROW * len(groups) + FOOT
    made = Figure(figsize=(WIDTH, height))
    made.set_layout_engine("none")
    place = (LEFT / WIDTH, FOOT / height, 1.0 - (LEFT + RIGHT) / WIDTH, ROW * len(groups) / height)
    axes: Any = made.add_axes(place)
    _prepare(axes, [each["title"] for each in groups], *_span(entry))
    for row in range(len(groups)):
        _fill_row(axes, row, entry)
    left = 0.1 / WIDTH
    made.text(left, 1.0 - 0.12 / height, title, fontsize=11, fontweight="bold", va="top")
    rest = f"How many times the regret of {YARDSTICK}? ({entry['suite']}"
    rest += ")" if entry["size"] == "standard" else f", {entry['size']} size)"
    made.text(left, 1.0 - (head - 0.46) / height, rest, fontsize=SMALL, va="top")
    made.legend(
        *zip(*_explained(_markers(entry)), strict=True),
        loc="lower left", bbox_to_anchor=(left, 0.0), ncols=2, frameon=False,
        fontsize=SMALL, handletextpad=0.4, columnspacing=1.2, borderaxespad=0.4,
    )  # fmt: skip
    return made


def _markers(entry: Mapping[str, Any]) -> dict[str, str]:
    """The shape of each reference but the yardstick."""
    others = (name for name in SUITE.references if name != YARDSTICK)
    return dict(zip(others, MARKERS, strict=False))


def _span(entry: Mapping[str, Any]) -> tuple[float, float]:
    """The ends of the axis: ticks that everything lies between."""
    seen = [statistics.of_task(task) for task in entry["tasks"]]
    for group in entry["groups"]:
        seen += statistics.of_group(group)
        seen += (statistics.of_reference(group, name) for name in _markers(entry))
    low = max((tick for tick in TICKS[:6] if tick <= 0.95 * min(seen)), default=0.95 * min(seen))
    high = min((tick for tick in TICKS[7:] if tick >= 1.05 * max(seen)), default=1.05 * max(seen))
    return low, high


def _prepare(axes: Any, titles: Sequence[str], low: float, high: float) -> None:
    """The axis, the rows' names, and the two halves: better and worse."""
    axes.set_xscale("log")
    axes.set(xlim=(low, high), ylim=(len(titles) - 0.5, -0.5))
    for ends, colour in (((low, 1.0), BLUE), ((1.0, high), RED)):
        axes.axvspan(*ends, color=colour, alpha=0.09, linewidth=0)
    axes.axvline(1.0, color="black", linewidth=1.2)
    for row in range(1, len(titles)):
        axes.axhline(row - 0.5, color="white", linewidth=2.0)
    ticks = [tick for tick in TICKS if low <= tick <= high]
    if len(ticks) > 7:  # side by side they would touch
        ticks = [tick for tick in ticks if math.log10(tick).is_integer()]
    axes.set_xticks(ticks, [f"{tick:g}" if tick >= 1.0 else f"1/{1.0 / tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_yticks(range(len(titles)), [textwrap.fill(title, LINE) for title in titles])
    axes.tick_params(labelsize=SMALL, length=0)
    axes.spines[:].set_visible(False)
    for x, word, side, colour in (
        (0.95, "← better", "right", BLUE),
        (1.05, "worse →", "left", RED),
    ):
        told = {
            "fontsize": SMALL,
            "fontweight": "bold",
            "ha": side,
            "va": "bottom",
            "color": colour,
        }
        axes.text(x, 1.005, word, transform=axes.get_xaxis_transform(), **told)


def _fill_row(axes: Any, row: int, entry: Mapping[str, Any]) -> None:
    """Tasks as small dots, below them the policy with its interval, then the references; and the number beside them."""
    group = entry["groups"][row]
    found = statistics.of_group(group)
    colour = VERDICTS[found.verdict]
    each = [statistics.of_task(task) for task in statistics.tasks_of(entry, group["name"])]
    dots = {"alpha": 0.55, "markersize": 2.8, "markeredgewidth": 0}
    axes.plot(each, [row - 0.22] * len(each), "o", color=colour, **dots)
    for name, marker in _markers(entry).items():
        ratio = statistics.of_reference(group, name)
        axes.plot(ratio, row + 0.3, marker, markersize=3.8, zorder=4, **HOLLOW)
    axes.plot([found.low, found.high], [row, row], "-|", color=colour, linewidth=1.8, markersize=6)
    axes.plot(found.ratio, row, "o", color=colour, markersize=6.5, markeredgecolor="white")
    number = f"{found.ratio:.2f}" if found.ratio < 9.995 else f"{found.ratio:.0f}"
    place = (1.0 + (RIGHT - 0.08) / (WIDTH - LEFT - RIGHT), row)
    told = {"fontsize": SMALL, "fontweight": "bold", "va": "center", "ha": "right", "color": colour}
    axes.text(*place, f"{number} ×", transform=axes.get_yaxis_transform(), **told)  # noqa: RUF001


def _explained(markers: Mapping[str, str]) -> list[tuple[Any, str]]:
    """The legend."""
    from matplotlib.lines import Line2D

    def mark(marker: str, size: float, **style: Any) -> Any:
        return Line2D([], [], linestyle="none", marker=marker, markersize=size, **style)

    return [
        (mark("o", 6.5, color=BLUE), "this policy, 95 % interval"),
        (mark("o", 6.5, color=VERDICTS["even"]), "the same, may be chance"),
        (mark("o", 2.8, color=VERDICTS["even"]), "its single tasks"),
        *((mark(marker, 4.5, **HOLLOW), name) for name, marker in markers.items()),
    ]
