"""Beyond the paper: movies as arms, with noise on the ratings, and with users in random order."""

from pathlib import Path

from decoupled.plots import NAMES as FIGURE_NAMES
from decoupled.policies import Policy, TopTwo
from decoupled.simulation import Plan, Results, make_plan

from ..movielens.environment import MovieLens
from ..report.claims import Claim, judged_above, not_judged
from ..report.section import Section
from .base import HORIZON, Scale, Simulated
from .movielens import ARMS, MISSING, STAND_IN, source, stand_in_warnings
from .setup import CONTENDER_NAMES, CONTENDERS, contender_leads, regret_picture, regret_table, tail_leads

POLICIES: tuple[Policy, ...] = (*CONTENDERS, TopTwo())
NAMES = {**CONTENDER_NAMES, TopTwo().label: FIGURE_NAMES["TopTwo"]}


def worlds(quick: bool) -> dict[str, MovieLens]:
    """Bernoulli noise for every number of movies, and random orders for the smallest and the largest."""
    data = source()["data"]
    noisy = {f"noise, K = {arms}": MovieLens(arms, noise="bernoulli", data=data) for arms in ARMS}
    shuffled = {
        f"random order, K = {arms}": MovieLens(arms, order="iid", data=data) for arms in (ARMS[0], ARMS[-1])
    }
    if quick:
        return {name: world for name, world in {**noisy, **shuffled}.items() if world.arms == ARMS[0]}
    return {**noisy, **shuffled}


class NoisyMovies(Simulated):
    """The movies of `less-regret` without noise give a policy the mean of every loss that it sees."""

    def plans(self, scale: Scale) -> dict[str, Plan]:
        runs = scale.fewer(4)
        return {
            name: make_plan(POLICIES, world, HORIZON, runs, scale.seed, 50)
            for name, world in worlds(scale.quick).items()
        }

    def section(self, folder: Path) -> Section:
        cells = self.results(folder)
        data = next(iter(cells.values())).specification["environment"]["data"]
        judged = claims(cells)
        if data == STAND_IN:
            judged = [not_judged(claim, MISSING) for claim in judged]
        title = "Movies as arms, with noise and in random order"
        more = "Regret is against the best movie in hindsight."
        picture = regret_picture("noisy-movies", title, cells, 3, names=NAMES, more=more)
        text = (
            "In the paper's experiment a loss is what the oracle predicts, without noise. With <i>noise</i>, a loss is 0 or 1 with that mean, and users come in the order of their ratings. "
            "In <i>random order</i>, users are drawn independently, in proportion to their ratings, and losses have no noise. Regret below 0 means less loss than the best single movie: "
            "users come for many rounds in a row, and a policy can follow what the user of the hour likes."
        )
        tables = (regret_table(cells, NAMES),)
        return Section(text, tuple(judged), (picture,), tables, stand_in_warnings(data))


def claims(cells: dict[str, Results]) -> list[Claim]:
    """The claims about means and 99th percentiles."""
    return [
        judged_above(
            "noisy-movies-lower",
            "ours",
            "With noise and in random order, the recommended setting has less regret than the paper's three policies, centred FTPL, follow the leader and centred EXP3.",
            "regret of another policy minus that of Ladder()",
            contender_leads(cells),
            0.0,
        ),
        judged_above(
            "noisy-movies-tail",
            "ours",
            "The 99th percentile of its regret is lower than theirs.",
            "99th percentile of another policy minus that of Ladder()",
            tail_leads(cells),
            0.0,
        ),
    ]
