"""Figures: regret curves with bands, in one colour-blind-safe style."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .arrays import Floats, Ints

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette, which keeps its contrasts under the common kinds of colour blindness.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES = ("-", "--", "-.", ":")


class Curve(NamedTuple):
    """A labelled mean with the half-width of its band."""

    label: str
    mean: Floats
    band: Floats


def plot_regret(
    rounds: Ints,
    curves: Sequence[Curve],
    title: str,
    path: str | os.PathLike[str] | None = None,
    *,
    log: bool = False,
) -> "Figure":
    """Regret by round, each curve with a band of one standard deviation."""
    from matplotlib.figure import Figure  # slow to import, and most of the package never draws

    figure = Figure(figsize=(7.0, 4.2))
    # Margins by hand: to have them computed, everything is drawn twice.
    axes: Any = figure.add_axes((0.11, 0.12, 0.86, 0.8))
    # Regret by mean loss can be negative where the losses change and the policy follows them.
    floor = min(0.0, *(float(curve.mean.min()) for curve in curves))
    for number, (label, mean, band) in enumerate(curves):
        colour = COLOURS[number % len(COLOURS)]
        axes.plot(rounds, mean, DASHES[number % len(DASHES)], color=colour, label=label)
        low = np.maximum(mean - band, floor)
        axes.fill_between(rounds, low, mean + band, color=colour, alpha=0.15, linewidth=0)
    axes.set(title=title, xlabel="round", ylabel="regret (mean, band of one standard deviation)")
    if log and len(rounds) > 1:
        axes.set_xscale("log")
        axes.set_xlim(rounds[0], rounds[-1])
    else:
        axes.set_xlim(0, rounds[-1])
    axes.set_ylim(bottom=1.05 * floor)
    if floor < 0.0:
        axes.axhline(0.0, color="black", linewidth=0.8)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    if path is not None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
    return figure
