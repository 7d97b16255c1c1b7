"""Figures 3 and 4: two stochastic instances with five arms."""

from pathlib import Path
from typing import ClassVar

import numpy as np

from ..environments import Bernoulli
from ..plots import Picture
from ..report.claims import Claim, Measure, judged_above, judged_below, ratio_of
from ..report.section import Section
from ..simulation import Results
from ..simulation.plan import Plan, make_plan
from .base import HORIZON, Scale, Simulated
from .setup import (
    NAMES,
    POLICIES,
    STOCHASTIC_EASY,
    STOCHASTIC_HARD,
    lowest_claim,
    regret_panel,
    regret_table,
)

FLAT = 0.25  # regret in the last quarter of the rounds, as a share of all: 0.25 would be no flattening


class Stochastic(Simulated):
    """Policies on fixed mean rewards."""

    environment: ClassVar[Bernoulli]
    difficulty: ClassVar[str]
    keep_runs = True

    def plans(self, scale: Scale) -> dict[str, Plan]:
        return {"bernoulli": make_plan(POLICIES, self.environment, HORIZON, scale.runs, scale.seed)}

    def flattening(self, results: Results) -> Claim:
        """The paper's word on convergence for this instance."""
        raise NotImplementedError

    def section(self, folder: Path) -> Section:
        results = self.results(folder)["bernoulli"]
        rewards = ", ".join(f"{reward:g}" for reward in self.environment.rewards)
        lowest = lowest_claim(
            f"{self.name}-lowest",
            "Section 4.3, 'FTPL achieves the best empirical performance'",
            f"On the {self.difficulty} stochastic instance FTPL has the lowest regret of the three policies.",
            {"": results},
        )
        picture = Picture(
            self.name,
            f"Mean rewards {rewards}",
            f"Mean regret over {results.data.sizes['run']:,} runs, bands of one standard deviation, every policy at c = 2.",
            (regret_panel("", results),),
        )
        text = f"Bernoulli rewards with means [{rewards}]; a loss is one minus the reward."
        claims = (lowest, self.flattening(results))
        table = regret_table("Final regret", {"": results})
        return Section(self.name, self.title, text, claims, (picture,), (table,))


def last_quarter(results: Results) -> list[Measure]:
    """For each policy, the share of its regret that comes in the last quarter of the rounds."""
    rounds = results.data["round"].values
    start = int(np.argmin(np.abs(rounds - 0.75 * rounds[-1])))
    shares = []
    for label in results.labels:
        curves = results.data.regret.sel(policy=label).values
        added = curves[:, -1] - curves[:, start]
        shares.append(ratio_of(NAMES.get(label, label), added, curves[:, -1], len(results.labels)))
    return shares


class StochasticEasy(Stochastic):
    """The easy instance, mu1."""

    name = "stochastic-easy"
    title = "Stochastic regime, easy"
    about = "fixed mean rewards, five arms; the second best is 0.05 behind"
    origin = "section 4.3"
    environment = STOCHASTIC_EASY
    difficulty = "easy"

    def flattening(self, results: Results) -> Claim:
        return judged_below(
            "stochastic-flattens",
            "Section 4.3, 'the regret of all policies gradually converges'",
            "On the easy instance the regret of all policies flattens within 10,000 rounds.",
            "share of the regret that comes in the last quarter of the rounds (0.25 where nothing flattens)",
            last_quarter(results),
            FLAT / 2,
        )


class StochasticHard(Stochastic):
    """The hard instance, mu2."""

    name = "stochastic-hard"
    title = "Stochastic regime, hard"
    about = "fixed mean rewards, five arms; the second best is 0.002 behind"
    origin = "section 4.3"
    environment = STOCHASTIC_HARD
    difficulty = "hard"

    def flattening(self, results: Results) -> Claim:
        return judged_above(
            "stochastic-hard-slower",
            "Section 4.3, 'more rounds are required for convergence in the harder setting'",
            "On the hard instance 10,000 rounds are not enough for any of the policies to flatten.",
            "share of the regret that comes in the last quarter of the rounds (0.25 where nothing flattens)",
            last_quarter(results),
            FLAT / 2,
        )
