"""The constants: how they depend on c, and how they compare with simulated regret."""

import numpy as np

from decoupled.environments import Alternating
from decoupled.policies import FTPL
from decoupled.simulation import simulate

from ..bounds import (
    corollary,
    gap_constant,
    leading_constant,
    lower_bound_order,
    optimal_c,
    rouyer_seldin,
    theorem1,
    theorem_a,
    theorem_e2,
)
from .style import BLUE, GREEN, ORANGE, PURPLE, RED, SKY, Figure, Target, canvas, explain, save


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
    first = [leading_constant(c) for c in scales]
    corrected = [leading_constant(c, corrected=True) for c in scales]
    second = [gap_constant(3.0, c) for c in scales]
    axes.loglog(scales, first, color=BLUE, label="leading constant, zeta = 0.1")
    axes.loglog(scales, corrected, ":", color=SKY, label="the same, corrected")
    axes.loglog(scales, second, "--", color=GREEN, label="constant of K / gap_min")
    best = optimal_c()
    axes.plot(best.c, best.leading_constant, "o", color=RED)
    axes.annotate(
        f"c = {best.c:.3f}: {best.leading_constant:,.0f}",
        best,
        (8, -12),
        textcoords="offset points",
        color=RED,
    )
    axes.axvline(2.0, color="grey", linewidth=0.8, label="c = 2, as in the experiments")
    axes.set(xlabel="c", ylabel="constant", ylim=(1.5e4, None))
    explain(axes, "The constants of the corollary by c", columns=2)
    return save(figure, path)


def plot_bounds(
    path: Target = None, *, arms: int = 8, gap: float = 0.125, horizon: int = 10_000, runs: int = 1_000
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
        FTPL(), Alternating(arms, gap), horizon, runs, seed=0, checkpoints=[int(t) for t in rounds]
    )
    curve = results.data.regret_mean.sel(policy=FTPL().label).to_numpy()
    axes.axhline(
        corollary([gap] * (arms - 1), optimal_c().c),
        color=PURPLE,
        ls=":",
        label="the corollary at its best c",
    )
    axes.loglog(rounds, [theorem1(int(t), arms) for t in rounds], color=BLUE, label="theorem 3.1, c = 2")
    axes.loglog(
        rounds, [theorem_a(int(t), arms) for t in rounds], color=RED, label="theorem A, c = 2 (ours)"
    )
    ladder = [theorem_e2(int(t), arms) for t in rounds]
    axes.loglog(rounds, ladder, "--", color=SKY, label="theorem E2, the ladder (ours)")
    axes.loglog(rounds, rounds, color="grey", linewidth=0.8, label="t, which is always true")
    axes.loglog(
        rounds,
        [rouyer_seldin(int(t), arms) for t in rounds],
        "--",
        color=GREEN,
        label="Tsallis-INF, our constants",
    )
    axes.loglog(
        rounds, [lower_bound_order(int(t), arms) for t in rounds], "-.", color=ORANGE, label="sqrt(K t)"
    )
    axes.loglog(rounds, np.maximum(curve, 1e-3), color="black", label=f"FTPL, mean of {runs} runs")
    axes.set(xlabel="round", ylabel="regret", ylim=(0.003, None))
    explain(axes, f"Alternating, K = {arms}, gap {gap:g}: bounds and regret", columns=2)
    return save(figure, path)
