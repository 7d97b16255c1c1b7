"""Figures of the argument; every function takes a path to save to, or None."""

# ruff: noqa: RUF001 - Greek letters and signs are meant as such

import math
import os
import re
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from decoupled.environments import Alternating
from decoupled.plots import COLOURS, DOTS_PER_INCH, WIDTH
from decoupled.plots import SMALL as SMALL
from decoupled.policies import FTPL
from decoupled.simulation import simulate

from . import bounds
from .checking import Report
from .inequality import AS_PRINTED, CLAIMED, CORRECTED, NOT_CLAIMED, OURS, Inequality
from .lemmas.paper import LEAST_BEST, edge_of_event, resampling_tail
from .moment import Moment
from .probabilities import slopes, weights
from .steps import Step, steps
from .survey import survey

if TYPE_CHECKING:
    import matplotlib.figure

Figure: TypeAlias = "matplotlib.figure.Figure"
"""A figure of Matplotlib."""
Target: TypeAlias = str | os.PathLike[str] | None
"""The file to save a figure to; None saves nothing."""
BLUE, RED, GREEN, PURPLE, ORANGE, SKY = COLOURS[:6]


def canvas(height: float = 3.6, panels: int = 1) -> tuple[Figure, Any]:
    """A figure and its axes (a list of axes for several panels, stacked), without the top and right spines."""
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
        "loc": f"outside {'upper' if above else 'lower'} left",
        "fontsize": SMALL,
    }
    axes.figure.legend(*axes.get_legend_handles_labels(), frameon=False, ncols=columns, **place)


def save(figure: Figure, path: Target) -> Figure:
    """Save the figure, if a path is given."""
    if path is not None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        metadata = {"Software": None} if str(path).endswith(".png") else None
        figure.savefig(path, dpi=DOTS_PER_INCH, metadata=metadata)
    return figure


def plot_tuning(path: Target = None) -> Figure:
    """The two constants of the corollary by c, with the c that minimises the first.

    Args:
        path: the file to save the figure to; None saves nothing.

    >>> from decoupled_lab import theory
    >>> theory.figures.plot_tuning().axes[0].get_xlabel()
    'c'
    """
    figure, axes = canvas()
    scales = np.geomspace(0.02, 4.0, 120)
    first = [bounds.leading_constant(c) for c in scales]
    corrected = [bounds.leading_constant(c, corrected=True) for c in scales]
    second = [bounds.gap_constant(3.0, c) for c in scales]
    axes.loglog(scales, first, color=BLUE, label="leading constant, ζ = 0.1")
    axes.loglog(scales, corrected, ":", color=SKY, label="the same, corrected")
    axes.loglog(scales, second, "--", color=GREEN, label=r"constant of $K / \Delta_{\min}$")
    best = bounds.optimal_c()
    axes.plot(best.c, best.leading_constant, "o", color=RED)
    words = f"c = {best.c:.3f}: {best.leading_constant:,.0f}"
    axes.annotate(words, best, (8, -12), textcoords="offset points", color=RED)
    axes.axvline(2.0, color="grey", linewidth=0.8, label="c = 2, as in the experiments")
    axes.set(xlabel="c", ylabel="constant", ylim=(1.5e4, None))
    explain(
        axes, "The leading constant is least at c = 0.128; the experiments have c = 2", columns=2
    )
    return save(figure, path)


def plot_bounds(
    path: Target = None,
    *,
    arms: int = 8,
    gap: float = 0.125,
    horizon: int = 10_000,
    runs: int = 1_000,
) -> Figure:
    """The simulated regret of FTPL and its bounds, by round.

    Args:
        path: the file to save the figure to; None saves nothing.
        arms: the number of arms.
        gap: the gap of the environment `Alternating`, in (0, 1).
        horizon: the rounds of a run.
        runs: the runs to average over.

    >>> from decoupled_lab import theory
    >>> theory.figures.plot_bounds(horizon=50, runs=2).axes[0].get_yscale()
    'log'
    """
    figure, axes = canvas(4.2)
    rounds = np.unique(np.geomspace(1.0, horizon, 60).round()).astype(int)
    results = simulate(
        FTPL(), Alternating(arms, gap), horizon, runs, seed=0, checkpoints=rounds.tolist()
    )
    curve = results.data.regret_mean.sel(policy=FTPL().label).to_numpy()
    lowest = bounds.corollary([gap] * (arms - 1), bounds.optimal_c().c)
    axes.axhline(lowest, color=PURPLE, ls=":", label="the corollary at its best c")
    lines: tuple[tuple[Callable[[int, int], float], str, str, str], ...] = (
        (bounds.theorem1, "-", BLUE, "theorem 3.1, c = 2"),
        (bounds.theorem_a, "-", GREEN, "theorem A, c = 2 (ours)"),
        (bounds.theorem_e2, "--", SKY, "theorem E2, the ladder (ours)"),
        (lambda t, arms: t, "-", "grey", "t, which is always true"),
        (bounds.rouyer_seldin, "--", RED, "Tsallis-INF, our constants"),
        (bounds.lower_bound_order, "-.", ORANGE, "√(Kt)"),
    )
    for bound, dash, colour, label in lines:
        width = 0.8 if colour == "grey" else None
        axes.loglog(
            rounds, [bound(int(t), arms) for t in rounds], dash, color=colour, label=label, lw=width
        )
    axes.loglog(
        rounds, np.maximum(curve, 1e-3), color="black", label=f"FTPL, mean of {runs:,} runs"
    )
    axes.set(xlabel="round", ylabel="regret", ylim=(0.003, None))
    title = f"The bounds lie far above the regret (alternating losses, K = {arms}, gap {gap:g})"
    explain(axes, title, columns=2)
    return save(figure, path)


def plot_event(path: Target = None) -> Figure:
    """Why D_t needs a strict inequality: two arms, the rival ahead.

    Args:
        path: the file to save the figure to; None saves nothing.

    >>> from decoupled_lab import theory
    >>> theory.figures.plot_event().axes[0].get_ylabel()
    'probability of exploiting the best arm'
    """
    figure, axes = canvas(4.2)
    lead = np.geomspace(0.01, 100.0, 80)
    for colour, dash, alpha in ((BLUE, "-", 3.0), (GREEN, "--", 2.0), (PURPLE, "-.", 1.2)):
        exact = [weights([x, 0.0], 1.0, alpha)[0] for x in lead]
        axes.loglog(lead, exact, dash, color=colour, label=f"w of the best arm, α = {alpha:g}")
    axes.axhline(LEAST_BEST, color=RED, label="1 / (2e): the lemma's bound on $D_t$ as printed")
    axes.set(xlabel="η times the rival's lead", ylabel="probability of exploiting the best arm")
    explain(
        axes,
        "With two arms and the rival ahead, $D_t$ holds as printed, but the lemma's bound on w fails",
    )
    return save(figure, path)


def plot_stability_step(path: Target = None, *, rank: int = 5, alpha: float = 3.0) -> Figure:
    """The two bounds on I that the stability lemma combines, as printed and corrected.

    Args:
        path: the file to save the figure to; None saves nothing.
        rank: the rank of the arm that is drawn.
        alpha: the shape of the perturbations, above 1.

    >>> from decoupled_lab import theory
    >>> len(theory.figures.plot_stability_step().axes[0].get_lines())
    6
    """
    figure, axes = canvas(4.4)
    shifts = np.geomspace(0.02, 30.0, 120)
    integral = []
    for shift in shifts:
        # A leader far ahead would not change the bound; arms tied with this one make it largest.
        estimates = np.concatenate(([0.0], np.full(rank - 1, shift)))
        integral.append(Moment(estimates, 1.0, alpha).moments.inverses[-1] / alpha)
    level = 1.0 + shifts
    rank_bound = np.full_like(shifts, math.e / (alpha * rank ** (1.0 + 1.0 / alpha)))
    q = np.minimum(1.0 / level, rank ** (-1.0 / alpha)) ** (0.5 * (alpha + 1.0))
    printed = math.e / ((alpha + 1.0) * level * rank)
    corrected = math.e / ((alpha + 1.0) * level ** (alpha + 1.0))
    for bound, dash, colour, label in (
        (math.e / alpha * q**2, "-", "black", "what the lemma needs: $e q^2 / \\alpha$"),
        (rank_bound, "--", GREEN, r"(13): $e / (\alpha\, i^{1 + 1/\alpha})$"),
        (printed, "-.", RED, r"(14) as printed: $e / ((\alpha + 1)(1 + \eta u)\, i)$"),
        (corrected, ":", BLUE, r"(14) corrected: $e / ((\alpha + 1)(1 + \eta u)^{\alpha + 1})$"),
        (integral, "-", ORANGE, "I itself"),
    ):
        axes.loglog(shifts, bound, dash, color=colour, label=label)
    axes.axvline(rank ** (1.0 / alpha) - 1.0, color="grey", linewidth=0.8)
    axes.set(xlabel="ηu", ylabel="I and its bounds", ylim=(1e-7, 3.0))
    title = f"Right of the line, the printed (14) is above what the lemma needs (rank {rank}, α = {alpha:g})"
    explain(axes, title)
    return save(figure, path)


def plot_tail(path: Target = None) -> Figure:
    """The tail bound taken from geometric resampling, and the cost of its correction.

    Args:
        path: the file to save the figure to; None saves nothing.

    >>> from decoupled_lab import theory
    >>> len(theory.figures.plot_tail().axes)
    2
    """
    figure, (bound, cost) = canvas(3.0, panels=2)
    arms = np.unique(np.geomspace(4, 10_000, 60).round()).astype(int)
    for colour, dash, alpha in ((GREEN, "--", 2.0), (BLUE, "-", 3.0), (PURPLE, "-.", 5.0)):
        tails = [resampling_tail(edge_of_event(int(count), alpha).surrogate_sum) for count in arms]
        bound.loglog(arms, tails, dash, color=colour, label=f"borrowed bound, α = {alpha:g}")
    bound.axhline(1.0, color=RED, label="what it must exceed: a loss of 1")
    bound.set(xlabel="arms", ylabel="the bound at its worst")
    arms = arms[::10]
    borrowed, corrected = (
        [each(int(count)) for count in arms] for each in (borrowed_sum, bounds.early_rounds)
    )
    cost.loglog(arms, borrowed, "--", color=RED, label="as printed: the sum in (37)")
    cost.loglog(arms, corrected, color=BLUE, label="corrected: the number of early rounds")
    whole = bounds.gap_constant() * arms / 0.125
    cost.loglog(
        arms, whole, "-.", color="grey", label=r"the term in $K / \Delta_{\min}$, gap 0.125"
    )
    cost.set(xlabel="arms", ylabel="added to the regret")
    titles = (
        "With many arms, the borrowed bound is below 1",
        "The correction adds little (α = 3, c = 2, ζ = 0.1)",
    )
    for axes, title in zip((bound, cost), titles, strict=True):
        axes.set_title(title, fontsize=10, loc="left")
        axes.legend(frameon=False, fontsize=SMALL)
    return save(figure, path)


def borrowed_sum(arms: int, alpha: float = 3.0, c: float = 2.0, zeta: float = 0.1) -> float:
    """The sum of the borrowed bound over all rounds, equation (37), whose constant the paper hides.

    >>> from decoupled_lab.theory.figures import borrowed_sum
    >>> round(borrowed_sum(8) / (2.0**2 * 8 ** (2 / 3 - 1)), -2)  # times c^2 K^(2/alpha - 1), at zeta = 0.1
    10600.0
    """
    rate = c * arms ** (1.0 / alpha - 0.5)
    # Beyond level 80 a summand is below 1e-13, and the level grows with the square root of the round.
    rounds = np.arange(1.0, (80.0 * rate / zeta) ** 2 + 2.0)
    level = zeta / rate * np.sqrt(rounds)
    return float(((1.0 - math.exp(-1.0)) ** (level - 1.0) * (level + math.e)).sum())


def plot_exponent(path: Target = None) -> Figure:
    """The step of (21) that lowers an exponent on a base above 1.

    Args:
        path: the file to save the figure to; None saves nothing.

    >>> from decoupled_lab import theory
    >>> theory.figures.plot_exponent().axes[0].get_xlabel()
    'w'
    """
    figure, axes = canvas()
    law = np.geomspace(1e-4, 0.5, 200)
    base = 2.0 * math.e**2 * law
    styles = (PURPLE, "-.", 1.2), (GREEN, "--", 2.0), (ORANGE, ":", 2.5), (BLUE, "-", 3.0)
    for colour, dash, alpha in styles:
        ratio = base ** (0.5 + 0.5 / alpha - 1.0 + 1.0 / alpha)
        axes.loglog(law, ratio, dash, color=colour, label=f"α = {alpha:g}")
    axes.axhline(1.0, color=RED, linewidth=0.8)
    axes.axvline(0.5 / math.e**2, color="grey", linewidth=0.8)
    axes.set(xlabel="w", ylabel="left side over right side")
    explain(axes, "The middle step of (21) fails above the red line: where w > 1/(2e²) and α < 3")
    return save(figure, path)


def plot_slope(path: Target = None) -> Figure:
    """The derivative of phi that the stability lemma integrates, and the true derivative for a sole leader.

    Args:
        path: the file to save the figure to; None saves nothing.

    >>> from decoupled_lab import theory
    >>> len(theory.figures.plot_slope().axes[0].get_lines())
    3
    """
    figure, axes = canvas()
    place = np.linspace(-3.0, 3.0, 241)
    true = [-slopes([x, 0.0], 1.0)[0] for x in place]
    printed = [4.0 * Moment(np.array([x, 0.0]), 1.0, 3.0).moments.inverses[0] for x in place]
    axes.plot(place, printed, "--", color=RED, label="α(α + 1) I, as printed")
    axes.plot(place, true, color=BLUE, label="−φ′, the derivative")
    axes.axvline(0.0, color="grey", linewidth=0.8)
    axes.set(
        xlabel="η times (its estimate less the rival's)", ylabel="how fast its probability falls"
    )
    explain(
        axes,
        "Left of the line, where the arm leads alone, the printed derivative is wrong (K = 2, α = 3)",
    )
    return save(figure, path)


_LOOKS = {
    CLAIMED: (BLUE, "o"),
    CORRECTED: (GREEN, "D"),
    AS_PRINTED: (RED, "X"),
    NOT_CLAIMED: (PURPLE, "P"),
    OURS: (ORANGE, "s"),
}
_EDGE = 20.0  # larger ratios are drawn here, with their value next to them
_OVER_THE_LINE = {
    "facecolor": "white",
    "edgecolor": "none",
    "pad": 0.6,
}  # which would cross the text out
_COLUMNS = 70  # characters of a line of text across the figure
_BRACKETED = re.compile(
    r"\^(?:(-\([^()]*\))|\(((?:[^()]|\([^()]*\))*)\))"
)  # brackets may contain brackets
_EXPONENT = re.compile(r"\^(-?[\w.]*\w)")
_INDEX = re.compile(r"(?<=\w)_(\w+)")
_SIGNS = {
    " - ": " − ", "-phi": "−φ", "gamma": "γ", "tau": "τ", "<=": "≤", ">=": "≥", "^2": "²", "Gamma": "Γ", "Delta": "Δ", "alpha": "α", "zeta": "ζ", "eta": "η",
    "rho": "ρ", "lam": "λ", "phi": "φ", "sqrt": "√", "sum": "Σ", "delta": "δ", "kappa": "κ", "pi": "π",
}  # fmt: skip


def plot_tightness(report: Report, path: Target = None) -> Figure:
    """The tightest ratio of every inequality in a report; right of the line, the inequality failed.

    Each inequality is written above its ratio, so that the figure is narrow enough for a phone. `draw_all` splits a long
    report into figures that fit on a screen.

    Args:
        report: what `decoupled_lab.theory.check` or `inspect` returned.
        path: the file to save the figure to; None saves nothing.

    >>> from decoupled_lab import theory
    >>> report = theory.inspect([0.0, 1.0, 2.0], eta=1.0)
    >>> theory.figures.plot_tightness(report).axes[0].get_xlabel()
    'tightest ratio of left side to right side'
    """
    lines = [
        line for line in report.lines if line.ratio > 0.0 and "1e-12" not in line.inequality.name
    ]
    texts = [_written(line.inequality) for line in lines]
    # In lines of text; ratios are on the last of each.
    bottoms = np.cumsum([text.count("\n") + 2.2 for text in texts])
    figure, axes = canvas(1.4 + 0.165 * float(bottoms[-1]))
    for status, (colour, marker) in _LOOKS.items():
        chosen = [number for number, line in enumerate(lines) if line.inequality.status == status]
        ratios = [min(lines[number].ratio, _EDGE) for number in chosen]
        if chosen:
            axes.plot(ratios, bottoms[chosen], marker, color=colour, label=status)
    for bottom, line, text in zip(bottoms, lines, texts, strict=True):
        at_left: dict[str, Any] = {
            "xycoords": ("axes fraction", "data"),
            "va": "bottom",
            "fontsize": SMALL,
        }
        axes.annotate(text, (0.0, bottom - 0.5), bbox=_OVER_THE_LINE, **at_left)
        if line.ratio > _EDGE:
            place: dict[str, Any] = {
                "xytext": (7, 0),
                "textcoords": "offset points",
                "va": "center",
            }
            axes.annotate(_power(line.ratio), (_EDGE, bottom), fontsize=SMALL, **place)
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
    whole = r"(?<![A-Za-z]){}(?![A-Za-z])".format
    pattern = "|".join(whole(sign) if sign.isalpha() else re.escape(sign) for sign in _SIGNS)
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
    alone = np.array([not step.penalty for step in found])  # a bar by itself stands over its name
    for offset, (label, colour, heights) in zip((-width, 0.0, width), parts, strict=True):
        axes.bar(places + np.where(alone, 0.0, offset), heights, width, color=colour, label=label)
    for place, step in zip(places, found, strict=True):
        at = (place + width * (step.penalty > 0.0), step.total)
        axes.annotate(f"{step.total:,.0f}", at, ha="center", va="bottom", fontsize=SMALL)
    axes.set_yscale("log")
    axes.set_xticks(places, [textwrap.fill(step.name, 11) for step in found])
    axes.tick_params(axis="x", length=0)
    axes.set(
        ylabel="regret, or a bound on it", ylim=(None, 3.0 * max(step.total for step in found))
    )
    explain(axes, title, columns=3)
    return save(figure, path)


__all__ = [
    "draw_all", "plot_bounds", "plot_event", "plot_exponent", "plot_slope", "plot_stability_step",
    "plot_steps", "plot_tail", "plot_tightness", "plot_tuning",
]  # fmt: skip


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
    title = (
        "Each step raises the bound on the regret of one run (alternating losses, K = 8, gap 0.125)"
    )
    plot_steps(found, title, place / "theory-ladder.png")
    report = survey()
    papers = [line for line in report.lines if line.inequality.status != OURS]
    sources = [(line, line.inequality.source) for line in report.lines]
    ours = [line for line, source in sources if source.startswith("ladder") and "T2" not in source]
    for name, lines, figures in (("theory", papers, 3), ("ladder", ours, 4)):
        for part, numbers in enumerate(np.array_split(np.arange(len(lines)), figures), start=1):
            some = Report(tuple(lines[number] for number in numbers))
            plot_tightness(some, place / f"{name}-tightness-{part}.png")
