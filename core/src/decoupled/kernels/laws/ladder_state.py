"""The state and the parameters of the ladder, and what follows from them: the leader by mean, and the baselines.

The rung on means plays the leader by mean loss; part of the exploration goes to it and to its challenger, the arm that is
hardest to tell from it. This is the rule of `TopTwo`, for arms that another law explores as well. The loops have no
branches, since which arm is best so far cannot be predicted: with eight arms that takes a third of the time.

Two means of each arm are kept: of its losses, and of its losses less the running mean of all losses at the time. If the
level of all losses moves, arms seen at different times compare only by the second; if not, the first has less noise.
Whichever has predicted losses better so far is used.

With a *memory* there is a second leader, by the means of the last losses (some 100 of them), if these have predicted
better of late; and a recent challenger, which discounted counts bring back to every arm that was not seen for long. The
discount is one factor for all arms, so that a loss changes one arm only.

Baselines have a soft gate: at most so much may one observation take off an arm's estimate. The gate is that of the state
in which a loss arrives, for the law by which its arm was explored.
"""

import math
from collections import namedtuple
from typing import Any

import numpy as np

from ...base.arrays import Floats, Words
from ..compose import MOST_SPREAD, START
from ..jit import compiled
from ..random.stream import below, hashed_unit, key_with, scrambled
from ..state import EVENTS, ROUND, SECRET, Layout, State, vector

ALPHA = 3.0  # of the Pareto perturbations
MOST_RATES = 4
MOST_RUNGS = MOST_RATES + 2  # the last ones play the leader by mean and the recent leader
BY_MEAN, BY_RECENT_MEAN = -1.0, -2.0  # in place of the rates of these rungs
LEADERS_SHARE = 0.5  # of what the leaders and their challengers are explored together
# The recent leader's part of what leaders have: at least, and by its rung's weight.
LEAST_RECENT, MORE_RECENT = 0.25, 0.5
CHALLENGERS_SHARE = 0.375  # that follows the same parts; the recent challenger has the rest
TRUST = 3.0  # so many losses does the mean of all losses count as among the recent ones
LEAST_WEIGHT = 0.1  # that an arm counts as seen of late
MARGIN = 3.0  # in squared deviations: by how much the recent means must have predicted better
ERROR_MEMORIES = 5.0  # over so many memories the errors are compared
LEAST_FADE = 1e-100  # of the common discount, before it goes into the arms' numbers
SLACK = 0.1  # in standard deviations of a loss: how much worse than the leader is as good
ALL_ARMS, SOME_ARMS, NO_ARMS = 1.0, 0.0, -1.0  # which arms have a baseline of the decision's own
NOBODY = -1.0  # no arm is prepared for judging
# The origin of a decision is the version of the state in which it was made. Baselines may come from elsewhere, as from a
# user; and no state has the arms of a decision any more once some were added or retired.
GIVEN, NO_STATE = -1.0, -2.0
_PURPOSE_OF_ORDER = np.uint64(0x7072656365646573)  # apart from the secret's other uses
TINY = 1e-24  # in place of a largest surprise of 0, so that rates are finite

BEST = 4  # the arms that are explored because of their means

LEARNED_SCALARS = (
    "rise",  # of the running mean of all losses, above START
    "seen",
    "least",
    "largest",
    "spread",
    "spread_floor",
    # The errors of all means and of recent ones, each of losses and of centred losses, and the number of losses they count.
    "raw_error",
    "centred_error",
    "recent_fade",
    "past_raw_error",
    "past_centred_error",
    "recent_raw_error",
    "recent_centred_error",
    "error_count",
    "version",  # the number of events up to the last update
    "hedge_regret",
    *vector("rung_loss", MOST_RUNGS),
)
DERIVED_SCALARS = (
    "scale",
    "drift_scale",
    "eta",
    "surrogate_sum",
    "mixed",
    "unseen",
    "even_share",
    "highest",
    "drift",
    "covered",
    "hedge_sum",
    "judged",
    "origin",
    "own_baseline",
    # The BEST arms, and of what they are explored together the share of each.
    "leader",
    "challenger",
    "recent_leader",
    "recent_challenger",
    "leader_share",
    "challenger_share",
    "recent_leader_share",
    "recent_challenger_share",
    *vector("rung_weight", MOST_RUNGS),
    *vector("rung_prior", MOST_RUNGS),
    *vector(
        "rung_rate", MOST_RUNGS
    ),  # as multiples of the rate of exploration; negative for the leaders by mean
    *vector("rung_step", MOST_RUNGS),
    *vector(
        "rung_chance", MOST_RUNGS
    ),  # of the explored arm under a rung, given the draws of its rivals
    *vector("rung_offset", MOST_RUNGS),  # of a rung's loss, whatever the loss of the explored arm
)
SCALARS = (*LEARNED_SCALARS, *DERIVED_SCALARS)
FLOATS = (
    "estimates",
    "ranked",
    "rank_limit",
    "surrogate",
    "baseline",
    "counts",
    "means",
    "centred_means",
    "inverse_counts",
    "bound",
    "precedence",  # of arms with equal means the one with the least comes first
    "law",  # of exploration, in the state of the decision
    # Of the last losses, before the common discount.
    "recent_weight",
    "recent_sums",
    "recent_centred_sums",
)

# What a pending decision keeps beside its law of exploration: the explored arm, its origin, and what its rungs are judged
# with.
KEPT = (
    "judged",
    *vector("rung_chance", MOST_RUNGS),
    *vector("rung_offset", MOST_RUNGS),
    "origin",
    "own_baseline",
)

LAYOUT = Layout(
    scalars=SCALARS,
    floats=FLOATS,
    ints=("order",),
    learned=(
        *("estimates", "counts", "means", "centred_means", "precedence"),
        *("recent_weight", "recent_sums", "recent_centred_sums"),
        *LEARNED_SCALARS,
    ),
)

S, R, N = LAYOUT.places()

# Rates are multiples of c, and BY_MEAN and BY_RECENT_MEAN stand for the leaders by mean. `recency` is 1 / memory.
PARAMS = (
    *("c", "mean_rate", "least_spread", "hedge_rate", "top_two_share", "top_two_floor"),
    "uniform_share",
    *("recency", "rungs", *vector("rate", MOST_RUNGS), *vector("prior", MOST_RUNGS)),
)
Params: Any = namedtuple("Params", PARAMS)  # type: ignore[misc]
RATES_AT = PARAMS.index("rate_0")
PRIORS_AT = PARAMS.index("prior_0")


@compiled
def event_key(state: State) -> np.uint64:
    """A key for the judge's draws, from the seed's secret, the event and what was learned.

    No two events have one: the draws of a decision must be news to the weights that learn from it, also if the state is
    that of another decision, of another segment, or of before a restart. (A record of a log has half an event.)
    """
    scalars = state.scalars
    key = scrambled(
        scrambled(np.uint64(int(scalars[SECRET]))) ^ np.uint64(int(2.0 * scalars[EVENTS]))
    )
    return key_with(key_with(key, START + scalars[S.rise]), scalars[S.spread])


@compiled
def draw_precedence(state: State) -> None:
    """Give every arm that has none a place in the order in which arms tie. The secret draws it, once."""
    scalars, precedence = state.scalars, state.floats[R.precedence]
    key = key_with(scrambled(np.uint64(int(scalars[SECRET])) ^ _PURPOSE_OF_ORDER), scalars[ROUND])
    for arm in range(len(precedence)):
        if precedence[arm] == 0.0:
            precedence[arm] = hashed_unit(key, arm)


@compiled
def fill_seen_means(means: Floats, inverses: Floats, out: Floats) -> None:
    """Fill the means of the arms, infinite for one not yet seen; `inverses` has 1 / N, and 0 for an unseen arm."""
    for arm in range(len(out)):
        out[arm] = means[arm] if inverses[arm] > 0.0 else math.inf


@compiled
def fill_costs(
    means: Floats, inverses: Floats, leader: int, slack: float, least: float, out: Floats
) -> None:
    """Fill (mean - leader's + slack)^2 / (1 / N + 1 / N_leader) for each arm, infinite for the leader.

    The arm with the least is the challenger. All arms must have been seen. The root of the numerator is at least `least`.
    """
    edge, share = slack - means[leader], inverses[leader]
    for arm in range(len(out)):
        lag = max(means[arm] + edge, least)
        out[arm] = lag * lag / (inverses[arm] + share)
    out[leader] = math.inf


@compiled
def least_of(values: Floats) -> float:
    """The smallest value, in four lanes, so that comparisons need not wait for each other."""
    a = b = c = d = math.inf
    whole = len(values) - len(values) % 4
    for k in range(0, whole, 4):
        a = min(values[k], a)
        b = min(values[k + 1], b)
        c = min(values[k + 2], c)
        d = min(values[k + 3], d)
    for k in range(whole, len(values)):
        a = min(values[k], a)
    return min(min(a, b), min(c, d))


@compiled
def count_of_value(values: Floats, value: float) -> int:
    """How many places have a value."""
    count = 0
    for k in range(len(values)):
        count += values[k] == value
    return count


@compiled
def place_of_value(values: Floats, value: float) -> int:
    """The first place of a value that is there."""
    place = 0
    while values[place] != value:
        place += 1
    return place


@compiled
def find_best(params: Any, state: State) -> None:
    """Store the leader by mean, its challenger, the recent leader and the recent challenger (-1 if there is none).

    The recent leader is the leader by mean unless the recent means have predicted better, by a margin.
    """
    floats, scalars = state.floats, state.scalars
    kind = 0 if scalars[S.raw_error] <= scalars[S.centred_error] else 1
    means, inverses = floats[R.means + kind], floats[R.inverse_counts]
    costs, recent, recent_inverses = (
        floats[R.baseline],
        floats[R.bound],
        floats[R.law],
    )  # filled after this
    fill_seen_means(means, inverses, costs)
    leader, challenger, recent_challenger = arm_with_least(state, costs), -1, -1
    recent_leader, trusted = leader, False
    if leader >= 0 and scalars[S.unseen] == 0.0:
        spread = scalars[S.spread] / (MOST_SPREAD * max(scalars[S.seen], 1.0))
        slack = SLACK * math.sqrt(spread)
        fill_costs(means, inverses, leader, slack, -math.inf, costs)
        challenger = arm_with_least(state, costs)
        if params.recency > 0.0:
            past = scalars[S.past_raw_error + kind]
            trusted = (
                scalars[S.recent_raw_error + kind]
                + MARGIN * past / max(scalars[S.error_count], 1.0)
                < past
            )
            fill_recent_means(state, means, floats[R.recent_sums + kind], recent, recent_inverses)
            if trusted:
                recent_leader = arm_with_least(state, recent)
            fill_costs(recent, recent_inverses, recent_leader, slack, slack, costs)
            recent_challenger = arm_with_least(state, costs)
    scalars[S.leader], scalars[S.challenger] = leader, challenger
    scalars[S.recent_leader], scalars[S.recent_challenger] = recent_leader, recent_challenger
    fill_best_shares(params, state, trusted)


@compiled
def fill_recent_means(
    state: State, means: Floats, sums: Floats, recent: Floats, inverses: Floats
) -> None:
    """Fill the recent means, in which the mean of all losses counts as TRUST losses, and 1 / (weight + LEAST_WEIGHT)."""
    weights, fade = state.floats[R.recent_weight], state.scalars[S.recent_fade]
    for arm in range(len(weights)):
        weight = fade * weights[arm]
        whole, seen = weight + TRUST, weight + LEAST_WEIGHT
        both = 1.0 / (whole * seen)
        recent[arm] = (fade * sums[arm] + TRUST * means[arm]) * (seen * both)
        inverses[arm] = whole * both


@compiled
def fill_best_shares(params: Any, state: State, trusted: bool) -> None:
    """Fill the shares of the best arms; if the recent leader is trusted, its challenger is the recent challenger."""
    scalars, last = state.scalars, S.rung_weight + int(params.rungs) - 1
    by_mean, recent = LEADERS_SHARE, 0.0
    challenging, recent_challenging = 1.0 - LEADERS_SHARE, 0.0
    if scalars[S.recent_challenger] >= 0.0:
        weight = scalars[last - 1] + scalars[last]
        part = LEAST_RECENT + (MORE_RECENT * scalars[last] / weight if weight > 0.0 else 0.0)
        by_mean, recent = LEADERS_SHARE * (1.0 - part), LEADERS_SHARE * part
        challenging = CHALLENGERS_SHARE * (1.0 - part if trusted else 1.0)
        recent_challenging = 1.0 - LEADERS_SHARE - challenging
    elif scalars[S.challenger] < 0.0:  # a single arm, or unseen ones, which have the other half
        challenging = 0.0
        by_mean = 1.0 if scalars[S.unseen] == 0.0 else LEADERS_SHARE
    scalars[S.leader_share], scalars[S.leader_share + 1] = by_mean, challenging
    scalars[S.leader_share + 2], scalars[S.leader_share + 3] = recent, recent_challenging


@compiled
def arm_with_least(state: State, values: Floats) -> int:
    """The arm with the smallest value, of several the one that precedes the others; -1 if all are infinite."""
    least, precedence = least_of(values), state.floats[R.precedence]
    if least == math.inf:
        return -1
    found = place_of_value(values, least)
    if count_of_value(values, least) > 1:
        for arm in range(found + 1, len(values)):
            if values[arm] == least and precedence[arm] < precedence[found]:
                found = arm
    return found


@compiled
def surrogate_share(state: State) -> float:
    """By what the surrogates are multiplied: they share what the two best and the even share leave."""
    scalars = state.scalars
    even = scalars[S.even_share] * state.floats.shape[1]
    share: float = (1.0 - even - scalars[S.mixed]) / scalars[S.surrogate_sum]
    return share


@compiled
def extra_share(state: State, arm: int) -> float:
    """The probability that an arm is explored as one of the best, or because it was never seen."""
    scalars = state.scalars
    mixed, share = scalars[S.mixed], 0.0
    if mixed == 0.0:
        return 0.0
    for place in range(BEST):
        if scalars[S.leader + place] == arm:
            share += mixed * scalars[S.leader_share + place]
    if scalars[S.unseen] > 0.0 and state.floats[R.inverse_counts, arm] == 0.0:
        others = mixed if scalars[S.leader] < 0.0 else mixed * (1.0 - LEADERS_SHARE)
        share = others / scalars[S.unseen]
    return share


@compiled
def one_of_best(state: State, mark: float, stream: Words) -> int:
    """One of the best arms; an unseen arm in the challengers' place, while there are any."""
    scalars = state.scalars
    if scalars[S.leader] >= 0.0 and mark <= scalars[S.leader_share]:
        return int(scalars[S.leader])
    if scalars[S.unseen] == 0.0:
        place = 0
        while place < BEST - 1 and mark > scalars[S.leader_share + place]:
            mark -= scalars[S.leader_share + place]
            place += 1
        return int(scalars[S.leader + place])
    skip, arm = below(int(scalars[S.unseen]), stream), 0
    inverses = state.floats[R.inverse_counts]
    while inverses[arm] > 0.0 or skip > 0:
        if inverses[arm] == 0.0:
            skip -= 1
        arm += 1
    return arm


@compiled
def note_loss(state: State, arm: int, loss: float, mean: float) -> None:
    """Add a loss to the two means of its arm, and the errors with which they predicted it."""
    floats, scalars = state.floats, state.scalars
    raw, centred = loss - floats[R.means, arm], loss - mean - floats[R.centred_means, arm]
    if floats[R.counts, arm] > 0.0:
        scalars[S.raw_error] += raw * raw
        scalars[S.centred_error] += centred * centred
    else:
        scalars[S.unseen] -= 1.0
    count = floats[R.counts, arm] + 1.0
    inverse = 1.0 / count
    floats[R.counts, arm], floats[R.inverse_counts, arm] = count, inverse
    floats[R.means, arm] += raw * inverse
    floats[R.centred_means, arm] += centred * inverse


@compiled
def note_recent_loss(state: State, arm: int, loss: float, mean: float, recency: float) -> None:
    """Add a loss to the recent memory, and the errors with which all means of its arm predicted it. Call it before `note_loss`."""
    floats, scalars = state.floats, state.scalars
    fade = scalars[S.recent_fade]
    if floats[R.counts, arm] > 0.0:
        scale = 1.0 / (fade * floats[R.recent_weight, arm] + TRUST)
        kept = 1.0 - recency / ERROR_MEMORIES
        for kind in range(2):
            told = loss - kind * mean
            past = told - floats[R.means + kind, arm]
            sums = fade * floats[R.recent_sums + kind, arm] + TRUST * floats[R.means + kind, arm]
            recent = told - sums * scale
            scalars[S.past_raw_error + kind] = kept * scalars[S.past_raw_error + kind] + past * past
            scalars[S.recent_raw_error + kind] = (
                kept * scalars[S.recent_raw_error + kind] + recent * recent
            )
        scalars[S.error_count] = kept * scalars[S.error_count] + 1.0
    fade *= 1.0 - recency
    if fade < LEAST_FADE:
        for row in range(R.recent_weight, R.recent_centred_sums + 1):
            for each in range(floats.shape[1]):
                floats[row, each] *= fade
        fade = 1.0
    scalars[S.recent_fade] = fade
    inverse = 1.0 / fade
    floats[R.recent_weight, arm] += inverse
    floats[R.recent_sums, arm] += loss * inverse
    floats[R.recent_centred_sums, arm] += (loss - mean) * inverse


@compiled
def fill_baselines(state: State) -> None:
    """Fill the law p of exploration and b_i = min(B, least + p_i * (1 + rate * gap) / (2 * rate)), the soft gate.

    The rate is the first rung's. One observation then takes at most half of an arm's own gap, plus 1 / (2 * rate), off its estimate.
    """
    floats, scalars, order = state.floats, state.scalars, state.ints[N.order]
    ranked, surrogate, baseline, bound = (
        floats[R.ranked],
        floats[R.surrogate],
        floats[R.baseline],
        floats[R.bound],
    )
    law = floats[R.law]
    mean, half_unit = START + scalars[S.rise], 0.5 / scalars[S.eta]
    least, unknown = min(scalars[S.least], mean), scalars[ROUND] <= 1.0
    if scalars[S.largest] == 0.0:  # no surprise yet, so no unit to measure falls in
        half_unit = math.inf
    if unknown:
        mean = least = 0.0  # see `update`
    lowest = ranked[0]
    share, even = surrogate_share(state), scalars[S.even_share]
    for k in range(len(order)):
        fall = half_unit + 0.5 * (ranked[k] - lowest)
        bound[k] = min(mean, least + (share * surrogate[k] + even) * fall)
    for k in range(len(order)):
        baseline[order[k]] = bound[k]
        law[order[k]] = share * surrogate[k] + even
    highest = largest_of(bound)
    if scalars[S.mixed] > 0.0:
        highest = max(highest, _lift_best(state, mean, half_unit, lowest))
    scalars[S.highest], scalars[S.covered] = highest, NO_ARMS if unknown else ALL_ARMS
    scalars[S.drift] = shortfall(bound, surrogate, highest)
    scalars[S.origin] = scalars[S.version]


@compiled
def largest_of(values: Floats) -> float:
    """The largest value above 0, in four lanes, so that comparisons need not wait for each other."""
    a = b = c = d = 0.0
    whole = len(values) - len(values) % 4
    for k in range(0, whole, 4):
        a = max(values[k], a)
        b = max(values[k + 1], b)
        c = max(values[k + 2], c)
        d = max(values[k + 3], d)
    for k in range(whole, len(values)):
        a = max(values[k], a)
    return max(max(a, b), max(c, d))


@compiled
def shortfall(bound: Floats, surrogate: Floats, highest: float) -> float:
    """The sum of q^2 * (highest - bound), in four lanes."""
    a = b = c = d = 0.0
    whole = len(bound) - len(bound) % 4
    for k in range(0, whole, 4):
        a += surrogate[k] * surrogate[k] * (highest - bound[k])
        b += surrogate[k + 1] * surrogate[k + 1] * (highest - bound[k + 1])
        c += surrogate[k + 2] * surrogate[k + 2] * (highest - bound[k + 2])
        d += surrogate[k + 3] * surrogate[k + 3] * (highest - bound[k + 3])
    for k in range(whole, len(bound)):
        a += surrogate[k] * surrogate[k] * (highest - bound[k])
    return (a + b) + (c + d)


@compiled
def _lift_best(state: State, mean: float, half_unit: float, lowest: float) -> float:
    """Raise law and baselines of arms that are explored more often than their surrogates say; return the highest baseline.

    An arm that is several of the best is raised once, by the sum of its shares: else one observation could take too much
    off its estimate.
    """
    scalars, highest = state.scalars, 0.0
    if scalars[S.unseen] > 0.0:
        for arm in range(state.floats.shape[1]):
            highest = max(highest, _lift(state, arm, mean, half_unit, lowest))
        return highest
    for place in range(BEST):
        arm, first = int(scalars[S.leader + place]), True
        for earlier in range(place):
            first = first and scalars[S.leader + earlier] != arm
        if arm >= 0 and first:
            highest = max(highest, _lift(state, arm, mean, half_unit, lowest))
    return highest


@compiled
def _lift(state: State, arm: int, mean: float, half_unit: float, lowest: float) -> float:
    """Raise one arm's law and baseline, and return the baseline."""
    floats, more = state.floats, extra_share(state, arm)
    if more > 0.0:
        floats[R.law, arm] += more
        more *= half_unit + 0.5 * (floats[R.estimates, arm] - lowest)
    lifted: float = min(mean, floats[R.baseline, arm] + more)
    floats[R.baseline, arm] = lifted
    return lifted


@compiled
def cover(state: State, law: Floats, absent: float) -> None:
    """Fill the baselines of the soft gate for the law by which a decision explored, which may be another state's.

    An arm that the decision could not choose has a negative chance there, and is charged `absent`, the loss.
    """
    floats, scalars, order = state.floats, state.scalars, state.ints[N.order]
    ranked, baseline, surrogate = floats[R.ranked], floats[R.baseline], floats[R.surrogate]
    mean, half_unit = START + scalars[S.rise], 0.5 / scalars[S.eta]
    least, lowest = min(scalars[S.least], mean), ranked[0]
    if scalars[S.largest] == 0.0:  # no surprise yet, so no unit to measure falls in
        half_unit = math.inf
    highest, everyone = 0.0, True
    for k in range(len(order)):
        arm = order[k]
        if law[arm] < 0.0:
            baseline[arm], everyone = absent, False
        else:
            baseline[arm] = min(mean, least + law[arm] * (half_unit + 0.5 * (ranked[k] - lowest)))
            highest = max(highest, baseline[arm])
    drift = 0.0
    for k in range(len(order)):
        if law[order[k]] >= 0.0:
            drift += surrogate[k] * surrogate[k] * (highest - baseline[order[k]])
    scalars[S.highest], scalars[S.drift] = highest, drift
    scalars[S.covered] = ALL_ARMS if everyone else SOME_ARMS


@compiled
def limit_fall(state: State, arm: int, weight: float) -> None:
    """Lower the baseline of an arm that was not explored by this state's law, so that the gate holds for its weight."""
    floats, scalars = state.floats, state.scalars
    least = min(scalars[S.least], START + scalars[S.rise])
    half_unit = 0.5 / scalars[S.eta]
    gap = floats[R.estimates, arm] - floats[R.ranked, 0]
    if weight > 0.0 and scalars[S.largest] > 0.0:
        floats[R.baseline, arm] = min(
            floats[R.baseline, arm], least + (half_unit + 0.5 * gap) / weight
        )
