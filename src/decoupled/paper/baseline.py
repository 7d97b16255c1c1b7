"""Follow the leader with uniform exploration: where the simplest method wins, and where it breaks."""

from pathlib import Path

from ..environments import AdaptiveAlternating, Environment, PunishLast
from ..plots import Picture
from ..policies import FTPL, FollowTheLeader
from ..report.claims import judged_above, ratio_of
from ..report.section import Section
from ..simulation.plan import Plan, make_plan
from .base import HORIZON, Scale, Simulated
from .setup import (
    ADVERSARIAL,
    POLICIES,
    STOCHASTIC_EASY,
    STOCHASTIC_HARD,
    leads,
    regret_panel,
    regret_table,
)

BENCHMARKS: dict[str, Environment] = {
    "alternating": ADVERSARIAL,
    "stochastic easy": STOCHASTIC_EASY,
    "stochastic hard": STOCHASTIC_HARD,
}
ADVERSARIES: dict[str, Environment] = {
    "punish last": PunishLast(arms=8),
    "adaptive alternating": AdaptiveAlternating(arms=8, gap=0.125),
}
COLLAPSE = 2.0  # times FTPL's regret


class Baseline(Simulated):
    """The paper's policies beside the one that needs no tuning and has no guarantee."""

    name = "baseline"
    title = "The simplest method"
    about = "follow the leader beside the paper's policies, also against adversaries that watch"
    origin = "ours"

    def plans(self, scale: Scale) -> dict[str, Plan]:
        everyone = (*POLICIES, FollowTheLeader())
        # Each policy against each adversary is a loop to compile: the quick version has those it judges.
        watched = (FTPL(), FollowTheLeader()) if scale.quick else everyone
        return {
            name: make_plan(policies, world, HORIZON, scale.runs, scale.seed, 50)
            for worlds, policies in ((BENCHMARKS, everyone), (ADVERSARIES, watched))
            for name, world in worlds.items()
        }

    def section(self, folder: Path) -> Section:
        cells = self.results(folder)
        wins = judged_above(
            "baseline-wins",
            "ours; the paper leaves it out",
            "On the paper's own three instances, follow the leader with uniform exploration has lower regret than FTPL.",
            "FTPL's regret minus follow the leader's",
            leads({name: cells[name] for name in BENCHMARKS}, rivals=("FTPL",), leader="FollowTheLeader"),
            0.0,
        )
        collapses = judged_above(
            "baseline-collapses",
            "ours; the theorem allows adaptive adversaries, the experiments have none",
            "Against an adversary that watches what is exploited, follow the leader has at least twice FTPL's regret.",
            "follow the leader's regret over FTPL's",
            [
                ratio_of(
                    name, cells[name].final_regret("FollowTheLeader"), cells[name].final_regret("FTPL"), len(ADVERSARIES)
                )
                for name in ADVERSARIES
            ],
            COLLAPSE,
        )  # fmt: skip
        runs = next(iter(cells.values())).data.sizes["run"]
        picture = Picture(
            "baseline",
            "Follow the leader beside the paper's policies",
            f"Mean regret over {runs:,} runs, bands of one standard deviation, every policy at c = 2. The last two panels have an adversary that sees past plays.",
            tuple(regret_panel(name, results) for name, results in cells.items()),
            columns=3,
        )
        text = (
            "Follow the leader exploits the smallest sample mean and explores uniformly. Losses that do not watch cannot harm it, "
            "and its estimates are the best there are. The adversary <i>punish last</i> makes the arm exploited last cost 1. "
            "<i>Adaptive alternating</i> moves the level of all losses with what was exploited and keeps the gaps, so that uniform exploration still "
            "sees them: the adversary wastes its power on it."
        )
        table = regret_table("Final regret", cells)
        return Section(self.name, self.title, text, (wins, collapses), (picture,), (table,))
