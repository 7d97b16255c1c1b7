"""Results without a simulation, for tests of claims; which claims do not hold; and small runs of experiments."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from decoupled import Policy
from decoupled_lab.paper.base import PaperExperiment, Scale
from decoupled_lab.report.claims import HOLDS, Claim
from decoupled_lab.report.page import Section


def not_holding(claims: Iterable[Claim]) -> set[str]:
    """The names of the claims that do not hold."""
    return {claim.id for claim in claims if claim.verdict != HOLDS}


def measured(experiment: PaperExperiment, scale: Scale, folder: Path) -> Section:
    """The section of a small run, which has told of as much work as it announced."""
    done: list[int] = []
    experiment.measure(scale, folder, done.append)
    assert sum(done) == experiment.units(scale)
    return experiment.section(folder)


class MadeUp:
    """Final regrets of 400 runs with one percent of spread around a mean for each policy."""

    def __init__(self, means: Mapping[Policy, float]) -> None:
        self.means = {policy.label: mean for policy, mean in means.items()}

    def final_regret(self, policy: Policy | str) -> np.ndarray:
        """The regrets of a policy, or of its label."""
        label = policy if isinstance(policy, str) else policy.label
        seed = list(self.means).index(label)
        return self.means[label] * (1.0 + 0.01 * np.random.default_rng(seed).normal(size=400))
