"""Beyond the paper: feedback that comes late or never, measured beside the bounds for it."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from decoupled.environments import Alternating, Environment, LossTable
from decoupled.plots import Panel, Picture, Series
from decoupled.policies import FTPL, Ladder, Policy
from decoupled.simulation import Plan, Results, Traffic, make_plan

from ..report.claims import Claim, Measure, judged_above, judged_below, mean_of, ratio_of
from ..report.page import Section
from ..theory import bounds
from .base import HORIZON, Scale, Simulated
from .setup import WITHOUT_MEMORY, mean_series, regret_picture, regret_table

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
            title: make_plan(policies, world, horizon, scale.fewer(2), scale.seed, 50, traffic=traffic)
            for title, (world, traffic) in worlds(horizon).items()
        }

    def section(self, folder: Path) -> Section:
        cells = self.results(folder)
        others = {name: each for name, each in cells.items() if name not in map(by_delay, DELAYS)}
        text = (
            f"Alternating losses ($K = {ARMS}$, gap {GAP}) with feedback that comes some rounds late, with random delays, and with half of it lost; and a square wave, in which an arm costs nothing for twice the delay and then "
            "becomes as bad as the others. The bounds hold for any losses that are fixed in advance, and for alternating losses they are far too large."
        )
        title = "Random delays, lost feedback, and a world made for delay"
        pictures = (delay_picture(cells), regret_picture("late-others", title, others, 2, names=NAMES))
        return Section(text, tuple(claims(cells)), pictures, (regret_table(cells, NAMES),))


def delay_picture(cells: dict[str, Results]) -> Picture:
    """Regret by delay, and the bounds."""
    at, horizon, runs = np.array(DELAYS, float), cells[by_delay(0)].horizon, cells[by_delay(0)].runs
    series = [
        mean_series(name, at, [cells[by_delay(delay)].final_regret(label) for delay in DELAYS], style)
        for style, (label, name) in enumerate(NAMES.items())
    ]
    for place, (policy, (theorem, bound)) in enumerate(BOUNDS.items(), len(series)):
        line = np.array([bound(horizon, delay) for delay in DELAYS])
        series.append(Series(f"{theorem}, for {NAMES[policy.label]}", at, line, None, place))
    series.append(Series("gap x T", at, np.full(len(at), GAP * horizon), None, len(series)))
    panel = Panel("alternating losses", tuple(series), "delay in rounds", "regret", log_y=True)
    caption = f"Mean regret at T = {horizon:,} over {runs:,} runs, with 95 % intervals."
    return Picture("late", "Regret by delay, and its bounds", caption, (panel,))


def claims(cells: dict[str, Results]) -> list[Claim]:
    """What late feedback costs, and what the memory changes then."""

    def over(rival: Policy, among: Sequence[str]) -> list[Measure]:
        finals = [
            (title, cells[title].final_regret(OURS), cells[title].final_regret(rival)) for title in among
        ]
        return [ratio_of(title, ours, theirs, len(among)) for title, ours, theirs in finals]

    square = [title for title in cells if title.startswith("square")]
    alternating = [title for title in cells if title not in square]
    prompt = cells[by_delay(0)].final_regret(OURS)
    added = [
        mean_of(by_delay(delay), (cells[by_delay(delay)].final_regret(OURS) - prompt) / delay, 2)
        for delay in DELAYS[2:]
    ]
    bounded = [
        mean_of(
            f"{theorem}, {by_delay(delay)}",
            cells[by_delay(delay)].final_regret(policy) / bound(cells[by_delay(delay)].horizon, delay),
            len(BOUNDS) * len(DELAYS),
        )
        for policy, (theorem, bound) in BOUNDS.items()
        for delay in DELAYS
    ]
    of = "regret of Ladder() over that of "
    return [
        judged_below("late-paper", "ours", "On alternating losses, whatever happens to feedback, Ladder() has at most a fifth of the regret of FTPL(c=0.34).", of + "FTPL(c=0.34)", over(PAPER, alternating), 0.2),
        judged_above("late-square", "ours", "On the square wave, which is made for delay, it has more.", of + "FTPL(c=0.34)", over(PAPER, square), 1.0),
        judged_below("late-memory", "ours", "Its memory adds at most a quarter to its regret.", of + "Ladder(memory=None)", over(WITHOUT_MEMORY, list(cells)), 1.25),
        judged_below("late-added", "ours", "On alternating losses, each round of a delay of 40 or 200 adds less than 1.", "regret minus that of prompt feedback, over the delay", added, 1.0),
        judged_below("late-bounds", "ours", "On alternating losses, regret stays below the bounds for late feedback.", "regret over its bound", bounded, 1.0),
    ]  # fmt: skip
