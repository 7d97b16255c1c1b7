"""The perturbed leader for very many arms: a round takes O(log K) draws and O(sqrt K) moves of memory.

Both arms have exactly the laws of `leader`. This version does not compute sum q, so it does not know the propensity of
the explored arm: a decision carries an unbiased estimate of its inverse.

Ranks are divided into strata: the first few alone, then blocks that grow with their first rank, so that a stratum that
begins at rank r (counted from 1) ends before rank `GROWTH` * r. The *envelope* is constant on each stratum, with the
value of q at its first rank. Its sum is at most `GROWTH` times sum q: both sums are linear in q, a q that never grows
is a mixture of steps from 1 to 0 after a rank n, and the ratio for such a step is the last rank of n's stratum over n.

Ranks order tied arms by number. If tied arms share their limits, each has the mean of q over the ranks of the tie, so
no arm gains by its number. A mean over thousands of arms is as quick as one over two, because the sum of rank ** -s
over a range has a closed form.
"""

import math
from typing import Any, NamedTuple

from ...base.arrays import Floats, Words
from ..compose import ETA, ETA_EXPLOIT, OWN, Law, Rows, compose, params_type
from ..jit import compiled
from ..order.tiers import (
    ROOM,
    Tiers,
    arm_at,
    count_before,
    count_of,
    fill_tiers,
    home_of,
    lift_in_tiers,
    move_in_tiers,
    slot_bits,
    value_at,
)
from ..powers import inverse_power
from ..random.sampling import categorical, pareto_leader
from ..random.stream import below, uniform
from ..state import ARMS, State

GROWTH = 1.5


class Surrogate(NamedTuple):
    """The surrogate q = min((1 + eta * gap) ** -exponent, limit[rank]) as a function of the rank."""

    ranked: Tiers
    limit: Floats
    lowest: float
    eta: float
    exponent: float
    power: float  # limit[rank] = (1 + rank) ** -power
    sharing: bool  # whether tied arms share evenly


@compiled
def surrogate_at(q: Surrogate, rank: int) -> float:
    """The q of the arm at a rank, counted from 0."""
    by_gap = inverse_power(q.eta * (value_at(q.ranked, rank) - q.lowest), q.exponent)
    share: float = min(by_gap, q.limit[rank])
    return share


@compiled
def stratum_size(first: int, arms: int) -> int:
    """The size of the stratum that begins at rank `first`, counted from 0."""
    return min(max(1, (first + 1) // 2), arms - first)


@compiled
def fill_envelope(q: Surrogate, envelope: Floats) -> tuple[int, float]:
    """Fill the envelope's share of each stratum. Return the number of strata and the sum."""
    arms = count_of(q.ranked)
    first, stratum, whole = 0, 0, 0.0
    while first < arms:
        size = stratum_size(first, arms)
        envelope[stratum] = size * surrogate_at(q, first)
        whole += envelope[stratum]
        first += size
        stratum += 1
    return stratum, whole


@compiled
def draw_rank(q: Surrogate, envelope: Floats, whole: float, stream: Words) -> int:
    """Draw a rank with probability exactly q / sum q, by rejection; more than two tries in three succeed."""
    arms = count_of(q.ranked)
    while True:
        stratum = categorical(envelope, whole, stream)
        first = 0
        for _ in range(stratum):
            first += stratum_size(first, arms)
        size = stratum_size(first, arms)
        if size == 1:
            return first
        rank = first + below(size, stream)
        if uniform(stream) * envelope[stratum] <= size * surrogate_at(q, rank):
            return rank


@compiled
def draw_sum(q: Surrogate, envelope: Floats, stream: Words) -> float:
    """An unbiased estimate of sum q: each stratum's size times q at one of its ranks.

    It is at least 1, the q of the first rank, and at most the sum of the envelope.
    """
    arms = count_of(q.ranked)
    first, whole = 0, 0.0
    for stratum in range(len(envelope)):
        size = stratum_size(first, arms)
        if size == 1:
            whole += envelope[stratum]
        else:
            whole += size * surrogate_at(q, first + below(size, stream))
        first += size
    return whole


@compiled
def tie_at(q: Surrogate, rank: int) -> tuple[int, int]:
    """The ranks that share with `rank`, from the first to one past the last: those with its estimate, or one."""
    first, end = rank, rank + 1
    if not q.sharing:
        return first, end
    tiers = q.ranked
    value, last = value_at(tiers, rank), tiers.length - 1
    if rank > 0 and value_at(tiers, rank - 1) == value:
        first = _rank_before(tiers, value, -1)
    if rank < last and value_at(tiers, rank + 1) == value:
        end = _rank_before(tiers, value, tiers.length)
    return first, end


@compiled
def _rank_before(tiers: Tiers, value: float, arm: int) -> int:
    """How many arms come before (value, arm)."""
    block = home_of(tiers, value, arm)
    rank: int = tiers.starts[block] + count_before(tiers, block, value, arm)
    return rank


@compiled
def shared_surrogate(q: Surrogate, first: int, end: int) -> float:
    """The mean of q over the ranks of a tie."""
    if end - first == 1:
        return surrogate_at(q, first)
    by_gap = inverse_power(q.eta * (value_at(q.ranked, first) - q.lowest), q.exponent)
    low, high = first, end  # before `low` the gap limits q, from there on the rank
    if q.limit[first] <= by_gap:
        high = first
    elif q.limit[end - 1] >= by_gap:
        low = end
    while low < high:
        middle = (low + high) // 2
        if q.limit[middle] >= by_gap:
            low = middle + 1
        else:
            high = middle
    whole = (low - first) * by_gap + sum_of_powers(q.limit, q.power, low, end)
    return whole / (end - first)


_DIRECT = 24  # from here on the series below is accurate to the last digit or two


@compiled
def sum_of_powers(limit: Floats, power: float, first: int, end: int) -> float:
    """The sum of limit[first:end] for limit[k] = (k + 1) ** -power, 0 < power < 1.

    The first few are added one by one, the others by the Euler-Maclaurin formula.
    """
    whole = 0.0
    for k in range(first, min(end, max(first + 4, _DIRECT))):
        whole += limit[k]
    start = max(first + 4, _DIRECT)
    if start >= end:
        return whole
    a, b = start + 1.0, float(end)
    integral = a * limit[start] * math.expm1((1.0 - power) * math.log(b / a)) / (1.0 - power)
    ends = limit[start] * _corrections(a, power, 0.5) - limit[end - 1] * _corrections(
        b, power, -0.5
    )
    rest: float = integral + ends
    return whole + rest


@compiled
def _corrections(x: float, s: float, half: float) -> float:
    """The correction terms of the formula at one end of a sum of x ** -s, relative to the summand there."""
    inverse = 1.0 / x
    square = inverse * inverse
    first = s * inverse
    third = first * (s + 1.0) * (s + 2.0) * square
    fifth = third * (s + 3.0) * (s + 4.0) * square
    return half + first / 12.0 - third / 720.0 + fifth / 30240.0


@compiled
def ranks_above(q: Surrogate, least: float, most: int) -> int:
    """How many of the first ranks, up to `most`, have a shared q of at least `least`; ties are not split."""
    low, high = 0, min(most, count_of(q.ranked))
    if high < count_of(q.ranked):  # a tie that continues past the last of them does not count
        first, end = tie_at(q, high - 1)
        if end > high:
            high = first
    while low < high:  # shares never grow with rank and are equal within a tie
        middle = (low + high) // 2
        first, end = tie_at(q, middle)
        if shared_surrogate(q, first, end) >= least:
            low = end
        else:
            high = first
    return low


ENVELOPE_SUM, STRATA, COVERED, BITS, BLOCKS = range(OWN, OWN + 5)
ESTIMATES, SPARE, RANK_LIMIT, ENVELOPE, BASELINE, FIRST_VALUES, VALUES = range(7)
SPARE_ARMS, COVERED_ARMS, SLOTS, FIRST_ARMS, GUIDE, STARTS, _, HELD = range(8)

# Only the first ranks can have a baseline: most of the variance is there, and a round lifts all of them.
MOST_COVERED = 64

Params = params_type(__name__, "alpha", "sharing")  # as in `leader`


@compiled
def tiers_in(state: State) -> Tiers:
    """The rows of the state as a tiered vector of the arms in rank order."""
    floats, ints, arms = state.floats, state.ints, state.floats.shape[1]
    return Tiers(
        floats[VALUES : VALUES + ROOM].reshape(ROOM * arms),
        ints[HELD : HELD + ROOM].reshape(ROOM * arms),
        ints[SLOTS],
        ints[STARTS : STARTS + 2].reshape(2 * arms),
        floats[FIRST_VALUES],
        ints[FIRST_ARMS],
        ints[GUIDE],
        state.scalars[BLOCKS : BLOCKS + 2],
        int(state.scalars[BITS]),
        arms,
    )


@compiled
def surrogate_of(alpha: float, sharing: float, state: State, tiers: Tiers) -> Surrogate:
    """The surrogates q at the current learning rate."""
    lowest, eta = tiers.first_values[0], state.scalars[ETA]
    exponent, power = 0.5 * (alpha + 1.0), limit_power(alpha)
    return Surrogate(tiers, state.floats[RANK_LIMIT], lowest, eta, exponent, power, sharing > 0.0)


@compiled
def limit_power(alpha: float) -> float:
    """The exponent of the rank limit: rank ** -power."""
    return (alpha + 1.0) / (2.0 * alpha)


@compiled
def init(params: Any, state: State) -> float:
    """Rank the arms and tabulate rank ** (-(alpha + 1) / (2 alpha))."""
    exponent = limit_power(params.alpha)
    if state.floats[RANK_LIMIT, 0] != 1.0:  # powers are slow, and these never change
        for k in range(state.floats.shape[1]):
            state.floats[RANK_LIMIT, k] = (k + 1.0) ** -exponent
    state.scalars[BITS] = slot_bits(state.floats.shape[1])
    fill_tiers(state.floats[ESTIMATES], tiers_in(state))
    scale: float = state.scalars[ARMS] ** (1.0 / params.alpha - 0.5)
    return scale


@compiled
def fill(params: Any, state: State, root: float, saved: bool) -> None:
    """Fill the envelope of q; the leader needs only the estimates."""
    q = surrogate_of(params.alpha, params.sharing, state, tiers_in(state))
    strata, whole = fill_envelope(q, state.floats[ENVELOPE])
    state.scalars[STRATA] = strata
    state.scalars[ENVELOPE_SUM] = whole


@compiled
def draw(params: Any, state: State, stream: Words) -> tuple[int, int, float, float]:
    """Draw the perturbed leader, an arm from p = q / sum q, and an independent estimate of sum q."""
    tiers = tiers_in(state)
    q = surrogate_of(params.alpha, params.sharing, state, tiers)
    envelope = state.floats[ENVELOPE, : int(state.scalars[STRATA])]
    exploit = pareto_leader(tiers, state.scalars[ETA_EXPLOIT], params.alpha, stream)
    rank = draw_rank(q, envelope, state.scalars[ENVELOPE_SUM], stream)
    whole = draw_sum(q, envelope, stream)
    first, end = tie_at(q, rank)
    share = shared_surrogate(q, first, end)
    if end - first > 1:
        rank = first + below(end - first, stream)
    return arm_at(tiers, exploit), arm_at(tiers, rank), whole / share, math.nan


@compiled
def learn(params: Any, state: State, arm: int, weight: float, loss: float) -> None:
    """Add b to the covered arms and (loss - b) / p to the explored arm, with the b of the decision."""
    floats, tiers, own = state.floats, tiers_in(state), 0.0
    if params.centred > 0.0:
        covered = int(state.scalars[COVERED])
        arms, lifts = state.ints[COVERED_ARMS], floats[BASELINE]
        for k in range(covered):
            if arms[k] == arm:
                own = lifts[k]
        spare, spare_arms = floats[SPARE], state.ints[SPARE_ARMS]
        lift_in_tiers(tiers, floats[ESTIMATES], arms, lifts, covered, spare, spare_arms)
    before = floats[ESTIMATES, arm]
    after = before + weight * (loss - own)
    floats[ESTIMATES, arm] = after
    if after != before:
        move_in_tiers(tiers, arm, before, after)


@compiled
def gate(params: Any, state: State, least: float, mean: float) -> None:
    """Give a baseline to the first ranks whose q is large enough."""
    scalars, tiers = state.scalars, tiers_in(state)
    # The envelope's sum is never below the sum that a decision draws. Using the drawn sum instead would make the set of
    # covered arms depend on the draw, and bias their estimates.
    bar = least * scalars[ENVELOPE_SUM]
    covered = ranks_above(
        surrogate_of(params.alpha, params.sharing, state, tiers), bar, MOST_COVERED
    )
    scalars[COVERED] = covered
    for rank in range(covered):
        state.ints[COVERED_ARMS, rank] = arm_at(tiers, rank)
        state.floats[BASELINE, rank] = mean


@compiled
def fill_exploration_law(alpha: float, sharing: float, state: State, law: Floats) -> None:
    """Fill the exact law in one pass over all arms."""
    q = surrogate_of(alpha, sharing, state, tiers_in(state))
    end, whole = 0, 0.0
    while end < len(law):
        first, end = tie_at(q, end)
        share = shared_surrogate(q, first, end)
        for rank in range(first, end):
            law[arm_at(q.ranked, rank)] = share
        whole += (end - first) * share
    for arm in range(len(law)):
        law[arm] /= whole


_FLOATS = "spare rank_limit envelope baseline first_values values values_2 values_3"
_INTS = "spare_arms covered_arms slots first_arms guide starts starts_2 held held_2 held_3"
ROWS = Rows(
    ("envelope_sum", "strata", "covered", "slot_bits", "blocks", "renewed"),
    tuple(_FLOATS.split()),
    tuple(_INTS.split()),
)
COMPOSED = compose(Law(ROWS, init, fill, draw, learn, gate), Params)
