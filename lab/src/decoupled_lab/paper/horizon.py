"""Long runs and many arms: tests whether regret is constant for fixed gaps and always of order sqrt(KT)."""

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.special import ndtri

from decoupled.base import Floats
from decoupled.environments import Alternating
from decoupled.plots import NAMES, Panel, Picture, Series
from decoupled.simulation import Plan, Results, make_plan

from ..report.claims import LEVEL, Claim, Measure, judged_below, ratio_of
from ..report.section import ReportTable, Section
from ..theory import bounds
from .base import HORIZON, Scale, Simulated
from .setup import (
    EASY,
    HARD,
    POLICIES,
    STOCHASTIC_EASY,
    STOCHASTIC_HARD,
    mean_series,
    regret_picture,
)

LONG = 1_000_000
ARMS = (4, 16, 64, 256)
HORIZONS = (1_000, 10_000, 100_000)
ARMS_OF_HORIZONS = 8
FLAT = 0.1  # a logarithm adds a sixth of its final value in the last decade up to 10^6
STEEPEST = 0.55  # the exponent of sqrt is 0.5
FACTORS = (0.5, 1.0, 2.0, 4.0)


def worlds(arms: int, horizon: int) -> dict[float, Alternating]:
    """Gaps around sqrt(K/T), where arms are barely distinguishable and regret is of order sqrt(KT)."""
    return {factor: Alternating(arms, factor * math.sqrt(arms / horizon)) for factor in FACTORS}


class Horizon(Simulated):
    """Regret by T up to a million, and by K."""

    keep_runs = True

    def plans(self, scale: Scale) -> dict[str, Plan]:
        long = LONG // 10 if scale.quick else LONG
        # Ten checkpoints per decade, so that one of them is a tenth of the horizon.
        spacing = {"count": 10 * round(math.log10(long)) + 1, "spacing": "log"}
        few, some = scale.fewer(10), scale.fewer(5)
        stochastic = {"easy": STOCHASTIC_EASY, "hard": STOCHASTIC_HARD}
        plans = {
            f"long {name}": make_plan(POLICIES, world, long, few, scale.seed, spacing)
            for name, world in stochastic.items()
        }
        for arms in ARMS:
            for factor, world in worlds(arms, HORIZON).items():
                plans[f"K = {arms}, {factor}"] = make_plan(POLICIES, world, HORIZON, some, scale.seed, 1)
        for horizon in HORIZONS[: 2 if scale.quick else 3]:
            for factor, world in worlds(ARMS_OF_HORIZONS, horizon).items():
                plans[f"T = {horizon}, {factor}"] = make_plan(POLICIES, world, horizon, some, scale.seed, 1)
        return plans

    def section(self, folder: Path) -> Section:
        cells = self.results(folder)
        long = {name.removeprefix("long "): each for name, each in cells.items() if name.startswith("long")}
        by_arms, by_horizon = worst_gaps(cells, "K"), worst_gaps(cells, "T")
        title = f"Stochastic regret up to T = {next(iter(long.values())).horizon:,}"
        pictures = (
            regret_picture("horizon-stochastic", title, long, 2, log_x=True),
            growth_picture(by_arms, by_horizon),
            bounds_picture(long),
        )
        claims = (constant_claim(long), root_claim(by_arms, by_horizon))
        text = (
            "The theorems bound FTPL's regret by a constant for fixed gaps, and always by a multiple of $\\sqrt{KT}$. "
            "To test the second bound, the alternating environment has gaps of 0.5, 1, 2 and 4 times $\\sqrt{K/T}$, where arms are barely distinguishable "
            "within T rounds. For each policy, K and T, the gap with the largest regret counts. The last figure compares the measured regret "
            "with the bounds and their explicit constants. The paper's bounds are true but far from tight: they exceed the trivial bound at every T shown. Theorem A, which is ours, is about the same policy and smaller."
        )
        return Section(text, claims, pictures, (exponent_table(by_arms, by_horizon),))


def constant_claim(long: dict[str, Results]) -> Claim:
    """Whether regret has stopped growing in the last decade of rounds."""
    parts = []
    for name, results in long.items():
        rounds = results.data["round"].values
        start = int(np.argmin(np.abs(rounds - rounds[-1] / 10)))
        curves = results.data.regret.sel(policy="FTPL").values
        parts.append(ratio_of(name, curves[:, -1] - curves[:, start], curves[:, -1], len(long)))
    last = next(iter(long.values())).horizon
    return judged_below(
        "horizon-constant",
        "Theorem 3.2: regret of order $K / \\Delta$ for every $T$",
        f"FTPL's stochastic regret is constant: it has stopped growing by T = {last:,}.",
        "share of the regret in the last nine tenths of the rounds (a logarithm has about 0.17 at $10^6$)",
        parts,
        FLAT,
    )


def bounds_picture(long: dict[str, Results]) -> Picture:
    """The measured regret and its proved bounds."""
    panels = []
    for (name, results), rewards in zip(long.items(), (EASY, HARD), strict=True):
        gaps, arms = np.max(rewards) - np.array(rewards), len(rewards)
        rounds = np.asarray(results.data["round"].values, float)
        lines = {
            "trivial: the largest gap x T": gaps.max() * rounds,
            "theorem 3.1": np.array([bounds.theorem1(int(t), arms) for t in rounds]),
            "theorem 3.2": np.array([bounds.theorem2(gaps.tolist(), int(t)) for t in rounds]),
            "sqrt(KT), the order of the lower bound": np.sqrt(arms * rounds),
            "theorem A (ours)": np.array([bounds.theorem_a(int(t), arms) for t in rounds]),
        }
        measured = Series("FTPL, measured", rounds, results.data.regret_mean.sel(policy="FTPL").values)
        others = [
            Series(label, rounds, line, None, at) for at, (label, line) in enumerate(lines.items(), 1)
        ]
        panels.append(Panel(name, (measured, *others), log_x=True, log_y=True))
    caption = (
        "Mean regret of FTPL at $c = 2$ and $\\alpha = 3$ on the two stochastic instances, with the bounds of theorems 3.1 and 3.2, and of our theorem A. The constants are those of the proofs; "
        "the statements hide most of them. The adversarial lower bound is shown by its order. It need not hold on these instances."
    )
    return Picture("horizon-bounds", "Measured regret and its bounds", caption, tuple(panels), columns=2)


def worst_gaps(cells: dict[str, Results], axis: str) -> dict[str, dict[int, Floats]]:
    """For each policy and each K or T, the regrets at the gap with the largest mean."""
    worst: dict[str, dict[int, Floats]] = {policy.label: {} for policy in POLICIES}
    for name, results in cells.items():
        if not name.startswith(axis):
            continue
        at = int(name.split(",")[0].split("= ")[1])
        for label, known in worst.items():
            regret = results.final_regret(label)
            if at not in known or regret.mean() > known[at].mean():
                known[at] = regret
    return worst


def root_claim(by_arms: dict[str, dict[int, Floats]], by_horizon: dict[str, dict[int, Floats]]) -> Claim:
    """The claim about the exponents of K and T."""
    parts = [exponents("K", by_arms["FTPL"])[-1], exponents("T", by_horizon["FTPL"])[-1]]
    return judged_below(
        "horizon-root",
        "Theorem 3.1: regret of order $\\sqrt{KT}$",
        "At the end of the range, FTPL's adversarial regret grows no faster than $\\sqrt{KT}$.",
        "exponent between the two largest K and the two largest T, at the worst of four gaps around $\\sqrt{K/T}$ (a square root has 0.5)",
        parts,
        STEEPEST,
    )


def exponents(axis: str, regrets: dict[int, Floats]) -> list[Measure]:
    """The slopes of log regret from one K or T to the next, with intervals from the standard errors."""
    known = list(regrets.items())
    slopes = []
    for (first, before), (last, after) in pairwise(known):
        step = math.log(last / first)
        errors = [mean.std(ddof=1) / math.sqrt(len(mean)) / mean.mean() for mean in (before, after)]
        slope = math.log(after.mean() / before.mean()) / step
        half = float(ndtri(1.0 - (1.0 - LEVEL) / 4)) * math.hypot(*errors) / step
        runs = min(len(before), len(after))
        slopes.append(
            Measure(f"{axis} from {first:,} to {last:,}", slope, slope - half, slope + half, runs)
        )
    return slopes


def exponent_table(
    by_arms: dict[str, dict[int, Floats]], by_horizon: dict[str, dict[int, Floats]]
) -> ReportTable:
    """The exponents of every policy, step by step."""
    rows = [
        (f"{NAMES[policy]}, {each.of}", f"{each.value:.2f}", f"{each.low:.2f} to {each.high:.2f}")
        for axis, regrets in (("K", by_arms), ("T", by_horizon))
        for policy, known in regrets.items()
        for each in exponents(axis, known)
    ]
    return ReportTable(
        "Exponents of the worst regret", ("", "exponent", "95 % interval (of two)"), tuple(rows)
    )


def growth_picture(
    by_arms: dict[str, dict[int, Floats]], by_horizon: dict[str, dict[int, Floats]]
) -> Picture:
    """Regret over sqrt(KT): a flat line matches the order of the theorem."""
    panels = []
    for title, label, regrets in (
        (f"by K, T = {HORIZON:,}", "K", by_arms),
        (f"by T, K = {ARMS_OF_HORIZONS}", "T", by_horizon),
    ):
        series = []
        for style, (policy, known) in enumerate(regrets.items()):
            at = np.array(list(known), float)
            roots = np.sqrt(at * (HORIZON if label == "K" else ARMS_OF_HORIZONS))
            series.append(mean_series(NAMES[policy], at, known.values(), style, scale=roots))
        panels.append(Panel(title, tuple(series), label, "regret / sqrt(KT)", log_x=True))
    runs = len(next(iter(by_arms["FTPL"].values())))
    caption = f"Alternating losses at the worst of four gaps around $\\sqrt{{K/T}}$, {runs:,} runs, with bands of the 95 % interval of the mean. Every policy has $c = 2$."
    return Picture("horizon-growth", "Regret over $\\sqrt{KT}$", caption, tuple(panels), columns=2)
