"""The steps that fail as printed, each with its corrected form."""

import math

import numpy as np

from ..bounds import early_rounds, gap_constant
from ..lemmas.best_arm import edge_of_event, resampling_tail
from ..lemmas.probabilities import LEAST_BEST
from ..moment import Moment
from ..probabilities import slopes, weights
from .style import BLUE, GREEN, ORANGE, PURPLE, RED, SMALL, Figure, Target, canvas, explain, save


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
        axes.loglog(lead, exact, dash, color=colour, label=f"w of the best arm, alpha = {alpha:g}")
    axes.axhline(LEAST_BEST, color=RED, label="1 / (2e): the lemma's bound on D_t as printed")
    axes.set(
        xlabel="eta times the rival's lead",
        ylabel="probability of exploiting the best arm",
    )
    explain(axes, "K = 2, the rival leads: the sum is exactly 1/2, so D_t holds as printed")
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
    axes.loglog(shifts, math.e / alpha * q**2, color="black", label="what the lemma needs: e q^2 / alpha")
    axes.loglog(shifts, rank_bound, "--", color=GREEN, label="(13): e / (alpha i^(1 + 1/alpha))")
    printed = math.e / ((alpha + 1.0) * level * rank)
    axes.loglog(shifts, printed, "-.", color=RED, label="(14) as printed: e / ((alpha + 1)(1 + eta u) i)")
    corrected = math.e / ((alpha + 1.0) * level ** (alpha + 1.0))
    label = "(14) corrected: e / ((alpha + 1)(1 + eta u)^(alpha + 1))"
    axes.loglog(shifts, corrected, ":", color=BLUE, label=label)
    axes.loglog(shifts, integral, color=ORANGE, label="I itself")
    axes.axvline(rank ** (1.0 / alpha) - 1.0, color="grey", linewidth=0.8)
    axes.set(
        xlabel="eta u",
        ylabel="I and its bounds",
        ylim=(1e-9, 10.0),
    )
    explain(axes, f"An arm of rank {rank}, alpha = {alpha:g}: right of the line its gap binds")
    return save(figure, path)


def plot_tail(path: Target = None) -> Figure:
    """The tail bound taken from geometric resampling, and the cost of its correction.

    Args:
        path: the file to save the figure to; None saves nothing.

    >>> from decoupled_lab import theory
    >>> len(theory.figures.plot_tail().axes)
    2
    """
    figure, (bound, cost) = canvas(panels=2)
    arms = np.unique(np.geomspace(4, 10_000, 60).round()).astype(int)
    for colour, dash, alpha in ((GREEN, "--", 2.0), (BLUE, "-", 3.0), (PURPLE, "-.", 5.0)):
        tails = [resampling_tail(edge_of_event(int(count), alpha).surrogate_sum) for count in arms]
        bound.loglog(arms, tails, dash, color=colour, label=f"borrowed bound, alpha = {alpha:g}")
    bound.axhline(1.0, color=RED, label="what it must exceed: a loss of 1")
    bound.set(
        xlabel="arms",
        ylabel="the bound at its worst",
    )
    arms = arms[::10]
    corrected = [early_rounds(int(count)) for count in arms]
    borrowed = [borrowed_sum(int(count)) for count in arms]
    cost.loglog(arms, borrowed, "--", color=RED, label="as printed: the sum in (37)")
    cost.loglog(arms, corrected, color=BLUE, label="corrected: early_rounds")
    whole = gap_constant() * arms / 0.125
    cost.loglog(arms, whole, "-.", color="grey", label="gap_constant K / gap_min, gap 0.125")
    cost.set(xlabel="arms", ylabel="added to the regret")
    titles = ("Case (ii) of lemma D.1 at its worst", "What it adds (alpha = 3, c = 2, zeta = 0.1)")
    for axes, title in zip((bound, cost), titles, strict=True):
        axes.set_title(title, fontsize=10, loc="left")
        axes.legend(frameon=False, fontsize=SMALL)
    return save(figure, path)


def borrowed_sum(arms: int, alpha: float = 3.0, c: float = 2.0, zeta: float = 0.1) -> float:
    """The sum of the borrowed bound over all rounds, equation (37), whose constant the paper hides.

    >>> from decoupled_lab.theory.figures.slips import borrowed_sum
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
    for colour, dash, alpha in (
        (PURPLE, "-.", 1.2),
        (GREEN, "--", 2.0),
        (ORANGE, ":", 2.5),
        (BLUE, "-", 3.0),
    ):
        ratio = base ** (0.5 + 0.5 / alpha - 1.0 + 1.0 / alpha)
        axes.loglog(law, ratio, dash, color=colour, label=f"alpha = {alpha:g}")
    axes.axhline(1.0, color=RED, linewidth=0.8)
    axes.axvline(0.5 / math.e**2, color="grey", linewidth=0.8)
    axes.set(
        xlabel="w",
        ylabel="left side over right side",
    )
    explain(axes, "The middle step of (21) fails where w > 1/(2e^2) and alpha < 3")
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
    axes.plot(place, printed, "--", color=RED, label="alpha (alpha + 1) I, as printed")
    axes.plot(place, true, color=BLUE, label="-phi', the derivative")
    axes.axvline(0.0, color="grey", linewidth=0.8)
    axes.set(
        xlabel="eta times (its estimate less the rival's)",
        ylabel="how fast its probability falls",
    )
    explain(axes, "K = 2, alpha = 3: left of the line the arm leads alone")
    return save(figure, path)
