"""Every system that the paper names, compared: regret, tails, time, draws, and prior knowledge."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import decoupled as dc
from decoupled.environments import Alternating, Bernoulli, Environment
from decoupled.plots import Panel, Picture, Series
from decoupled.policies import Policy
from decoupled.simulation import Plan, Results, draws_per_round, make_plan, run_block

from ..movielens.environment import MovieLens
from ..report.claims import Claim, mean_of, ratio_of
from ..report.page import ReportTable, Section, short
from .base import HORIZON, TIMES_FILE, Scale, Simulated, judge, told
from .movielens import source, stand_in_warnings
from .setup import ADVERSARIES, BENCHMARKS, regret_ratio

# Each policy with a short name, and what its theory requires you to know before the first round.
SYSTEMS: dict[Policy, tuple[str, str]] = {
    dc.FTPL(): ("FTPL", "nothing"),
    dc.TsallisINF(): ("Tsallis-INF", "nothing"),
    dc.Exp3(): ("EXP3", "nothing"),
    dc.AvnerExp3(horizon=HORIZON): ("Avner's Exp3", "the horizon"),
    dc.JinHybrid(): ("Jin-style hybrid", "nothing (the constants are ours)"),
    dc.TopTwo(): ("top two", "that losses are stochastic"),
    dc.FollowTheLeader(): ("follow the leader", "that losses do not react"),
    dc.CoupledFTPL(): ("coupled FTPL, GR", "nothing"),
    dc.CoupledFTPL(resampling="conditional"): ("coupled FTPL, CGR", "nothing"),
    dc.CoupledTsallisINF(): ("coupled Tsallis-INF", "nothing"),
    dc.CoupledTsallisINF(estimator="reduced-variance"): ("coupled Tsallis-INF, RV", "nothing"),
    dc.CoupledExp3(): ("coupled Exp3", "nothing"),
    dc.UCB1(): ("UCB1 (coupled)", "that losses are stochastic"),
    dc.ThompsonSampling(): ("Thompson (coupled)", "that losses are stochastic"),
}
RESAMPLING = (dc.CoupledFTPL(cap=None), dc.CoupledFTPL(resampling="conditional", cap=None))
RESAMPLED_ARMS = (8, 64, 256)
TIMED_ARMS = (8, 64)
MOVIES = 32


class Systems(Simulated):
    """All systems on one page. Not in the quick version, because fourteen policies compile slowly."""

    times = True
    file = TIMES_FILE
    on_device = False  # it times the CPU

    def plans(self, scale: Scale) -> dict[str, Plan]:
        worlds: dict[str, Environment] = dict(BENCHMARKS)
        if not scale.quick:  # they need loops of their own
            worlds |= ADVERSARIES
        worlds[f"movies, K = {MOVIES}"] = MovieLens(MOVIES, data=source()["data"])
        return {
            name: make_plan(tuple(SYSTEMS), world, HORIZON, scale.fewer(4), scale.seed, 20)
            for name, world in worlds.items()
        }

    def beside(self, scale: Scale) -> dict[str, Any]:
        return {"seconds": round_times(scale), "draws": resampling_draws(scale), **source()}

    def section(self, folder: Path) -> Section:
        cells = self.results(folder)
        measured = self.saved(folder)
        judged = tuple(claims(cells, measured["draws"], measured["seconds"]))
        tables = (overview(cells, measured["seconds"], measured["draws"]),)
        pictures = (cost_picture(cells, measured["seconds"]),)
        return Section(
            told("systems"), judged, pictures, tables, stand_in_warnings(measured["data"])
        )


def round_times(scale: Scale) -> dict[str, list[list[float]]]:
    """Seconds per round: for each policy, the repetitions at each number of arms, all policies in turn."""
    rounds, repetitions = (5_000, 3) if scale.quick else (20_000, 7)
    times: dict[str, list[list[float]]] = {policy.label: [] for policy in SYSTEMS}
    for arms in TIMED_ARMS:
        world = Alternating(arms=arms, gap=0.125)
        for policy in SYSTEMS:
            times[policy.label].append([])
            run_block(policy, world, 2, np.array([2]), 0, range(1))  # loads its machine code
        for repetition in range(repetitions):
            for policy in SYSTEMS:
                start = time.perf_counter()
                run_block(policy, world, rounds, np.array([rounds]), repetition, range(1))
                times[policy.label][-1].append((time.perf_counter() - start) / rounds)
    return times


def resampling_draws(scale: Scale) -> dict[str, dict[str, list[float]]]:
    """Draws per round for each kind of resampling, without a cap, in runs with several numbers of arms."""
    runs = scale.fewer(40)
    return {
        policy.resampling: {
            str(arms): draws_per_round(policy, Bernoulli([0.5] * (arms - 1) + [0.6]), 1_000, runs, scale.seed).tolist()
            for arms in RESAMPLED_ARMS
        }
        for policy in RESAMPLING
    }  # fmt: skip


STOCHASTIC = ("stochastic easy", "stochastic hard")
# The claims that one policy has more regret than another in some worlds.
COMPARISONS: dict[str, tuple[Policy, Policy, Sequence[str]]] = {
    "systems-exp3": (dc.AvnerExp3(horizon=HORIZON), dc.FTPL(), STOCHASTIC),
    "systems-top-two": (dc.AvnerExp3(horizon=HORIZON), dc.TopTwo(), STOCHASTIC),
    "systems-decoupling": (dc.CoupledTsallisINF(), dc.FTPL(), tuple(BENCHMARKS)),
}


def claims(
    cells: dict[str, Results],
    draws: dict[str, dict[str, list[float]]],
    seconds: dict[str, list[list[float]]],
) -> Iterator[Claim]:
    """The cost of resampling, the COMPARISONS, and the cost of the hybrid regulariser with a dedicated solver."""
    for kind, known in draws.items():
        parts = []
        for arms, each in known.items():
            terms = np.arange(1, int(arms) + 1)
            expected = float((1.0 / terms).sum()) if kind == "conditional" else len(terms)
            parts.append(mean_of(f"K = {arms}", np.array(each) / expected, len(known)))
        yield judge(f"systems-{kind}", parts)
    for name, (above, below, worlds) in COMPARISONS.items():
        yield judge(
            name, [regret_ratio(each, cells[each], above, below, len(worlds)) for each in worlds]
        )
    hybrid, ftpl = (np.array(seconds[policy.label]) for policy in (dc.JinHybrid(), dc.FTPL()))
    parts = [
        ratio_of(f"K = {arms}", hybrid[at], ftpl[at], len(TIMED_ARMS))
        for at, arms in enumerate(TIMED_ARMS)
    ]
    yield judge("systems-hybrid", parts)


def cost_picture(cells: dict[str, Results], seconds: dict[str, list[list[float]]]) -> Picture:
    """Regret and time, with one point per policy."""
    panels = []
    for name, results in cells.items():
        series = []
        for style, (policy, (label, _)) in enumerate(SYSTEMS.items()):
            at = np.array([1e6 * np.mean(seconds[policy.label][0])])
            line = results.summary().loc[policy.label]
            half = np.array([line["high"] - line["mean"]])
            series.append(Series(label, at, np.array([line["mean"]]), half, style, "points"))
        panels.append(
            Panel(name, tuple(series), "microseconds per round, K = 8", "regret", log_x=True)
        )
    runs = next(iter(cells.values())).runs
    caption = f"Mean regret after 10,000 rounds over {runs:,} runs with its 95 % interval, by the mean time of a round at K = 8. Lower and further left is better."
    return Picture("systems", "Regret and cost of every system", caption, tuple(panels), columns=2)


def overview(
    cells: dict[str, Results],
    seconds: dict[str, list[list[float]]],
    draws: dict[str, dict[str, list[float]]],
) -> ReportTable:
    """One row per policy."""
    head = (
        "policy",
        *(f"{name}: mean (99th percentile)" for name in cells),
        *(f"us per round, K = {arms}" for arms in TIMED_ARMS),
        "draws per round, K = 64",
        "must know in advance",
    )
    lines = {name: results.summary() for name, results in cells.items()}
    rows = []
    for policy, (name, knowledge) in SYSTEMS.items():
        label = policy.label
        known = (each.loc[label] for each in lines.values())
        # The mean, half of the width of its interval, and the 99th percentile.
        regret = (
            f"{at['mean']:.0f} ± {at['high'] - at['mean']:.0f} ({at['p99']:.0f})" for at in known
        )
        times = (short(1e6 * float(np.mean(each))) for each in seconds[label])
        drawn = (
            f"{np.mean(draws[policy.resampling]['64']):.1f}"
            if isinstance(policy, dc.CoupledFTPL)
            else ""
        )
        rows.append((name, *regret, *times, drawn, knowledge))
    return ReportTable("Regret after 10,000 rounds, and cost", head, tuple(rows))
