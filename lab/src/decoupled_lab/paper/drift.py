"""Beyond the paper: worlds that change, and what the ladder gains there from its memory of the recent past."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from decoupled.base import Floats
from decoupled.environments import Bernoulli, Drifting, Environment, LossTable
from decoupled.plots import Panel, Picture
from decoupled.policies import FTPL, Forgetting, Ladder, Policy, TopTwo
from decoupled.simulation import Plan, Results, described, make_plan, table_and_best

from ..report.claims import Claim, Measure, mean_of, ratio_of
from ..report.page import ReportTable, Section
from .base import HORIZON, Scale, Simulated, judge, told
from .setup import WITHOUT_MEMORY

SEED = 4501  # of the walks; no value of a policy was chosen on any world here
STEPS = 1_000  # of a walk
PHASES = 8
OURS, PAPER, TOP_TWO = Ladder(), FTPL(), TopTwo()
POLICIES = {
    PAPER: "FTPL",
    TOP_TWO: "TopTwo()",
    WITHOUT_MEMORY: "Ladder(memory=None)",
    OURS: "Ladder()",
}
PERIODIC, STILL = "periodic", "nothing changes"


def walk(arms: int, step: float, horizon: int) -> LossTable:
    """Mean losses that take a thousand normal steps, and turn back at 0 and 1."""
    draw = np.random.default_rng((SEED, arms))
    path = draw.random(arms) + step * draw.normal(size=(STEPS, arms)).cumsum(axis=0)
    return LossTable(
        np.abs((path + 1.0) % 2.0 - 1.0).round(4), STEPS * np.arange(horizon) // horizon
    )


def bloomer(horizon: int) -> LossTable:
    """The last of five arms is the worst for three fifths of the rounds, and the best afterwards."""
    index = np.arange(horizon) >= 3 * horizon // 5
    return LossTable([[0.3, 0.4, 0.5, 0.6, 0.8], [0.3, 0.4, 0.5, 0.6, 0.1]], index.astype(int))


def slow_bloomer(horizon: int) -> LossTable:
    """The last of ten arms is the worst for half of the rounds, then gets better in a hundred steps, and ends the best."""
    others = np.tile(np.linspace(0.4, 0.56, 9), (101, 1))
    index = np.maximum(0, 200 * np.arange(horizon) // horizon - 99)
    return LossTable(np.column_stack([others, np.linspace(0.9, 0.1, 101)]).round(4), index)


def worlds(horizon: int) -> dict[str, Environment]:
    """The worlds by their titles."""
    return {
        PERIODIC: Drifting(arms=6, gap=0.3, period=horizon // PHASES),
        "random walk, K = 3": walk(3, 0.05, horizon),
        "random walk, K = 6": walk(6, 0.03, horizon),
        "random walk, K = 12": walk(12, 0.02, horizon),
        "late bloomer, K = 5": bloomer(horizon),
        "slow bloomer, K = 10": slow_bloomer(horizon),
        STILL: Bernoulli(rewards=[0.6, *[0.5] * 7]),
    }


def policies(title: str, horizon: int) -> dict[Policy, str]:
    """The policies in a world, with their names. Where the period is known, one of them starts again after each."""
    known: dict[Policy, str] = {Forgetting(OURS, period=horizon // PHASES): "Ladder(), restarted"}
    return POLICIES | known if title == PERIODIC else POLICIES


class Drift(Simulated):
    """Regret against the best arm of each round, in worlds that change."""

    def plans(self, scale: Scale) -> dict[str, Plan]:
        horizon = HORIZON // 4 if scale.quick else HORIZON
        return {
            title: make_plan(tuple(policies(title, horizon)), there, horizon, runs, scale.seed, 50)
            for title, there in worlds(horizon).items()
            for runs in (scale.fewer(1 if title == STILL else 5),)  # the smallest regrets vary most
        }

    def section(self, folder: Path) -> Section:
        cells = self.results(folder)
        regrets = {}  # of every run, by world and the policy's name
        for title, results in cells.items():
            lead, known = (
                lead_of_moving(title, results.horizon)[-1],
                policies(title, results.horizon),
            )
            regrets[title] = {
                name: results.final_regret(policy) + lead for policy, name in known.items()
            }
        return Section(told("drift"), tuple(claims(regrets)), (picture(cells),), (table(regrets),))


def lead_of_moving(title: str, horizon: int) -> Floats:
    """How much less the best arm of each round has cost than the best single arm, up to each round."""
    table, best = table_and_best(worlds(horizon)[title], horizon)
    return np.asarray((table.rows[:, best] - table.rows.min(axis=1))[table.row_at].cumsum())


def picture(cells: dict[str, Results]) -> Picture:
    """Regret against the best arm of each round, by round."""
    panels = []
    for title, results in cells.items():
        lead = lead_of_moving(title, results.horizon)
        series = results.series(list(policies(title, results.horizon).values()))
        moved = tuple(each._replace(y=each.y + lead[each.x.astype(int) - 1]) for each in series)
        panels.append(Panel(title, moved, y_label=described("mean", results.runs)))
    caption = "Mean regret against the best arm of each round, with 95 % intervals."
    return Picture("drift", "Worlds that change", caption, tuple(panels), columns=2)


def table(regrets: dict[str, dict[str, Floats]]) -> ReportTable:
    """The mean regret of every policy, and how much of it the memory leaves."""
    names = list(policies(PERIODIC, HORIZON).values())
    rows = []
    for title, known in regrets.items():
        parts = [mean_of(name, known[name]) for name in names if name in known]
        cells = [f"{each.value:,.0f} ± {each.high - each.value:,.0f}" for each in parts]
        ratio = ratio_of(title, known["Ladder()"], known["Ladder(memory=None)"])
        cells += [""] * (len(names) - len(cells))
        rows.append((title, *cells, f"{ratio.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"))
    head = ("", *names, "Ladder() over Ladder(memory=None)")
    return ReportTable(
        "Regret against the best arm of each round, with 95 % intervals", head, tuple(rows)
    )


def claims(regrets: dict[str, dict[str, Floats]]) -> list[Claim]:
    """What the memory gains where the world changes, and what it costs where it does not."""
    changing = [title for title in regrets if title != STILL]

    def over(rival: str, among: Sequence[str]) -> list[Measure]:
        known = [(title, regrets[title]) for title in among]
        return [ratio_of(title, each["Ladder()"], each[rival], len(among)) for title, each in known]

    return [
        judge("drift-memory", over("Ladder(memory=None)", changing)),
        judge("drift-paper", over("FTPL", changing)),
        judge("drift-top-two", over("TopTwo()", changing)),
        judge("drift-restarted", over("Ladder(), restarted", [PERIODIC])),
        judge("drift-still", over("Ladder(memory=None)", [STILL])),
    ]
