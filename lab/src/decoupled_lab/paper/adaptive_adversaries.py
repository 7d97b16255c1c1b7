"""Beyond the paper: how regret grows with K and T against adaptive adversaries."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import numpy as np

from decoupled.base import Floats
from decoupled.environments import AdaptiveAlternating, Environment, PunishLast
from decoupled.plots import Panel, Picture, Series, styles
from decoupled.policies import Ladder
from decoupled.simulation import Plan, make_plan

from ..report.claims import Claim, Measure, judged_above, judged_below, mean_of, ratio_of
from ..report.section import ReportTable, Section
from .base import HORIZON, Scale, Simulated
from .family import smoothed
from .horizon import STEEPEST, exponents
from .setup import CONTENDER_NAMES, CONTENDERS, PUNISHED_ARMS, RIVALS, mean_series

POLICIES, NAMES = tuple(CONTENDERS), CONTENDER_NAMES
ARMS = PUNISHED_ARMS
HORIZONS = (1_000, 10_000, 100_000, 1_000_000)
ARMS_OF_HORIZONS = 8
GREY_DASHED = 13  # a style
OURS, PUNISHING = Ladder().label, "punish last"

WORLDS: dict[str, Callable[[int], Environment]] = {
    PUNISHING: PunishLast,
    "adaptive alternating": lambda arms: AdaptiveAlternating(arms, gap=0.125),
}


# By world, then by axis, then by policy: the regrets at each K or T.
Growth: TypeAlias = dict[str, dict[str, dict[str, dict[int, Floats]]]]


class AdaptiveAdversaries(Simulated):
    """Final regret for each K and each T, with separate runs per horizon. Not in the quick version: it compiles fourteen loops."""

    def plans(self, scale: Scale) -> dict[str, Plan]:
        plans = {}
        few, some = scale.fewer(20), scale.fewer(5)
        horizons = HORIZONS[:2] if scale.quick else HORIZONS
        for name, world in WORLDS.items():
            for arms in ARMS:
                plan = make_plan(POLICIES, world(arms), HORIZON, some, scale.seed, 1)
                plans[f"{name}, K = {arms}"] = plan
            for horizon in horizons:
                runs = few if horizon > HORIZON else some
                plan = make_plan(POLICIES, world(ARMS_OF_HORIZONS), horizon, runs, scale.seed, 1)
                plans[f"{name}, T = {horizon}"] = plan
        return plans

    def section(self, folder: Path) -> Section:
        grown: Growth = {world: {axis: {label: {} for label in NAMES} for axis in "KT"} for world in WORLDS}
        for name, results in self.results(folder).items():
            world, place = name.split(", ")
            axis, at = place[0], int(place.split("= ")[1])
            for label in NAMES:
                grown[world][axis][label][at] = results.final_regret(label)
        panels = tuple(panel(world, axis, grown[world][axis]) for world in WORLDS for axis in "TK")
        picture = Picture(
            "watched",
            "Regret against adaptive adversaries, and $\\sqrt{KT}$",
            f"Mean regret with its 95 % interval on log axes: by T for K = {ARMS_OF_HORIZONS}, and by K for T = {HORIZON:,}. The dashed line is $\\sqrt{{KT}}$.",
            panels,
            columns=2,
        )
        text = (
            "<i>Punish last</i> makes the arm exploited last cost 1, and one arm is better than the others by 0.05. <i>Adaptive alternating</i> moves all losses in reaction to the arm exploited, and one "
            "arm is better by 0.125. A bound of order $\\sqrt{KT}$ is proved for the paper's policy and for the ladder (theorem T2); this section measures how regret grows. "
            "With a fixed gap, regret can grow like K over the gap while that is below $\\sqrt{KT}$. This explains an exponent of K above one half on a curve below the dashed line."
        )
        claims = (growth_claim(grown), lower_claim(grown), behind_claim(grown))
        tables = (exponent_table(grown),)
        return Section(text, claims, (picture,), tables)


def growth_claim(grown: Growth) -> Claim:
    """The claim about the exponents at the end of both ranges."""
    parts: list[Measure] = []
    for world, axes in grown.items():
        for axis in "KT":
            last = exponents(axis, axes[axis][OURS])[-1]
            parts.append(last._replace(of=f"{world}, {last.of}"))
    return judged_below(
        "watched-growth",
        "ours, after theorem 3.1",
        "At the end of the range, the regret of the recommended setting against adaptive adversaries grows no faster than $\\sqrt{KT}$.",
        "exponent between the two largest K and the two largest T (a square root has 0.5)",
        parts,
        STEEPEST,
    )


def lower_claim(grown: Growth) -> Claim:
    """The claim of less regret than every rival where the arm exploited last is punished, in long runs."""
    known = grown[PUNISHING]["T"]
    ours = known[OURS]
    places = [(rival.label, horizon) for horizon in ours if horizon >= HORIZON for rival in RIVALS]
    parts = [
        mean_of(f"{NAMES[label]}, T = {at:,}", known[label][at] - ours[at], len(places))
        for label, at in places
    ]
    return judged_above(
        "watched-lower",
        "ours",
        f"Against an adversary that punishes the arm exploited last, with {ARMS_OF_HORIZONS} arms and T = {HORIZON:,} or more, the recommended setting has less regret than each of the other policies.",
        "regret of another policy minus that of Ladder()",
        parts,
        0.0,
    )


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
                f"{NAMES[rival.label]}, {world}, {axis} = {at:,}",
                smoothed(known[OURS][at], *size),
                smoothed(known[rival.label][at], *size),
                len(places) * len(RIVALS),
            )
            for rival in RIVALS
        ]
    return judged_below(
        "watched-behind",
        "ours",
        f"Against both adversaries, at every K, and at every T up to {HORIZON:,}, it has at most 1.4 times the regret of each of the other policies.",
        "regret of Ladder() over that of another policy, with $0.02 \\sqrt{KT}$ added to both",
        parts,
        1.4,
    )


def exponent_table(grown: Growth) -> ReportTable:
    """The mean regret at every K and T, and the exponents between them."""
    rows = []
    for world, axes in grown.items():
        for axis in "TK":
            for label, known in axes[axis].items():
                slopes = [f"{each.value:.2f}" for each in exponents(axis, known)]
                means = [f"{each.mean():,.0f} ({np.quantile(each, 0.99):,.0f})" for each in known.values()]
                steps = " → ".join(f"{low:,} to {high:,}: {slope}" for (low, high), slope in zip(pairwise(known), slopes, strict=True))  # fmt: skip
                rows.append((f"{world}, by {axis}: {NAMES[label]}", " → ".join(means), steps))
    title = "Regret, and exponents from step to step"
    return ReportTable(title, ("", "mean (99th percentile)", "exponents"), tuple(rows))


def panel(world: str, axis: str, regrets: dict[str, dict[int, Floats]]) -> Panel:
    """One world along one axis."""
    series = []
    other = ARMS_OF_HORIZONS if axis == "T" else HORIZON
    for style, (label, known) in zip(styles(list(regrets)), regrets.items(), strict=True):
        at = np.array(list(known), float)
        points = mean_series(NAMES[label], at, known.values(), style, "points")
        series += [points, points._replace(band=None, kind="fit")]
    series.append(Series("sqrt(KT)", at, np.sqrt(at * other), None, GREY_DASHED))
    return Panel(f"{world}, by {axis}", tuple(series), axis, "regret", log_x=True, log_y=True)
