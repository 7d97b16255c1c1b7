"""Beyond the paper: instances that were drawn at random after every parameter had been fixed."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from decoupled.base import Floats
from decoupled.plots import Panel, Picture, Series
from decoupled.policies import FTPL, Ladder, Policy, TopTwo
from decoupled.simulation import Plan, make_plan, run_plan

from ..report.claims import Claim, Measure, judged_below, mean_of, ratio_of
from ..report.section import ReportTable, Section
from .base import HORIZON, Advance, Recorded, Scale, code_of, formatted_extent
from .family import KINDS, TAIL, Instance, family, smoothed
from .setup import CENTRED_FTPL, CONTENDERS, TWO_RUNGS

COUNT, SEED = 96, 1009  # neither tuned on nor looked at before the values were fixed
POLICIES: dict[Policy, str] = {**CONTENDERS, TWO_RUNGS: "The ladder with two rungs", TopTwo(): "Top two"}
PAPER, OURS = FTPL(), Ladder()
PUNISHING = "punish"


class HeldOut(Recorded):
    """Every policy on every instance, as ratios to the paper's FTPL. Only final regrets are saved: the instances are large, and a seed gives them again."""

    on_device = True

    def instances(self, scale: Scale) -> list[Instance]:
        """All instances, or two of each kind in the quick version."""
        return family(2 * len(KINDS) if scale.quick else COUNT, SEED)

    def plans(self, scale: Scale) -> list[Plan]:
        """A plan for each instance."""
        # Short runs vary more and cost less, so there are more of them.
        runs = scale.fewer(15)
        return [
            make_plan(
                tuple(POLICIES),
                world,
                horizon,
                runs * max(1, HORIZON // horizon),
                scale.seed + place,
                1,
                scale.device,
            )
            for place, (_, world, horizon) in enumerate(self.instances(scale))
        ]

    def units(self, scale: Scale) -> int:
        return sum(plan.rounds for plan in self.plans(scale))

    def code(self, scale: Scale) -> dict[object, Callable[[], object]]:
        return code_of(self.plans(scale), scale.device)

    def record(self, scale: Scale, advance: Advance) -> dict[str, Any]:
        regrets = []
        for plan in self.plans(scale):
            results = run_plan(plan, curves="moments", report=lambda done, seconds: advance(done))
            regrets.append({policy.label: results.final_regret(policy).tolist() for policy in POLICIES})
        return {"regrets": regrets}

    def regrets(self, folder: Path) -> list[tuple[Instance, dict[str, Floats]]]:
        """Each instance with the regrets of every policy, one number per run."""
        saved = self.saved(folder)
        kept = [{label: np.array(each) for label, each in cell.items()} for cell in saved["regrets"]]
        return list(zip(self.instances(Scale(**saved["scale"])), kept, strict=True))

    def extent(self, folder: Path) -> str:
        return formatted_extent(
            (len(kept[PAPER.label]), instance.horizon) for instance, kept in self.regrets(folder)
        )

    def section(self, folder: Path) -> Section:
        cells = self.regrets(folder)
        text = (
            "Instances of six kinds are drawn from a seed: stochastic losses, constant gaps under wandering levels, alternating losses, users with tastes, and two adaptive adversaries. "
            "They have 2 to 96 arms and 1,000 to 30,000 rounds. The values of <code>Ladder()</code> were chosen on other seeds, and this one was run after they had been fixed. "
            "The ratio of an instance is that of the mean regrets, where a negative regret counts as 0 and $0.02 \\sqrt{KT}$ is added to both, so that an instance with almost no regret does not decide. "
            "Means over instances are geometric. Their intervals are about instances drawn like these, not about these alone."
        )
        return Section(text, tuple(claims(cells)), (picture(cells),), (table(cells),))


Cells = list[tuple[Instance, dict[str, Floats]]]


def counted_regret(instance: Instance, regret: Floats) -> Floats:
    """The regrets of an instance's runs as a score counts them."""
    return smoothed(regret, instance.environment.arms, instance.horizon)


def log_ratios(cells: Cells, policy: Policy, tail: bool = False) -> Floats:
    """The logarithm of a policy's regret over the paper's, one number per instance."""

    def size(instance: Instance, regret: Floats) -> float:
        counted = counted_regret(instance, regret)
        return float(np.quantile(counted, TAIL) if tail else counted.mean())

    return np.array(
        [math.log(size(at, kept[policy.label]) / size(at, kept[PAPER.label])) for at, kept in cells]
    )


def geometric(of: str, logs: Floats, comparisons: int = 1) -> Measure:
    """The geometric mean of ratios, with the interval of the mean of their logarithms."""
    part = mean_of(of, logs, comparisons)
    value, low, high = (float(np.exp(each)) for each in part[1:4])
    return Measure(of, value, low, high)


def only(cells: Cells, kind: str) -> Cells:
    """The instances of a kind."""
    return [cell for cell in cells if cell[0].kind == kind]


def claims(cells: Cells) -> list[Claim]:
    """The claims about means, tails, adversaries, single instances and other policies."""
    punishing = only(cells, PUNISHING)
    statistic = "regret over that of the paper's FTPL, geometric mean over instances"
    rivals = [policy for policy in POLICIES if policy not in (PAPER, OURS)]
    ours = log_ratios(cells, OURS)
    single = [
        ratio_of(
            f"{place}: {instance.kind}, K = {instance.environment.arms}, T = {instance.horizon:,}",
            counted_regret(instance, kept[OURS.label]),
            counted_regret(instance, kept[PAPER.label]),
            len(cells),
        )
        for place, (instance, kept) in enumerate(cells)
    ]
    return [
        judged_below("held-out-mean", "ours", "The recommended setting has at most 0.4 of the regret of the paper's policy on average.", statistic, [geometric("all instances", ours)], 0.4),
        judged_below("held-out-tail", "ours", "The same holds for 95th percentiles, with at most 0.5.", f"{statistic}, of 95th percentiles", [geometric("all instances", log_ratios(cells, OURS, tail=True))], 0.5),
        judged_below("held-out-punished", "ours", "Against adversaries that punish what is exploited most, it has at most 0.75 of that regret on average.", statistic, [geometric(f"{len(punishing)} punishing adversaries", log_ratios(punishing, OURS))], 0.75),
        judged_below("held-out-worst", "ours", "On no instance does it have more than 1.2 times the regret of the paper's policy.", "regret over that of the paper's FTPL, instance by instance", single, 1.2),
        judged_below("held-out-rivals", "ours", "On average it has less regret than each of the other policies.", "regret of Ladder() over that of another policy, geometric mean over instances", [geometric(POLICIES[rival], ours - log_ratios(cells, rival), len(rivals)) for rival in rivals], 1.0),
        judged_below("held-out-centred", "ours", "Against punishing adversaries, it has at most 0.8 of the regret of centred FTPL.", "regret of Ladder() over that of centred FTPL, geometric mean over instances", [geometric("punishing adversaries", log_ratios(punishing, OURS) - log_ratios(punishing, CENTRED_FTPL))], 0.8),
    ]  # fmt: skip


def table(cells: Cells) -> ReportTable:
    """The scores of every policy."""
    rows = []
    for policy, name in POLICIES.items():
        means = log_ratios(cells, policy)
        parts = (
            geometric("", means),
            geometric("", log_ratios(cells, policy, tail=True)),
            geometric("", log_ratios(only(cells, PUNISHING), policy)),
        )
        shown = (f"{part.value:.3f} ({part.low:.2f} to {part.high:.2f})" for part in parts)
        rows.append((name, *shown, f"{np.exp(means.max()):.2f}"))
    head = ("", "mean regret", "95th percentile", "punishing adversaries", "worst instance")
    return ReportTable("Ratios to the paper's FTPL, with 95 % intervals", head, tuple(rows))


def picture(cells: Cells) -> Picture:
    """The ratios of every instance, sorted, for each policy."""
    panels = tuple(
        Panel(title, sorted_ratios(among), "instances, sorted for each policy", "regret over the paper's", log_y=True)
        for title, among in (("all instances", cells), ("punishing adversaries", only(cells, PUNISHING)))
    )  # fmt: skip
    caption = f"Ratio of mean regrets to the paper's FTPL on {len(cells)} instances. A curve below 1 is better than the paper's policy."
    return Picture("held-out", "Regret over the paper's, instance by instance", caption, panels, columns=2)


def sorted_ratios(cells: Cells) -> tuple[Series, ...]:
    """A curve for each policy but the paper's."""
    place = np.arange(1.0, len(cells) + 1.0)
    return tuple(
        Series(name, place, np.sort(np.exp(log_ratios(cells, policy))), None, style)
        for style, (policy, name) in enumerate(POLICIES.items())
        if policy != PAPER
    )
