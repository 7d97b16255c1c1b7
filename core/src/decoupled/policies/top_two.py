"""Top two: explore with the sampler EB-TC_eps, and exploit its leader."""

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from ..base.arrays import Floats, Ints, Words, certain
from ..base.validation import set_number
from ..kernels.argmin import sample_mean
from ..kernels.dispatch import Functions
from ..kernels.jit import compiled
from ..kernels.random.stream import below
from ..kernels.state import Layout, State
from .base import Policy

LAYOUT = Layout(
    scalars=("unseen", "leader", "challenger", "next"),
    floats=("sums", "means", "costs"),
    ints=("counts", "seen_at"),
    pairs=("duels", "challenger_explored"),
    learned=("sums", "counts", "seen_at", "duels", "challenger_explored"),
)
S, R, N = LAYOUT.places()
# The rows of the state's whole numbers, then the square of "duels", then "challenger_explored".
DUELS = len(LAYOUT.ints)


class Params(NamedTuple):
    """The parameters of the compiled code."""

    epsilon: float
    beta: float


@compiled
def duel_row(leader: int) -> int:
    """The row that counts the duels of a leader with each challenger."""
    return DUELS + leader


@compiled
def explored_row(leader: int, arms: int) -> int:
    """The row that counts those of them in which the challenger was explored."""
    return DUELS + arms + leader


@compiled
def first_of_least(values: Floats, state: State, but: int) -> int:
    """The seen arm with the least value, other than `but`; of tied arms, the one seen first."""
    seen_at = state.ints[N.seen_at]
    first = -1
    for i in range(len(values)):
        if i == but or seen_at[i] == 0:
            continue
        is_tied = first >= 0 and values[i] == values[first]
        if first < 0 or values[i] < values[first] or (is_tied and seen_at[i] < seen_at[first]):
            first = i
    return first


@compiled
def find_challenger(params: Params, state: State) -> None:
    """Store the arm that is hardest to tell from the leader, and which of the two to explore."""
    floats = state.floats
    counts = state.ints[N.counts]
    leader = int(state.scalars[S.leader])
    for i in range(len(counts)):
        gap = floats[R.means, i] - floats[R.means, leader] + params.epsilon
        floats[R.costs, i] = gap / math.sqrt(1.0 / counts[leader] + 1.0 / counts[i])
    challenger = first_of_least(floats[R.costs], state, leader)
    state.scalars[S.challenger] = challenger
    state.scalars[S.next] = leader
    if challenger >= 0:  # a single available arm has no challenger
        duels = state.ints[duel_row(leader), challenger] + 1  # with this one
        sampled = state.ints[explored_row(leader, len(counts)), challenger]
        if sampled <= (1.0 - params.beta) * duels:
            state.scalars[S.next] = challenger


@compiled
def refresh(params: Params, state: State) -> None:
    """Find the leader (-1 if no arm was seen), and its challenger once every arm has been seen."""
    unseen = 0
    for i in range(state.ints.shape[1]):
        if state.ints[N.counts, i] == 0:
            unseen += 1
    state.scalars[S.unseen] = unseen
    state.scalars[S.leader] = first_of_least(state.floats[R.means], state, -1)
    state.scalars[S.challenger] = -1.0
    state.scalars[S.next] = -1.0
    if state.scalars[S.unseen] == 0.0:
        find_challenger(params, state)


@compiled
def init(params: Params, state: State) -> None:
    """Compute the mean of every arm, the leader and the challenger."""
    for arm in range(state.floats.shape[1]):
        state.floats[R.means, arm] = sample_mean(
            state.floats[R.sums, arm], state.ints[N.counts, arm]
        )
    refresh(params, state)


@compiled
def random_unseen(state: State, stream: Words) -> int:
    """Draw one of the unseen arms."""
    skip = below(int(state.scalars[S.unseen]), stream)
    arm = 0
    while state.ints[N.counts, arm] > 0 or skip > 0:
        if state.ints[N.counts, arm] == 0:
            skip -= 1
        arm += 1
    return arm


@compiled
def decide(params: Params, state: State, stream: Words) -> tuple[int, int, float, float]:
    """The leader, and the next arm of the duel; at first a random unseen arm."""
    leader = int(state.scalars[S.leader])
    unseen = state.scalars[S.unseen]
    exploit = leader if leader >= 0 else below(state.ints.shape[1], stream)
    if unseen > 0.0:
        return exploit, random_unseen(state, stream), unseen, 1.0 / unseen
    return exploit, int(state.scalars[S.next]), 1.0, 1.0


@compiled
def count_duel(state: State, arm: int) -> None:
    """Count the leader's duel with the observed arm, or with its challenger if it was observed."""
    leader = int(state.scalars[S.leader])
    if arm == leader:
        state.ints[duel_row(leader), int(state.scalars[S.challenger])] += 1
    else:
        state.ints[duel_row(leader), arm] += 1
        state.ints[explored_row(leader, state.ints.shape[1]), arm] += 1


@compiled
def last_seen(seen_at: Ints) -> int:
    """The largest number in `seen_at`; with retired arms it may exceed the number of arms."""
    last = 0
    for when in seen_at:
        last = max(last, when)
    return last


@compiled
def update(params: Params, state: State, arm: int, weight: float, loss: float) -> None:
    """Count the duel, once every arm has been seen, and add the loss to the arm's mean."""
    if state.scalars[S.unseen] == 0.0:
        count_duel(state, arm)
    elif state.ints[N.counts, arm] == 0:
        state.ints[N.seen_at, arm] = last_seen(state.ints[N.seen_at]) + 1
    state.floats[R.sums, arm] += loss
    state.ints[N.counts, arm] += 1
    state.floats[R.means, arm] = sample_mean(state.floats[R.sums, arm], state.ints[N.counts, arm])
    refresh(params, state)


@dataclass(frozen=True)
class TopTwo(Policy):
    r"""Exploit the smallest sample mean; explore with EB-TC_eps, a sampler that finds the best arm.

    With $N_i$ the number of observations of arm $i$ and $m_i$ the mean of their losses, each round

    - exploits the leader $B$, the arm with the smallest mean;
    - explores the leader or its challenger
      $C = \arg\min_{i \ne B} (m_i - m_B + \varepsilon) / \sqrt{1/N_B + 1/N_i}$, the arm that is
      hardest to tell from the leader. $T_{B,C}$ counts their duels including this one, and
      $N_{B,C}$ those in which $C$ was explored. $C$ is explored if $N_{B,C} \le (1 - \beta)
      T_{B,C}$, and $B$ otherwise;
    - learns $N$, $m$, $T_{B,C}$ and $N_{B,C}$, all when the observation arrives.

    Jourdan, M., Degenne, R. and Kaufmann, E. (2023). An epsilon-best-arm identification algorithm
    for fixed-confidence and beyond. NeurIPS. They publish leader, challenger, tracking, and an
    initial observation of every arm. For the decoupled game and late feedback we add:

    - Until every arm has been observed, the policy explores unobserved arms uniformly at random and
      exploits the best observed one (before the first observation, any arm uniformly).
    - Among tied arms it takes the one observed first. That order is random, so no arm is favoured.
      All but the first decisions follow from what is learned.
    - An observation counts for the duel between the leader at its arrival and the observed arm, or
      the leader's challenger if the observed arm is the leader. With prompt feedback this is the
      published count.

    So exploration is deterministic: propensity and weight are 1, and the exploration law has one
    arm (at first it is uniform over the unobserved arms). Sample means need no weight, so another
    policy's log or an unavailable arm does not bias them: `decide(available=...)` applies the same
    rule to the means and counts of the available arms, and charges the others nothing. *Without an
    observation in between, every decision explores the same arm*: 100 decisions at once, or one
    from each of 100 replicas, explore one arm 100 times.

    Arms are observed at different times, so their means are comparable only if losses do not depend
    on time. Then its regret is among the lowest. On `environments.Alternating` it is several times
    that of FTPL, and against an adversary that watches it, it is linear in the horizon.

    $T$ and $N$ are $K \times K$: they take 16 bytes a pair, and a saved state contains all of them.
    A learner takes at most 1,000 arms. Its `estimates` are the sample means (-1 for an arm not yet
    observed).

    Args:
        epsilon: $\varepsilon$, how close to the best is good enough, above 0; the published default
            is 0.1.
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

    layout = LAYOUT
    params_type = Params
    functions = Functions(init, decide, update)
    cumulative = None

    def __post_init__(self) -> None:
        set_number(self, "epsilon", 0.0, 1e100, "the default is 0.1")
        set_number(self, "beta", 0.0, 1.0, "the default is 1/2")

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(epsilon=0.02, beta=0.3)

    def exploitation_law(self, state: State) -> Floats:
        arms = state.floats.shape[1]
        leader = int(state.scalars[S.leader])
        return np.full(arms, 1.0 / arms) if leader < 0 else certain(leader, arms)

    def exploration_law(self, state: State) -> Floats:
        if state.scalars[S.unseen] == 0.0:
            return certain(int(state.scalars[S.next]), state.floats.shape[1])
        law: Floats = (state.ints[N.counts] == 0) / state.scalars[S.unseen]
        return law

    def estimates(self, state: State) -> Floats:
        return np.array(state.floats[R.means])
