"""The short comparison behind `make run`: every policy on the paper's K = 8 alternating environment."""

from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from scipy.stats import t as student

from .environments import Alternating
from .plots import plot_regret
from .policies import FTPL, Exp3, FollowTheLeader, TsallisINF
from .simulation.comparison import Comparison, compare

POLICIES = (FTPL(), TsallisINF(), Exp3(), FollowTheLeader())
ENVIRONMENT = Alternating(arms=8, gap=0.125)


def run_demo(runs: int, horizon: int, seed: int, out: Path) -> None:
    """Run the comparison, print its table and write its figure."""
    console = Console()
    console.print(f"{len(POLICIES)} policies on {ENVIRONMENT}, {runs} runs of {horizon:,} rounds each.")
    console.print("The first run on a machine compiles for about half a minute.")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("runs", total=runs * len(POLICIES))
        checkpoints = np.unique(np.linspace(1, horizon, 200).astype(np.int64))
        result = compare(
            POLICIES, ENVIRONMENT, horizon, runs, seed, checkpoints, lambda: progress.advance(task)
        )
    console.print(summary_table(result))
    path = out / "demo.png"
    curves = {policy.label: regret for policy, regret in zip(result.policies, result.regret, strict=True)}
    plot_regret(result.checkpoints, curves, "Alternating environment, K = 8, gap 0.125", path)
    console.print(f"Figure: {path}")


def summary_table(result: Comparison) -> Table:
    """Mean final regret with a 95 % interval, and the 99th percentile, of each policy."""
    runs = result.regret.shape[1]
    table = Table(title=f"Regret after {result.checkpoints[-1]:,} rounds, {runs} runs")
    table.add_column("policy")
    for name in ("mean", "95 % interval of the mean", "median", "99th percentile"):
        table.add_column(name, justify="right")
    for policy, regret in zip(result.policies, result.regret[:, :, -1], strict=True):
        mean = regret.mean()
        half = student.ppf(0.975, runs - 1) * regret.std(ddof=1) / np.sqrt(runs)
        table.add_row(
            policy.label,
            f"{mean:.1f}",
            f"{mean - half:.1f} to {mean + half:.1f}",
            f"{np.median(regret):.1f}",
            f"{np.quantile(regret, 0.99):.1f}",
        )
    return table
