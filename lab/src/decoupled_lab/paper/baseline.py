"""Follow the leader with uniform exploration: where the simplest method wins, and where it breaks."""

from pathlib import Path

from decoupled.policies import FTPL, FollowTheLeader
from decoupled.simulation import Plan, make_plan

from ..report.claims import judged_above
from ..report.section import Section
from .base import HORIZON, Scale, Simulated
from .setup import ADVERSARIES, BENCHMARKS, POLICIES, leads, regret_picture, regret_ratio, regret_table

COLLAPSE = 2.0  # times FTPL's regret


class Baseline(Simulated):
    """The paper's policies, and a policy that needs no tuning and has no guarantee."""

    def plans(self, scale: Scale) -> dict[str, Plan]:
        everyone = (*POLICIES, FollowTheLeader())
        # Each policy needs a compiled loop for each adversary; the quick version has only those it judges.
        judged = (FTPL(), FollowTheLeader()) if scale.quick else everyone
        return {
            name: make_plan(policies, world, HORIZON, scale.runs, scale.seed, 50)
            for worlds, policies in ((BENCHMARKS, everyone), (ADVERSARIES, judged))
            for name, world in worlds.items()
        }

    def section(self, folder: Path) -> Section:
        cells = self.results(folder)
        wins = judged_above(
            "baseline-wins",
            "ours; the paper does not test it",
            "On the paper's three instances, follow the leader with uniform exploration has lower regret than FTPL.",
            "FTPL's regret minus follow the leader's",
            leads({name: cells[name] for name in BENCHMARKS}, rivals=("FTPL",), leader="FollowTheLeader"),
            0.0,
        )
        parts = [
            regret_ratio(name, cells[name], "FollowTheLeader", "FTPL", len(ADVERSARIES))
            for name in ADVERSARIES
        ]
        collapses = judged_above(
            "baseline-collapses",
            "ours; the theorem allows adaptive adversaries, but the experiments have none",
            "Against an adaptive adversary, follow the leader has at least twice FTPL's regret.",
            "follow the leader's regret over FTPL's",
            parts,
            COLLAPSE,
        )
        more = "In the last two panels, an adversary sees past plays."
        picture = regret_picture(
            "baseline", "Follow the leader and the paper's policies", cells, 3, more=more
        )
        text = (
            "Follow the leader exploits the arm with the smallest sample mean and explores uniformly. Losses that do not react cannot harm it, "
            "and its sample means are the best possible estimates. The adversary <i>punish last</i> makes the arm exploited last cost 1. "
            "<i>Adaptive alternating</i> moves the level of all losses in reaction to the arm exploited, but keeps the gaps. Uniform exploration still "
            "sees the gaps, so this adversary does not hurt follow the leader."
        )
        claims = (wins, collapses)
        return Section(text, claims, (picture,), (regret_table(cells),))
