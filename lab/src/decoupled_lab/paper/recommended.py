"""Beyond the paper: the ladder, compared with the paper's policies, centred FTPL and the simplest method."""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import numpy as np

from decoupled.base import Floats
from decoupled.environments import Alternating, Environment, PunishLast
from decoupled.policies import FTPL, Exp3, FollowTheLeader, Ladder, Policy, TsallisINF
from decoupled.simulation import Plan, Results, make_plan

from ..movielens.environment import MovieLens
from ..report.claims import Claim, Measure, mean_of, not_judged, quantile_gap, ratio_of
from ..report.page import ReportTable, Section
from . import setup
from .base import HORIZON, Scale, Simulated, judge, told
from .movielens import ARMS as MOVIES
from .movielens import MISSING, STAND_IN, source, stand_in_warnings
from .published import ARMS, GAPS
from .setup import BENCHMARKS, CONTENDER_NAMES, contender_leads, regret_ratio

PAPER, CENTRED, OURS, SIMPLEST = FTPL(), setup.CENTRED_FTPL, Ladder(), FollowTheLeader()
# "punish last" itself has 8 arms.
PUNISHED = {
    f"punish last, K = {arms}": PunishLast(arms) for arms in setup.PUNISHED_ARMS if arms != 8
}
MANY_PUNISHED = f"punish last, K = {setup.PUNISHED_ARMS[-1]}"
MANY_ARMS_PUNISHED = tuple(f"punish last, K = {arms}" for arms in setup.PUNISHED_ARMS if arms >= 32)

CELLS = {f"K = {arms}, gap {gap:g}": (arms, gap) for arms in ARMS for gap in GAPS}
TAIL = 0.99
AT_CEILING = 0.95  # of gap * T: a run with this much regret never found the best arm


def finals(results: Results) -> tuple[Floats, Floats]:
    """The final regret of the paper's policy and of ours, run by run."""
    return results.final_regret(PAPER), results.final_regret(OURS)


def over(rivals: Sequence[Policy], cells: dict[str, Results]) -> list[Measure]:
    """Our regret over that of each rival."""
    count = len(cells) * len(rivals)
    return [
        regret_ratio(
            name if len(rivals) == 1 else f"{setup.CONTENDERS[rival]}, {name}",
            results,
            OURS,
            rival,
            count,
        )
        for name, results in cells.items()
        for rival in rivals
    ]


def behind(cells: dict[str, Results], rival: Policy, factor: float = 1.0) -> list[Measure]:
    """A multiple of a rival's regret minus ours. With movies, regret may be negative, and a ratio says nothing."""
    return [
        mean_of(name, factor * results.final_regret(rival) - results.final_regret(OURS), len(cells))
        for name, results in cells.items()
    ]


def judged_tails(cells: dict[str, Results]) -> list[Measure]:
    """The gaps between 99th percentiles: a lower mean must not come from a worse tail."""

    def at_ceiling(name: str) -> bool:
        ceiling = AT_CEILING * CELLS[name][1] * HORIZON if name in CELLS else np.inf
        return all(np.quantile(each, TAIL) > ceiling for each in finals(cells[name]))

    among = [name for name in cells if name != MANY_PUNISHED and not at_ceiling(name)]
    return [quantile_gap(name, *finals(cells[name]), TAIL, len(among)) for name in among]


def judged_claims(cells: dict[str, Results], grid: dict[str, Results]) -> list[Claim]:
    """Every claim, on the cells that it is about. The quick version has no adversaries, and no claims on them."""

    def only(names: Iterable[str]) -> dict[str, Results]:
        return {name: cells[name] for name in names if name in cells}

    def without(names: Collection[str]) -> dict[str, Results]:
        return {name: results for name, results in cells.items() if name not in names}

    # The cells in which the paper's policy has found the best arm: its regret is below half of gap * T.
    converged = {
        name: results
        for name, results in grid.items()
        if results.final_regret(PAPER).mean() < 0.5 * CELLS[name][1] * HORIZON
    }
    papers = (TsallisINF(), Exp3())
    as_centred = ("stochastic hard", "adaptive alternating")
    measured = {
        "alternating": over([PAPER], only(["alternating"])),
        "easy": over([PAPER], only(["stochastic easy"])),
        "grid": over([PAPER], converged),
        "grid-lower": over([PAPER], grid),
        "punished": over([PAPER], only(["punish last", *PUNISHED][:-1])),
        "punished-many": over([PAPER], only([MANY_PUNISHED])),
        "lower": behind(without(("alternating", "stochastic easy", *PUNISHED)), PAPER),
        "centred": behind(without(as_centred), CENTRED),
        "as-centred": behind(only(as_centred), CENTRED, 1.15),
        "tail": judged_tails(cells | grid),
        "simplest": over([SIMPLEST], only(["alternating", "stochastic easy"])),
        "simplest-hard": over([SIMPLEST], only(["stochastic hard"])),
        "simplest-watched": over([SIMPLEST], only([*setup.ADVERSARIES, *PUNISHED])),
        "rivals": contender_leads(without(MANY_ARMS_PUNISHED), papers),
        "tail-rivals": setup.tail_leads(without(MANY_ARMS_PUNISHED), papers),
        "rivals-many": over(papers, only(MANY_ARMS_PUNISHED)),
    }
    return [judge(f"less-regret-{name}", parts) for name, parts in measured.items() if parts]


class LessRegret(Simulated):
    """One setting for every number of arms, horizon and regime, tuned on separate instances."""

    def plans(self, scale: Scale) -> dict[str, Plan]:
        everyone = tuple(setup.CONTENDERS)
        # The quick version compiles and runs in seconds: no adversaries, and fewer sizes.
        many = scale.runs if scale.quick else 3 * scale.runs
        adversaries = {} if scale.quick else {**setup.ADVERSARIES, **PUNISHED}
        movies: dict[str, Environment] = {
            f"movies, K = {arms}": MovieLens(arms, data=source()["data"]) for arms in MOVIES
        }
        grid: dict[str, Environment] = {name: Alternating(*cell) for name, cell in CELLS.items()}
        if scale.quick:
            movies, grid = dict([*movies.items()][:2]), dict([*grid.items()][:4])
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
        claims = judged_claims(cells, grid)
        if data == STAND_IN:
            claims = [
                not_judged(claim, MISSING)
                if any(part.of in movies for part in claim.parts)
                else claim
                for claim in claims
            ]
        title = "The ladder, centred FTPL, the paper's policies and the simplest method"
        more = "The recommended setting is the same in every panel."
        picture = setup.regret_picture(
            "less-regret", title, cells, 3, names=CONTENDER_NAMES, more=more
        )
        shown = (picture,), (table(cells), table(grid)), stand_in_warnings(data)
        return Section(told("less-regret"), tuple(claims), *shown)


def table(cells: dict[str, Results]) -> ReportTable:
    """The mean and 99th percentile of every policy, and the ratio."""
    rows = []
    for name, results in cells.items():
        paper, ours = finals(results)
        part = ratio_of(name, ours, paper)
        known = [
            results.final_regret(label) for label in CONTENDER_NAMES if label in results.labels
        ]
        regrets = [f"{each.mean():.0f} ({np.quantile(each, TAIL):.0f})" for each in known]
        # With movies, regret may be below 0: the best movie changes. A ratio would say nothing.
        ratio = (
            "negative"
            if part.value < 0.0
            else f"{part.value:.3f} ({part.low:.3f} to {part.high:.3f})"
        )
        rows.append((name, *regrets, ratio, f"{len(ours):,}"))
    heads = list(CONTENDER_NAMES.values())[: len(rows[0]) - 3]
    title = "Regret after 10,000 rounds: mean (99th percentile)"
    return ReportTable(
        title, ("", *heads, "recommended over paper (95 % interval)", "runs"), tuple(rows)
    )
