"""UCB1: optimism in the standard game."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...base.arrays import Floats, Words
from ...base.validation import number_in
from ...kernels.argmin import lowest_entries, pick_lowest
from ...kernels.dispatch import Functions
from ...kernels.jit import compiled
from ...kernels.state import ROUND, SHARED_SCALARS, Layout, State
from ..base import Policy

LOWEST, LEADER, TIED = range(len(SHARED_SCALARS), len(SHARED_SCALARS) + 3)
SUMS, COUNTS, INDEX = range(3)

UNSEEN = -1e300  # below every index, so that an arm not yet seen comes first


class Params(NamedTuple):
    """The parameters as compiled code takes them."""

    c: float


@compiled
def refresh(params: Params, state: State) -> None:
    """The index of every arm, and which is the lowest."""
    floats = state.floats
    width = params.c * math.log(max(state.scalars[ROUND] - 1.0, 1.0))
    for i in range(floats.shape[1]):
        count = floats[COUNTS, i]
        floats[INDEX, i] = floats[SUMS, i] / count - math.sqrt(width / count) if count > 0.0 else UNSEEN
    lowest, leader, tied = lowest_entries(floats[INDEX])
    state.scalars[LOWEST] = lowest
    state.scalars[LEADER] = leader
    state.scalars[TIED] = tied


@compiled
def init(params: Params, state: State) -> None:
    """The index of every arm."""
    refresh(params, state)


@compiled
def decide(params: Params, state: State, stream: Words) -> tuple[int, int, float, float]:
    """The lowest index, at random among several."""
    tied = int(state.scalars[TIED])
    arm = pick_lowest(state.floats[INDEX], state.scalars[LOWEST], int(state.scalars[LEADER]), tied, stream)
    return arm, arm, float(tied), 1.0 / tied


@compiled
def update(params: Params, state: State, arm: int, weight: float, loss: float) -> None:
    """Take the loss into the arm's mean; how likely the draw was does not matter to a mean."""
    state.floats[SUMS, arm] += loss
    state.floats[COUNTS, arm] += 1.0
    refresh(params, state)


@dataclass(frozen=True)
class UCB1(Policy):
    """Optimism in the standard game: play the arm that could be the best.

    With n_i losses seen of arm i and t in all, each round plays the arm with the smallest
    mean_i - sqrt(c * ln t / n_i); arms not yet seen come first, ties at random.

    Auer, P., Cesa-Bianchi, N. and Fischer, P. (2002). Finite-time analysis of the multiarmed bandit
    problem. Machine Learning 47. Figure 1, with c = 2, on losses in place of rewards. Ties at random are
    ours (the paper leaves them open), and t counts observations, so feedback that is late leaves the
    policy where it is. It has a guarantee for stochastic losses only; an adversary can lead it astray.
    Its `estimates` are the sample means (-1 for an arm not yet seen).

    Args:
        c: how wide the confidence bounds are, above 0.

    >>> import decoupled as dc
    >>> learner = dc.UCB1().start(arms=["a", "b"], seed=0)
    >>> learner.replay([("a", 1.0, 0.4), ("b", 1.0, 0.1), ("b", 1.0, 0.3)])
    3
    >>> learner.decide().explore, learner.estimates().tolist()
    ('a', [0.4, 0.2])
    """

    c: float = 2.0

    layout = Layout(
        scalars=("lowest", "leader", "tied"),
        floats=("sums", "counts", "index"),
        learned=("sums", "counts"),
    )
    params_type = Params
    functions = Functions(init, decide, update)
    cumulative = None
    fading = ("sums", "counts")
    coupled = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "c", number_in("c", self.c, 0.0, 1e100, "the default is 2"))

    def params(self) -> Params:
        return Params(self.c)

    def exploitation_law(self, state: State) -> Floats:
        leads = state.floats[INDEX] == state.scalars[LOWEST]
        law: Floats = leads / leads.sum()
        return law

    def estimates(self, state: State) -> Floats:
        sums, counts = state.floats[SUMS], state.floats[COUNTS]
        means: Floats = np.divide(sums, counts, out=np.full(len(sums), -1.0), where=counts > 0.0)
        return means
