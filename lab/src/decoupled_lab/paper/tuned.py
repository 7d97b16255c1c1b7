"""Every policy at its best learning rate, because c = 2 for all is not a fair comparison."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from decoupled.base import write_atomically
from decoupled.plots import NAMES, Panel, Picture, Series
from decoupled.policies import FTPL, Exp3, Policy, TsallisINF
from decoupled.simulation import Plan, Results, make_plan

from ..report.claims import Claim, mean_of, ratio_of
from ..report.page import ReportTable, Section
from ..report.pictures import Maps
from . import tuned_map
from .base import HORIZON, Advance, Scale, Simulated, device_code, judge, simulated, told
from .setup import BENCHMARKS as INSTANCES
from .setup import named_panel

RATES = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0)
QUICK_RATES = (0.5, 2.0, 4.0, 6.0, 8.0, 16.0, 32.0)

# By the paper's names, which saved results use.
FAMILIES: dict[str, Callable[[float], Policy]] = {
    "FTPL": lambda c: FTPL(c=c),
    "FTRL": lambda c: TsallisINF(c=c),
    "EXP3": lambda c: Exp3(c=c),
}
BEST_FILE = "best.json"


class TunedPolicies(Simulated):
    """A sweep over c, then the paper's figures again with each policy at its best c, on new seeds."""

    def plans(self, scale: Scale) -> dict[str, Plan]:
        # Every policy at every c. Half of the runs are enough to choose the best.
        rates = QUICK_RATES if scale.quick else RATES
        policies = [make(c) for make in FAMILIES.values() for c in rates]
        return {
            f"sweep {name}": make_plan(policies, world, HORIZON, scale.fewer(2), scale.seed, 1)
            for name, world in INSTANCES.items()
        }

    def code(self, scale: Scale) -> dict[object, Callable[[], object]]:
        drawn = device_code(tuned_map.plans(scale).values()) if scale.device != "cpu" else {}
        return {**super().code(scale), **drawn}

    def units(self, scale: Scale) -> int:
        drawn = tuned_map.units(scale) if scale.device != "cpu" else 0
        again = len(INSTANCES) * len(FAMILIES) * scale.runs * HORIZON
        return super().units(scale) + again + drawn

    def measure(self, scale: Scale, folder: Path, advance: Advance) -> None:
        super().measure(scale, folder, advance)
        chosen: dict[str, dict[str, float]] = {}
        for name, world in INSTANCES.items():
            swept, chosen[name] = self.results(folder)[f"sweep {name}"], {}
            for family in FAMILIES:  # the c with the lowest mean regret
                rates, labels = curve(swept, family)
                means = [swept.final_regret(label).mean() for label in labels]
                chosen[name][family] = rates[int(np.argmin(means))]
            policies = [make(chosen[name][family]) for family, make in FAMILIES.items()]
            # Another seed, so that a c that was lucky in the sweep has no advantage.
            plan = make_plan(
                policies, world, HORIZON, scale.runs, scale.seed + 1, device=scale.device
            )
            simulated(plan, folder, f"best {name}", advance)
        write_atomically(folder / BEST_FILE, json.dumps(chosen))
        if scale.device != "cpu":  # a CPU would take days
            tuned_map.measure(scale, folder, advance)

    def extent(self, folder: Path) -> str:
        extent = super().extent(folder)
        points = tuned_map.read(folder / tuned_map.MAP_FILE)
        if not points:
            return extent
        runs = sorted({point.runs for point in points})
        return f"{extent} The map has {' or '.join(f'{each:,}' for each in runs)} runs per point."

    def section(self, folder: Path) -> Section:
        cells = self.results(folder)
        chosen = json.loads((folder / BEST_FILE).read_text("utf-8"))
        best = {name: cells[f"best {name}"] for name in INSTANCES}
        sweeps = {name: cells[f"sweep {name}"] for name in INSTANCES}
        pictures: tuple[Picture | Maps, ...] = (sweep_picture(sweeps), best_picture(best, chosen))
        rows = []
        for name, results in best.items():
            lines = results.summary().to_dict("records")
            for (family, c), line in zip(chosen[name].items(), lines, strict=True):
                mean, interval = f"{line['mean']:.1f}", f"{line['low']:.1f} to {line['high']:.1f}"
                rows.append(
                    (f"{name}: {named(family)}", f"{c:g}", mean, interval, f"{line['p99']:.1f}")
                )
        head = ("policy", "best c", "mean regret", "95 % interval", "99th percentile")
        tables: tuple[ReportTable, ...] = (
            ReportTable("Final regret at the best c", head, tuple(rows)),
        )
        if points := tuned_map.read(folder / tuned_map.MAP_FILE):
            pictures, tables = (
                (*pictures, *tuned_map.maps(points)),
                (*tables, tuned_map.winners(points)),
            )
        return Section(told("tuned"), claims(best, chosen, sweeps), pictures, tables)


def named(family: str) -> str:
    """The name of a policy in prose."""
    return NAMES[type(FAMILIES[family](1.0)).__name__]


def curve(swept: Results, family: str) -> tuple[list[float], list[str]]:
    """The values of c that the sweep tried for a policy, and their labels."""
    name = type(FAMILIES[family](1.0)).__name__
    tried = [values for values in swept.specification["policies"] if values["name"] == name]
    return [values["c"] for values in tried], [Policy.from_dict(values).label for values in tried]


def claims(
    best: dict[str, Results], chosen: dict[str, dict[str, float]], sweeps: dict[str, Results]
) -> tuple[Claim, ...]:
    """Whether FTPL leads when every policy is tuned, and how much of the lead at c = 2 comes from the scale of the rate."""
    leads, shares = [], []
    for name, results in best.items():
        ours, *rivals = results.labels
        for family, rival in zip(("FTRL", "EXP3"), rivals, strict=True):
            differences = results.final_regret(rival) - results.final_regret(ours)
            label = f"{named(family)} (c = {chosen[name][family]:g}) - FTPL (c = {chosen[name]['FTPL']:g}), {name}"
            leads.append(mean_of(label, differences, 2 * len(best)))
    for name, swept in sweeps.items():
        ftpl, slow, fast = map(swept.final_regret, ("FTPL", "TsallisINF", "TsallisINF(c=6)"))
        shares.append(ratio_of(name, slow - fast, slow - ftpl, len(sweeps)))
    return judge("tuned-lowest", leads), judge("tuned-scale", shares)


def sweep_picture(sweeps: dict[str, Results]) -> Picture:
    """Regret by c."""
    panels = []
    for name, swept in sweeps.items():
        series = []
        for style, family in enumerate(FAMILIES):
            rates, labels = curve(swept, family)
            lines = swept.summary().loc[labels]
            mean, half = lines["mean"].to_numpy(), (lines["high"] - lines["mean"]).to_numpy()
            series.append(Series(named(family), np.array(rates), mean, half, style))
        panels.append(Panel(name, tuple(series), "c", "regret", log_x=True, log_y=True))
    runs = next(iter(sweeps.values())).runs
    caption = f"Mean regret after 10,000 rounds, {runs:,} runs per point, with bands of the 95 % interval of the mean. The paper sets c = 2."
    return Picture("tuned-sweep", "Regret by c", caption, tuple(panels), columns=3)


def best_picture(best: dict[str, Results], chosen: dict[str, dict[str, float]]) -> Picture:
    """The paper's figures with tuned policies."""
    panels = []
    for name, results in best.items():
        rates = ", ".join(f"{named(family)} {c:g}" for family, c in chosen[name].items())
        names = dict(zip(results.labels, map(named, FAMILIES), strict=True))
        panels.append(named_panel(f"{name} (c: {rates})", results, names))
    runs = next(iter(best.values())).runs
    caption = f"Mean regret over {runs:,} runs on new seeds, with bands of the 95 % interval of the mean. Each policy has its best c."
    return Picture("tuned-best", "Every policy at its best c", caption, tuple(panels), columns=3)
