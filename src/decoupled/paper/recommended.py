"""Beyond the paper: centred losses and two rates, against the paper's own policy and the simplest method."""

from itertools import islice
from pathlib import Path

import numpy as np

from ..base.arrays import Floats
from ..environments import AdaptiveAlternating, Alternating, Environment, MovieLens, PunishLast
from ..plots import Panel, Picture
from ..policies import FTPL, FollowTheLeader
from ..report.claims import Claim, judged_above, judged_below, mean_of, not_judged, quantile_gap, ratio_of
from ..report.section import Section, Table
from ..simulation import Results
from ..simulation.plan import Plan, make_plan
from .base import HORIZON, Scale, Simulated
from .grid import ARMS, GAPS
from .movielens import ARMS as MOVIES
from .movielens import source
from .setup import ADVERSARIAL, STOCHASTIC_EASY, STOCHASTIC_HARD

PAPER, OURS, SIMPLEST = FTPL(), FTPL.recommended(), FollowTheLeader()
NAMES = {PAPER.label: "FTPL", OURS.label: "FTPL.recommended()", SIMPLEST.label: "Follow the leader"}

BENCHMARKS: dict[str, Environment] = {
    "alternating": ADVERSARIAL,
    "stochastic easy": STOCHASTIC_EASY,
    "stochastic hard": STOCHASTIC_HARD,
}
ADVERSARIES: dict[str, Environment] = {
    "punish last": PunishLast(arms=8),
    "adaptive alternating": AdaptiveAlternating(arms=8, gap=0.125),
}
CELLS = {f"K = {arms}, gap {gap:g}": (arms, gap) for arms in ARMS for gap in GAPS}
TAIL = 0.99
AT_CEILING = 0.95  # of gap * T: a run that has this much never found the best arm


class LessRegret(Simulated):
    """One setting for every number of arms, horizon and regime, chosen on instances that are not among these."""

    name = "less-regret"
    title = "Less regret: centred losses, two rates, and rates by losses"
    about = "`FTPL.recommended()` against the paper's setting and follow the leader, 3,000 runs"
    origin = "ours, [beyond the paper](beyond.md)"
    in_quick = False  # the quick version of everything is the paper's; this one has a quick version too

    def plans(self, scale: Scale) -> dict[str, Plan]:
        everyone = (PAPER, OURS, SIMPLEST)
        # The quick version has what compiles and runs in seconds: no adversaries, and fewer sizes.
        many = scale.runs if scale.quick else 3 * scale.runs
        adversaries = {} if scale.quick else ADVERSARIES
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
                (movies, everyone, scale.most(20), 50),
                (grid, (PAPER, OURS), many, 1),
            )
            for name, world in worlds.items()
        }

    def section(self, folder: Path) -> Section:
        cells = self.results(folder)
        grid = {name: cells.pop(name) for name in CELLS if name in cells}
        movies = {name: each for name, each in cells.items() if name.startswith("movies")}
        real = next(iter(movies.values())).specification["environment"]["data"] == "ml-100k"
        claims = [
            *ratio_claims(cells, grid),
            lower_claim(cells),
            tail_claim(cells | grid),
            *simplest_claims(cells),
        ]
        warnings: tuple[str, ...] = ()
        if not real:
            claims = [
                not_judged(claim, "MovieLens was not at hand")
                if any(part.of in movies for part in claim.parts) else claim
                for claim in claims
            ]  # fmt: skip
            warnings = ("The movies of this section are a generated stand-in: MovieLens was not at hand.",)
        runs = {results.data.sizes["run"] for results in (cells | grid).values()}
        span = f"{min(runs):,} to {max(runs):,}" if len(runs) > 1 else f"{max(runs):,}"
        picture = Picture(
            "less-regret",
            "The paper's policy, the recommended setting, and the simplest method",
            f"Mean regret over {span} runs, bands of one standard deviation. The recommended setting is the same in every panel.",
            tuple(panel(name, results) for name, results in cells.items()),
            columns=3,
        )
        text = (
            "<code>FTPL.recommended()</code> subtracts from every loss what all arms share (the <i>centred</i> estimator, as unbiased as the paper's), "
            "gives exploration and exploitation rates of their own, and lets both fall with the spread of the losses seen. Its values were chosen on a generated family of instances that contains none of these. "
            "All policies meet the same losses; adversaries answer each."
        )
        return Section(
            self.name, self.title, text, tuple(claims), (picture,), (table(cells), table(grid)), warnings
        )


def first(worlds: dict[str, Environment], count: int) -> dict[str, Environment]:
    """So many from the beginning."""
    return dict(islice(worlds.items(), count))


def panel(name: str, results: Results) -> Panel:
    """Mean regret by round, the colours the same in every panel."""
    return Panel(name, results.series(NAMES))


def finals(results: Results) -> tuple[Floats, Floats]:
    """What the paper's policy regrets in the end, and what ours does, run by run."""
    return results.final_regret(PAPER), results.final_regret(OURS)


def converged(grid: dict[str, Results]) -> dict[str, Results]:
    """The cells in which the paper's policy has found the best arm: its regret is under half of gap * T."""
    return {
        name: results
        for name, results in grid.items()
        if finals(results)[0].mean() < 0.5 * CELLS[name][1] * HORIZON
    }


def ratio_claims(cells: dict[str, Results], grid: dict[str, Results]) -> list[Claim]:
    """How much of the paper's regret is left."""

    def judged(name: str, statement: str, among: dict[str, Results], limit: float) -> Claim:
        parts = [ratio_of(cell, *finals(each)[::-1], len(among)) for cell, each in among.items()]
        statistic = "regret of FTPL.recommended() over the paper's"
        return judged_below(f"less-regret-{name}", "ours", statement, statistic, parts, limit)

    easy, alternating = "stochastic easy", "alternating"
    return [
        judged(alternating, "On the paper's adversarial instance the recommended setting has at most 0.28 of its regret.", {alternating: cells[alternating]}, 0.28),
        judged("easy", "On the easy stochastic instance it has at most 0.45 of the paper's regret.", {easy: cells[easy]}, 0.45),
        judged("grid", "In every one of the 16 instances where the paper's policy has converged, it has at most 0.35 of its regret.", converged(grid), 0.35),
        judged("grid-lower", "It has less regret than the paper's policy in all of them.", grid, 1.0),
    ]  # fmt: skip


def lower_claim(cells: dict[str, Results]) -> Claim:
    """Where no factor is promised."""
    among = {name: each for name, each in cells.items() if name not in ("alternating", "stochastic easy")}
    return judged_above(
        "less-regret-lower",
        "ours",
        "It has less regret on the hard stochastic instance, with movies as arms, and against adversaries that watch.",
        "regret of the paper's policy minus that of FTPL.recommended()",
        [mean_of(name, np.subtract(*finals(each)), len(among)) for name, each in among.items()],
        0.0,
    )


def tail_claim(cells: dict[str, Results]) -> Claim:
    """Unlucky runs: the mean must not be bought with them."""

    def at_ceiling(name: str) -> bool:
        if name not in CELLS:
            return False
        ceiling = AT_CEILING * CELLS[name][1] * HORIZON
        return all(np.quantile(each, TAIL) > ceiling for each in finals(cells[name]))

    among = [name for name in cells if not at_ceiling(name)]
    return judged_above(
        "less-regret-tail",
        "ours",
        "The 99th percentile of its regret is nowhere higher (where both have run into gap x T, nothing is compared).",
        "99th percentile of the paper's policy minus that of FTPL.recommended(); intervals by bootstrap",
        [quantile_gap(name, *finals(cells[name]), TAIL, len(among)) for name in among],
        0.0,
    )


def simplest_claims(cells: dict[str, Results]) -> list[Claim]:
    """Against follow the leader with uniform exploration."""

    def judged(name: str, statement: str, among: tuple[str, ...], limit: float) -> Claim:
        parts = [
            ratio_of(cell, cells[cell].final_regret(OURS), cells[cell].final_regret(SIMPLEST), len(among))
            for cell in among
        ]
        statistic = "regret of FTPL.recommended() over follow the leader's"
        return judged_below(f"less-regret-{name}", "ours", statement, statistic, parts, limit)

    claims = [
        judged("simplest", "It has less regret than follow the leader on the adversarial and the easy stochastic instance.", ("alternating", "stochastic easy"), 1.0),
        judged("simplest-hard", "On the hard stochastic instance it stays within 1.3 times follow the leader's regret.", ("stochastic hard",), 1.3),
    ]  # fmt: skip
    watching = tuple(name for name in ADVERSARIES if name in cells)
    if watching:
        statement = "Against adversaries that watch it has less regret than follow the leader."
        claims.append(judged("simplest-watched", statement, watching, 1.0))
    return claims


def table(cells: dict[str, Results]) -> Table:
    """Mean and 99th percentile of every policy, and the ratio."""
    rows = []
    for name, results in cells.items():
        paper, ours = finals(results)
        part = ratio_of(name, ours, paper)
        known = [
            results.final_regret(each) for each in (PAPER, OURS, SIMPLEST) if each.label in results.labels
        ]
        told = [f"{each.mean():.0f} ({np.quantile(each, TAIL):.0f})" for each in known]
        rows.append(
            (name, *told, f"{part.value:.3f} ({part.low:.3f} to {part.high:.3f})", f"{len(ours):,}")
        )
    heads = list(NAMES.values())[: len(rows[0]) - 3]
    title = "Regret after 10,000 rounds: mean (99th percentile)"
    return Table(title, ("", *heads, "recommended over paper (95 % interval)", "runs"), tuple(rows))
