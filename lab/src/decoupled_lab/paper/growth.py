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
from .base import HORIZON, Scale, Simulated, judge, told
from .held_out import smoothed
from .setup import (
    CONTENDER_NAMES,
    CONTENDERS,
    EASY,
    HARD,
    POLICIES,
    PUNISHED_ARMS,
    RIVALS,
    STOCHASTIC_EASY,
    STOCHASTIC_HARD,
    late_share,
    mean_series,
    regret_picture,
)

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
        return Section(told("horizon"), claims, pictures, (exponent_table(by_arms, by_horizon),))


def constant_claim(long: dict[str, Results]) -> Claim:
    """Whether regret has stopped growing in the last decade of rounds."""
    parts = [late_share(name, results, "FTPL", 0.1, len(long)) for name, results in long.items()]
    last = next(iter(long.values())).horizon
    return judge("horizon-constant", parts, last=f"{last:,}", logarithm=f"{1.0 / math.log10(last):.2f}")


def bounds_picture(long: dict[str, Results]) -> Picture:
    """The measured regret and its proved bounds."""
    panels = []
    for (name, results), rewards in zip(long.items(), (EASY, HARD), strict=True):
        gaps, arms = np.max(rewards) - np.array(rewards), len(rewards)
        rounds = np.asarray(results.data["round"].values, float)
        lines = {
            "trivial: the largest gap × T": gaps.max() * rounds,  # noqa: RUF001
            "theorem 3.1": np.array([bounds.theorem1(int(t), arms) for t in rounds]),
            "theorem 3.2": np.array([bounds.theorem2(gaps.tolist(), int(t)) for t in rounds]),
            "√(KT), the order of the lower bound": np.sqrt(arms * rounds),
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


def root_claim(by_arms: Regrets, by_horizon: Regrets) -> Claim:
    """The claim about the exponents of K and T."""
    parts = [exponents("K", by_arms["FTPL"])[-1], exponents("T", by_horizon["FTPL"])[-1]]
    return judge("horizon-root", parts)


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


def exponent_table(by_arms: Regrets, by_horizon: Regrets) -> ReportTable:
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


def growth_picture(by_arms: Regrets, by_horizon: Regrets) -> Picture:
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
        panels.append(Panel(title, tuple(series), label, "regret / √(KT)", log_x=True))
    runs = len(next(iter(by_arms["FTPL"].values())))
    caption = f"Alternating losses at the worst of four gaps around $\\sqrt{{K/T}}$, {runs:,} runs, with bands of the 95 % interval of the mean. Every policy has $c = 2$."
    return Picture("horizon-growth", "Regret over $\\sqrt{KT}$", caption, tuple(panels), columns=2)


EVERYONE = tuple(CONTENDERS)
ADAPTIVE_ARMS = PUNISHED_ARMS
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
        plans = {}
        few, some = scale.fewer(20), scale.fewer(5)
        horizons = ADAPTIVE_HORIZONS[:2] if scale.quick else ADAPTIVE_HORIZONS
        for name, world in WORLDS.items():
            for arms in ADAPTIVE_ARMS:
                plan = make_plan(EVERYONE, world(arms), HORIZON, some, scale.seed, 1)
                plans[f"{name}, K = {arms}"] = plan
            for horizon in horizons:
                runs = few if horizon > HORIZON else some
                plan = make_plan(EVERYONE, world(ARMS_OF_HORIZONS), horizon, runs, scale.seed, 1)
                plans[f"{name}, T = {horizon}"] = plan
        return plans

    def section(self, folder: Path) -> Section:
        grown: Growth = {
            world: {axis: {label: {} for label in CONTENDER_NAMES} for axis in "KT"} for world in WORLDS
        }
        for name, results in self.results(folder).items():
            world, place = name.split(", ")
            axis, at = place[0], int(place.split("= ")[1])
            for label in CONTENDER_NAMES:
                grown[world][axis][label][at] = results.final_regret(label)
        panels = tuple(adaptive_panel(world, axis, grown[world][axis]) for world in WORLDS for axis in "TK")
        picture = Picture(
            "watched",
            "Regret against adaptive adversaries, and $\\sqrt{KT}$",
            f"Mean regret with its 95 % interval on log axes: by T for K = {ARMS_OF_HORIZONS}, and by K for T = {HORIZON:,}. The dashed line is $\\sqrt{{KT}}$.",
            panels,
            columns=2,
        )
        claims = (growth_claim(grown), lower_claim(grown), behind_claim(grown))
        tables = (adaptive_table(grown),)
        return Section(told("watched"), claims, (picture,), tables)


def growth_claim(grown: Growth) -> Claim:
    """The claim about the exponents at the end of both ranges."""
    parts: list[Measure] = []
    for world, axes in grown.items():
        for axis in "KT":
            last = exponents(axis, axes[axis][OURS])[-1]
            parts.append(last._replace(of=f"{world}, {last.of}"))
    return judge("watched-growth", parts)


def lower_claim(grown: Growth) -> Claim:
    """The claim of less regret than every rival where the arm exploited last is punished, in long runs."""
    known = grown[PUNISHING]["T"]
    ours = known[OURS]
    places = [(rival.label, horizon) for horizon in ours if horizon >= HORIZON for rival in RIVALS]
    parts = [
        mean_of(f"{CONTENDER_NAMES[label]}, T = {at:,}", known[label][at] - ours[at], len(places))
        for label, at in places
    ]
    return judge("watched-lower", parts)


def behind_claim(grown: Growth) -> Claim:
    """The claim that no rival is far ahead, at any K and, where there are enough runs, at any T."""
    places = [
        (world, axis, at)
        for world, axes in grown.items()
        for axis in "KT"
        for at in axes[axis][OURS]
        if axis == "K" or at <= HORIZON
    ]
    parts = []
    for world, axis, at in places:
        known = grown[world][axis]
        size = (at, HORIZON) if axis == "K" else (ARMS_OF_HORIZONS, at)
        parts += [
            ratio_of(
                f"{CONTENDER_NAMES[rival.label]}, {world}, {axis} = {at:,}",
                smoothed(known[OURS][at], *size),
                smoothed(known[rival.label][at], *size),
                len(places) * len(RIVALS),
            )
            for rival in RIVALS
        ]
    return judge("watched-behind", parts)


def adaptive_table(grown: Growth) -> ReportTable:
    """The mean regret at every K and T, and the exponents between them."""
    rows = []
    for world, axes in grown.items():
        for axis in "TK":
            for label, known in axes[axis].items():
                slopes = [f"{each.value:.2f}" for each in exponents(axis, known)]
                means = [f"{each.mean():,.0f} ({np.quantile(each, 0.99):,.0f})" for each in known.values()]
                steps = " → ".join(
                    f"{low:,} to {high:,}: {slope}"
                    for (low, high), slope in zip(pairwise(known), slopes, strict=True)
                )
                rows.append((f"{world}, by {axis}: {CONTENDER_NAMES[label]}", " → ".join(means), steps))
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
