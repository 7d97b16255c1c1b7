"""The ladder: FTPL with a soft gate, several rates of exploitation, and a hedge between them.

What is exploited does not change what is seen. So several rates can exploit the same estimates,
each a *rung*, and their losses can be estimated from the same observations. AdaHedge decides how
often each rung plays. The last two exploit the leader by mean loss and the recent leader; a part of
the exploration goes to these and to their challengers.

docs/ladder.md has the theorems. The order of an update is that of `CentredFTPL`.
"""

import math

from ...base.arrays import Floats, Ints, Words
from ...kernels.dispatch import Functions
from ...kernels.jit import compiled
from ...kernels.order.ranked import move_arm, rank_of, restore_order, sort_arms
from ...kernels.random.sampling import categorical, total
from ...kernels.random.stream import below, uniform
from ...kernels.state import ARMS, EVENTS, ROUND, State
from ...kernels.surrogates import fill_limits, limited_surrogates
from .baselines import (
    cover,
    draw_best,
    extra_share,
    fill_baselines,
    limit_fall,
    surrogate_share,
)
from .means import draw_precedence, find_best, note_loss, note_recent_loss
from .rungs import draw_exploited, draw_rung, fill_hedge, judge_rungs, prepare_judging
from .state import (
    ALL_ARMS,
    ALPHA,
    GIVEN,
    INVERSE_VARIANCE,
    MOST_RUNGS,
    NO_ARMS,
    NOBODY,
    START,
    TINY,
    N,
    Params,
    R,
    S,
)


@compiled
def init(params: Params, state: State) -> None:
    """Rank the arms, tabulate what never changes, and derive the rest."""
    floats = state.floats
    scalars = state.scalars
    fill_limits(floats, R.rank_limit, (ALPHA + 1.0) / (2.0 * ALPHA))
    restore_order(floats[R.estimates], floats[R.ranked], state.ints[N.order])
    draw_precedence(state)
    unseen = 0
    for arm in range(floats.shape[1]):
        count = floats[R.counts, arm]
        floats[R.inverse_counts, arm] = 1.0 / count if count > 0.0 else 0.0
        unseen += count == 0.0
    scalars[S.unseen] = unseen
    scalars[S.scale] = params.c * scalars[ARMS] ** (1.0 / ALPHA - 0.5)
    scalars[S.drift_scale] = scalars[ARMS] ** (1.0 / ALPHA - 1.0)
    for rung in range(MOST_RUNGS):
        scalars[S.rung_rate + rung] = params.rates[rung]
        scalars[S.rung_prior + rung] = params.priors[rung]
    if scalars[S.recent_fade] == 0.0:  # at the start
        scalars[S.recent_fade] = 1.0
    refresh(params, state)


@compiled
def refresh(params: Params, state: State) -> None:
    """Derive rates, surrogates, the rungs' weights, the leaders and their challengers, and the
    baselines.
    """
    floats = state.floats
    scalars = state.scalars
    unit = max(INVERSE_VARIANCE * scalars[S.largest] * scalars[S.largest], TINY)
    eta = scalars[S.scale] / math.sqrt(unit + scalars[S.spread] + scalars[S.spread_floor])
    scalars[S.eta] = eta
    scalars[S.judged] = NOBODY
    exponent = 0.5 * (ALPHA + 1.0)
    limited_surrogates(
        floats, R.rank_limit, floats[R.ranked], eta, exponent, True, floats[R.surrogate]
    )
    scalars[S.surrogate_sum] = total(floats[R.surrogate])
    rungs = params.rungs
    if rungs > 1:
        scalars[S.hedge_sum] = fill_hedge(
            scalars,
            rungs,
            S.rung_prior,
            S.rung_loss,
            S.rung_weight,
            scalars[S.hedge_regret],
            params.hedge_rate,
        )
    else:
        scalars[S.rung_weight] = 1.0
    scalars[S.mixed] = 0.0
    scalars[S.even_share] = params.uniform_share / floats.shape[1]
    if params.top_two_share > 0.0:
        weight_of_means = scalars[S.rung_weight + rungs - 1]
        if params.recency > 0.0:
            weight_of_means += scalars[S.rung_weight + rungs - 2]
        share = params.top_two_share * max(weight_of_means, params.top_two_floor)
        scalars[S.mixed] = (1.0 - params.uniform_share) * share
        find_best(params, state)
    fill_baselines(state)


@compiled
def decide(params: Params, state: State, stream: Words) -> tuple[int, int, float, float]:
    """Draw a rung and its arm to exploit, and the arm to explore."""
    exploit = draw_exploited(state, draw_rung(params, state, stream), stream)
    explore, rank = draw_explored(params, state, stream)
    share = share_of(state, explore, rank)
    if params.rungs > 1 and state.scalars[S.covered] == ALL_ARMS:
        prepare_judging(params, state, explore, rank)
    return exploit, explore, 1.0 / share, share


@compiled
def draw_explored(params: Params, state: State, stream: Words) -> tuple[int, int]:
    """Draw the arm to explore; return it and its rank."""
    floats = state.floats
    scalars = state.scalars
    order = state.ints[N.order]
    mixed = scalars[S.mixed]
    mark = uniform(stream)
    if mark <= mixed:
        arm = draw_best(state, mark / mixed, stream)
        return arm, rank_of(floats[R.ranked], order, floats[R.estimates, arm], arm, 0)
    if mark <= mixed + params.uniform_share:
        rank = below(len(order), stream)
    else:
        rank = categorical(floats[R.surrogate], scalars[S.surrogate_sum], stream)
    return order[rank], rank


@compiled
def share_of(state: State, arm: int, rank: int) -> float:
    """The probability with which an arm of this rank is explored."""
    share: float = (
        surrogate_share(state) * state.floats[R.surrogate, rank] + state.scalars[S.even_share]
    )
    return share + extra_share(state, arm)


@compiled
def update(params: Params, state: State, arm: int, weight: float, loss: float) -> None:
    """Learn a loss: the rungs, the means, the estimates, and what the rates come from."""
    scalars = state.scalars
    scalars[S.seen] += 1.0
    mean = START + scalars[S.rise]
    if scalars[ROUND] <= 2.0:
        # The first loss only sets the level: there was no baseline to compare it with.
        scalars[S.rise] = loss - START
        scalars[S.least] = loss
        state.floats[R.estimates, :] = 0.0  # what unavailable arms were charged for this loss
        sort_arms(state.floats[R.estimates], state.floats[R.ranked], state.ints[N.order])
        if weight > 0.0:
            learn_means(params, state, arm, loss, loss)
    else:
        origin = scalars[S.origin]
        is_late = origin != GIVEN and origin != scalars[S.version]
        if is_late:
            cover(state, state.floats[R.law], loss)
        elif scalars[S.covered] == NO_ARMS:
            fill_baselines(state)
            limit_fall(state, arm, weight)
            scalars[S.judged] = NOBODY
        surprise = loss - state.floats[R.baseline, arm]
        if weight > 0.0:  # 0: the arm is gone, and only the baselines of the others count
            # What was decided before the first loss is not judged.
            if scalars[S.judged] == arm or not is_late:
                judge_rungs(params, state, arm, weight, loss)
            learn_means(params, state, arm, loss, mean)
        move_estimates(state, arm, weight * surprise)
        unit = min(1.0, 2.0 * scalars[S.largest])
        drift = unit * scalars[S.drift] * scalars[S.drift_scale]
        scalars[S.spread] += INVERSE_VARIANCE * (surprise * surprise + drift)
        scalars[S.least] = min(scalars[S.least], loss)
        scalars[S.rise] += max(params.mean_rate, 1.0 / scalars[S.seen]) * (loss - mean)
        # The unit is at least the range of the gate, B - least, also if the level moves in small
        # steps.
        level = START + scalars[S.rise] - scalars[S.least]
        largest = max(max(scalars[S.largest], abs(surprise)), level)
        scalars[S.largest] = largest
        # Round by round, so that a late record of the unit does not make the rates fall for all
        # rounds at once.
        scalars[S.spread_floor] += params.least_spread * INVERSE_VARIANCE * largest * largest
    scalars[S.version] = scalars[EVENTS]
    refresh(params, state)


@compiled
def learn_means(params: Params, state: State, arm: int, loss: float, mean: float) -> None:
    """Add a loss to the means of its arm, of all losses and of recent ones."""
    if params.recency > 0.0:
        note_recent_loss(state, arm, loss, mean, params.recency)
    note_loss(state, arm, loss, mean)


@compiled
def move_estimates(state: State, moved: int, amount: float) -> None:
    """Add `amount` to one arm and every arm's baseline to its estimate, and restore the rank order.

    The baselines of neighbours are almost equal, so few arms pass another.
    """
    floats = state.floats
    order = state.ints[N.order]
    estimates = floats[R.estimates]
    ranked = floats[R.ranked]
    baseline = floats[R.baseline]
    if amount != 0.0:
        move_arm(ranked, order, moved, estimates[moved], estimates[moved] + amount)
    last = -math.inf
    last_arm = -1
    for k in range(len(order)):
        arm = order[k]
        value = ranked[k] + baseline[arm]
        estimates[arm] = value
        if value > last or (value == last and arm > last_arm):
            ranked[k] = value
            last = value
            last_arm = arm
        else:
            insert(ranked, order, k, value, arm)


@compiled
def insert(ranked: Floats, order: Ints, place: int, value: float, arm: int) -> None:
    """Put an arm where it belongs among those before `place`."""
    while place > 0 and (
        ranked[place - 1] > value or (ranked[place - 1] == value and order[place - 1] > arm)
    ):
        ranked[place] = ranked[place - 1]
        order[place] = order[place - 1]
        place -= 1
    ranked[place] = value
    order[place] = arm


FUNCTIONS = Functions(init, decide, update)
