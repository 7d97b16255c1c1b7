"""The appendix's real data: movies as arms, on MovieLens 100K, also with noise and in random order."""

from functools import cache
from pathlib import Path
from typing import Any

from decoupled.errors import StorageError
from decoupled.plots import NAMES as FIGURE_NAMES
from decoupled.policies import FollowTheLeader, Policy, TopTwo
from decoupled.simulation import Plan, make_plan

from ..movielens import find
from ..movielens.environment import MovieLens
from ..report.claims import not_judged
from ..report.page import ReportTable, Section
from . import setup
from .base import HORIZON, Scale, Simulated, judge, told
from .setup import CONTENDER_NAMES, regret_picture, regret_table

ARMS = (32, 64, 128, 256)
STAND_IN = "stand-in"
MISSING = "MovieLens was not available"


@cache
def source() -> dict[str, Any]:
    """Which data is used, where it was found, and the reason if it was not found."""
    try:
        _, found = find()
    except StorageError as error:
        return {"data": STAND_IN, "kind": STAND_IN, "reason": str(error)}
    return {"data": "ml-100k", "kind": found.kind, "reason": ""}


def stand_in_warnings(data: str) -> tuple[str, ...]:
    """The warning of a section that used generated ratings."""
    return (f"This section uses generated ratings, because {MISSING}.",) if data == STAND_IN else ()


class Movies(Simulated):
    """The paper's policies and follow the leader, with users in the order of their ratings."""

    file = "source.json"

    def plans(self, scale: Scale) -> dict[str, Plan]:
        policies = (*setup.POLICIES, FollowTheLeader())
        return {
            f"K = {arms}": make_plan(
                policies,
                MovieLens(arms, data=source()["data"]),
                HORIZON,
                scale.most(20),
                scale.seed,
                50,
            )
            for arms in ARMS
        }

    def beside(self, scale: Scale) -> dict[str, Any]:
        choice = MovieLens(ARMS[0], data=source()["data"]).oracle().choice
        return {**source(), "choice": choice._asdict()}

    def section(self, folder: Path) -> Section:
        cells = self.results(folder)
        known = self.saved(folder)
        lowest = judge("movielens-lowest", setup.leads(cells))
        warnings: tuple[str, ...] = ()
        if known["data"] == STAND_IN:
            lowest = not_judged(lowest, MISSING)
            warnings = (
                "MovieLens 100K was not available: it was not found on this machine and could not be downloaded. So the section MovieLens "
                "uses generated ratings of the same shape, and its claim was not judged. To judge it, get ml-100k.zip from "
                "GroupLens, unpack it, set DECOUPLED_DATA to its folder, and run the command again.",
            )
        title = "Regret with movies as arms" + (", on generated ratings" if warnings else "")
        more = (
            "Regret is against the best fixed movie in hindsight. It can fall when a policy adapts to the users better than "
            "one movie can."
        )
        picture = regret_picture("movielens", title, cells, 2, more=more)
        choice = known["choice"]
        factors = f"with {choice['dimension']} factors, penalty {choice['penalty']:g} (the oracle)"
        rows = (
            ("user mean + movie mean (the baseline)", f"{choice['rmse_means']:.4f}"),
            (
                f"biases by ridge, penalty {choice['bias_penalty']:g}",
                f"{choice['rmse_biases']:.4f}",
            ),
            (factors, f"{choice['rmse']:.4f}"),
        )
        head = ("model", "root mean square error")
        tables = (
            ReportTable("Error on held-out ratings, in stars", head, rows),
            regret_table(cells),
        )
        return Section(told("movielens"), (lowest,), (picture,), tables, warnings)


NOISY_POLICIES: tuple[Policy, ...] = (*setup.CONTENDERS, TopTwo())
NOISY_NAMES = {**CONTENDER_NAMES, TopTwo().label: FIGURE_NAMES["TopTwo"]}


class NoisyMovies(Simulated):
    """The movies of `less-regret` without noise give a policy the mean of every loss that it sees."""

    def plans(self, scale: Scale) -> dict[str, Plan]:
        # Bernoulli noise for every number of movies, and random orders for the smallest and the largest.
        data, ends = source()["data"], (ARMS[0], ARMS[-1])
        worlds = {
            f"noise, K = {arms}": MovieLens(arms, noise="bernoulli", data=data) for arms in ARMS
        }
        worlds |= {
            f"random order, K = {arms}": MovieLens(arms, order="iid", data=data) for arms in ends
        }
        return {
            name: make_plan(NOISY_POLICIES, world, HORIZON, scale.fewer(4), scale.seed, 50)
            for name, world in worlds.items()
            if world.arms == ARMS[0] or not scale.quick
        }

    def section(self, folder: Path) -> Section:
        cells = self.results(folder)
        data = next(iter(cells.values())).specification["environment"]["data"]
        judged = [
            judge("noisy-movies-lower", setup.contender_leads(cells)),
            judge("noisy-movies-tail", setup.tail_leads(cells)),
        ]
        if data == STAND_IN:
            judged = [not_judged(claim, MISSING) for claim in judged]
        title = "Movies as arms, with noise and in random order"
        more = "Regret is against the best movie in hindsight."
        picture = regret_picture("noisy-movies", title, cells, 3, names=NOISY_NAMES, more=more)
        tables = (regret_table(cells, NOISY_NAMES),)
        return Section(
            told("noisy-movies"), tuple(judged), (picture,), tables, stand_in_warnings(data)
        )
