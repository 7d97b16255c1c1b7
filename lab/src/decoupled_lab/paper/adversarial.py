"""Figure 2: the alternating environment with eight arms."""

from pathlib import Path

from decoupled.simulation import Plan, make_plan

from ..report.section import Section
from .base import HORIZON, Scale, Simulated
from .setup import ADVERSARIAL, POLICIES, lowest_claim, regret_picture, regret_table


class Adversarial(Simulated):
    """The paper's first experiment."""

    keep_runs = True

    def plans(self, scale: Scale) -> dict[str, Plan]:
        return {"alternating": make_plan(POLICIES, ADVERSARIAL, HORIZON, scale.runs, scale.seed)}

    def section(self, folder: Path) -> Section:
        cells = {"": self.results(folder)["alternating"]}
        claim = lowest_claim(
            "adversarial-lowest",
            "Section 4.2, figure of the regret at gap 0.125",
            "In the adversarial regime (K = 8, gap 0.125), FTPL has lower cumulative regret than Tsallis-INF and EXP3.",
            cells,
        )
        picture = regret_picture("adversarial", "Alternating losses, K = 8, gap 0.125", cells)
        text = (
            "Losses are Bernoulli. The means of the best arm and the others alternate between (0, gap) and (1 - gap, 1), in phases "
            "of $\\lfloor 1.6^n \\rfloor$ rounds."
        )
        return Section(text, (claim,), (picture,), (regret_table(cells),))
