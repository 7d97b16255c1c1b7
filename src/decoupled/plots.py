"""Figures: regret curves with bands, in one colour-blind-safe style."""

from pathlib import Path
from typing import Any

import numpy as np

from .arrays import Floats, Ints

# Okabe and Ito's palette, which keeps its contrasts under the common kinds of colour blindness.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES = ("-", "--", "-.", ":")


def plot_regret(rounds: Ints, curves: dict[str, Floats], title: str, path: Path) -> None:
    """Mean regret with a band of one standard deviation; a curve is runs x rounds."""
    from matplotlib.figure import Figure  # slow to import, and most of the package never draws

    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    axes: Any = figure.add_subplot()
    for number, (label, regret) in enumerate(curves.items()):
        colour = COLOURS[number % len(COLOURS)]
        mean, deviation = regret.mean(axis=0), regret.std(axis=0, ddof=1)
        axes.plot(rounds, mean, DASHES[number % len(DASHES)], color=colour, label=label)
        low = np.maximum(mean - deviation, 0.0)
        axes.fill_between(rounds, low, mean + deviation, color=colour, alpha=0.15, linewidth=0)
    axes.set(title=title, xlabel="round", ylabel="regret (mean, band of one standard deviation)")
    axes.set_xlim(0, rounds[-1])
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
