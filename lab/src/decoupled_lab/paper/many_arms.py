"""Beyond the paper: rounds whose time hardly depends on the number of arms, on real films and a million items."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from decoupled.environments import Catalogue
from decoupled.plots import Panel, Picture, Series
from decoupled.policies import FTPL, CentredFTPL, FollowTheLeader, Ladder, Policy, TsallisINF
from decoupled.simulation import Plan, Results, make_plan

from ..bench.steps import compiled_step, running
from ..movielens.environment import MovieLens
from ..movielens.ratings import MOVIES
from ..report.claims import Claim, mean_of
from ..report.page import ReportTable, Section
from .base import TIMES_FILE, Scale, Simulated, judge, told
from .movielens import source, stand_in_warnings
from .setup import named_panel, regret_table

PAPER = FTPL(ranking="strata")
OURS = Ladder()
DENSE = FTPL(ranking="improved")
CENTRED = CentredFTPL(c=0.5, exploit_c=3.0, mean_rate=0.15, schedule="losses", ranking="strata")
IN_STRATA = (PAPER.label, CENTRED.label)
NAMES = {
    PAPER.label: "FTPL, strata",
    OURS.label: "Ladder()",
    CENTRED.label: "FTPL, centred, strata",
    DENSE.label: "FTPL, dense",
    FollowTheLeader().label: "Follow the leader",
    TsallisINF().label: "Tsallis-INF (Newton)",
}
TIMED: tuple[Policy, ...] = (PAPER, CENTRED, OURS, DENSE, TsallisINF())
TIMED_ARMS = (512, 768, 1_024, 2_048, 4_096, 10_000, 100_000, 1_000_000)
FILMS_HORIZON = 100_000  # every rating once
DENSE_FROM = 2_048
LARGEST, HUNDREDTH = 1_000_000, 10_000


class ManyArms(Simulated):
    """Every film of MovieLens as an arm, a generated catalogue, and the time of a round by K."""

    times = True
    file = TIMES_FILE
    on_device = False  # it times the CPU, and a million arms are too many for a thread

    def catalogue(self, scale: Scale) -> tuple[Catalogue, int, int]:
        """The items, the rounds and the runs: ten rounds per item, so that every item can be tried."""
        return (
            (Catalogue(3_000), 30_000, 4) if scale.quick else (Catalogue(LARGEST), 10 * LARGEST, 2)
        )

    def plans(self, scale: Scale) -> dict[str, Plan]:
        films = MovieLens(MOVIES, data=source()["data"])
        rounds, runs = (10_000, 4) if scale.quick else (FILMS_HORIZON, scale.fewer(20))
        items, item_rounds, item_runs = self.catalogue(scale)
        everyone = (PAPER, OURS) if scale.quick else (PAPER, OURS, DENSE, FollowTheLeader())
        spacing = {"count": 41, "spacing": "log"}
        return {
            "films": make_plan(everyone, films, rounds, runs, scale.seed, 50),
            "catalogue": make_plan(
                (PAPER, CENTRED), items, item_rounds, item_runs, scale.seed, spacing
            ),
        }

    def code(self, scale: Scale) -> dict[object, Callable[[], object]]:
        steps: dict[object, Callable[[], object]] = {
            ("further", type(policy), policy.label): partial(compiled_step, policy, 8, 4)
            for policy in TIMED
        }
        return {**super().code(scale), **steps}

    def beside(self, scale: Scale) -> dict[str, Any]:
        arms, repetitions = ((HUNDREDTH, 100_000), 3) if scale.quick else (TIMED_ARMS, 9)
        return {"arms": list(arms), "microseconds": timed(arms, repetitions), **source()}

    def section(self, folder: Path) -> Section:
        cells = self.results(folder)
        saved = self.saved(folder)
        times = {label: np.array(each) for label, each in saved["microseconds"].items()}
        items = cells["catalogue"].specification["environment"]["arms"]
        pictures = (
            time_picture(saved["arms"], times),
            Picture(
                "many-arms",
                f"All {MOVIES:,} films, and {items:,} items",
                f"Left: mean regret over {cells['films'].runs:,} runs, with every film of MovieLens 100K as an arm. Right: the average regret per round so far against "
                f"the best of {items:,} items, over {cells['catalogue'].runs} runs. The dotted line is uniform guessing.",
                (named_panel("films", cells["films"], NAMES), loss_panel(cells["catalogue"])),
                columns=2,
            ),
        )
        claims = (*time_claims(saved["arms"], times), learned_claim(cells["catalogue"]))
        tables = (time_table(saved["arms"], times), regret_table(cells, NAMES))
        return Section(
            told("many-arms"), claims, pictures, tables, stand_in_warnings(saved["data"])
        )


def timed(arms: tuple[int, ...], repetitions: int) -> dict[str, list[list[float]]]:
    """Microseconds per round: for each policy, the repetitions at each K; a repetition times everything in turn."""
    taken: dict[str, list[list[float]]] = {policy.label: [[] for _ in arms] for policy in TIMED}
    steps = []
    for policy in TIMED:
        strata = isinstance(policy, FTPL) and policy.ranking in ("strata", "auto")
        for at, number in enumerate(arms):
            rounds = 10_000 if strata else max(4, 20_000_000 // number)  # tens of milliseconds
            steps.append((running(policy, number, rounds), rounds, taken[policy.label][at]))
            steps[-1][0]()  # warm up
    for _ in range(repetitions):
        for step, rounds, times in steps:
            start = time.perf_counter()
            step()
            times.append(1e6 * (time.perf_counter() - start) / rounds)
    return taken


def time_claims(arms: list[int], times: dict[str, Any]) -> list[Claim]:
    """Growth with K, and comparisons with other policies."""
    if LARGEST not in arms:
        return []
    last, before = arms.index(LARGEST), arms.index(HUNDREDTH)
    strata = times[PAPER.label]
    grown = [
        mean_of(NAMES[label], times[label][last] / times[label][before], 2) for label in IN_STRATA
    ]
    dense = [
        mean_of(f"K = {number:,}", times[DENSE.label][at] / strata[at], len(arms))
        for at, number in enumerate(arms)
        if number >= DENSE_FROM
    ]
    tsallis = mean_of("K = 1,000,000", times[TsallisINF().label][last] / strata[last])
    return [
        judge("many-arms-growth", grown),
        judge("many-arms-tsallis", [tsallis]),
        judge("many-arms-dense", dense),
    ]


def guessing(results: Results) -> float:
    """The loss per round of a uniformly drawn item, compared with the best item."""
    known = results.specification["environment"]
    world = Catalogue(**{key: value for key, value in known.items() if key != "name"})
    return float(world.top - world.rewards().mean())


def learned_claim(results: Results) -> Claim:
    """The claim that the policies learn the catalogue."""
    regrets = {NAMES[label]: results.final_regret(label) / results.horizon for label in IN_STRATA}
    parts = [mean_of(name, each / guessing(results), 2) for name, each in regrets.items()]
    return judge("many-arms-learned", parts)


def loss_panel(results: Results) -> Panel:
    """The average regret per round, by round."""
    panel, rounds = (
        named_panel("catalogue", results, NAMES),
        np.asarray(results.data["round"].values, float),
    )
    series = [
        each._replace(y=each.y / each.x, band=None if each.band is None else each.band / each.x)
        for each in panel.series
    ]
    level = Series("guessing", rounds, np.full(len(rounds), guessing(results)), None, 3)
    return panel._replace(series=(*series, level), y_label="average regret per round", log_x=True)


def time_picture(arms: list[int], times: dict[str, Any]) -> Picture:
    """Microseconds per round by K, on log axes."""
    at = np.array(arms, float)
    series = tuple(
        Series(NAMES[policy.label], at, np.median(times[policy.label], axis=1), None, style, kind)
        for style, policy in enumerate(TIMED)
        for kind in ("points", "fit")
    )
    caption = "Medians of repetitions, each of which times everything in turn, on one thread. The environment's work is done in advance."
    panel = Panel("", series, "K", "microseconds per round", log_x=True, log_y=True)
    return Picture("many-arms-time", "Time of a round by the number of arms", caption, (panel,))


def time_table(arms: list[int], times: dict[str, Any]) -> ReportTable:
    """The medians, with the range of the repetitions."""
    shown = "{:,.2f} ({:,.2f} to {:,.2f})".format
    rows = tuple(
        (NAMES[label], *(shown(np.median(each), each.min(), each.max()) for each in known))
        for label, known in times.items()
    )
    head = ("", *(f"K = {number:,}" for number in arms))
    return ReportTable("Microseconds per round: median (range)", head, rows)
