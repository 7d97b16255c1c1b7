"""Beyond the paper: feedback that comes late or never, or of a share of the decisions, beside the bounds for it."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from decoupled.environments import Alternating, Environment, LossTable
from decoupled.plots import Panel, Picture, Series
from decoupled.policies import FTPL, Ladder, Policy
from decoupled.simulation import Plan, Results, Traffic, make_plan

from ..report.claims import Claim, Measure, mean_of, ratio_of
from ..report.page import Section
from ..theory import bounds
from .base import HORIZON, Scale, Simulated, judge, told
from .setup import (
    BENCHMARKS,
    WITHOUT_MEMORY,
    mean_series,
    regret_picture,
    regret_ratio,
    regret_table,
)

ARMS, GAP = 8, 0.125
DELAYS = (0, 10, 40, 200)
OURS, PAPER = Ladder(), FTPL(c=0.34)  # at this c the bound is smallest with prompt feedback
NAMES = {
    PAPER.label: "FTPL(c=0.34)",
    WITHOUT_MEMORY.label: "Ladder(memory=None)",
    OURS.label: "Ladder()",
}
ALTERNATING = Alternating(ARMS, GAP)
# From the rounds and the delay, by the policy that the theorem is about.
BOUNDS: dict[Policy, tuple[str, Callable[[int, int], float]]] = {
    PAPER: ("theorem G1", lambda horizon, delay: bounds.theorem_g1(horizon, ARMS, delay, PAPER)),
    OURS: ("theorem G2", lambda horizon, delay: bounds.theorem_g2(horizon, ARMS, delay, OURS)),
}


def square_wave(delay: int, horizon: int) -> LossTable:
    """One arm costs nothing and all others 1; it is the next arm's turn when what was learned of the last one arrives.

    >>> square_wave(1, 6).table(6).row_at.tolist()
    [0, 0, 1, 1, 2, 2]
    """
    return LossTable(1.0 - np.eye(ARMS), np.arange(horizon) // (2 * delay) % ARMS, noise="none")


def worlds(horizon: int) -> dict[str, tuple[Environment, Traffic]]:
    """The worlds and what happens to feedback there, by title."""
    return {
        **{by_delay(delay): (ALTERNATING, Traffic(delay=delay)) for delay in DELAYS},
        "geometric delay, mean 40": (ALTERNATING, Traffic(delay=("geometric", 40.0))),
        "delay 40, half lost": (ALTERNATING, Traffic(delay=40, missing=0.5)),
        "square wave, delay 10": (square_wave(10, horizon), Traffic(delay=10)),
        "square wave, delay 40": (square_wave(40, horizon), Traffic(delay=40)),
    }


def by_delay(delay: int) -> str:
    """The title of a constant delay."""
    return f"delay {delay}"


class Late(Simulated):
    """Regret by delay on alternating losses, with random delays and losses, and on a world made for delay."""

    def plans(self, scale: Scale) -> dict[str, Plan]:
        horizon = HORIZON // 4 if scale.quick else HORIZON
        policies = (PAPER, WITHOUT_MEMORY, OURS)
        return {
            title: make_plan(
                policies, world, horizon, scale.fewer(2), scale.seed, 50, traffic=traffic
            )
            for title, (world, traffic) in worlds(horizon).items()
        }

    def section(self, folder: Path) -> Section:
        cells = self.results(folder)
        others = {name: each for name, each in cells.items() if name not in map(by_delay, DELAYS)}
        title = "Random delays, lost feedback, and a world made for delay"
        pictures = (
            delay_picture(cells),
            regret_picture("late-others", title, others, 2, names=NAMES),
        )
        return Section(told("late"), tuple(claims(cells)), pictures, (regret_table(cells, NAMES),))


def delay_picture(cells: dict[str, Results]) -> Picture:
    """Regret by delay, and the bounds."""
    at, prompt = np.array(DELAYS, float), cells[by_delay(0)]
    series = [
        mean_series(
            name, at, [cells[by_delay(delay)].final_regret(label) for delay in DELAYS], style
        )
        for style, (label, name) in enumerate(NAMES.items())
    ]
    for place, (policy, (theorem, bound)) in enumerate(BOUNDS.items(), len(series)):
        line = np.array([bound(prompt.horizon, delay) for delay in DELAYS])
        series.append(Series(f"{theorem}, for {NAMES[policy.label]}", at, line, None, place))
    series.append(Series("gap x T", at, np.full(len(at), GAP * prompt.horizon), None, len(series)))
    panel = Panel("alternating losses", tuple(series), "delay in rounds", "regret", log_y=True)
    caption = (
        f"Mean regret at T = {prompt.horizon:,} over {prompt.runs:,} runs, with 95 % intervals."
    )
    return Picture("late", "Regret by delay, and its bounds", caption, (panel,))


def claims(cells: dict[str, Results]) -> list[Claim]:
    """What late feedback costs, and what the memory changes then."""

    def over(rival: Policy, among: Sequence[str]) -> list[Measure]:
        return [regret_ratio(title, cells[title], OURS, rival, len(among)) for title in among]

    square = [title for title in cells if title.startswith("square")]
    alternating = [title for title in cells if title not in square]
    delayed = {delay: cells[by_delay(delay)] for delay in DELAYS}
    prompt = delayed[0].final_regret(OURS)
    added = [
        mean_of(by_delay(delay), (delayed[delay].final_regret(OURS) - prompt) / delay, 2)
        for delay in DELAYS[2:]
    ]
    bounded = [
        mean_of(
            f"{theorem}, {by_delay(delay)}",
            results.final_regret(policy) / bound(results.horizon, delay),
            len(BOUNDS) * len(DELAYS),
        )
        for policy, (theorem, bound) in BOUNDS.items()
        for delay, results in delayed.items()
    ]
    return [
        judge("late-paper", over(PAPER, alternating)),
        judge("late-square", over(PAPER, square)),
        judge("late-memory", over(WITHOUT_MEMORY, list(cells))),
        judge("late-added", added),
        judge("late-bounds", bounded),
    ]


SHARES = (1.0, 0.3, 0.1, 0.03, 0.01)


def by_share(title: str, share: float) -> str:
    """The title of a world in which a coin decides who explores."""
    return f"{title}, share {share:g}"


class Looks(Simulated):
    """Regret by the share of the decisions that explore, on the paper's instances."""

    def plans(self, scale: Scale) -> dict[str, Plan]:
        horizon = HORIZON // 4 if scale.quick else HORIZON
        return {
            by_share(title, share): make_plan(
                (PAPER, OURS),
                world,
                horizon,
                scale.fewer(2),
                scale.seed,
                50,
                traffic=Traffic(explore_share=share),
            )
            for title, world in BENCHMARKS.items()
            for share in SHARES
        }

    def section(self, folder: Path) -> Section:
        cells = self.results(folder)
        pictures, tables = (looks_picture(cells),), (regret_table(cells, NAMES),)
        return Section(told("looks"), tuple(looks_claims(cells)), pictures, tables)


def looks_picture(cells: dict[str, Results]) -> Picture:
    """Regret by the share in each world, between what is proved and what no policy can beat."""
    at, first = np.array(SHARES), next(iter(cells.values()))
    panels = []
    for title, world in BENCHMARKS.items():
        here = [cells[by_share(title, share)] for share in SHARES]
        series = [
            mean_series(
                NAMES[policy.label], at, [each.final_regret(policy) for each in here], style
            )
            for style, policy in enumerate((PAPER, OURS))
        ]
        most = [bounds.theorem_h(first.horizon, world.arms, share, PAPER) for share in SHARES]
        least = [
            bounds.looks_lower_bound(first.horizon, world.arms, s * first.horizon) for s in SHARES
        ]
        series += [
            Series(f"theorem H1, for {NAMES[PAPER.label]}", at, np.array(most), None, 2),
            Series("theorem H2, for any policy and its worst losses", at, np.array(least), None, 3),
        ]
        panels.append(
            Panel(title, tuple(series), "share that explores", "regret", log_x=True, log_y=True)
        )
    caption = f"Mean regret at T = {first.horizon:,} over {first.runs:,} runs, with 95 % intervals."
    title = "Regret by the share of the decisions that explore"
    return Picture("looks", title, caption, tuple(panels), columns=1)


def looks_claims(cells: dict[str, Results]) -> list[Claim]:
    """Regret below its bound, and what a smaller share costs."""
    bounded, dearer, count = [], [], len(BENCHMARKS) * 2 * len(SHARES)
    for title, world in BENCHMARKS.items():
        for policy in (PAPER, OURS):
            whole = cells[by_share(title, 1.0)].final_regret(policy)
            for share in SHARES:
                here = cells[by_share(title, share)]
                name, regret = (
                    f"{NAMES[policy.label]}, {by_share(title, share)}",
                    here.final_regret(policy),
                )
                bound = bounds.theorem_h(here.horizon, world.arms, share, policy)
                bounded.append(mean_of(name, regret / bound, count))
                if share < 1.0:
                    dearer.append(ratio_of(name, share * regret, whole, count))
    return [judge("looks-bounds", bounded), judge("looks-price", dearer)]
