"""Beyond the paper: instances that were drawn at random after every parameter had been fixed.

Parameters look too good on the instances they were tuned on. These instances are drawn at random, and none
of them is in the paper: the numbers of arms differ, and gaps and levels are real numbers. Regimes, levels,
noise, drift and adversaries all vary.
"""

import math
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from decoupled.base import Floats
from decoupled.environments import (
    AdaptiveAlternating,
    Alternating,
    Environment,
    LossTable,
    PunishLast,
)
from decoupled.plots import Panel, Picture, Series
from decoupled.policies import FTPL, Ladder, Policy, TopTwo
from decoupled.simulation import Plan, make_plan, run_plan, simulate

from ..report.claims import Claim, Measure, mean_of, ratio_of
from ..report.page import ReportTable, Section
from .base import HORIZON, Advance, Recorded, Scale, code_of, formatted_extent, judge, told
from .setup import CENTRED_FTPL, CONTENDERS, TWO_RUNGS

ARMS = (2, 3, 5, 6, 7, 10, 12, 20, 24, 40, 48, 96)  # none of the paper's 4, 8, 16, 32, 64
HORIZONS = (1_000, 3_000, 10_000, 30_000)
SMOOTHING = 0.02
TAIL = 0.95


class Instance(NamedTuple):
    """An environment with its kind and its horizon."""

    kind: str
    environment: Environment
    horizon: int


# Instances, each with the regrets of every policy by its label.
Cells = list[tuple[Instance, dict[str, Floats]]]


def family(count: int, seed: int) -> list[Instance]:
    """Draw `count` instances, cycling through the kinds.

    >>> from decoupled_lab.paper.held_out import family
    >>> [instance.kind for instance in family(6, seed=0)]
    ['stochastic', 'levels', 'alternating', 'users', 'punish', 'answering']
    >>> family(2, seed=0)[1].environment.arms
    12
    """
    drawn = []
    for i, kind in zip(range(count), cycle(KINDS), strict=False):
        draw = np.random.default_rng([seed, i])
        arms, horizon = (
            int(draw.choice(ARMS)),
            int(draw.choice(HORIZONS, p=(0.15, 0.25, 0.45, 0.15))),
        )
        drawn.append(Instance(kind, KINDS[kind](draw, arms), horizon))
    return drawn


class Score(NamedTuple):
    """A policy's regret compared with that of the paper's FTPL over a family, as ratios.

    `mean` is the geometric mean over instances of the ratio of mean regrets. `tail` is the same for 95th
    percentiles. `worst` is the largest ratio of mean regrets.
    """

    mean: float
    tail: float
    worst: float


def score(policy: Policy, instances: Sequence[Instance], runs: int, seed: int = 0) -> Score:
    """Score a policy against the paper's FTPL on the same losses; negative regret counts as zero.

    SMOOTHING * sqrt(K * T) is added to both regrets, so that an instance with almost no regret does not
    dominate the score.

    >>> from decoupled import Ladder
    >>> from decoupled_lab.paper.held_out import family, score
    >>> score(Ladder(), family(2, seed=0), runs=10).mean < 1
    True
    """
    cells: Cells = []
    for place, instance in enumerate(instances):
        _, world, horizon = instance
        results = simulate([FTPL(), policy], world, horizon, runs, seed + place, checkpoints=1)
        cells.append((instance, {label: results.final_regret(label) for label in results.labels}))
    means, tails = log_ratios(cells, policy), log_ratios(cells, policy, tail=True)
    return Score(*(float(np.exp(each)) for each in (means.mean(), tails.mean(), means.max())))


def smoothed(regret: Floats, arms: int, horizon: int) -> Floats:
    """The regrets of runs as a ratio should count them: never negative, plus SMOOTHING * sqrt(K * T).

    >>> smoothed(np.array([-3.0, 3.0]), arms=4, horizon=10_000).tolist()
    [4.0, 7.0]
    """
    return np.maximum(regret, 0.0) + SMOOTHING * math.sqrt(arms * horizon)


def _log_uniform(draw: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(draw.uniform(np.log(low), np.log(high))))


def _gaps(draw: np.random.Generator, arms: int) -> Floats:
    """Gaps of at least a smallest gap, with zero for the best arm; sometimes all others are equal."""
    least = _log_uniform(draw, 0.02, 0.3)
    spread = draw.choice([0.0, 0.5, 2.0])
    gaps = least * (1.0 + spread * draw.exponential(size=arms))
    gaps[draw.integers(arms)] = 0.0
    return np.asarray(np.minimum(gaps, 0.7))


def _noise(draw: np.random.Generator) -> dict[str, Any]:
    kind = str(draw.choice(["bernoulli", "bernoulli", "beta", "none"]))
    return {"noise": kind, "concentration": _log_uniform(draw, 1.0, 20.0)}


def _stochastic(draw: np.random.Generator, arms: int) -> Environment:
    gaps = _gaps(draw, arms)
    return LossTable(rows=[draw.uniform(0.0, 1.0 - gaps.max()) + gaps], index=[0], **_noise(draw))


def _levels(draw: np.random.Generator, arms: int) -> Environment:
    """The gaps stay constant while the level jumps from one value to another after each stretch."""
    gaps, count = _gaps(draw, arms), int(draw.integers(2, 40))
    levels = draw.uniform(0.0, 1.0 - gaps.max(), count)
    stretch = int(_log_uniform(draw, 1.0, 2_000.0))
    return LossTable(
        rows=levels[:, None] + gaps, index=np.repeat(np.arange(count), stretch), **_noise(draw)
    )


def _users(draw: np.random.Generator, arms: int) -> Environment:
    """Each row is a user with a level and tastes, who comes once in a while or for many rounds in a row."""
    count = int(draw.integers(20, 400))
    worth = draw.normal(size=arms) * _log_uniform(draw, 0.03, 0.2)
    tastes = draw.normal(size=(count, arms)) * draw.uniform(0.02, 0.2)
    levels = draw.normal(draw.uniform(0.2, 0.8), 0.15, size=(count, 1))
    visits = np.repeat(draw.integers(count, size=3_000), int(_log_uniform(draw, 1.0, 100.0)))
    return LossTable(rows=np.clip(levels + worth + tastes, 0.0, 1.0), index=visits, **_noise(draw))


def _punish(draw: np.random.Generator, arms: int) -> Environment:
    level = draw.uniform(0.2, 0.8)
    window = int(draw.choice([1, 1, 5, 50]))
    return PunishLast(arms, window, gap=level * draw.uniform(0.05, 0.5), level=level)


KINDS: dict[str, Callable[[np.random.Generator, int], Environment]] = {
    "stochastic": _stochastic,
    "levels": _levels,
    "alternating": lambda draw, arms: Alternating(
        arms, _log_uniform(draw, 0.02, 0.4), draw.uniform(1.2, 3.0)
    ),
    "users": _users,
    "punish": _punish,
    "answering": lambda draw, arms: AdaptiveAlternating(arms, gap=_log_uniform(draw, 0.03, 0.4)),
}


COUNT, SEED = 96, 1009  # neither tuned on nor looked at before the values were fixed
POLICIES: dict[Policy, str] = {
    **CONTENDERS,
    TWO_RUNGS: "The ladder with two rungs",
    TopTwo(): "Top two",
}
PAPER, OURS = FTPL(), Ladder()


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
                tuple(POLICIES), world, horizon, runs * max(1, HORIZON // horizon), scale.seed + place, 1,
                device=scale.device,
            )
            for place, (_, world, horizon) in enumerate(self.instances(scale))
        ]  # fmt: skip

    def units(self, scale: Scale) -> int:
        return sum(plan.rounds for plan in self.plans(scale))

    def code(self, scale: Scale) -> dict[object, Callable[[], object]]:
        return code_of(self.plans(scale), scale.device)

    def record(self, scale: Scale, advance: Advance) -> dict[str, Any]:
        regrets = []
        for plan in self.plans(scale):
            results = run_plan(plan, curves="moments", report=lambda done, seconds: advance(done))
            regrets.append(
                {policy.label: results.final_regret(policy).tolist() for policy in POLICIES}
            )
        return {"regrets": regrets}

    def regrets(self, folder: Path) -> Cells:
        """Each instance with the regrets of every policy, one number per run."""
        saved = self.saved(folder)
        kept = [
            {label: np.array(each) for label, each in cell.items()} for cell in saved["regrets"]
        ]
        return list(zip(self.instances(Scale(**saved["scale"])), kept, strict=True))

    def extent(self, folder: Path) -> str:
        return formatted_extent(
            (len(kept[PAPER.label]), instance.horizon) for instance, kept in self.regrets(folder)
        )

    def section(self, folder: Path) -> Section:
        cells = self.regrets(folder)
        return Section(told("held-out"), tuple(claims(cells)), (picture(cells),), (table(cells),))


def counted_regret(instance: Instance, regret: Floats) -> Floats:
    """The regrets of an instance's runs as a score counts them."""
    return smoothed(regret, instance.environment.arms, instance.horizon)


def log_ratios(cells: Cells, policy: Policy, tail: bool = False) -> Floats:
    """The logarithm of a policy's regret over the paper's, one number per instance."""

    def size(instance: Instance, regret: Floats) -> float:
        counted = counted_regret(instance, regret)
        return float(np.quantile(counted, TAIL) if tail else counted.mean())

    of, over = policy.label, PAPER.label
    return np.array([math.log(size(at, kept[of]) / size(at, kept[over])) for at, kept in cells])


def geometric(of: str, logs: Floats, comparisons: int = 1) -> Measure:
    """The geometric mean of ratios, with the interval of the mean of their logarithms."""
    part = mean_of(of, logs, comparisons)
    value, low, high = (float(np.exp(each)) for each in part[1:4])
    return Measure(of, value, low, high)


def punishing(cells: Cells) -> Cells:
    """The instances with adversaries that punish."""
    return [cell for cell in cells if cell[0].kind == "punish"]


def claims(cells: Cells) -> list[Claim]:
    """The claims about means, tails, adversaries, single instances and other policies."""
    among = punishing(cells)
    rivals = [policy for policy in POLICIES if policy not in (PAPER, OURS)]
    ours = log_ratios(cells, OURS)
    single = []
    for place, (instance, kept) in enumerate(cells):
        name = (
            f"{place}: {instance.kind}, K = {instance.environment.arms}, T = {instance.horizon:,}"
        )
        above, below = (counted_regret(instance, kept[policy.label]) for policy in (OURS, PAPER))
        single.append(ratio_of(name, above, below, len(cells)))
    over_rivals = [
        geometric(POLICIES[rival], ours - log_ratios(cells, rival), len(rivals)) for rival in rivals
    ]
    ours_punished = log_ratios(among, OURS)
    over_centred = ours_punished - log_ratios(among, CENTRED_FTPL)
    return [
        judge("held-out-mean", [geometric("all instances", ours)]),
        judge("held-out-tail", [geometric("all instances", log_ratios(cells, OURS, tail=True))]),
        judge(
            "held-out-punished", [geometric(f"{len(among)} punishing adversaries", ours_punished)]
        ),
        judge("held-out-worst", single),
        judge("held-out-rivals", over_rivals),
        judge("held-out-centred", [geometric("punishing adversaries", over_centred)]),
    ]


def table(cells: Cells) -> ReportTable:
    """The scores of every policy."""
    rows = []
    for policy, name in POLICIES.items():
        means = log_ratios(cells, policy)
        punished = log_ratios(punishing(cells), policy)
        parts = (
            geometric("", logs) for logs in (means, log_ratios(cells, policy, tail=True), punished)
        )
        shown = (f"{part.value:.3f} ({part.low:.2f} to {part.high:.2f})" for part in parts)
        rows.append((name, *shown, f"{np.exp(means.max()):.2f}"))
    head = ("", "mean regret", "95th percentile", "punishing adversaries", "worst instance")
    return ReportTable("Ratios to the paper's FTPL, with 95 % intervals", head, tuple(rows))


def picture(cells: Cells) -> Picture:
    """The ratios of every instance, sorted, for each policy."""
    panels = tuple(
        Panel(title, sorted_ratios(among), "instances, sorted for each policy", "regret over the paper's", log_y=True)
        for title, among in (("all instances", cells), ("punishing adversaries", punishing(cells)))
    )  # fmt: skip
    caption = f"Ratio of mean regrets to the paper's FTPL on {len(cells)} instances. A curve below 1 is better than the paper's policy."
    return Picture(
        "held-out", "Regret over the paper's, instance by instance", caption, panels, columns=2
    )


def sorted_ratios(cells: Cells) -> tuple[Series, ...]:
    """A curve for each policy but the paper's."""
    place = np.arange(1.0, len(cells) + 1.0)
    return tuple(
        Series(name, place, np.sort(np.exp(log_ratios(cells, policy))), None, style)
        for style, (policy, name) in enumerate(POLICIES.items())
        if policy != PAPER
    )
