"""The map of c and alpha: where each policy is best, for the sixteen instances of the grid."""

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from decoupled.base import Floats, write_atomically
from decoupled.environments import Alternating
from decoupled.policies import FTPL, Exp3, Policy, TsallisINF
from decoupled.simulation import Plan, make_plan, run_plan

from ..report.page import ReportTable
from ..report.pictures import Heat, Maps
from .base import HORIZON, Advance, Scale
from .published import ARMS, GAPS

RUNS = 100_000
QUICK_RUNS = 1_000
RATES = (0.25, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0, 16.0, 32.0)
INFINITE = float("inf")


class Family(NamedTuple):
    """Policies that differ in alpha and c.

    `scale` multiplies the rates of the map. The alphas in `costly` have slow powers. They are left out for the
    largest number of arms, which takes most of the time.
    """

    make: Callable[[float, float], Policy]
    scale: float
    alphas: tuple[float, ...]
    costly: tuple[float, ...] = ()


# Keys as in map.csv; FTRL is Tsallis-INF. Tsallis entropy of order beta corresponds to Pareto perturbations with
# alpha = 1 / (1 - beta), and EXP3 is the limit. At twice the c, both learn no faster than FTPL.
FAMILIES = {
    "FTPL": Family(
        lambda alpha, c: FTPL(alpha=alpha, c=c), 1.0, (1.5, 2.0, 3.0, 4.0, 5.0, 8.0, 12.0), (2.5,)
    ),
    "EXP3": Family(lambda alpha, c: Exp3(c=c), 2.0, (INFINITE,)),
    "FTRL": Family(
        lambda alpha, c: TsallisINF(beta=(alpha - 1) / alpha, c=c), 2.0, (2.0, 3.0), (5.0,)
    ),
}
MAP_FILE = "map.csv"


class MapPoint(NamedTuple):
    """One policy in one instance: mean regret over many runs, and its standard error."""

    arms: int  # the first two are the instance
    gap: float
    policy: str
    alpha: float
    c: float
    runs: int
    mean: float
    standard_error: float


def runs_of(scale: Scale) -> int:
    """The number of runs per point."""
    return QUICK_RUNS if scale.quick else RUNS


def plans(scale: Scale) -> dict[tuple[str, float, int, float], Plan]:
    """One plan, with every c, by policy, alpha, number of arms and gap."""
    return {
        (name, alpha, arms, gap): make_plan(
            [family.make(alpha, family.scale * c) for c in RATES],
            Alternating(arms, gap),
            HORIZON,
            runs_of(scale),
            scale.seed,
            1,
            device=scale.device,
        )
        for name, family in FAMILIES.items()
        for alpha in (*family.alphas, *family.costly)
        for arms in ARMS
        for gap in GAPS
        if alpha in family.alphas or arms < max(ARMS)
    }


def units(scale: Scale) -> int:
    """The number of rounds of the whole map."""
    return sum(plan.rounds for plan in plans(scale).values())


def measure(scale: Scale, folder: Path, advance: Advance) -> None:
    """Run the points that are not in the file yet. It holds only means and errors: a map has 10^8 runs and more."""
    path = folder / MAP_FILE
    points = [point for point in read(path) if point.runs == runs_of(scale)]
    known = {(point.policy, point.alpha, point.arms, point.gap, point.c) for point in points}
    for place, plan in plans(scale).items():
        name, alpha, arms, gap = place
        missing = tuple(policy for policy in plan.policies if (*place, rate(policy)) not in known)
        rest = replace(plan, policies=missing)
        advance(plan.rounds - rest.rounds)
        if not missing:
            continue
        results = run_plan(rest, curves="moments", report=lambda done, seconds: advance(done))
        for policy in missing:
            regret = results.final_regret(policy)
            mean, error = float(regret.mean()), float(regret.std(ddof=1) / np.sqrt(len(regret)))
            points.append(MapPoint(arms, gap, name, alpha, rate(policy), plan.runs, mean, error))
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(path, formatted(points))


def rate(policy: Policy) -> float:
    """The c of a policy, rounded as in the file."""
    return float(f"{policy.c:g}")  # type: ignore[attr-defined]


def formatted(points: list[MapPoint]) -> str:
    """The points as CSV, in the order of instances."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(MapPoint._fields)
    for point in sorted(points):
        shown = point._replace(
            mean=round(point.mean, 4), standard_error=round(point.standard_error, 4)
        )
        lines.writerow(
            f"{value:g}" if isinstance(value, float) and i < 5 else value
            for i, value in enumerate(shown)
        )
    return text.getvalue()


def read(path: Path) -> list[MapPoint]:
    """Read a file that `formatted` wrote; no points if there is none."""
    if not path.exists():
        return []
    kinds = MapPoint.__annotations__.values()
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))[1:]
    return [
        MapPoint(*(kind(value) for kind, value in zip(kinds, row, strict=True))) for row in rows
    ]


def maps(points: list[MapPoint]) -> tuple[Maps, ...]:
    """For each policy, a map of every instance: its regret over the lowest regret of any policy there."""
    best = {
        place: min(p.mean for p in points if p[:2] == place) for place in {p[:2] for p in points}
    }
    runs = points[0].runs
    pictures = []
    for name, policies in (("FTPL", ("FTPL",)), ("Tsallis-INF and EXP3", ("FTRL", "EXP3"))):
        panels = []
        for place in sorted(best):
            here = [p for p in points if p.policy in policies and p[:2] == place]
            alphas, rates = sorted({p.alpha for p in here}), sorted({p.c for p in here})
            values: Floats = np.full((len(alphas), len(rates)), np.nan)
            for p in here:
                values[alphas.index(p.alpha), rates.index(p.c)] = p.mean / best[place]
            labels = tuple("EXP3" if alpha == INFINITE else f"{alpha:g}" for alpha in alphas)
            title = f"K = {place[0]}, gap {place[1]:g}, lowest {best[place]:.0f}"
            panels.append(Heat(title, tuple(f"{c:g}" for c in rates), labels, values, "c", "α"))  # noqa: RUF001
        caption = (
            f"Mean regret after {HORIZON:,} rounds, {runs:,} runs per point, as a multiple of the lowest regret of any policy, $\\alpha$ and $c$ "
            "of this map on the instance. The standard errors are in the data."
        )
        file = f"tuned-map-{policies[0].lower()}"
        title = f"Regret of {name} over the lowest, by c and α"  # noqa: RUF001
        pictures.append(Maps(file, title, caption, tuple(panels), columns=len(GAPS)))
    return tuple(pictures)


def winners(points: list[MapPoint]) -> ReportTable:
    """The best c and alpha of each policy in every instance."""
    rows = []
    for place in sorted({p[:2] for p in points}):
        row = [f"K = {place[0]}, gap {place[1]:g}"]
        for policy in ("FTPL", "FTRL", "EXP3"):
            here = (p for p in points if p.policy == policy and p[:2] == place)
            least = min(here, key=lambda p: p.mean)
            shape = "" if policy == "EXP3" else f"$\\alpha = {least.alpha:g}$, "
            row.append(
                f"{least.mean:.1f} ± {1.96 * least.standard_error:.1f} ({shape}$c = {least.c:g}$)"
            )
        rows.append(tuple(row))
    return ReportTable(
        "Lowest regret on the map", ("instance", "FTPL", "Tsallis-INF", "EXP3"), tuple(rows)
    )
