"""UCB1: optimism in the standard game."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...base.arrays import Floats, Words
from ...base.validation import set_number
from ...kernels.argmin import SCALARS, TIED, find_lowest, lowest_law, pick_lowest
from ...kernels.dispatch import Functions
from ...kernels.jit import compiled
from ...kernels.state import ROUND, Layout, State
from ..base import Policy

SUMS, COUNTS, INDEX = range(3)

UNSEEN = -1e300  # below every index, so that an arm not yet seen comes first


class Params(NamedTuple):
    """The parameters of the compiled code."""

    c: float


@compiled
def init(params: Params, state: State) -> None:
    """Compute the index of every arm, and find the lowest."""
    floats = state.floats
    width = params.c * math.log(max(state.scalars[ROUND] - 1.0, 1.0))
    for i in range(floats.shape[1]):
        count = floats[COUNTS, i]
        floats[INDEX, i] = floats[SUMS, i] / count - math.sqrt(width / count) if count > 0.0 else UNSEEN
    find_lowest(state, INDEX)


@compiled
def decide(params: Params, state: State, stream: Words) -> tuple[int, int, float, float]:
    """Draw one of the arms with the lowest index."""
    tied = state.scalars[TIED]
    arm = pick_lowest(state, INDEX, stream)
    return arm, arm, tied, 1.0 / tied


@compiled
def update(params: Params, state: State, arm: int, weight: float, loss: float) -> None:
    """Add the loss to the arm's mean, which does not depend on the probability of the draw."""
    state.floats[SUMS, arm] += loss
    state.floats[COUNTS, arm] += 1.0
    init(params, state)


@dataclass(frozen=True)
class UCB1(Policy):
    r"""Optimism in the standard game: play the arm that could be the best.

    With $n_i$ losses seen of arm $i$, their mean $m_i$, and $t$ losses in all, each round plays the arm with the smallest
    $m_i - \sqrt{c \ln t / n_i}$. Unseen arms come first; ties are broken at random.

    Auer, P., Cesa-Bianchi, N. and Fischer, P. (2002). Finite-time analysis of the multiarmed bandit problem. Machine
    Learning 47. Figure 1, with $c = 2$, on losses instead of rewards. The paper does not say how to break ties; we do it
    at random. $t$ counts observations, so late feedback does not move the policy. It has a guarantee for stochastic
    losses only, and an adversary can mislead it. Its `estimates` are the sample means (-1 for an arm not yet seen).

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

    layout = Layout(SCALARS, floats=("sums", "counts", "index"), learned=("sums", "counts"))
    params_type = Params
    functions = Functions(init, decide, update)
    cumulative = None
    fading = ("sums", "counts")
    coupled = True

    def __post_init__(self) -> None:
        set_number(self, "c", 0.0, 1e100, "the default is 2")

    def params(self) -> Params:
        return Params(self.c)

    def exploitation_law(self, state: State) -> Floats:
        return lowest_law(state, INDEX)

    def estimates(self, state: State) -> Floats:
        sums, counts = state.floats[SUMS], state.floats[COUNTS]
        means: Floats = np.divide(sums, counts, out=np.full(len(sums), -1.0), where=counts > 0.0)
        return means
