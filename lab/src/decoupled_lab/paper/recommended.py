"""Beyond the paper: the ladder, compared with the paper's policies, centred FTPL and the simplest method."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from decoupled.base import Floats
from decoupled.environments import Alternating, Environment, PunishLast
from decoupled.policies import FTPL, Exp3, FollowTheLeader, Ladder, TsallisINF
from decoupled.simulation import Plan, Results, make_plan

from ..movielens.environment import MovieLens
from ..report.claims import (
    Claim,
    Measure,
    judged_above,
    judged_below,
    mean_of,
    not_judged,
    quantile_gap,
    ratio_of,
)
from ..report.page import ReportTable, Section
from .base import HORIZON, Scale, Simulated
from .movielens import ARMS as MOVIES
from .movielens import MISSING, STAND_IN, source, stand_in_warnings
from .published import ARMS, GAPS
from .setup import (
    ADVERSARIES,
    BENCHMARKS,
    CENTRED_FTPL,
    CONTENDER_NAMES,
    CONTENDERS,
    EXP3_CENTRED,
    PUNISHED_ARMS,
    contender_leads,
    regret_picture,
    regret_ratio,
    tail_leads,
)

PAPER, CENTRED, OURS, SIMPLEST = FTPL(), CENTRED_FTPL, Ladder(), FollowTheLeader()
# "punish last" itself has 8 arms.
PUNISHED = {f"punish last, K = {arms}": PunishLast(arms) for arms in PUNISHED_ARMS if arms != 8}
MANY_PUNISHED = f"punish last, K = {PUNISHED_ARMS[-1]}"
MANY_ARMS_PUNISHED = tuple(f"punish last, K = {arms}" for arms in PUNISHED_ARMS if arms >= 32)
CLOSE_TO_EXP3 = (*BENCHMARKS, "adaptive alternating")

CELLS = {f"K = {arms}, gap {gap:g}": (arms, gap) for arms in ARMS for gap in GAPS}
TAIL = 0.99
AT_CEILING = 0.95  # of gap * T: a run with this much regret never found the best arm


def finals(results: Results) -> tuple[Floats, Floats]:
    """The final regret of the paper's policy and of ours, run by run."""
    return results.final_regret(PAPER), results.final_regret(OURS)


def converged(grid: dict[str, Results]) -> dict[str, Results]:
    """The cells in which the paper's policy has found the best arm: its regret is below half of gap * T."""
    return {
        name: results
        for name, results in grid.items()
        if finals(results)[0].mean() < 0.5 * CELLS[name][1] * HORIZON
    }


def ratio_claims(cells: dict[str, Results], grid: dict[str, Results]) -> list[Claim]:
    """The share of the paper's regret that remains."""

    def judged(name: str, statement: str, among: dict[str, Results], limit: float) -> Claim:
        parts = [ratio_of(cell, *finals(each)[::-1], len(among)) for cell, each in among.items()]
        statistic = "regret of Ladder() over the paper's"
        return judged_below(f"less-regret-{name}", "ours", statement, statistic, parts, limit)

    easy, alternating = "stochastic easy", "alternating"
    punished = {name: each for name, each in cells.items() if name.startswith("punish")}
    many = {name: punished.pop(name) for name in (MANY_PUNISHED,) if name in punished}
    claims = [
        judged(alternating, "On the paper's adversarial instance, the recommended setting has at most 0.2 of the regret of the paper's policy.", {alternating: cells[alternating]}, 0.2),
        judged("easy", "On the easy stochastic instance, it has at most 0.35 of that regret.", {easy: cells[easy]}, 0.35),
        judged("grid", "In each of the 16 instances where the paper's policy has converged, it has at most 0.3 of that regret.", converged(grid), 0.3),
        judged("grid-lower", "It has less regret than the paper's policy in all 16 instances.", grid, 1.0),
    ]  # fmt: skip
    if punished:
        claims += [
            judged("punished", "Against an adversary that punishes the arm exploited last, it has at most 0.7 of that regret with 2, 8 and 32 arms.", punished, 0.7),
            judged("punished-many", "With 128 arms, where the paper's policy still plays almost at random, it has at most 1.05 times that regret.", many, 1.05),
        ]  # fmt: skip
    return claims


def lower_claim(cells: dict[str, Results]) -> Claim:
    """The claim of less regret, without a factor."""
    judged_elsewhere = ("alternating", "stochastic easy", *PUNISHED)
    among = {name: each for name, each in cells.items() if name not in judged_elsewhere}
    return judged_above(
        "less-regret-lower",
        "ours",
        "It has less regret on the hard stochastic instance, with movies as arms, and against adaptive adversaries.",
        "regret of the paper's policy minus that of Ladder()",
        [mean_of(name, np.subtract(*finals(each)), len(among)) for name, each in among.items()],
        0.0,
    )


def centred_claims(cells: dict[str, Results]) -> list[Claim]:
    """The claims about centred FTPL, by differences: with movies, regret is negative."""
    equal = [name for name in ("stochastic hard", "adaptive alternating") if name in cells]
    lower = [name for name in cells if name not in equal]

    def measures(names: Sequence[str], factor: float) -> list[Measure]:
        return [
            mean_of(
                name,
                factor * cells[name].final_regret(CENTRED) - cells[name].final_regret(OURS),
                len(names),
            )
            for name in names
        ]

    return [
        judged_above(
            "less-regret-centred",
            "ours",
            "It has less regret than centred FTPL on alternating and easy stochastic losses, with movies, and where the arm exploited last is punished.",
            "regret of centred FTPL minus that of Ladder()",
            measures(lower, 1.0),
            0.0,
        ),
        judged_above(
            "less-regret-as-centred",
            "ours",
            "On the hard stochastic instance and against adaptive alternating losses, it has at most 1.15 times as much.",
            "1.15 times the regret of centred FTPL minus that of Ladder()",
            measures(equal, 1.15),
            0.0,
        ),
    ]


def tail_claim(cells: dict[str, Results]) -> Claim:
    """The claim about unlucky runs: a lower mean must not come from a worse tail."""

    def at_ceiling(name: str) -> bool:
        if name not in CELLS:
            return False
        ceiling = AT_CEILING * CELLS[name][1] * HORIZON
        return all(np.quantile(each, TAIL) > ceiling for each in finals(cells[name]))

    among = [name for name in cells if name != MANY_PUNISHED and not at_ceiling(name)]
    return judged_above(
        "less-regret-tail",
        "ours",
        "The 99th percentile of its regret is never higher than that of the paper's policy (without 128 punished arms, and without instances where both reach gap x T).",
        "99th percentile of the paper's policy minus that of Ladder(), with intervals by bootstrap",
        [quantile_gap(name, *finals(cells[name]), TAIL, len(among)) for name in among],
        0.0,
    )


def simplest_claims(cells: dict[str, Results]) -> list[Claim]:
    """The claims about follow the leader with uniform exploration."""

    def judged(name: str, statement: str, among: tuple[str, ...], limit: float) -> Claim:
        parts = [regret_ratio(cell, cells[cell], OURS, SIMPLEST, len(among)) for cell in among]
        statistic = "regret of Ladder() over follow the leader's"
        return judged_below(f"less-regret-{name}", "ours", statement, statistic, parts, limit)

    claims = [
        judged("simplest", "It has less regret than follow the leader on the adversarial and the easy stochastic instance.", ("alternating", "stochastic easy"), 1.0),
        judged("simplest-hard", "On the hard stochastic instance, it has at most 1.2 times the regret of follow the leader.", ("stochastic hard",), 1.2),
    ]  # fmt: skip
    watching = tuple(name for name in (*ADVERSARIES, *PUNISHED) if name in cells)
    if watching:
        statement = "Against adaptive adversaries, it has less regret than follow the leader."
        claims.append(judged("simplest-watched", statement, watching, 1.0))
    return claims


def rival_claims(cells: dict[str, Results]) -> list[Claim]:
    """The claims about Tsallis-INF and EXP3, and about EXP3 with centred losses."""
    papers = (TsallisINF(), Exp3())
    usual = {name: each for name, each in cells.items() if name not in MANY_ARMS_PUNISHED}
    many = {name: each for name, each in cells.items() if name in MANY_ARMS_PUNISHED}
    close = {name: each for name, each in cells.items() if name in CLOSE_TO_EXP3}
    apart = {name: each for name, each in cells.items() if name not in CLOSE_TO_EXP3}
    lead = "regret of a rival minus that of Ladder()"
    claims = [
        judged_above("less-regret-rivals", "ours", "It has less regret than the paper's other two policies, Tsallis-INF and EXP3, except where one of 32 or more arms is punished.", lead, contender_leads(usual, papers), 0.0),
        judged_above("less-regret-tail-rivals", "ours", "The same holds for the 99th percentile of regret.", "99th percentile of a rival minus that of Ladder(), with intervals by bootstrap", tail_leads(usual, papers), 0.0),
        judged_above("less-regret-exp3-centred", "ours", "With movies, and where the arm exploited last is punished, it has less regret than EXP3 with centred losses and two rates.", lead, contender_leads(apart, (EXP3_CENTRED,)), 0.0),
        judged_below("less-regret-exp3-close", "ours", "On the paper's instances and against adaptive alternating losses, it has at most 1.3 times the regret of that policy.", "regret of Ladder() over that of centred EXP3", [regret_ratio(name, each, OURS, EXP3_CENTRED, len(close)) for name, each in close.items()], 1.3),
    ]  # fmt: skip
    if many:
        parts = [
            regret_ratio(f"{CONTENDERS[rival]}, {name}", each, OURS, rival, len(many) * len(papers))
            for name, each in many.items()
            for rival in papers
        ]
        statement = "Where one of 32 or 128 arms is punished, it has at most 1.3 times the regret of Tsallis-INF and EXP3, which play almost at random there."
        statistic = "regret of Ladder() over that of a rival"
        claims.append(judged_below("less-regret-rivals-many", "ours", statement, statistic, parts, 1.3))
    return claims


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
