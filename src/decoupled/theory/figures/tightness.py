"""How tight each step is, and how the steps add up to the theorem."""

from collections.abc import Sequence

import numpy as np

from ..inequality import AS_PRINTED, CLAIMED, CORRECTED, NOT_CLAIMED, OURS
from ..ladder import Rung
from ..report import Report
from .style import BLUE, GREEN, ORANGE, PURPLE, RED, Figure, Target, canvas, save

_LOOKS = {
    CLAIMED: (BLUE, "o"),
    CORRECTED: (GREEN, "D"),
    AS_PRINTED: (RED, "X"),
    NOT_CLAIMED: (PURPLE, "P"),
    OURS: (ORANGE, "s"),
}
_EDGE = 20.0  # larger ratios are drawn here, with their value next to them


def plot_tightness(report: Report, path: Target = None) -> Figure:
    """The tightest ratio of every inequality in a report; right of the line, the inequality failed.

    >>> from decoupled import theory
    >>> report = theory.inspect([0.0, 1.0, 2.0], eta=1.0)
    >>> theory.figures.plot_tightness(report).axes[0].get_xlabel()
    'tightest ratio of left side to right side'
    """
    lines = [line for line in report.lines if line.ratio > 0.0 and "1e-12" not in line.inequality.name]
    figure, axes = canvas(10.0, 1.2 + 0.24 * len(lines))
    heights = np.arange(len(lines))[::-1]
    for status, (colour, marker) in _LOOKS.items():
        chosen = [
            (h, line.ratio)
            for h, line in zip(heights, lines, strict=True)
            if line.inequality.status == status
        ]
        if chosen:
            places, ratios = np.array(chosen).T
            axes.plot(np.minimum(ratios, _EDGE), places, marker, color=colour, label=status)
    for height, line in zip(heights, lines, strict=True):
        if line.ratio > _EDGE:
            axes.annotate(
                f"{line.ratio:.0e}", (_EDGE, height), (6, -3), textcoords="offset points", fontsize=7
            )
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yticks(
        heights, [f"{line.inequality.name}  [{line.inequality.source}]" for line in lines], fontsize=7
    )
    axes.set(xlabel="tightest ratio of left side to right side", xlim=(0.01, 3.0 * _EDGE))
    axes.legend(frameon=False, loc="lower left", fontsize="small")
    return save(figure, path, dpi=90)


def plot_ladder(rungs: Sequence[Rung], title: str = "", path: Target = None) -> Figure:
    """The steps from the regret to theorem 3.1, each with its stability and its penalty.

    >>> from decoupled import theory
    >>> rungs = [theory.Rung("regret", 2.0, 0.0), theory.Rung("theorem 3.1", 300.0, 40.0)]
    >>> theory.figures.plot_ladder(rungs).axes[0].get_ylabel()
    'regret, or a bound on it'
    """
    figure, axes = canvas()
    places = np.arange(len(rungs))
    width = 0.27
    parts = (
        ("stability", BLUE, [rung.stability if rung.penalty else np.nan for rung in rungs]),
        ("penalty", ORANGE, [rung.penalty or np.nan for rung in rungs]),
        ("total", "black", [rung.total for rung in rungs]),
    )
    for offset, (label, colour, heights) in zip((-width, 0.0, width), parts, strict=True):
        axes.bar(places + offset, heights, width, color=colour, label=label)
    for place, rung in zip(places, rungs, strict=True):
        axes.annotate(
            f"{rung.total:,.0f}", (place + width, rung.total), ha="center", va="bottom", fontsize=8
        )
    axes.set_yscale("log")
    axes.set_xticks(places, [rung.name for rung in rungs])
    axes.set(title=title, ylabel="regret, or a bound on it")
    axes.legend(frameon=False, loc="upper left")
    return save(figure, path)
