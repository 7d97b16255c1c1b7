"""Follow the leader with uniform exploration, the simple method that belongs in every comparison."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..base.arrays import Floats, Words
from ..kernels.argmin import SCALARS, find_lowest, lowest_law, pick_lowest, sample_mean
from ..kernels.dispatch import Functions
from ..kernels.jit import compiled
from ..kernels.random.stream import below
from ..kernels.state import Layout, State
from .base import Policy

SUMS, COUNTS, MEANS = range(3)


class Params(NamedTuple):
    """There are no parameters, but the tuple needs a field to be a type of its own."""

    unused: float


@compiled
def init(params: Params, state: State) -> None:
    """Compute the mean of every arm."""
    floats = state.floats
    for arm in range(floats.shape[1]):
        floats[MEANS, arm] = sample_mean(floats[SUMS, arm], floats[COUNTS, arm])
    find_lowest(state, MEANS)


@compiled
def decide(params: Params, state: State, stream: Words) -> tuple[int, int, float, float]:
    """Draw one of the leaders, and any arm uniformly."""
    arms = state.floats.shape[1]
    exploit = pick_lowest(state, MEANS, stream)
    return exploit, below(arms, stream), float(arms), 1.0 / arms


@compiled
def update(params: Params, state: State, arm: int, weight: float, loss: float) -> None:
    """Add the loss to the arm's mean, which does not depend on the probability of the draw."""
    floats = state.floats
    floats[SUMS, arm] += loss
    floats[COUNTS, arm] += 1.0
    floats[MEANS, arm] = sample_mean(floats[SUMS, arm], floats[COUNTS, arm])
    find_lowest(state, MEANS)


@dataclass(frozen=True)
class FollowTheLeader(Policy):
    """Exploit the smallest sample mean, explore uniformly. Unseen arms come first; ties are broken at random.

    Rouyer and Seldin (2020) name it. On stochastic losses its regret is constant and often lower than that of policies
    with guarantees. Against an adversary that watches it, its regret is linear in T. Its `estimates` are the sample
    means (-1 for an arm not yet seen).

    >>> import decoupled as dc
    >>> learner = dc.FollowTheLeader().start(arms=["a", "b"], seed=0)
    >>> learner.replay([("a", 0.5, 0.4), ("b", 0.5, 0.1), ("a", 0.5, 0.0)])
    3
    >>> learner.exploit().exploit, learner.estimates().tolist()
    ('b', [0.2, 0.1])
    """

    layout = Layout(SCALARS, floats=("sums", "counts", "means"), learned=("sums", "counts"))
    params_type = Params
    functions = Functions(init, decide, update)
    cumulative = None
    fading = ("sums", "counts")

    def params(self) -> Params:
        return Params(0.0)

    def exploitation_law(self, state: State) -> Floats:
        return lowest_law(state, MEANS)

    def exploration_law(self, state: State) -> Floats:
        arms = state.floats.shape[1]
        return np.full(arms, 1.0 / arms)

    def estimates(self, state: State) -> Floats:
        return np.array(state.floats[MEANS])
