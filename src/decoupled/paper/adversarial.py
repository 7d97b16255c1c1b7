"""Figure 2 (left): the alternating environment with eight arms."""

from pathlib import Path

from ..plots import Picture
from ..report.section import Section
from ..simulation.plan import Plan, make_plan
from .base import HORIZON, Scale, Simulated
from .setup import ADVERSARIAL, POLICIES, lowest_claim, regret_panel, regret_table


class Adversarial(Simulated):
    """The paper's first experiment."""

    name = "adversarial"
    title = "Adversarial regime"
    about = "alternating losses, K = 8, gap 0.125"
    origin = "section 4.2"
    keep_runs = True

    def plans(self, scale: Scale) -> dict[str, Plan]:
        return {"alternating": make_plan(POLICIES, ADVERSARIAL, HORIZON, scale.runs, scale.seed)}

    def section(self, folder: Path) -> Section:
        results = self.results(folder)["alternating"]
        claim = lowest_claim(
            "adversarial-lowest",
            "Section 4.2, figure of the regret at gap 0.125",
            "In the adversarial regime (K = 8, gap 0.125) FTPL has lower cumulative regret than FTRL and EXP3.",
            {"": results},
        )
        picture = Picture(
            "adversarial",
            "Alternating losses, K = 8, gap 0.125",
            f"Mean regret over {results.data.sizes['run']:,} runs, bands of one standard deviation, every policy at c = 2.",
            (regret_panel("", results),),
        )
        text = (
            "Bernoulli losses whose means alternate between (0, gap) for the best arm and the others and (1 - gap, 1), in phases "
            "of floor(1.6<sup>n</sup>) rounds."
        )
        return Section(
            self.name,
            self.title,
            text,
            (claim,),
            (picture,),
            (regret_table("Final regret", {"": results}),),
        )
