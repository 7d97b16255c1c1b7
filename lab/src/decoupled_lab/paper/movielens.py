"""The appendix's real data: movies as arms, on MovieLens 100K."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from decoupled.base import write_atomically
from decoupled.errors import StorageError
from decoupled.policies import FollowTheLeader
from decoupled.simulation import Plan, make_plan

from ..movielens import find
from ..movielens.environment import MovieLens
from ..report.claims import not_judged
from ..report.section import ReportTable, Section
from .base import HORIZON, Advance, Scale, Simulated
from .setup import POLICIES, lowest_claim, regret_picture, regret_table

ARMS = (32, 64, 128, 256)
SOURCE_FILE = "source.json"
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

    def plans(self, scale: Scale) -> dict[str, Plan]:
        policies = (*POLICIES, FollowTheLeader())
        return {
            f"K = {arms}": make_plan(
                policies, MovieLens(arms, data=source()["data"]), HORIZON, scale.most(20), scale.seed, 50
            )
            for arms in ARMS
        }

    def measure(self, scale: Scale, folder: Path, advance: Advance) -> None:
        super().measure(scale, folder, advance)
        choice = MovieLens(ARMS[0], data=source()["data"]).oracle().choice
        content = json.dumps({**source(), "choice": choice._asdict()}, indent=1)
        write_atomically(folder / SOURCE_FILE, content)

    def section(self, folder: Path) -> Section:
        cells = self.results(folder)
        known = json.loads((folder / SOURCE_FILE).read_text("utf-8"))
        lowest = lowest_claim(
            "movielens-lowest",
            "Appendix E.3, 'significantly outperforming both FTRL and EXP3 across all tested environments'",
            "On MovieLens 100K, FTPL has lower regret than Tsallis-INF and EXP3 with 32, 64, 128 and 256 movies.",
            cells,
        )
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
        text = (
            "The arms are the K most rated movies. Each round is the user of the next rating, in order of time. An oracle gives the rating that a "
            "user would give a movie: level + user + movie + a product of factors, fitted by ridge regression to all ratings, clipped to the scale and rescaled to [0, 1]. "
            "The paper does not specify its oracle; this is our choice. Its dimension and penalties minimise the error on a held-out tenth of the ratings."
        )
        tables = (rmse_table(known["choice"]), regret_table(cells))
        return Section(text, (lowest,), (picture,), tables, warnings)


def rmse_table(choice: dict[str, Any]) -> ReportTable:
    """How well the oracle predicts held-out ratings."""
    factors = f"with {choice['dimension']} factors, penalty {choice['penalty']:g} (the oracle)"
    rows = (
        ("user mean + movie mean (the baseline)", f"{choice['rmse_means']:.4f}"),
        (f"biases by ridge, penalty {choice['bias_penalty']:g}", f"{choice['rmse_biases']:.4f}"),
        (factors, f"{choice['rmse']:.4f}"),
    )
    return ReportTable("Error on held-out ratings, in stars", ("model", "root mean square error"), rows)
