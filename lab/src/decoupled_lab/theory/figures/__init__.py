"""Figures of the argument; every function takes a path to save to, or None."""

import os
from pathlib import Path

from decoupled.environments import Alternating

from ..inequality import OURS
from ..report import Report
from ..steps import steps
from ..survey import survey
from .constants import plot_bounds, plot_tuning
from .slips import plot_event, plot_exponent, plot_slope, plot_stability_step, plot_tail
from .tightness import plot_steps, plot_tightness

__all__ = [
    "draw_all",
    "plot_bounds",
    "plot_event",
    "plot_exponent",
    "plot_slope",
    "plot_stability_step",
    "plot_steps",
    "plot_tail",
    "plot_tightness",
    "plot_tuning",
]


def draw_all(folder: str | os.PathLike[str]) -> None:
    """Draw every figure of the pages about theory: about five minutes, most of it for the survey.

    Args:
        folder: the folder to write the figures to.

    >>> from decoupled_lab import theory
    >>> theory.figures.draw_all("docs/figures")  # doctest: +SKIP
    """
    place = Path(folder)
    for plot in (plot_event, plot_tail, plot_exponent, plot_slope, plot_tuning, plot_bounds):
        plot(place / f"theory-{plot.__name__.removeprefix('plot_')}.png")
    plot_stability_step(place / "theory-stability.png")
    found = steps(Alternating(8, 0.125), horizon=10_000, seed=0)
    title = "Alternating, K = 8, gap 0.125, T = 10,000: from the regret to theorem 3.1"
    plot_steps(found, title, place / "theory-ladder.png")
    report = survey()
    papers = [line for line in report.lines if line.inequality.status != OURS]
    ours = [
        line
        for line in report.lines
        if line.inequality.source.startswith("ladder") and "T2" not in line.inequality.source
    ]
    plot_tightness(Report(tuple(papers)), place / "theory-tightness.png")
    plot_tightness(Report(tuple(ours)), place / "ladder-tightness.png")
