"""The appendix's sixteen instances: four numbers of arms, four gaps."""

from pathlib import Path

from ..environments import Alternating
from ..plots import Picture
from ..report.claims import judged_above, ratio_of
from ..report.section import Section
from ..simulation.plan import Plan, make_plan
from .base import HORIZON, Scale, Simulated
from .setup import NAMES, POLICIES, lowest_claim, regret_panel, regret_table

ARMS = (4, 16, 32, 64)
GAPS = (0.03125, 0.0625, 0.125, 0.25)
CHECKPOINTS = 50


class Grid(Simulated):
    """The alternating environment across K and the gap."""

    name = "grid"
    title = "Sixteen instances"
    about = "K in {4, 16, 32, 64}, gap in {0.03125, 0.0625, 0.125, 0.25}"
    origin = "appendix E.2"

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
        place = "Appendix E.2, figure of 16 instances"
        lowest = lowest_claim(
            "grid-lowest", place, "FTPL has the lowest regret in all 16 instances.", cells
        )
        hardest = cells[f"K = {ARMS[-1]}, gap {GAPS[0]:g}"]
        superior = judged_above(
            "grid-hardest",
            "Appendix E.2, 'superior performance even under increased problem complexity'",
            "The lead remains with many arms and a small gap (K = 64, gap 0.03125).",
            "regret of a rival over FTPL's",
            [
                ratio_of(NAMES[rival], hardest.final_regret(rival), hardest.final_regret("FTPL"), 2)
                for rival in ("TsallisINF", "Exp3")
            ],
            1.0,
        )
        runs = next(iter(cells.values())).data.sizes["run"]
        picture = Picture(
            "grid",
            "Regret in sixteen alternating instances",
            f"Mean regret over {runs:,} runs, bands of one standard deviation, every policy at c = 2. Where the gap is small, "
            "no policy has found the best arm after 10,000 rounds and all are near gap x T.",
            tuple(regret_panel(cell, results) for cell, results in cells.items()),
            columns=4,
        )
        text = "The alternating environment for K in {4, 16, 32, 64} and gaps in {0.03125, 0.0625, 0.125, 0.25}."
        table = regret_table("Final regret", cells)
        return Section(self.name, self.title, text, (lowest, superior), (picture,), (table,))
