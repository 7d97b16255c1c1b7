"""Policies that follow means of losses: follow the leader, UCB1 and Thompson sampling.

Follow the leader explores uniformly, and belongs in every comparison. The other two play the
standard game.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..base.arrays import Floats, Words
from ..base.validation import set_number
from ..kernels.argmin import (
    LOWEST_SCALARS,
    find_lowest,
    lowest_law,
    pick_lowest,
    sample_mean,
)
from ..kernels.dispatch import Functions
from ..kernels.jit import compiled
from ..kernels.random.sampling import beta
from ..kernels.random.stream import below
from ..kernels.state import ROUND, Layout, State
from ..kernels.winner_law import smallest_beta_law
from .base import Policy

FOLLOW_LAYOUT = Layout(
    LOWEST_SCALARS, floats=("sums", "counts", "means"), learned=("sums", "counts")
)
_, FOLLOW, _ = FOLLOW_LAYOUT.places()


class FollowParams(NamedTuple):
    """There are no parameters, but the tuple needs a field to be a type of its own."""

    unused: float


@compiled
def follow_init(params: FollowParams, state: State) -> None:
    """Compute the mean of every arm."""
    floats = state.floats
    for arm in range(floats.shape[1]):
        floats[FOLLOW.means, arm] = sample_mean(
            floats[FOLLOW.sums, arm], floats[FOLLOW.counts, arm]
        )
    find_lowest(state, FOLLOW.means)


@compiled
def follow_decide(
    params: FollowParams, state: State, stream: Words
) -> tuple[int, int, float, float]:
    """Draw one of the leaders, and any arm uniformly."""
    arms = state.floats.shape[1]
    exploit = pick_lowest(state, FOLLOW.means, stream)
    return exploit, below(arms, stream), float(arms), 1.0 / arms


@compiled
def follow_update(params: FollowParams, state: State, arm: int, weight: float, loss: float) -> None:
    """Add the loss to the arm's mean, which does not depend on the probability of the draw."""
    floats = state.floats
    floats[FOLLOW.sums, arm] += loss
    floats[FOLLOW.counts, arm] += 1.0
    floats[FOLLOW.means, arm] = sample_mean(floats[FOLLOW.sums, arm], floats[FOLLOW.counts, arm])
    find_lowest(state, FOLLOW.means)


@dataclass(frozen=True)
class FollowTheLeader(Policy):
    """Exploit the smallest sample mean, explore uniformly.

    Unseen arms come first; ties are broken at random.

    Rouyer and Seldin (2020) name it. On stochastic losses its regret is constant and often lower
    than that of policies with guarantees. Against an adversary that watches it, its regret is
    linear in T. Its `estimates` are the sample means (-1 for an arm not yet seen).

    >>> import decoupled as dc
    >>> learner = dc.FollowTheLeader().start(arms=["a", "b"], seed=0)
    >>> learner.replay([("a", 0.5, 0.4), ("b", 0.5, 0.1), ("a", 0.5, 0.0)])
    3
    >>> learner.exploit().exploit, learner.estimates().tolist()
    ('b', [0.2, 0.1])
    """

    layout = FOLLOW_LAYOUT
    params_type = FollowParams
    functions = Functions(follow_init, follow_decide, follow_update)
    cumulative = None
    fading = ("sums", "counts")

    def params(self) -> FollowParams:
        return FollowParams(0.0)

    def exploitation_law(self, state: State) -> Floats:
        return lowest_law(state, FOLLOW.means)

    def exploration_law(self, state: State) -> Floats:
        arms = state.floats.shape[1]
        return np.full(arms, 1.0 / arms)

    def estimates(self, state: State) -> Floats:
        return np.array(state.floats[FOLLOW.means])


UCB_LAYOUT = Layout(
    LOWEST_SCALARS, floats=("sums", "counts", "indices"), learned=("sums", "counts")
)
UCB_SCALARS, UCB, _ = UCB_LAYOUT.places()

UNSEEN = -1e300  # below every index, so that an arm not yet seen comes first


class UCBParams(NamedTuple):
    """The parameters of the compiled code."""

    c: float


@compiled
def ucb_init(params: UCBParams, state: State) -> None:
    """Compute the index of every arm, and find the lowest."""
    floats = state.floats
    width = params.c * math.log(max(state.scalars[ROUND] - 1.0, 1.0))
    for i in range(floats.shape[1]):
        count = floats[UCB.counts, i]
        index = UNSEEN
        if count > 0.0:
            index = floats[UCB.sums, i] / count - math.sqrt(width / count)
        floats[UCB.indices, i] = index
    find_lowest(state, UCB.indices)


@compiled
def ucb_decide(params: UCBParams, state: State, stream: Words) -> tuple[int, int, float, float]:
    """Draw one of the arms with the lowest index."""
    tied = state.scalars[UCB_SCALARS.tied]
    arm = pick_lowest(state, UCB.indices, stream)
    return arm, arm, tied, 1.0 / tied


@compiled
def ucb_update(params: UCBParams, state: State, arm: int, weight: float, loss: float) -> None:
    """Add the loss to the arm's mean, which does not depend on the probability of the draw."""
    state.floats[UCB.sums, arm] += loss
    state.floats[UCB.counts, arm] += 1.0
    ucb_init(params, state)


@dataclass(frozen=True)
class UCB1(Policy):
    r"""Optimism in the standard game: play the arm that could be best.

    With $n_i$ losses seen of arm $i$, their mean $m_i$, and $t$ losses in all, each round plays the
    arm with the smallest $m_i - \sqrt{c \ln t / n_i}$. Unseen arms come first; ties are broken at
    random.

    Auer, P., Cesa-Bianchi, N. and Fischer, P. (2002). Finite-time analysis of the multiarmed bandit
    problem. Machine Learning 47. Figure 1, with $c = 2$, on losses instead of rewards. The paper
    does not say how to break ties; we do it at random. $t$ counts observations, so late feedback
    does not move the policy. It has a guarantee for stochastic losses only, and an adversary can
    mislead it. Its `estimates` are the sample means (-1 for an arm not yet seen).

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

    layout = UCB_LAYOUT
    params_type = UCBParams
    functions = Functions(ucb_init, ucb_decide, ucb_update)
    cumulative = None
    fading = ("sums", "counts")
    coupled = True

    def __post_init__(self) -> None:
        set_number(self, "c", 0.0, 1e100, "the default is 2")

    def exploitation_law(self, state: State) -> Floats:
        return lowest_law(state, UCB.indices)

    def estimates(self, state: State) -> Floats:
        sums = state.floats[UCB.sums]
        counts = state.floats[UCB.counts]
        means: Floats = np.divide(sums, counts, out=np.full(len(sums), -1.0), where=counts > 0.0)
        return means


POSTERIOR_LAYOUT = Layout(floats=("sums", "counts"), learned=("sums", "counts"))
_, POSTERIOR, _ = POSTERIOR_LAYOUT.places()


class PosteriorParams(NamedTuple):
    """There are no parameters, but the tuple needs a field to be a type of its own."""

    unused: float


@compiled
def posterior_init(params: PosteriorParams, state: State) -> None:
    """Derive nothing: decisions need only the sums and counts."""


@compiled
def posterior_decide(
    params: PosteriorParams, state: State, stream: Words
) -> tuple[int, int, float, float]:
    """Draw a mean loss for each arm from its posterior, and play the smallest."""
    smallest = 2.0
    arm = 0
    for i in range(state.floats.shape[1]):
        weight = 2.0 + state.floats[POSTERIOR.counts, i]
        mean = beta((1.0 + state.floats[POSTERIOR.sums, i]) / weight, weight, stream)
        if mean < smallest:
            smallest = mean
            arm = i
    return arm, arm, 1.0, np.nan


@compiled
def posterior_update(
    params: PosteriorParams, state: State, arm: int, weight: float, loss: float
) -> None:
    """Add the loss to the arm's posterior, which does not depend on the probability of the draw."""
    state.floats[POSTERIOR.sums, arm] += loss
    state.floats[POSTERIOR.counts, arm] += 1.0


@dataclass(frozen=True)
class ThompsonSampling(Policy):
    r"""Thompson sampling with Beta posteriors, in the standard game.

    Each round draws a mean loss for every arm from $\mathrm{Beta}(1 + S_i, 1 + n_i - S_i)$, where
    $n_i$ is the number of losses seen and $S_i$ their sum, and plays the arm with the smallest
    draw.

    Thompson, W. R. (1933). On the likelihood that one unknown probability exceeds another in view
    of the evidence of two samples. Biometrika 25. Agrawal, S. and Goyal, N. (2012). Analysis of
    Thompson sampling for the multi-armed bandit problem. COLT. For losses of 0 and 1 this is their
    algorithm 1. For losses in between, their algorithm 2 tosses a coin with the loss as its bias
    and learns the toss. We add the loss itself, as a fraction of a success and of a failure:
    learning then needs no randomness, and the order of feedback does not matter. The posterior mean
    is the same on average and varies less; the published guarantee is for the coin.

    The weight of a decision is 1, because learning takes the loss as it is. Its propensity is not
    computed; `exploitation_probabilities()` finds all probabilities by quadrature. `estimates` are
    the posterior means.

    >>> import decoupled as dc
    >>> learner = dc.ThompsonSampling().start(arms=["a", "b"], seed=0)
    >>> learner.replay([("a", 1.0, 1.0), ("b", 1.0, 0.0)])
    2
    >>> learner.exploitation_probabilities().round(4).tolist()
    [0.1667, 0.8333]
    """

    layout = POSTERIOR_LAYOUT
    params_type = PosteriorParams
    functions = Functions(posterior_init, posterior_decide, posterior_update)
    cumulative = None
    fading = ("sums", "counts")
    coupled = True

    def params(self) -> PosteriorParams:
        return PosteriorParams(0.0)

    def exploitation_law(self, state: State) -> Floats:
        sums = state.floats[POSTERIOR.sums]
        counts = state.floats[POSTERIOR.counts]
        return smallest_beta_law(1.0 + sums, 1.0 + np.maximum(counts - sums, 0.0))

    def estimates(self, state: State) -> Floats:
        means: Floats = (1.0 + state.floats[POSTERIOR.sums]) / (
            2.0 + state.floats[POSTERIOR.counts]
        )
        return means
