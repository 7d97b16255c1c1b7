"""Every system that the paper names, compared: regret, tails, time, draws, and prior knowledge."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from decoupled.environments import Alternating, Bernoulli, Environment
from decoupled.plots import Panel, Picture, Series
from decoupled.policies import (
    FTPL,
    UCB1,
    AvnerExp3,
    CoupledExp3,
    CoupledFTPL,
    CoupledTsallisINF,
    Exp3,
    FollowTheLeader,
    JinHybrid,
    Policy,
    ThompsonSampling,
    TopTwo,
    TsallisINF,
)
from decoupled.simulation import Plan, Results, draws_per_round, make_plan, run_block

from ..movielens.environment import MovieLens
from ..report.claims import Claim, mean_of, ratio_of
from ..report.page import ReportTable, Section, short
from .base import HORIZON, TIMES_FILE, Scale, Simulated, judge, told
from .movielens import source, stand_in_warnings
from .setup import ADVERSARIES, BENCHMARKS, regret_ratio

# Each policy with a short name, and what its theory requires you to know before the first round.
SYSTEMS: dict[Policy, tuple[str, str]] = {
    FTPL(): ("FTPL", "nothing"),
    TsallisINF(): ("Tsallis-INF", "nothing"),
    Exp3(): ("EXP3", "nothing"),
    AvnerExp3(horizon=HORIZON): ("Avner's Exp3", "the horizon"),
    JinHybrid(): ("Jin-style hybrid", "nothing (the constants are ours)"),
    TopTwo(): ("top two", "that losses are stochastic"),
    FollowTheLeader(): ("follow the leader", "that losses do not react"),
    CoupledFTPL(): ("coupled FTPL, GR", "nothing"),
    CoupledFTPL(resampling="conditional"): ("coupled FTPL, CGR", "nothing"),
    CoupledTsallisINF(): ("coupled Tsallis-INF", "nothing"),
    CoupledTsallisINF(estimator="reduced-variance"): ("coupled Tsallis-INF, RV", "nothing"),
    CoupledExp3(): ("coupled Exp3", "nothing"),
    UCB1(): ("UCB1 (coupled)", "that losses are stochastic"),
    ThompsonSampling(): ("Thompson (coupled)", "that losses are stochastic"),
}
RESAMPLING = (CoupledFTPL(cap=None), CoupledFTPL(resampling="conditional", cap=None))
RESAMPLED_ARMS = (8, 64, 256)
TIMED_ARMS = (8, 64)
MOVIES = 32


def worlds(quick: bool) -> dict[str, Environment]:
    """The paper's instances, the movies and, unless quick, both adversaries, which need loops of their own."""
    movies = {f"movies, K = {MOVIES}": MovieLens(MOVIES, data=source()["data"])}
    return {**BENCHMARKS, **({} if quick else ADVERSARIES), **movies}


class Systems(Simulated):
    """All systems on one page. Not in the quick version, because fourteen policies compile slowly."""

    times = True
    file = TIMES_FILE
    on_device = False  # it times the CPU

    def plans(self, scale: Scale) -> dict[str, Plan]:
        runs = scale.fewer(4)
        return {
            name: make_plan(tuple(SYSTEMS), world, HORIZON, runs, scale.seed, 20)
            for name, world in worlds(scale.quick).items()
        }

    def beside(self, scale: Scale) -> dict[str, Any]:
        return {"seconds": round_times(scale), "draws": resampling_draws(scale), **source()}

    def section(self, folder: Path) -> Section:
        cells = self.results(folder)
        measured = self.saved(folder)
        runs = next(iter(cells.values())).runs
        claims = (
            *draw_claims(measured["draws"]),
            *(comparison_claim(name, cells) for name in COMPARISONS),
            hybrid_claim(measured["seconds"]),
        )
        tables = (overview(cells, measured["seconds"], measured["draws"]),)
        pictures = (cost_picture(cells, measured["seconds"], runs),)
        warnings = stand_in_warnings(measured["data"])
        return Section(told("systems"), claims, pictures, tables, warnings)


def round_times(scale: Scale) -> dict[str, list[list[float]]]:
    """Seconds per round: for each policy, the repetitions at each number of arms, all policies in turn."""
    rounds, repetitions = (5_000, 3) if scale.quick else (20_000, 7)
    times: dict[str, list[list[float]]] = {policy.label: [] for policy in SYSTEMS}
    for arms in TIMED_ARMS:
        world = Alternating(arms=arms, gap=0.125)
        for policy in SYSTEMS:
            times[policy.label].append([])
            run_block(policy, world, 2, np.array([2]), 0, 0, 1)  # loads its machine code
        for repetition in range(repetitions):
            for policy in SYSTEMS:
                start = time.perf_counter()
                run_block(policy, world, rounds, np.array([rounds]), repetition, 0, 1)
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


def draw_claims(draws: dict[str, dict[str, list[float]]]) -> list[Claim]:
    """The cost of resampling."""
    count = len(RESAMPLED_ARMS)
    plain = [
        mean_of(f"K = {arms}", np.array(each) / int(arms), count)
        for arms, each in draws["geometric"].items()
    ]
    sums = {arms: float((1.0 / np.arange(1, int(arms) + 1)).sum()) for arms in draws["conditional"]}
    conditional = [
        mean_of(f"K = {arms}", np.array(each) / sums[arms], count)
        for arms, each in draws["conditional"].items()
    ]
    return [judge("systems-geometric", plain), judge("systems-conditional", conditional)]


STOCHASTIC = ("stochastic easy", "stochastic hard")
# The claims that one policy has more regret than another in some worlds.
COMPARISONS: dict[str, tuple[Policy, Policy, Sequence[str]]] = {
    "systems-exp3": (AvnerExp3(horizon=HORIZON), FTPL(), STOCHASTIC),
    "systems-top-two": (AvnerExp3(horizon=HORIZON), TopTwo(), STOCHASTIC),
    "systems-decoupling": (CoupledTsallisINF(), FTPL(), tuple(BENCHMARKS)),
}


def comparison_claim(name: str, cells: dict[str, Results]) -> Claim:
    """One of the COMPARISONS."""
    above, below, worlds = COMPARISONS[name]
    return judge(name, [regret_ratio(each, cells[each], above, below, len(worlds)) for each in worlds])


def hybrid_claim(seconds: dict[str, list[list[float]]]) -> Claim:
    """The cost of the hybrid regulariser with a dedicated solver."""
    hybrid, ftpl = seconds[JinHybrid().label], seconds[FTPL().label]
    parts = [
        ratio_of(f"K = {arms}", np.array(hybrid[at]), np.array(ftpl[at]), len(TIMED_ARMS))
        for at, arms in enumerate(TIMED_ARMS)
    ]
    return judge("systems-hybrid", parts)


def cost_picture(cells: dict[str, Results], seconds: dict[str, list[list[float]]], runs: int) -> Picture:
    """Regret and time, with one point per policy."""
    panels = []
    for name, results in cells.items():
        series = []
        for style, (policy, (label, _)) in enumerate(SYSTEMS.items()):
            at = np.array([1e6 * np.mean(seconds[policy.label][0])])
            line = results.summary().loc[policy.label]
            half = np.array([line["high"] - line["mean"]])
            series.append(Series(label, at, np.array([line["mean"]]), half, style, "points"))
        panels.append(Panel(name, tuple(series), "microseconds per round, K = 8", "regret", log_x=True))
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
        regret = (f"{at['mean']:.0f} ± {at['high'] - at['mean']:.0f} ({at['p99']:.0f})" for at in known)
        times = (short(1e6 * float(np.mean(each))) for each in seconds[label])
        drawn = f"{np.mean(draws[policy.resampling]['64']):.1f}" if isinstance(policy, CoupledFTPL) else ""
        rows.append((name, *regret, *times, drawn, knowledge))
    return ReportTable("Regret after 10,000 rounds, and cost", head, tuple(rows))
