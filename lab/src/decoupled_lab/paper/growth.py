"""How regret grows with K and T: long runs and many arms, and beyond the paper, adaptive adversaries."""

import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import numpy as np
from scipy.special import ndtri

from decoupled.base import Floats
from decoupled.environments import AdaptiveAlternating, Alternating, Environment, PunishLast
from decoupled.plots import NAMES, Panel, Picture, Series, styles
from decoupled.policies import Ladder
from decoupled.simulation import Plan, Results, make_plan

from ..report.claims import LEVEL, Claim, Measure, mean_of, ratio_of
from ..report.page import ReportTable, Section
from ..theory import bounds
from . import setup
from .base import HORIZON, Scale, Simulated, judge, told
from .held_out import smoothed
from .setup import CONTENDER_NAMES, POLICIES, RIVALS, mean_series

LONG = 1_000_000
ARMS = (4, 16, 64, 256)
HORIZONS = (1_000, 10_000, 100_000)
ARMS_OF_HORIZONS = 8
FACTORS = (0.5, 1.0, 2.0, 4.0)

Regrets: TypeAlias = dict[str, dict[int, Floats]]  # by policy, at each K or T


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
        stochastic = {"easy": setup.STOCHASTIC_EASY, "hard": setup.STOCHASTIC_HARD}
        plans = {
            f"long {name}": make_plan(POLICIES, world, long, few, scale.seed, spacing)
            for name, world in stochastic.items()
        }
        for arms in ARMS:
            for factor, world in worlds(arms, HORIZON).items():
                plans[f"K = {arms}, {factor}"] = make_plan(
                    POLICIES, world, HORIZON, some, scale.seed, 1
                )
        for horizon in HORIZONS[: 2 if scale.quick else 3]:
            for factor, world in worlds(ARMS_OF_HORIZONS, horizon).items():
                plans[f"T = {horizon}, {factor}"] = make_plan(
                    POLICIES, world, horizon, some, scale.seed, 1
                )
        return plans

    def section(self, folder: Path) -> Section:
        cells = self.results(folder)
        long = {
            name.removeprefix("long "): each
            for name, each in cells.items()
            if name.startswith("long")
        }
        by_arms, by_horizon = worst_gaps(cells, "K"), worst_gaps(cells, "T")
        last = next(iter(long.values())).horizon
        title = f"Stochastic regret up to T = {last:,}"
        pictures = (
            setup.regret_picture("horizon-stochastic", title, long, 2, log_x=True),
            growth_picture(by_arms, by_horizon),
            bounds_picture(long),
        )
        parts = [
            setup.late_share(name, results, "FTPL", 0.1, len(long))
            for name, results in long.items()
        ]
        words = {"last": f"{last:,}", "logarithm": f"{1.0 / math.log10(last):.2f}"}
        ends = [exponents("K", by_arms["FTPL"])[-1], exponents("T", by_horizon["FTPL"])[-1]]
        claims = (judge("horizon-constant", parts, **words), judge("horizon-root", ends))
        rows = tuple(
            (
                f"{NAMES[policy]}, {each.of}",
                f"{each.value:.2f}",
                f"{each.low:.2f} to {each.high:.2f}",
            )
            for axis, regrets in (("K", by_arms), ("T", by_horizon))
            for policy, known in regrets.items()
            for each in exponents(axis, known)
        )
        head = ("", "exponent", "95 % interval (of two)")
        table = ReportTable("Exponents of the worst regret", head, rows)
        return Section(told("horizon"), claims, pictures, (table,))


def bounds_picture(long: dict[str, Results]) -> Picture:
    """The measured regret and its proved bounds."""
    panels = []
    for (name, results), rewards in zip(long.items(), (setup.EASY, setup.HARD), strict=True):
        gaps, arms = np.max(rewards) - np.array(rewards), len(rewards)
        rounds = np.asarray(results.data["round"].values, float)
        lines = {
            "trivial: the largest gap × T": gaps.max() * rounds,  # noqa: RUF001
            "theorem 3.1": np.array([bounds.theorem1(int(t), arms) for t in rounds]),
            "theorem 3.2": np.array([bounds.theorem2(gaps.tolist(), int(t)) for t in rounds]),
            "√(KT), the order of the lower bound": np.sqrt(arms * rounds),
            "theorem A (ours)": np.array([bounds.theorem_a(int(t), arms) for t in rounds]),
        }
        measured = Series(
            "FTPL, measured", rounds, results.data.regret_mean.sel(policy="FTPL").values
        )
        others = [
            Series(label, rounds, line, None, at)
            for at, (label, line) in enumerate(lines.items(), 1)
        ]
        panels.append(Panel(name, (measured, *others), log_x=True, log_y=True))
    caption = (
        "Mean regret of FTPL at $c = 2$ and $\\alpha = 3$ on the two stochastic instances, with the bounds of theorems 3.1 and 3.2, and of our theorem A. The constants are those of the proofs; "
        "the statements hide most of them. The adversarial lower bound is shown by its order. It need not hold on these instances."
    )
    return Picture(
        "horizon-bounds", "Measured regret and its bounds", caption, tuple(panels), columns=2
    )


def worst_gaps(cells: dict[str, Results], axis: str) -> Regrets:
    """For each policy and each K or T, the regrets at the gap with the largest mean."""
    worst: Regrets = {policy.label: {} for policy in POLICIES}
    for name, results in cells.items():
        if not name.startswith(axis):
            continue
        at = int(name.split(",")[0].split("= ")[1])
        for label, known in worst.items():
            regret = results.final_regret(label)
            if at not in known or regret.mean() > known[at].mean():
                known[at] = regret
    return worst


def exponents(axis: str, regrets: dict[int, Floats]) -> list[Measure]:
    """The slopes of log regret from one K or T to the next, with intervals from the standard errors."""
    slopes = []
    for (first, before), (last, after) in pairwise(regrets.items()):
        step = math.log(last / first)
        errors = [mean.std(ddof=1) / math.sqrt(len(mean)) / mean.mean() for mean in (before, after)]
        slope = math.log(after.mean() / before.mean()) / step
        half = float(ndtri(1.0 - (1.0 - LEVEL) / 4)) * math.hypot(*errors) / step
        of, runs = f"{axis} from {first:,} to {last:,}", min(len(before), len(after))
        slopes.append(Measure(of, slope, slope - half, slope + half, runs))
    return slopes


def growth_picture(by_arms: Regrets, by_horizon: Regrets) -> Picture:
    """Regret over sqrt(KT): a flat line matches the order of the theorem."""
    panels = []
    for title, label, other, regrets in (
        (f"by K, T = {HORIZON:,}", "K", HORIZON, by_arms),
        (f"by T, K = {ARMS_OF_HORIZONS}", "T", ARMS_OF_HORIZONS, by_horizon),
    ):
        at = np.array(list(regrets["FTPL"]), float)
        series = tuple(
            mean_series(NAMES[policy], at, known.values(), style, scale=np.sqrt(at * other))
            for style, (policy, known) in enumerate(regrets.items())
        )
        panels.append(Panel(title, series, label, "regret / √(KT)", log_x=True))
    runs = len(next(iter(by_arms["FTPL"].values())))
    caption = f"Alternating losses at the worst of four gaps around $\\sqrt{{K/T}}$, {runs:,} runs, with bands of the 95 % interval of the mean. Every policy has $c = 2$."
    return Picture("horizon-growth", "Regret over $\\sqrt{KT}$", caption, tuple(panels), columns=2)


ADAPTIVE_ARMS = setup.PUNISHED_ARMS
ADAPTIVE_HORIZONS = (1_000, 10_000, 100_000, 1_000_000)
GREY_DASHED = 13  # a style
OURS, PUNISHING = Ladder().label, "punish last"

WORLDS: dict[str, Callable[[int], Environment]] = {
    PUNISHING: PunishLast,
    "adaptive alternating": lambda arms: AdaptiveAlternating(arms, gap=0.125),
}


Growth: TypeAlias = dict[str, dict[str, Regrets]]  # by world, then by axis


class AdaptiveAdversaries(Simulated):
    """Final regret for each K and each T, with separate runs per horizon. Not in the quick version: it compiles fourteen loops."""

    def plans(self, scale: Scale) -> dict[str, Plan]:
        horizons = ADAPTIVE_HORIZONS[:2] if scale.quick else ADAPTIVE_HORIZONS
        sizes = [(f"K = {arms}", arms, HORIZON) for arms in ADAPTIVE_ARMS]
        sizes += [(f"T = {horizon}", ARMS_OF_HORIZONS, horizon) for horizon in horizons]
        return {
            f"{name}, {size}": make_plan(
                tuple(setup.CONTENDERS), world(arms), horizon, scale.fewer(20 if horizon > HORIZON else 5),
                scale.seed, 1,
            )
            for name, world in WORLDS.items()
            for size, arms, horizon in sizes
        }  # fmt: skip

    def section(self, folder: Path) -> Section:
        grown: Growth = {
            world: {axis: {label: {} for label in CONTENDER_NAMES} for axis in "KT"}
            for world in WORLDS
        }
        for name, results in self.results(folder).items():
            world, place = name.split(", ")
            axis, at = place[0], int(place.split("= ")[1])
            for label in CONTENDER_NAMES:
                grown[world][axis][label][at] = results.final_regret(label)
        panels = tuple(
            adaptive_panel(world, axis, grown[world][axis]) for world in WORLDS for axis in "TK"
        )
        picture = Picture(
            "watched",
            "Regret against adaptive adversaries, and $\\sqrt{KT}$",
            f"Mean regret with its 95 % interval on log axes: by T for K = {ARMS_OF_HORIZONS}, and by K for T = {HORIZON:,}. The dashed line is $\\sqrt{{KT}}$.",
            panels,
            columns=2,
        )
        return Section(
            told("watched"), adaptive_claims(grown), (picture,), (adaptive_table(grown),)
        )


def adaptive_claims(grown: Growth) -> tuple[Claim, ...]:
    """How regret ends up growing; less of it than every rival's in long runs; and no rival far ahead anywhere."""
    ends = []
    for world, axes in grown.items():
        for axis in "KT":
            last = exponents(axis, axes[axis][OURS])[-1]
            ends.append(last._replace(of=f"{world}, {last.of}"))
    known = grown[PUNISHING]["T"]
    ours = known[OURS]
    long = [(rival.label, horizon) for horizon in ours if horizon >= HORIZON for rival in RIVALS]
    lower = [
        mean_of(f"{CONTENDER_NAMES[label]}, T = {at:,}", known[label][at] - ours[at], len(long))
        for label, at in long
    ]
    # At any K and, where there are enough runs, at any T.
    places = [
        (world, axis, at)
        for world, axes in grown.items()
        for axis in "KT"
        for at in axes[axis][OURS]
        if axis == "K" or at <= HORIZON
    ]
    behind = []
    for world, axis, at in places:
        known = grown[world][axis]
        size = (at, HORIZON) if axis == "K" else (ARMS_OF_HORIZONS, at)
        behind += [
            ratio_of(
                f"{CONTENDER_NAMES[rival.label]}, {world}, {axis} = {at:,}",
                smoothed(known[OURS][at], *size),
                smoothed(known[rival.label][at], *size),
                len(places) * len(RIVALS),
            )
            for rival in RIVALS
        ]
    return (
        judge("watched-growth", ends),
        judge("watched-lower", lower),
        judge("watched-behind", behind),
    )


def adaptive_table(grown: Growth) -> ReportTable:
    """The mean regret at every K and T, and the exponents between them."""
    rows = []
    for world, axes in grown.items():
        for axis in "TK":
            for label, known in axes[axis].items():
                means = [
                    f"{each.mean():,.0f} ({np.quantile(each, 0.99):,.0f})"
                    for each in known.values()
                ]
                slopes = zip(pairwise(known), exponents(axis, known), strict=True)
                steps = [f"{low:,} to {high:,}: {slope.value:.2f}" for (low, high), slope in slopes]
                name = f"{world}, by {axis}: {CONTENDER_NAMES[label]}"
                rows.append((name, " → ".join(means), " → ".join(steps)))
    title = "Regret, and exponents from step to step"
    return ReportTable(title, ("", "mean (99th percentile)", "exponents"), tuple(rows))


def adaptive_panel(world: str, axis: str, regrets: Regrets) -> Panel:
    """One world along one axis."""
    series = []
    other = ARMS_OF_HORIZONS if axis == "T" else HORIZON
    for style, (label, known) in zip(styles(list(regrets)), regrets.items(), strict=True):
        at = np.array(list(known), float)
        points = mean_series(CONTENDER_NAMES[label], at, known.values(), style, "points")
        series += [points, points._replace(band=None, kind="fit")]
    series.append(Series("√(KT)", at, np.sqrt(at * other), None, GREY_DASHED))
    return Panel(f"{world}, by {axis}", tuple(series), axis, "regret", log_x=True, log_y=True)
