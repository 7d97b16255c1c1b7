"""The entries of the leaderboard as a map: policies by rank, groups of worlds, and a colour for the ratio of regrets."""

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from decoupled.plots import COLOURS, SMALL, WIDTH
from decoupled_lab.benchmark import picture

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
import leaderboard
from leaderboard_entries import Entry, take

BLUE, RED, *_ = COLOURS
LETTERS = 17  # of a label
MOST = 5.0  # times as much, or as little, has the full colour
# Inches.
ROW, HEAD, FOOT, LEFT, RIGHT = 0.36, 1.12, 0.62, 1.28, 0.05


def board() -> Any:
    """The entries in `lab/benchmark/entries`."""
    return figure(take().entries)


def example() -> Any:
    """The picture of one entry, that of the example of a file."""
    board = take().entries
    return picture.figure(
        next(entry for entry in board if entry["policy"]["file"] == "epsilon_greedy.py")
    )


def figure(entries: Sequence[Entry]) -> Any:
    """A row for each entry, best first."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    values = np.array([[each.ratio for each in leaderboard.row_of(entry)] for entry in entries])
    rows, columns = values.shape
    height = HEAD + ROW * rows + FOOT
    made = Figure(figsize=(WIDTH, height))
    made.set_layout_engine("none")
    axes: Any = made.add_axes(
        (LEFT / WIDTH, FOOT / height, 1.0 - (LEFT + RIGHT) / WIDTH, ROW * rows / height)
    )
    colours = LinearSegmentedColormap.from_list("ratio", [BLUE, "white", RED])
    bound = math.log(MOST)
    painted = axes.imshow(np.log(values), cmap=colours, vmin=-bound, vmax=bound, aspect="auto")
    for row, column in np.ndindex(rows, columns):
        value = values[row, column]
        if math.isfinite(value):
            strong = abs(math.log(value)) > 0.6 * bound
            axes.text(
                column,
                row,
                short(value),
                ha="center",
                va="center",
                fontsize=SMALL,
                color="white" if strong else "black",
            )
    axes.set_yticks(range(rows), [in_two_lines(entry["policy"]["name"]) for entry in entries])
    axes.set_xticks(range(columns), ["overall", *leaderboard.GROUPS], rotation=90)
    axes.tick_params(labelsize=SMALL, length=0, labelbottom=False, labeltop=True)
    axes.spines[:].set_visible(False)
    wide = (
        0.5,
        columns - len(leaderboard.NEED_DATA) - 0.5,
    )  # what is ranked by, between the rank and the others
    for edge in np.arange(0.5, columns - 1):
        axes.axvline(edge, color="white", linewidth=4.0 if edge in wide else 0.8)
    for edge in np.arange(0.5, rows - 1):
        axes.axhline(edge, color="white", linewidth=0.8)
    below: Any = made.add_axes(
        (LEFT / WIDTH, 0.36 / height, 1.0 - (LEFT + RIGHT) / WIDTH, 0.1 / height)
    )
    bar = made.colorbar(painted, cax=below, orientation="horizontal")
    ticks = {0.2: "≤ 1/5, better", 0.5: "1/2", 1.0: "1", 2.0: "2", 5.0: "worse, ≥ 5"}
    bar.set_ticks([math.log(tick) for tick in ticks], labels=list(ticks.values()))
    first, *_, last = bar.ax.get_xticklabels()
    first.set_horizontalalignment("left")
    last.set_horizontalalignment("right")
    bar.ax.tick_params(labelsize=SMALL, length=0)
    return made


def in_two_lines(name: str) -> str:
    """A policy's name in the width of a label, with its parameters as far as they fit.

    >>> in_two_lines('CentredFTPL(exploit_c=4.0, gate=0.25)').splitlines()
    ['CentredFTPL(', 'exploit_c=4.0…)']
    """
    if len(name) <= LETTERS:
        return name
    head, _, parameters = name.partition("(")
    fits = len(parameters) < LETTERS
    return f"{head}(\n{parameters if fits else parameters[: LETTERS - 3] + '…)'}"


def short(value: float) -> str:
    """A ratio in two digits.

    >>> short(0.4812), short(1.0), short(12.3)
    ('.48', '1.0', '12')
    """
    return (
        f"{value:.2f}"[1:] if value < 0.995 else f"{value:.1f}" if value < 9.95 else f"{value:.0f}"
    )
