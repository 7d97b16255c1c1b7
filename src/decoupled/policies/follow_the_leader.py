"""Follow the leader with uniform exploration: the simple method no honest comparison leaves out."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..base.arrays import Floats, Words
from ..kernels.argmin import lowest_entries, pick_lowest
from ..kernels.dispatch import Functions
from ..kernels.jit import compiled
from ..kernels.random.stream import below
from ..kernels.state import SHARED_SCALARS, Layout, State
from .base import Policy

LOWEST, LEADER, TIED = range(len(SHARED_SCALARS), len(SHARED_SCALARS) + 3)
SUMS, COUNTS, MEANS = range(3)


class Params(NamedTuple):
    """There is nothing to choose, but a tuple needs a field to have a type of its own."""

    unused: float


@compiled
def find_leaders(state: State) -> None:
    """The lowest mean, the first arm that has it, and how many do."""
    lowest, leader, tied = lowest_entries(state.floats[MEANS])
    state.scalars[LOWEST] = lowest
    state.scalars[LEADER] = leader
    state.scalars[TIED] = tied


@compiled
def set_mean(state: State, arm: int) -> None:
    """An arm not yet seen has mean -1, below every loss, so it comes first."""
    count = state.floats[COUNTS, arm]
    state.floats[MEANS, arm] = state.floats[SUMS, arm] / count if count > 0.0 else -1.0


@compiled
def init(params: Params, state: State) -> None:
    """The mean of every arm."""
    for arm in range(state.floats.shape[1]):
        set_mean(state, arm)
    find_leaders(state)


@compiled
def decide(params: Params, state: State, stream: Words) -> tuple[int, int, float, float]:
    """One of the leaders, at random among several, and any arm uniformly."""
    arms = state.floats.shape[1]
    leader, tied = int(state.scalars[LEADER]), int(state.scalars[TIED])
    exploit = pick_lowest(state.floats[MEANS], state.scalars[LOWEST], leader, tied, stream)
    return exploit, below(arms, stream), float(arms), 1.0 / arms


@compiled
def update(params: Params, state: State, arm: int, weight: float, loss: float) -> None:
    """Take the loss into the arm's mean; how likely the draw was does not matter to a mean."""
    state.floats[SUMS, arm] += loss
    state.floats[COUNTS, arm] += 1.0
    set_mean(state, arm)
    find_leaders(state)


@dataclass(frozen=True)
class FollowTheLeader(Policy):
    """Exploit the smallest sample mean, explore uniformly; arms not yet seen come first, ties at random.

    Named by Rouyer and Seldin (2020). On stochastic losses its regret is constant and often lower than
    that of the policies with guarantees; against an adversary that watches it, it is linear in T.
    Its `estimates` are the sample means (-1 for an arm not yet seen).

    >>> import decoupled as dc
    >>> learner = dc.FollowTheLeader().start(arms=["a", "b"], seed=0)
    >>> learner.replay([("a", 0.5, 0.4), ("b", 0.5, 0.1), ("a", 0.5, 0.0)])
    3
    >>> learner.exploit(), learner.estimates().tolist()
    ('b', [0.2, 0.1])
    """

    layout = Layout(
        scalars=("lowest", "leader", "tied"),
        floats=("sums", "counts", "means"),
        learned=("sums", "counts"),
    )
    params_type = Params
    functions = Functions(init, decide, update)
    cumulative = None
    fading = ("sums", "counts")

    def params(self) -> Params:
        return Params(0.0)

    def exploitation_law(self, state: State) -> Floats:
        leads = state.floats[MEANS] == state.scalars[LOWEST]
        law: Floats = leads / leads.sum()
        return law

    def exploration_law(self, state: State) -> Floats:
        arms = state.floats.shape[1]
        return np.full(arms, 1.0 / arms)

    def estimates(self, state: State) -> Floats:
        return np.array(state.floats[MEANS])
