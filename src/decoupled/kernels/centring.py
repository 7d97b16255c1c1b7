"""Centred losses where both laws are explicit weights: the baselines, and what an observation adds."""

from ..arrays import Floats
from .compiled import compiled

START = 0.5  # of the running mean: the middle of the losses' range


@compiled
def set_baselines(explore: Floats, explore_sum: float, least: float, mean: float, baseline: Floats) -> None:
    """The mean for arms explored with a probability of at least `least`, 0 for the others."""
    bar = least * explore_sum
    for i in range(len(explore)):
        baseline[i] = mean if explore[i] >= bar else 0.0


@compiled
def add_centred(estimates: Floats, baseline: Floats, arm: int, weight: float, loss: float) -> None:
    """Add (loss - b) / p to the arm and b to all, with the b of the decision."""
    estimates[arm] += weight * (loss - baseline[arm])
    for i in range(len(estimates)):
        estimates[i] += baseline[i]
