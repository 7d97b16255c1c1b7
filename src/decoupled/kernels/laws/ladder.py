"""The ladder: FTPL with a soft gate, several rates of exploitation, and a hedge between them.

What is exploited does not change what is seen. So several rates can exploit the same estimates, each a *rung*, and
their losses can be estimated from the same observations. AdaHedge decides how often each rung plays. The last rung
exploits the leader by mean loss; then a part of the exploration goes to that leader and to its challenger.

docs/ladder.md has the theorems. The rows and the order of an update are those of `leader`.
"""

import math
from collections import namedtuple
from typing import Any

import numpy as np

from ...base.arrays import Floats, Ints, Words
from ..compose import MOST_SPREAD, START
from ..dispatch import Functions
from ..jit import compiled
from ..order.ranked import move_arm, rank_of, sort_arms
from ..random.hashed import hashed_unit, key_with, scrambled
from ..random.sampling import categorical, pareto_leader, total
from ..random.stream import below, uniform
from ..state import ARMS, ROUND, SHARED_SCALARS, Layout, State
from .hedge import fill_hedge, hedge_step
from .rank_limits import fill_limits, limited_surrogates
from .rival import chance_against
from .two_best import count_of_value, fill_costs, fill_seen_means, least_of, place_of_value

MOST_RATES = 4
MOST_RUNGS = MOST_RATES + 1  # the last one plays the leader by mean
LEADERS_SHARE = 0.5  # of what the leader by mean and its challenger are explored together
SLACK = 0.1  # in standard deviations of a loss: how much worse than the leader is as good
FOLLOW = 1e300  # the rate of a rung that follows the leader by estimate
ALL_ARMS, SOME_ARMS, NO_ARMS = 1.0, 0.0, -1.0  # which arms have a baseline of the decision's own
TINY = 1e-24  # in place of a largest surprise of 0, so that rates are finite

ESTIMATES, RANKED, RANK_LIMIT, SURROGATE, BASELINE, COUNTS, MEANS, CENTRED, INVERSES, BOUND = range(10)
FLOATS = (
    *("estimates", "ranked", "rank_limit", "surrogate", "baseline"),
    *("counts", "means", "centred_means", "inverse_counts", "bound"),
)
ORDER = 0


def _numbered(name: str) -> tuple[str, ...]:
    return tuple(f"{name}_{number}" for number in range(MOST_RUNGS))


LEARNED_SCALARS = (
    *("rise", "seen", "least", "largest", "spread", "raw_error", "centred_error", "hedge_regret"),
    *_numbered("rung_loss"),
)
DERIVED_SCALARS = (
    *("scale", "drift_scale", "eta", "surrogate_sum", "mixed", "leader", "challenger", "unseen"),
    *(
        "highest",
        "drift",
        "covered",
        *_numbered("rung_weight"),
        *_numbered("rung_prior"),
        *_numbered("rung_rate"),
    ),
    *_numbered("rung_step"),
)
SCALARS = (*LEARNED_SCALARS, *DERIVED_SCALARS)
(RISE, SEEN, LEAST, LARGEST, SPREAD, RAW_ERROR, CENTRED_ERROR, REGRET) = range(
    len(SHARED_SCALARS), len(SHARED_SCALARS) + 8
)
LOSS = REGRET + 1
(SCALE, DRIFT_SCALE, ETA, SURROGATE_SUM, MIXED, LEADER, CHALLENGER, UNSEEN, HIGHEST, DRIFT, COVERED) = (
    range(LOSS + MOST_RUNGS, LOSS + MOST_RUNGS + 11)
)
WEIGHT = COVERED + 1
PRIOR = WEIGHT + MOST_RUNGS
RATE = PRIOR + MOST_RUNGS  # as multiples of the rate of exploration; negative for the leader by mean
STEP = RATE + MOST_RUNGS

LAYOUT = Layout(
    scalars=SCALARS,
    floats=FLOATS,
    ints=("order",),
    learned=("estimates", "counts", "means", "centred_means", *LEARNED_SCALARS),
)

# `from_first` above 0: the running mean and the unit of the losses come from the losses themselves. Rates are multiples
# of c, and -1 stands for the leader by mean.
PARAMS = (
    *("alpha", "sharing", "c", "lam", "by_losses", "theta", "from_first", "boldness", "mix", "floor"),
    *("rungs", "rate_0", "rate_1", "rate_2", "rate_3", "rate_4"),
    *("prior_0", "prior_1", "prior_2", "prior_3", "prior_4"),
)
Params: Any = namedtuple("Params", PARAMS)  # type: ignore[misc]


@compiled
def init(params: Any, state: State) -> None:
    """Rank the arms, tabulate what never changes, and derive the rest."""
    floats, scalars = state.floats, state.scalars
    fill_limits(floats, RANK_LIMIT, (params.alpha + 1.0) / (2.0 * params.alpha))
    sort_arms(floats[ESTIMATES], floats[RANKED], state.ints[ORDER])
    scalars[UNSEEN] = 0.0
    for arm in range(floats.shape[1]):
        count = floats[COUNTS, arm]
        floats[INVERSES, arm] = 1.0 / count if count > 0.0 else 0.0
        scalars[UNSEEN] += count == 0.0
    scalars[SCALE] = params.c * scalars[ARMS] ** (1.0 / params.alpha - 0.5)
    scalars[DRIFT_SCALE] = scalars[ARMS] ** (1.0 / params.alpha - 1.0)
    scalars[RATE], scalars[RATE + 1], scalars[RATE + 2] = params.rate_0, params.rate_1, params.rate_2
    scalars[RATE + 3], scalars[RATE + 4] = params.rate_3, params.rate_4
    scalars[PRIOR], scalars[PRIOR + 1], scalars[PRIOR + 2] = params.prior_0, params.prior_1, params.prior_2
    scalars[PRIOR + 3], scalars[PRIOR + 4] = params.prior_3, params.prior_4
    refresh(params, state)


@compiled
def refresh(params: Any, state: State) -> None:
    """Derive rates, surrogates, the rungs' weights, the two best arms and the baselines."""
    floats, scalars = state.floats, state.scalars
    passed = scalars[ROUND]
    if params.by_losses > 0.0:
        unit = 1.0
        if params.from_first > 0.0:
            unit = max(MOST_SPREAD * scalars[LARGEST] * scalars[LARGEST], TINY)
        passed = unit * (1.0 + params.theta * (scalars[ROUND] - 1.0)) + scalars[SPREAD]
    eta = scalars[SCALE] / math.sqrt(passed)
    scalars[ETA] = eta
    exponent = 0.5 * (params.alpha + 1.0)
    limited_surrogates(floats, RANK_LIMIT, floats[RANKED], eta, exponent, params.sharing, floats[SURROGATE])
    scalars[SURROGATE_SUM] = total(floats[SURROGATE])
    rungs = int(params.rungs)
    if rungs > 1:
        fill_hedge(scalars, rungs, PRIOR, LOSS, WEIGHT, scalars[REGRET], params.boldness)
    else:
        scalars[WEIGHT] = 1.0
    scalars[MIXED] = 0.0
    if params.mix > 0.0:
        scalars[MIXED] = params.mix * max(scalars[WEIGHT + rungs - 1], params.floor)
        find_two_best(state)
    fill_baselines(params, state)


@compiled
def state_key(state: State) -> np.uint64:
    """A key for draws, from the round and what was learned."""
    scalars = state.scalars
    key = key_with(scrambled(np.uint64(int(scalars[ROUND]))), START + scalars[RISE])
    return key_with(key, scalars[SPREAD])


@compiled
def find_two_best(state: State) -> None:
    """Store the leader by mean and its challenger (-1 if there is none).

    Two means of each arm are kept: of its losses, and of its losses less the running mean of all losses at the time. If
    the level of all losses moves, arms seen at different times compare only by the second; if not, the first has less
    noise. Whichever has predicted losses better so far is used.
    """
    floats, scalars = state.floats, state.scalars
    means = floats[MEANS if scalars[RAW_ERROR] <= scalars[CENTRED_ERROR] else CENTRED]
    inverses, spare = floats[INVERSES], floats[BASELINE]  # the baselines are filled after this
    fill_seen_means(means, inverses, spare)
    leader, challenger = arm_with_least(state, spare), -1
    if leader >= 0 and scalars[UNSEEN] == 0.0:
        spread = scalars[SPREAD] / (MOST_SPREAD * max(scalars[SEEN], 1.0))
        fill_costs(means, inverses, leader, SLACK * math.sqrt(spread), spare)
        challenger = arm_with_least(state, spare)
    scalars[LEADER], scalars[CHALLENGER] = leader, challenger


@compiled
def arm_with_least(state: State, values: Floats) -> int:
    """The arm with the smallest value, one of those drawn at random if they are several; -1 if all are infinite."""
    least = least_of(values)
    if least == math.inf:
        return -1
    tied, skip = count_of_value(values, least), 0
    if tied > 1:
        skip = min(int(hashed_unit(state_key(state), 0) * tied), tied - 1)
    return place_of_value(values, least, skip)


@compiled
def extra_share(state: State, arm: int) -> float:
    """The probability that an arm is explored as one of the two best, or because it was never seen."""
    scalars = state.scalars
    mixed, leader = scalars[MIXED], int(scalars[LEADER])
    if mixed == 0.0:
        return 0.0
    others = mixed if leader < 0 else mixed * (1.0 - LEADERS_SHARE)
    share = 0.0
    if arm == leader:
        share = mixed * LEADERS_SHARE
        if scalars[UNSEEN] == 0.0 and scalars[CHALLENGER] < 0.0:
            share = mixed  # a single arm
    elif scalars[UNSEEN] > 0.0:
        if state.floats[INVERSES, arm] == 0.0:
            share = others / scalars[UNSEEN]
    elif arm == int(scalars[CHALLENGER]):
        share = others
    return share


@compiled
def fill_baselines(params: Any, state: State) -> None:
    """Fill b_i = min(B, least + p_i * (1 + rate * gap) / (2 * rate)), the soft gate at the first rung's rate.

    One observation then takes at most half of an arm's own gap, plus 1 / (2 * rate), off its estimate.
    """
    floats, scalars, order = state.floats, state.scalars, state.ints[ORDER]
    ranked, surrogate, baseline, bound = floats[RANKED], floats[SURROGATE], floats[BASELINE], floats[BOUND]
    mean, least = START + scalars[RISE], 0.0
    half_unit = 0.5 / (scalars[ETA] * scalars[RATE])
    unknown = params.from_first > 0.0 and scalars[ROUND] <= 1.0
    if params.from_first > 0.0:
        least = min(scalars[LEAST], mean)
        if scalars[LARGEST] == 0.0:  # no surprise yet, so no unit to measure falls in
            half_unit = math.inf
        if unknown:
            mean = least = 0.0  # see `update`
    lowest = ranked[0]
    share = (1.0 - scalars[MIXED]) / scalars[SURROGATE_SUM]
    for k in range(len(order)):
        bound[k] = min(mean, least + share * surrogate[k] * (half_unit + 0.5 * (ranked[k] - lowest)))
    for k in range(len(order)):
        baseline[order[k]] = bound[k]
    highest = largest_of(bound)
    if scalars[MIXED] > 0.0:
        highest = max(highest, _lift_two_best(state, mean, half_unit, lowest))
    scalars[HIGHEST], scalars[COVERED] = highest, NO_ARMS if unknown else ALL_ARMS
    scalars[DRIFT] = shortfall(bound, surrogate, highest)


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
def _lift_two_best(state: State, mean: float, half_unit: float, lowest: float) -> float:
    """Raise the baselines of arms that are explored more often than their surrogates say; return the highest."""
    floats, scalars = state.floats, state.scalars
    estimates, baseline = floats[ESTIMATES], floats[BASELINE]
    highest = 0.0
    if scalars[UNSEEN] > 0.0:
        for arm in range(floats.shape[1]):
            more = extra_share(state, arm)
            if more > 0.0:
                more *= half_unit + 0.5 * (estimates[arm] - lowest)
            baseline[arm] = min(mean, baseline[arm] + more)
            highest = max(highest, baseline[arm])
        return highest
    for arm in (int(scalars[LEADER]), int(scalars[CHALLENGER])):
        if arm >= 0:
            more = extra_share(state, arm) * (half_unit + 0.5 * (estimates[arm] - lowest))
            baseline[arm] = min(mean, baseline[arm] + more)
            highest = max(highest, baseline[arm])
    return highest


@compiled
def decide(params: Any, state: State, stream: Words) -> tuple[int, int, float, float]:
    """Draw a rung and its arm to exploit, and the arm to explore."""
    floats, scalars, order = state.floats, state.scalars, state.ints[ORDER]
    ranked = floats[RANKED]
    exploit = exploited(params, state, drawn_rung(params, state, stream), stream)
    mixed = scalars[MIXED]
    mark = uniform(stream)
    if mark <= mixed:
        explore = one_of_two(state, mark / mixed, stream)
        rank = rank_of(ranked, order, floats[ESTIMATES, explore], explore, 0)
    else:
        rank = categorical(floats[SURROGATE], scalars[SURROGATE_SUM], stream)
        explore = order[rank]
    share = (1.0 - mixed) * floats[SURROGATE, rank] / scalars[SURROGATE_SUM] + extra_share(state, explore)
    return exploit, explore, 1.0 / share, share


@compiled
def drawn_rung(params: Any, state: State, stream: Words) -> int:
    """A rung, drawn by its weight."""
    rung = 0
    if params.rungs > 1.0:
        mark = uniform(stream) - state.scalars[WEIGHT]
        while mark > 0.0 and rung + 1 < int(params.rungs):
            rung += 1
            mark -= state.scalars[WEIGHT + rung]
    return rung


@compiled
def exploited(params: Any, state: State, rung: int, stream: Words) -> int:
    """The arm that a rung exploits."""
    ranked, order, scalars = state.floats[RANKED], state.ints[ORDER], state.scalars
    rate = scalars[RATE + rung]
    if rate < 0.0:
        leader = int(scalars[LEADER])
        return leader if leader >= 0 else below(len(order), stream)
    rank: int
    if rate == FOLLOW:
        rank = below(tied_leaders(state), stream)
    else:
        rank = pareto_leader(ranked, scalars[ETA] * rate, params.alpha, stream)
    arm: int = order[rank]
    return arm


@compiled
def tied_leaders(state: State) -> int:
    """The number of arms with the smallest estimate."""
    ranked = state.floats[RANKED]
    count = 1
    while count < len(ranked) and ranked[count] == ranked[0]:
        count += 1
    return count


@compiled
def one_of_two(state: State, mark: float, stream: Words) -> int:
    """The leader by mean or its challenger; an unseen arm in its place, while there are any."""
    scalars = state.scalars
    leader = int(scalars[LEADER])
    if leader >= 0 and (mark <= LEADERS_SHARE or (scalars[UNSEEN] == 0.0 and scalars[CHALLENGER] < 0.0)):
        return leader
    if scalars[UNSEEN] == 0.0:
        return int(scalars[CHALLENGER])
    skip, arm = below(int(scalars[UNSEEN]), stream), 0
    inverses = state.floats[INVERSES]
    while inverses[arm] > 0.0 or skip > 0:
        if inverses[arm] == 0.0:
            skip -= 1
        arm += 1
    return arm


@compiled
def update(params: Any, state: State, arm: int, weight: float, loss: float) -> None:
    """Learn a loss: the rungs' losses, the means, the estimates, and what the rates and the baseline come from."""
    scalars = state.scalars
    scalars[SEEN] += 1.0
    mean = START + scalars[RISE]
    if params.from_first > 0.0 and scalars[ROUND] <= 2.0:
        # The first loss only sets the level: there was no baseline to compare it with.
        scalars[RISE], scalars[LEAST] = loss - START, loss
        state.floats[ESTIMATES, :] = 0.0  # what unavailable arms were charged for this loss
        sort_arms(state.floats[ESTIMATES], state.floats[RANKED], state.ints[ORDER])
        if weight > 0.0:
            note_loss(state, arm, loss, loss)
    else:
        if scalars[COVERED] == NO_ARMS:  # from a log, or decided before the first loss
            fill_baselines(params, state)
            limit_fall(params, state, arm, weight)
        surprise = loss - state.floats[BASELINE, arm]
        if weight > 0.0:  # 0: the arm is gone, and only the baselines of the others count
            judge_rungs(params, state, arm, weight, surprise)
            note_loss(state, arm, loss, mean)
        move_estimates(state, arm, weight * surprise)
        unit = min(1.0, 2.0 * scalars[LARGEST]) if params.from_first > 0.0 else 1.0
        drift = unit * scalars[DRIFT] * scalars[DRIFT_SCALE]
        scalars[SPREAD] += MOST_SPREAD * (surprise * surprise + drift)
        scalars[LARGEST] = max(scalars[LARGEST], abs(surprise))
        pace = params.lam
        if params.from_first > 0.0:
            pace = max(pace, 1.0 / scalars[SEEN])
            scalars[LEAST] = min(scalars[LEAST], loss)
        scalars[RISE] += pace * (loss - mean)
    refresh(params, state)


@compiled
def limit_fall(params: Any, state: State, arm: int, weight: float) -> None:
    """Lower the baseline of an arm that was not explored by this state's law, so that the gate holds for its weight."""
    floats, scalars = state.floats, state.scalars
    least = min(scalars[LEAST], START + scalars[RISE]) if params.from_first > 0.0 else 0.0
    half_unit = 0.5 / (scalars[ETA] * scalars[RATE])
    gap = floats[ESTIMATES, arm] - floats[RANKED, 0]
    if weight > 0.0 and not (params.from_first > 0.0 and scalars[LARGEST] == 0.0):
        floats[BASELINE, arm] = min(floats[BASELINE, arm], least + (half_unit + 0.5 * gap) / weight)


@compiled
def note_loss(state: State, arm: int, loss: float, mean: float) -> None:
    """Add a loss to the two means of its arm, and the errors with which they predicted it."""
    floats, scalars = state.floats, state.scalars
    raw, centred = loss - floats[MEANS, arm], loss - mean - floats[CENTRED, arm]
    if floats[COUNTS, arm] > 0.0:
        scalars[RAW_ERROR] += raw * raw
        scalars[CENTRED_ERROR] += centred * centred
    else:
        scalars[UNSEEN] -= 1.0
    count = floats[COUNTS, arm] + 1.0
    inverse = 1.0 / count
    floats[COUNTS, arm], floats[INVERSES, arm] = count, inverse
    floats[MEANS, arm] += raw * inverse
    floats[CENTRED, arm] += centred * inverse


@compiled
def judge_rungs(params: Any, state: State, arm: int, weight: float, surprise: float) -> None:
    """Estimate every rung's loss, less the highest baseline, and let the hedge learn them.

    A rung that plays w has the loss <w, loss>. With W the probability of the explored arm under w, or an unbiased
    estimate of it, W * (loss - b) / p + <w, b> is an unbiased estimate of that.
    """
    floats, scalars, order = state.floats, state.scalars, state.ints[ORDER]
    rungs = int(params.rungs)
    if rungs == 1 or scalars[COVERED] != ALL_ARMS:
        return
    ranked, baseline = floats[RANKED], floats[BASELINE]
    rank = rank_of(ranked, order, floats[ESTIMATES, arm], arm, 0)
    key = key_with(state_key(state), float(arm))
    for rung in range(rungs):
        rate = scalars[RATE + rung]
        if rate < 0.0:
            leader = int(scalars[LEADER])
            if leader >= 0:
                chance, mean_baseline = (1.0 if arm == leader else 0.0), baseline[leader]
            else:
                chance, mean_baseline = 1.0 / len(order), total(baseline) / len(order)
        elif rate == FOLLOW:
            tied = tied_leaders(state)
            chance, mean_baseline = (1.0 / tied if rank < tied else 0.0), 0.0
            for k in range(tied):
                mean_baseline += baseline[order[k]] / tied
        else:
            chance, rival = chance_against(ranked, rank, scalars[ETA] * rate, params.alpha, key)
            mean_baseline = chance * baseline[arm] + (1.0 - chance) * baseline[order[rival]]
        scalars[STEP + rung] = chance * (surprise * weight) + mean_baseline - scalars[HIGHEST]
    scalars[REGRET] = hedge_step(scalars, rungs, LOSS, WEIGHT, STEP, scalars[REGRET], params.boldness)


@compiled
def move_estimates(state: State, moved: int, amount: float) -> None:
    """Add `amount` to one arm and every arm's baseline to its estimate, and restore the rank order.

    The baselines of neighbours are almost equal, so few arms pass another.
    """
    floats, order = state.floats, state.ints[ORDER]
    estimates, ranked, baseline = floats[ESTIMATES], floats[RANKED], floats[BASELINE]
    if amount != 0.0:
        move_arm(ranked, order, moved, estimates[moved], estimates[moved] + amount)
    last, last_arm = -math.inf, -1
    for k in range(len(order)):
        arm = order[k]
        value = ranked[k] + baseline[arm]
        estimates[arm] = value
        if value > last or (value == last and arm > last_arm):
            ranked[k] = value
            last, last_arm = value, arm
        else:
            insert(ranked, order, k, value, arm)


@compiled
def insert(ranked: Floats, order: Ints, place: int, value: float, arm: int) -> None:
    """Put an arm where it belongs among those before `place`."""
    while place > 0 and (
        ranked[place - 1] > value or (ranked[place - 1] == value and order[place - 1] > arm)
    ):
        ranked[place], order[place] = ranked[place - 1], order[place - 1]
        place -= 1
    ranked[place], order[place] = value, arm


FUNCTIONS = Functions(init, decide, update)
