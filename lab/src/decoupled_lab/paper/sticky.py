"""Beyond the paper: a key that comes in every round keeps its perturbations. Regret stays, switches all but vanish."""

from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from decoupled.environments import Alternating, Bernoulli, Environment, LossTable
from decoupled.plots import NAMES, Panel, Picture, Series
from decoupled.policies import FTPL, CoupledTsallisINF, Ladder, Policy, TsallisINF
from decoupled.simulation import Block, BlockResult, Plan, Results, as_rounds, make_plan

from ..playing import play_keys
from ..report.claims import Claim, mean_of, ratio_of
from ..report.page import ReportTable, Section
from ..theory.bounds import switches as bound_on_switches
from .base import PlayedByLearners, Scale, judge, told

STICKY: tuple[Policy, ...] = (FTPL(), TsallisINF(), Ladder())
COUPLED = CoupledTsallisINF()
SETTLED, HORIZON = 8, 10_000  # how often the best arm is drawn anew, and the rounds
KEYED, FRESH = "keyed", "fresh"
ONE, MANY = 1, 20  # keys: one comes in every round, the regret of several varies less

ENDING = " switches"


class Cell(NamedTuple):
    """The results of a plan, and the same with switches of a key in place of regret."""

    regret: Results
    switches: Results


Pairs: TypeAlias = dict[str, tuple[Cell, Cell]]  # keyed and fresh draws, by world


def redrawn(arms: int, horizon: int) -> LossTable:
    """The best arm is drawn anew eight times; its losses have the mean 0.3, and those of all others 0.5."""
    best = np.random.default_rng(0).integers(arms, size=SETTLED)
    means = np.where(np.arange(arms) == best[:, None], 0.3, 0.5)
    index = np.repeat(np.arange(SETTLED), -(-horizon // SETTLED))[:horizon]
    return LossTable(means.tolist(), index.tolist(), noise="bernoulli")


def worlds(horizon: int) -> dict[str, Environment]:
    """The three worlds by their titles."""
    return {
        "stochastic, K = 4, gap 0.1": Bernoulli(rewards=[0.6, 0.5, 0.5, 0.5]),
        "alternating, K = 16, gap 0.125": Alternating(arms=16, gap=0.125),
        "best arm drawn anew, K = 16": redrawn(16, horizon),
    }


class Sticky(PlayedByLearners):
    """Keys with their own draws and with fresh ones."""

    def plans(self, scale: Scale) -> dict[str, Plan]:
        horizon = HORIZON // 10 if scale.quick else HORIZON
        return {
            plan_name(title, keys, how): make_plan(
                policies, world, horizon, scale.fewer(part), scale.seed, "log"
            )
            for title, world in worlds(horizon).items()
            for keys, part in ((ONE, 10), (MANY, 20))
            for how, policies in ((KEYED, STICKY), (FRESH, (*STICKY, COUPLED)))
        }

    def play(self, name: str, plan: Plan, block: Block) -> dict[str, BlockResult]:
        keys, how = name.rpartition("; ")[2].split()
        regret, switches, plays = play_keys(
            plan.policies[block.policy],
            plan.environment,
            as_rounds(plan),
            plan.seed,
            block.first,
            keys=int(keys),
            is_sticky=how == KEYED,
        )
        return {"": BlockResult(regret[None], plays), ENDING: BlockResult(switches[None], plays)}

    def section(self, folder: Path) -> Section:
        cells = self.results(folder)
        alone, many = _pairs(cells, ONE), _pairs(cells, MANY)
        tables = (table(alone, ONE), table(many, MANY))
        return Section(told("sticky"), tuple(claims(alone, many)), (picture(alone),), tables)


def plan_name(title: str, keys: int, how: str) -> str:
    """The name of a plan: the world, the number of keys, and how they draw."""
    return f"{title}; {keys} {how}"


def _pairs(results: dict[str, Results], keys: int) -> Pairs:
    """The results with a key's own draws and with fresh ones, by world."""
    pairs = {}
    for title in worlds(HORIZON):
        keyed, fresh = (plan_name(title, keys, how) for how in (KEYED, FRESH))
        pairs[title] = (
            Cell(results[keyed], results[keyed + ENDING]),
            Cell(results[fresh], results[fresh + ENDING]),
        )
    return pairs


def picture(pairs: Pairs) -> Picture:
    """Switches by round: the key's own draws, and fresh ones."""
    panels = []
    for title, (keyed, fresh) in pairs.items():
        own = _switch_series(keyed, KEYED)
        new = _switch_series(fresh, FRESH)
        thin = tuple(each._replace(kind="fit") for each in new)
        lines = (*own, *thin)
        panels.append(
            Panel(title, lines, y_label="switches of a key so far", log_x=True, log_y=True)
        )
    runs = next(iter(pairs.values()))[0].regret.runs
    caption = f"How often a key that is served in every round was moved to another arm, mean of {runs:,} runs with 95 % intervals. Thin lines are fresh draws."
    return Picture("sticky", "Switches of a key", caption, tuple(panels), columns=3)


def _switch_series(cell: Cell, how: str) -> tuple[Series, ...]:
    return cell.switches.series([f"{_name(label)}, {how}" for label in cell.switches.labels])


def table(pairs: Pairs, keys: int) -> ReportTable:
    """Regret and switches at the horizon."""
    rows = []
    for title, (keyed, fresh) in pairs.items():
        counts = (keyed.regret, fresh.regret, keyed.switches, fresh.switches)
        statistics = [results.statistics() for results in counts]
        for label in fresh.regret.labels:
            cells = [f"{each[label]['mean']:,.1f}" if label in each else "" for each in statistics]
            rows.append((f"{title}: {_name(label)}", *cells))
    head = ("policy", "regret, keyed", "regret, fresh", "switches, keyed", "switches, fresh")
    who = "a key that comes in every round" if keys == ONE else f"{keys} keys that take turns"
    return ReportTable(f"Regret, and the switches of a key: {who}", head, tuple(rows))


def claims(alone: Pairs, many: Pairs) -> list[Claim]:
    """Regret equal; switches below the bound, and below half of those of fresh draws."""
    count = len(alone) * len(STICKY)
    differences, ratios, bounded = [], [], []
    for title, (keyed, fresh) in alone.items():
        horizon, arms = keyed.regret.horizon, keyed.regret.data.sizes["arm"]
        for policy in STICKY:
            of = f"{title}: {_name(policy.label)}"
            own, new = (cell.switches.final_regret(policy) for cell in (keyed, fresh))
            ratios.append(ratio_of(of, own, new, count))
            own, new = (cell.regret.final_regret(policy) for cell in many[title])
            differences.append(mean_of(of, (own - new) / np.sqrt(arms * horizon), count))
        share = keyed.switches.final_regret(FTPL()) / bound_on_switches(horizon, arms)
        bounded.append(mean_of(title, share, len(alone)))
    return [
        judge("sticky-regret", differences),
        judge("sticky-switches", ratios),
        judge("sticky-bound", bounded),
    ]


def _name(label: str) -> str:
    return {COUPLED.label: "Tsallis-INF, standard game", **NAMES}[label]
