"""Beyond the paper: an arm that is bad for long and then the best. Without a uniform share, it is not seen again."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from decoupled.base import Floats
from decoupled.environments import LossTable
from decoupled.policies import FTPL, Ladder, Policy
from decoupled.simulation import Plan, Results, make_plan

from ..report.claims import Claim, judged_above, judged_below, mean_of
from ..report.section import Section
from .base import Scale, Simulated
from .setup import regret_picture, regret_table

ARMS = 3
HORIZONS = (14_000, 56_000)
OURS, WITHOUT = Ladder(), replace(Ladder(), uniform_share=0.0)
POLICIES: tuple[Policy, ...] = (FTPL(), OURS, WITHOUT)
NAMES = {FTPL().label: "FTPL", OURS.label: "Ladder()", WITHOUT.label: "Ladder(uniform_share=0)"}


def late_bloomer(horizon: int, third: float = 0.5) -> LossTable:
    """Arm 0 always costs 0.5 and arm 2 as much, or a little more; arm 1 costs 0.6 and, from horizon / 1.4 on, nothing.

    >>> late_bloomer(14).table(14).row_at.tolist()
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1]
    """
    good = horizon - horizon * 10 // 14
    index = [0] * (horizon - good) + [1] * good
    return LossTable([[0.5, 0.6, third], [0.5, 0.0, third]], index, noise="none")


class LateBloomer(Simulated):
    """The instance on which the ladder had linear regret before it explored all arms a little."""

    def plans(self, scale: Scale) -> dict[str, Plan]:
        thirds = {"": 0.5, ", third arm at 0.501": 0.501}
        return {
            f"T = {horizon:,}{name}": make_plan(
                POLICIES, late_bloomer(horizon, third), horizon, scale.fewer(20), scale.seed, 50
            )
            for horizon in HORIZONS[: 1 if scale.quick else None]
            for name, third in thirds.items()
        }

    def section(self, folder: Path) -> Section:
        cells = self.results(folder)
        more = "Regret is against the best arm of all rounds."
        picture = regret_picture(
            "late-bloomer", "An arm that becomes good late", cells, 2, names=NAMES, more=more
        )
        text = (
            "Arm 1 costs 0.6 for five sevenths of the rounds and nothing afterwards; the others cost 0.5. By then it is explored so seldom that most runs never see it again, and a ladder whose "
            "baselines count from the least loss <i>seen</i> learns nothing of arms that it does not see. A uniform share of the exploration mends this. Regret below 0 is less loss than the best single arm has."
        )
        tables = (regret_table(cells, NAMES),)
        return Section(text, tuple(claims(cells)), (picture,), tables)


def claims(cells: dict[str, Results]) -> list[Claim]:
    """The ladder's regret against sqrt(KT), and what the uniform share is worth."""

    def scaled(results: Results, policy: Policy) -> Floats:
        share: Floats = results.final_regret(policy) / np.sqrt(ARMS * results.specification["horizon"])
        return share

    ours, without = (
        [mean_of(name, scaled(results, policy), len(cells)) for name, results in cells.items()]
        for policy in (OURS, WITHOUT)
    )
    return [
        judged_below("late-bloomer-mended", "ours", "If an arm becomes good late, the regret of Ladder() is below $\\sqrt{KT}$.", "regret over $\\sqrt{KT}$", ours, 1.0),
        judged_above("late-bloomer-share", "ours", "Without the uniform share it is above that.", "regret over $\\sqrt{KT}$", without, 1.0),
    ]  # fmt: skip
