"""Figures 4 and 5: two stochastic instances with five arms."""

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import numpy as np

from decoupled.environments import Bernoulli
from decoupled.plots import NAMES
from decoupled.simulation import Plan, Results, make_plan

from ..report.claims import Claim, Measure, judged_above, judged_below, ratio_of
from ..report.section import Section
from .base import HORIZON, Scale, Simulated
from .setup import (
    POLICIES,
    STOCHASTIC_EASY,
    STOCHASTIC_HARD,
    lowest_claim,
    regret_picture,
    regret_table,
)

FLAT = 0.125  # share of the regret in the last quarter of the rounds: without flattening it is 0.25
STATISTIC = "share of the regret in the last quarter of the rounds (0.25 without flattening)"

# The paper's claims on convergence: how each is judged, its id, its place, and what it says.
CONVERGENCE: dict[str, tuple[Callable[..., Claim], str, str, str]] = {
    "easy": (
        judged_below,
        "stochastic-flattens",
        "Section 4.3, 'the regret of all policies gradually converges'",
        "On the easy instance, the regret of all policies flattens within 10,000 rounds.",
    ),
    "hard": (
        judged_above,
        "stochastic-hard-slower",
        "Section 4.3, 'more rounds are required for convergence in the harder setting'",
        "On the hard instance, no policy flattens within 10,000 rounds.",
    ),
}


class Stochastic(Simulated):
    """Policies on fixed mean rewards."""

    environment: ClassVar[Bernoulli]
    difficulty: ClassVar[str]
    keep_runs = True

    def plans(self, scale: Scale) -> dict[str, Plan]:
        return {"bernoulli": make_plan(POLICIES, self.environment, HORIZON, scale.runs, scale.seed)}

    def section(self, folder: Path) -> Section:
        cells = {"": self.results(folder)["bernoulli"]}
        rewards = ", ".join(f"{reward:g}" for reward in self.environment.rewards)
        lowest = lowest_claim(
            f"stochastic-{self.difficulty}-lowest",
            "Section 4.3, 'FTPL achieves the best empirical performance'",
            f"On the {self.difficulty} stochastic instance, FTPL has the lowest regret of the three policies.",
            cells,
        )
        picture = regret_picture(f"stochastic-{self.difficulty}", f"Mean rewards {rewards}", cells)
        text = f"Rewards are Bernoulli with means [{rewards}]. A loss is one minus the reward."
        judged, *words = CONVERGENCE[self.difficulty]
        claims = (lowest, judged(*words, STATISTIC, last_quarter(cells[""]), FLAT))
        return Section(text, claims, (picture,), (regret_table(cells),))


def last_quarter(results: Results) -> list[Measure]:
    """The share of each policy's regret that it adds in the last quarter of the rounds."""
    rounds = results.data["round"].values
    start = int(np.argmin(np.abs(rounds - 0.75 * rounds[-1])))
    shares = []
    for label in results.labels:
        curves = results.data.regret.sel(policy=label).values
        added = curves[:, -1] - curves[:, start]
        shares.append(ratio_of(NAMES[label], added, curves[:, -1], len(results.labels)))
    return shares


class StochasticEasy(Stochastic):
    """The easy instance, mu1."""

    environment = STOCHASTIC_EASY
    difficulty = "easy"


class StochasticHard(Stochastic):
    """The hard instance, mu2."""

    environment = STOCHASTIC_HARD
    difficulty = "hard"
