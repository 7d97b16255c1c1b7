"""The paper's experiments on regret, and the simplest method beside its policies."""

from pathlib import Path
from typing import ClassVar

from decoupled.environments import Alternating, Bernoulli
from decoupled.plots import NAMES
from decoupled.policies import FTPL, FollowTheLeader
from decoupled.simulation import Plan, make_plan

from ..report.page import Section
from . import setup
from .base import HORIZON, Scale, Simulated, judge, told
from .setup import ADVERSARIES, BENCHMARKS, POLICIES, leads, regret_picture, regret_table


class Adversarial(Simulated):
    """The paper's first experiment."""

    keep_runs = True

    def plans(self, scale: Scale) -> dict[str, Plan]:
        return {
            "alternating": make_plan(POLICIES, setup.ADVERSARIAL, HORIZON, scale.runs, scale.seed)
        }

    def section(self, folder: Path) -> Section:
        cells = {"": self.results(folder)["alternating"]}
        claim = judge("adversarial-lowest", leads(cells))
        picture = regret_picture("adversarial", "Alternating losses, K = 8, gap 0.125", cells)
        return Section(told("adversarial"), (claim,), (picture,), (regret_table(cells),))


class Stochastic(Simulated):
    """Policies on fixed mean rewards."""

    environment: ClassVar[Bernoulli]
    difficulty: ClassVar[str]
    convergence: ClassVar[str]  # the claim on it
    keep_runs = True

    def plans(self, scale: Scale) -> dict[str, Plan]:
        return {"bernoulli": make_plan(POLICIES, self.environment, HORIZON, scale.runs, scale.seed)}

    def section(self, folder: Path) -> Section:
        cells = {"": self.results(folder)["bernoulli"]}
        rewards = ", ".join(f"{reward:g}" for reward in self.environment.rewards)
        lowest = judge(f"stochastic-{self.difficulty}-lowest", leads(cells))
        picture = regret_picture(f"stochastic-{self.difficulty}", f"Mean rewards {rewards}", cells)
        text = f"Rewards are Bernoulli with means [{rewards}]. A loss is one minus the reward."
        results = cells[""]
        late = [
            setup.late_share(NAMES[label], results, label, 0.75, len(results.labels))
            for label in results.labels
        ]
        claims = (lowest, judge(self.convergence, late))
        return Section(text, claims, (picture,), (regret_table(cells),))


class StochasticEasy(Stochastic):
    """The easy instance, mu1."""

    environment = setup.STOCHASTIC_EASY
    difficulty = "easy"
    convergence = "stochastic-flattens"


class StochasticHard(Stochastic):
    """The hard instance, mu2."""

    environment = setup.STOCHASTIC_HARD
    difficulty = "hard"
    convergence = "stochastic-hard-slower"


ARMS = (4, 16, 32, 64)
GAPS = (0.03125, 0.0625, 0.125, 0.25)


class SixteenInstances(Simulated):
    """The alternating environment for several K and gaps."""

    def plans(self, scale: Scale) -> dict[str, Plan]:
        return {
            f"K = {arms}, gap {gap:g}": make_plan(
                POLICIES, Alternating(arms, gap), HORIZON, scale.most(20), scale.seed, 50
            )
            for arms in ARMS
            for gap in GAPS
        }

    def section(self, folder: Path) -> Section:
        cells = self.results(folder)
        hardest = cells[f"K = {ARMS[-1]}, gap {GAPS[0]:g}"]
        rivals = [
            setup.regret_ratio(NAMES[rival], hardest, rival, "FTPL", 2)
            for rival in ("TsallisINF", "Exp3")
        ]
        claims = (judge("grid-lowest", leads(cells)), judge("grid-hardest", rivals))
        more = "With 64 arms and the smallest gap, 10,000 rounds are too few to find the best arm, and all policies are near gap × T."  # noqa: RUF001
        picture = regret_picture(
            "grid", "Regret in sixteen alternating instances", cells, 4, more=more
        )
        return Section(told("grid"), claims, (picture,), (regret_table(cells),))


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
        papers = {name: cells[name] for name in BENCHMARKS}
        worse = [
            setup.regret_ratio(name, cells[name], "FollowTheLeader", "FTPL", len(ADVERSARIES))
            for name in ADVERSARIES
        ]
        claims = (
            judge("baseline-wins", leads(papers, rivals=("FTPL",), leader="FollowTheLeader")),
            judge("baseline-collapses", worse),
        )
        more = "In the last two panels, an adversary sees past plays."
        picture = regret_picture(
            "baseline", "Follow the leader and the paper's policies", cells, 3, more=more
        )
        return Section(told("baseline"), claims, (picture,), (regret_table(cells),))
