"""How tight each step is, and how the steps add up to the theorem."""

import math
import re
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..inequality import AS_PRINTED, CLAIMED, CORRECTED, NOT_CLAIMED, OURS, Inequality
from ..report import Report
from ..steps import Step
from .style import BLUE, GREEN, ORANGE, PURPLE, RED, SMALL, Figure, Target, canvas, explain, save

_LOOKS = {
    CLAIMED: (BLUE, "o"),
    CORRECTED: (GREEN, "D"),
    AS_PRINTED: (RED, "X"),
    NOT_CLAIMED: (PURPLE, "P"),
    OURS: (ORANGE, "s"),
}
_EDGE = 20.0  # larger ratios are drawn here, with their value next to them
_OVER_THE_LINE = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}  # which would cross the text out
_COLUMNS = 70  # characters of a line of text across the figure
_BRACKETED = re.compile(r"\^(?:(-\([^()]*\))|\(((?:[^()]|\([^()]*\))*)\))")  # brackets may contain brackets
_EXPONENT = re.compile(r"\^(-?[\w.]*\w)")
_INDEX = re.compile(r"(?<=\w)_(\w+)")
_SIGNS = {
    "<=": "≤", ">=": "≥", "^2": "²", "Gamma": "Γ", "Delta": "Δ", "alpha": "α", "zeta": "ζ", "eta": "η",  # noqa: RUF001
    "rho": "ρ", "lam": "λ", "phi": "φ", "sqrt": "√", "sum": "Σ", "delta": "δ", "kappa": "κ", "pi": "π",  # noqa: RUF001
}  # fmt: skip


def plot_tightness(report: Report, path: Target = None) -> Figure:
    """The tightest ratio of every inequality in a report; right of the line, the inequality failed.

    Each inequality is written above its ratio, so that the figure is as narrow as a phone and as tall as it must be.

    Args:
        report: what `decoupled_lab.theory.check` or `inspect` returned.
        path: the file to save the figure to; None saves nothing.

    >>> from decoupled_lab import theory
    >>> report = theory.inspect([0.0, 1.0, 2.0], eta=1.0)
    >>> theory.figures.plot_tightness(report).axes[0].get_xlabel()
    'tightest ratio of left side to right side'
    """
    lines = [line for line in report.lines if line.ratio > 0.0 and "1e-12" not in line.inequality.name]
    texts = [_written(line.inequality) for line in lines]
    bottoms = np.cumsum(
        [text.count("\n") + 2.5 for text in texts]
    )  # in lines of text; ratios are on the last of each
    figure, axes = canvas(1.4 + 0.165 * float(bottoms[-1]))
    for status, (colour, marker) in _LOOKS.items():
        chosen = [number for number, line in enumerate(lines) if line.inequality.status == status]
        ratios = [min(lines[number].ratio, _EDGE) for number in chosen]
        if chosen:
            axes.plot(ratios, bottoms[chosen], marker, color=colour, label=status)
    for bottom, line, text in zip(bottoms, lines, texts, strict=True):
        at_left: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "va": "bottom", "fontsize": SMALL}
        axes.annotate(text, (0.0, bottom - 0.5), bbox=_OVER_THE_LINE, **at_left)
        if line.ratio > _EDGE:
            place: dict[str, Any] = {
                "xytext": (7, 0),
                "textcoords": "offset points",
                "va": "center",
                "fontsize": SMALL,
            }
            axes.annotate(_power(line.ratio), (_EDGE, bottom), **place)
    axes.axvline(1.0, color="black", linewidth=0.8, zorder=0)
    axes.set_xscale("log")
    axes.set_yticks(bottoms, [""] * len(lines))
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labeltop=True)
    axes.spines["left"].set_visible(False)
    axes.set(xlabel="tightest ratio of left side to right side", xlim=(0.01, 8.0 * _EDGE))
    axes.set_ylim(float(bottoms[-1]) + 1.0, -0.5)
    explain(axes, "", columns=4, above=True)
    return save(figure, path)


def _written(inequality: Inequality) -> str:
    """The inequality with its place, in signs and in lines that fit."""
    pattern = "|".join(
        rf"(?<![A-Za-z]){sign}(?![A-Za-z])" if sign.isalpha() else re.escape(sign) for sign in _SIGNS
    )
    text = re.sub(pattern, lambda found: _SIGNS[found[0]], inequality.name)
    lines = textwrap.wrap(f"{text}  [{inequality.source}]", _COLUMNS)
    return "\n".join(_raised(line) for line in lines)


def _raised(line: str) -> str:
    r"""A line in which exponents are raised and indices lowered.

    >>> print(_raised("q ≤ (2 w)^(1/2 + 1/(2 a)) and w_best ≥ x^-a"))
    q ≤ (2 w)$^{1/2 + 1/(2 a)}$ and w$_\mathrm{best}$ ≥ x$^{-a}$
    """
    line = _BRACKETED.sub(r"$^{\1\2}$", line)
    line = _EXPONENT.sub(r"$^{\1}$", line)
    return _INDEX.sub(r"$_\\mathrm{\1}$", line)


def _power(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio < 1e4 else f"$10^{{{round(math.log10(ratio))}}}$"


def plot_steps(found: Sequence[Step], title: str = "", path: Target = None) -> Figure:
    """The steps from the regret to theorem 3.1, each with its stability and its penalty.

    Args:
        found: what `decoupled_lab.theory.steps` returned.
        title: the title of the figure.
        path: the file to save the figure to; None saves nothing.

    >>> from decoupled_lab import theory
    >>> found = [theory.Step("regret", 2.0, 0.0), theory.Step("theorem 3.1", 300.0, 40.0)]
    >>> theory.figures.plot_steps(found).axes[0].get_ylabel()
    'regret, or a bound on it'
    """
    figure, axes = canvas()
    places = np.arange(len(found))
    width = 0.27
    parts = (
        ("stability", BLUE, [step.stability if step.penalty else np.nan for step in found]),
        ("penalty", ORANGE, [step.penalty or np.nan for step in found]),
        ("total", "black", [step.total for step in found]),
    )
    for offset, (label, colour, heights) in zip((-width, 0.0, width), parts, strict=True):
        axes.bar(places + offset, heights, width, color=colour, label=label)
    for place, step in zip(places, found, strict=True):
        axes.annotate(
            f"{step.total:,.0f}", (place + width, step.total), ha="center", va="bottom", fontsize=SMALL
        )
    axes.set_yscale("log")
    axes.set_xticks(places, [textwrap.fill(step.name, 11) for step in found])
    axes.set(ylabel="regret, or a bound on it")
    explain(axes, title, columns=3)
    return save(figure, path)
