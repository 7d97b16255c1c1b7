"""Beyond the paper: the ladder, compared with the paper's policies, centred FTPL and the simplest method."""

from itertools import islice
from pathlib import Path

import numpy as np

from decoupled.environments import Alternating, Environment
from decoupled.simulation import Plan, Results, make_plan

from ..movielens.environment import MovieLens
from ..report.claims import not_judged, ratio_of
from ..report.section import ReportTable, Section
from .base import HORIZON, Scale, Simulated
from .movielens import ARMS as MOVIES
from .movielens import MISSING, STAND_IN, source, stand_in_warnings
from .recommended_claims import (
    CELLS,
    CENTRED,
    OURS,
    PAPER,
    PUNISHED,
    TAIL,
    centred_claims,
    finals,
    lower_claim,
    ratio_claims,
    rival_claims,
    simplest_claims,
    tail_claim,
)
from .setup import ADVERSARIES, BENCHMARKS, CONTENDER_NAMES, CONTENDERS, regret_picture


class LessRegret(Simulated):
    """One setting for every number of arms, horizon and regime, tuned on separate instances."""

    def plans(self, scale: Scale) -> dict[str, Plan]:
        everyone = tuple(CONTENDERS)
        # The quick version compiles and runs in seconds: no adversaries, and fewer sizes.
        many = scale.runs if scale.quick else 3 * scale.runs
        adversaries = {} if scale.quick else {**ADVERSARIES, **PUNISHED}
        movies: dict[str, Environment] = {
            f"movies, K = {arms}": MovieLens(arms, data=source()["data"]) for arms in MOVIES
        }
        grid: dict[str, Environment] = {name: Alternating(*cell) for name, cell in CELLS.items()}
        if scale.quick:
            movies, grid = first(movies, 2), first(grid, 4)
        return {
            name: make_plan(policies, world, HORIZON, runs, scale.seed, checkpoints)
            for worlds, policies, runs, checkpoints in (
                (BENCHMARKS, everyone, many, 50),
                (adversaries, everyone, scale.runs, 50),
                (movies, everyone, scale.fewer(4), 50),
                (grid, (PAPER, CENTRED, OURS), many, 1),
            )
            for name, world in worlds.items()
        }

    def section(self, folder: Path) -> Section:
        cells = self.results(folder)
        grid = {name: cells.pop(name) for name in CELLS if name in cells}
        movies = {name: each for name, each in cells.items() if name.startswith("movies")}
        data = next(iter(movies.values())).specification["environment"]["data"]
        claims = [
            *ratio_claims(cells, grid),
            lower_claim(cells),
            *centred_claims(cells),
            tail_claim(cells | grid),
            *simplest_claims(cells),
            *rival_claims(cells),
        ]
        if data == STAND_IN:
            claims = [
                not_judged(claim, MISSING) if any(part.of in movies for part in claim.parts) else claim
                for claim in claims
            ]
        title = "The ladder, centred FTPL, the paper's policies and the simplest method"
        more = "The recommended setting is the same in every panel."
        picture = regret_picture("less-regret", title, cells, 3, names=CONTENDER_NAMES, more=more)
        text = (
            "<code>Ladder()</code> is a <i>ladder</i>: several rules for exploitation share one exploration and one set of estimates, and it learns from the losses seen how often to follow each. "
            "Its estimates subtract the part of a loss that all arms share (the <i>centred</i> estimator, which is unbiased like the paper's), and its rates fall with the spread of the observed losses. "
            "The parameters were tuned on separate, generated instances. "
            "All policies meet the same losses, except that adversaries react to each policy."
        )
        tables = (table(cells), table(grid))
        warnings = stand_in_warnings(data)
        return Section(text, tuple(claims), (picture,), tables, warnings)


def first(worlds: dict[str, Environment], count: int) -> dict[str, Environment]:
    """The first `count` worlds."""
    return dict(islice(worlds.items(), count))


def table(cells: dict[str, Results]) -> ReportTable:
    """The mean and 99th percentile of every policy, and the ratio."""
    rows = []
    for name, results in cells.items():
        paper, ours = finals(results)
        part = ratio_of(name, ours, paper)
        known = [results.final_regret(label) for label in CONTENDER_NAMES if label in results.labels]
        regrets = [f"{each.mean():.0f} ({np.quantile(each, TAIL):.0f})" for each in known]
        # With movies, regret may be below 0: the best movie changes. A ratio would say nothing.
        ratio = "negative" if part.value < 0.0 else f"{part.value:.3f} ({part.low:.3f} to {part.high:.3f})"
        rows.append((name, *regrets, ratio, f"{len(ours):,}"))
    heads = list(CONTENDER_NAMES.values())[: len(rows[0]) - 3]
    title = "Regret after 10,000 rounds: mean (99th percentile)"
    return ReportTable(title, ("", *heads, "recommended over paper (95 % interval)", "runs"), tuple(rows))
