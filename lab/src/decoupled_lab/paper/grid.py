"""The appendix's sixteen instances: four numbers of arms, four gaps."""

from pathlib import Path

from decoupled.environments import Alternating
from decoupled.plots import NAMES
from decoupled.simulation import Plan, make_plan

from ..report.claims import judged_above
from ..report.section import Section
from .base import HORIZON, Scale, Simulated
from .setup import POLICIES, lowest_claim, regret_picture, regret_ratio, regret_table

ARMS = (4, 16, 32, 64)
GAPS = (0.03125, 0.0625, 0.125, 0.25)
CHECKPOINTS = 50


class SixteenInstances(Simulated):
    """The alternating environment for several K and gaps."""

    def plans(self, scale: Scale) -> dict[str, Plan]:
        return {
            f"K = {arms}, gap {gap:g}": make_plan(
                POLICIES, Alternating(arms, gap), HORIZON, scale.most(20), scale.seed, CHECKPOINTS
            )
            for arms in ARMS
            for gap in GAPS
        }

    def section(self, folder: Path) -> Section:
        cells = self.results(folder)
        lowest = lowest_claim(
            "grid-lowest",
            "Appendix E.2, figure of 16 instances",
            "FTPL has the lowest regret in all 16 instances.",
            cells,
        )
        hardest = cells[f"K = {ARMS[-1]}, gap {GAPS[0]:g}"]
        superior = judged_above(
            "grid-hardest",
            "Appendix E.2, 'superior performance even under increased problem complexity'",
            "FTPL still leads with many arms and a small gap (K = 64, gap 0.03125).",
            "regret of a rival over FTPL's",
            [regret_ratio(NAMES[rival], hardest, rival, "FTPL", 2) for rival in ("TsallisINF", "Exp3")],
            1.0,
        )
        more = "With 64 arms and the smallest gap, 10,000 rounds are too few to find the best arm, and all policies are near gap x T."
        picture = regret_picture("grid", "Regret in sixteen alternating instances", cells, 4, more=more)
        text = "The alternating environment for K in {4, 16, 32, 64} and gaps in {0.03125, 0.0625, 0.125, 0.25}."
        claims = (lowest, superior)
        return Section(text, claims, (picture,), (regret_table(cells),))
