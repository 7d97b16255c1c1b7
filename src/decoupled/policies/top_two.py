"""Top two: the sampler EB-TC_eps explores, and its leader is exploited."""

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from ..base.arrays import Floats, Ints, Words
from ..base.validation import number_in
from ..kernels.dispatch import Functions
from ..kernels.jit import compiled
from ..kernels.random.stream import below
from ..kernels.state import SHARED_SCALARS, Layout, State
from .base import Policy

UNSEEN, LEADER, CHALLENGER, NEXT = range(len(SHARED_SCALARS), len(SHARED_SCALARS) + 4)
SUMS, MEANS, COSTS = range(3)
COUNTS, SEEN_AT = range(2)
DUELS = 2  # the first row of this square; that of CHALLENGER_EXPLORED follows


class Params(NamedTuple):
    """The parameters as compiled code takes them."""

    epsilon: float
    beta: float


@compiled
def first_of_least(values: Floats, state: State, but: int) -> int:
    """The arm of the least value among those seen, other than `but`; of several, the one seen first."""
    seen_at = state.ints[SEEN_AT]
    found = -1
    for i in range(len(values)):
        if i == but or seen_at[i] == 0:
            continue
        if (
            found < 0
            or values[i] < values[found]
            or (values[i] == values[found] and seen_at[i] < seen_at[found])
        ):
            found = i
    return found


@compiled
def find_leader(state: State) -> None:
    """The arm of the lowest mean, or -1 where none was seen; and how many were not."""
    unseen = 0
    for i in range(state.ints.shape[1]):
        if state.ints[COUNTS, i] == 0:
            unseen += 1
    state.scalars[UNSEEN] = unseen
    state.scalars[LEADER] = first_of_least(state.floats[MEANS], state, -1)


@compiled
def find_challenger(params: Params, state: State) -> None:
    """The arm that is hardest to tell from the leader, and which of the two to explore."""
    floats, counts = state.floats, state.ints[COUNTS]
    leader = int(state.scalars[LEADER])
    for i in range(len(counts)):
        lag = floats[MEANS, i] - floats[MEANS, leader] + params.epsilon
        floats[COSTS, i] = lag / math.sqrt(1.0 / counts[leader] + 1.0 / counts[i])
    challenger = first_of_least(floats[COSTS], state, leader)
    state.scalars[CHALLENGER] = challenger
    state.scalars[NEXT] = leader
    if challenger >= 0:  # the only arm that can be had has none
        duels = state.ints[DUELS + leader, challenger] + 1  # with this one
        sampled = state.ints[DUELS + len(counts) + leader, challenger]
        if sampled <= (1.0 - params.beta) * duels:
            state.scalars[NEXT] = challenger


@compiled
def refresh(params: Params, state: State) -> None:
    """The leader, and once every arm was seen its challenger."""
    find_leader(state)
    state.scalars[CHALLENGER] = -1.0
    state.scalars[NEXT] = -1.0
    if state.scalars[UNSEEN] == 0.0:
        find_challenger(params, state)


@compiled
def set_mean(state: State, arm: int) -> None:
    """An arm not yet seen shows the mean -1, which nothing reads."""
    count = state.ints[COUNTS, arm]
    state.floats[MEANS, arm] = state.floats[SUMS, arm] / count if count > 0 else -1.0


@compiled
def init(params: Params, state: State) -> None:
    """The mean of every arm, the leader and the challenger."""
    for arm in range(state.floats.shape[1]):
        set_mean(state, arm)
    refresh(params, state)


@compiled
def random_unseen(state: State, stream: Words) -> int:
    """One of the arms not yet seen."""
    skip = below(int(state.scalars[UNSEEN]), stream)
    arm = 0
    while state.ints[COUNTS, arm] > 0 or skip > 0:
        if state.ints[COUNTS, arm] == 0:
            skip -= 1
        arm += 1
    return arm


@compiled
def decide(params: Params, state: State, stream: Words) -> tuple[int, int, float, float]:
    """The leader, and the next arm of the duel; at first an arm not yet seen, at random."""
    leader, unseen = int(state.scalars[LEADER]), state.scalars[UNSEEN]
    exploit = leader if leader >= 0 else below(state.ints.shape[1], stream)
    if unseen > 0.0:
        return exploit, random_unseen(state, stream), unseen, 1.0 / unseen
    return exploit, int(state.scalars[NEXT]), 1.0, 1.0


@compiled
def count_duel(state: State, arm: int) -> None:
    """The leader's duel with the arm observed, or with its challenger where that arm is the leader."""
    leader = int(state.scalars[LEADER])
    if arm == leader:
        state.ints[DUELS + leader, int(state.scalars[CHALLENGER])] += 1
    else:
        state.ints[DUELS + leader, arm] += 1
        state.ints[DUELS + state.ints.shape[1] + leader, arm] += 1


@compiled
def last_seen(seen_at: Ints) -> int:
    """When an arm was last seen for the first time; counted so, since arms may have gone."""
    last = 0
    for when in seen_at:
        last = max(last, when)
    return last


@compiled
def update(params: Params, state: State, arm: int, weight: float, loss: float) -> None:
    """Count the duel, once every arm was seen, and take the loss into the arm's mean."""
    if state.scalars[UNSEEN] == 0.0:
        count_duel(state, arm)
    elif state.ints[COUNTS, arm] == 0:
        state.ints[SEEN_AT, arm] = last_seen(state.ints[SEEN_AT]) + 1
    state.floats[SUMS, arm] += loss
    state.ints[COUNTS, arm] += 1
    set_mean(state, arm)
    refresh(params, state)


def certain(arm: int, arms: int) -> Floats:
    """The law that gives one arm all."""
    law = np.zeros(arms)
    law[arm] = 1.0
    return law


@dataclass(frozen=True)
class TopTwo(Policy):
    """Exploit the smallest sample mean, explore by EB-TC_eps, a sampler made to find the best arm.

    With N_i the number of observations of arm i and mean_i the mean of their losses, each round

    - exploits  the leader B, the arm of the smallest mean;
    - explores  the leader or its challenger C = argmin_{i != B} (mean_i - mean_B + epsilon) / sqrt(1/N_B + 1/N_i),
      the arm that is hardest to tell from it. This duel is number T[B, C]; C is explored where
      N[B, C] <= (1 - beta) * T[B, C], N[B, C] counting the duels in which C was, and B otherwise;
    - learns    N, mean, T[B, C] and N[B, C], all when the observation arrives.

    Published (Jourdan, M., Degenne, R. and Kaufmann, E. (2023). An epsilon-best-arm identification
    algorithm for fixed-confidence and beyond. NeurIPS): leader, challenger, tracking, and every arm
    observed once before. Our reading, for the decoupled game and for feedback that comes late:

    - Until every arm was observed, arms not yet observed are explored, uniformly at random, and the best
      of those that were is exploited (any arm, uniformly, before the first observation).
    - Of arms that are tied, the one first observed is taken. That order is random, so no arm is favoured,
      and all but the first decisions follow from what is learned.
    - An observation counts for the duel of the leader at its arrival with the arm observed, or with its
      challenger where that arm is the leader. With prompt feedback this is the published count.

    Exploration is thus certain: propensity and weight are 1, and the exploration law has one arm (at
    first it is uniform over those not yet observed). Sample means need no weight, so a log of another
    policy or an arm that is away does them no harm: `decide(available=...)` runs the same rule on the
    means and counts of the available arms alone, and charges the others nothing. *Without an
    observation in between, every decision explores the same arm*: 100 of them at once, or one each from
    100 replicas, explore one arm 100 times.

    Arms are observed at different times, so their means can be compared only where losses do not depend
    on time. There its regret is among the lowest; on `environments.Alternating` it is several times that
    of FTPL, and against an adversary that watches it is linear in T.

    T and N are K x K: 16 bytes a pair, and each is written to a saved state. More than 1,000 arms are
    refused. Its `estimates` are the sample means (-1 for an arm not yet observed).

    Args:
        epsilon: how close to the best is good enough, above 0; the published default is 0.1.
        beta: the leader's share of its duels, in (0, 1).

    >>> import decoupled as dc
    >>> learner = dc.TopTwo().start(arms=["a", "b", "c"], seed=0)
    >>> learner.replay([("a", 1.0, 0.4), ("b", 1.0, 0.1), ("c", 1.0, 0.9)])
    3
    >>> decision = learner.decide()
    >>> decision.exploit, decision.explore, decision.propensity
    ('b', 'a', 1.0)
    """

    epsilon: float = 0.1
    beta: float = 0.5

    layout = Layout(
        scalars=("unseen", "leader", "challenger", "next"),
        floats=("sums", "means", "costs"),
        ints=("counts", "seen_at"),
        pairs=("duels", "challenger_explored"),
        learned=("sums", "counts", "seen_at", "duels", "challenger_explored"),
    )
    params_type = Params
    functions = Functions(init, decide, update)
    cumulative = None

    def __post_init__(self) -> None:
        epsilon = number_in("epsilon", self.epsilon, 0.0, 1e100, "the default is 0.1")
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "beta", number_in("beta", self.beta, 0.0, 1.0, "the default is 1/2"))

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(epsilon=0.02, beta=0.3)

    def params(self) -> Params:
        return Params(self.epsilon, self.beta)

    def exploitation_law(self, state: State) -> Floats:
        arms = state.floats.shape[1]
        leader = int(state.scalars[LEADER])
        return np.full(arms, 1.0 / arms) if leader < 0 else certain(leader, arms)

    def exploration_law(self, state: State) -> Floats:
        if state.scalars[UNSEEN] == 0.0:
            return certain(int(state.scalars[NEXT]), state.floats.shape[1])
        law: Floats = (state.ints[COUNTS] == 0) / state.scalars[UNSEEN]
        return law

    def estimates(self, state: State) -> Floats:
        return np.array(state.floats[MEANS])
