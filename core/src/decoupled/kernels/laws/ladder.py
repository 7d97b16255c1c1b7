"""The ladder: FTPL with a soft gate, several rates of exploitation, and a hedge between them.

What is exploited does not change what is seen. So several rates can exploit the same estimates, each a *rung*, and
their losses can be estimated from the same observations. AdaHedge decides how often each rung plays. The last rung
exploits the leader by mean loss; then a part of the exploration goes to that leader and to its challenger.

docs/ladder.md has the theorems. The rows and the order of an update are those of `leader`.
"""

import math
from typing import Any

from ...base.arrays import Floats, Ints, Words
from ..compose import MOST_SPREAD, START
from ..dispatch import Functions
from ..jit import compiled
from ..order.ranked import move_arm, rank_of, sort_arms
from ..random.sampling import categorical, total
from ..random.stream import below, uniform
from ..state import ARMS, ROUND, State
from .hedge import fill_hedge
from .ladder_baselines import fill_baselines, limit_fall
from .ladder_means import extra_share, find_two_best, note_loss, one_of_two, surrogate_share
from .ladder_rungs import drawn_rung, exploited, judge_rungs, prepare_judging
from .ladder_state import (
    ALL_ARMS,
    ALPHA,
    BASELINE,
    COUNTS,
    COVERED,
    DRIFT,
    DRIFT_SCALE,
    ESTIMATES,
    ETA,
    EVEN_SHARE,
    HEDGE_SUM,
    INVERSES,
    JUDGED,
    LARGEST,
    LEAST,
    LOSS,
    MIXED,
    NO_ARMS,
    NOBODY,
    ORDER,
    PRIOR,
    RANK_LIMIT,
    RANKED,
    RATE,
    REGRET,
    RISE,
    SCALE,
    SEEN,
    SPREAD,
    SPREAD_FLOOR,
    SURROGATE,
    SURROGATE_SUM,
    TINY,
    UNSEEN,
    WEIGHT,
    draw_precedence,
)
from .rank_limits import fill_limits, limited_surrogates


@compiled
def init(params: Any, state: State) -> None:
    """Rank the arms, tabulate what never changes, and derive the rest."""
    floats, scalars = state.floats, state.scalars
    fill_limits(floats, RANK_LIMIT, (ALPHA + 1.0) / (2.0 * ALPHA))
    sort_arms(floats[ESTIMATES], floats[RANKED], state.ints[ORDER])
    draw_precedence(state)
    scalars[UNSEEN] = 0.0
    for arm in range(floats.shape[1]):
        count = floats[COUNTS, arm]
        floats[INVERSES, arm] = 1.0 / count if count > 0.0 else 0.0
        scalars[UNSEEN] += count == 0.0
    scalars[SCALE] = params.c * scalars[ARMS] ** (1.0 / ALPHA - 0.5)
    scalars[DRIFT_SCALE] = scalars[ARMS] ** (1.0 / ALPHA - 1.0)
    scalars[RATE], scalars[RATE + 1], scalars[RATE + 2] = params.rate_0, params.rate_1, params.rate_2
    scalars[RATE + 3], scalars[RATE + 4] = params.rate_3, params.rate_4
    scalars[PRIOR], scalars[PRIOR + 1], scalars[PRIOR + 2] = params.prior_0, params.prior_1, params.prior_2
    scalars[PRIOR + 3], scalars[PRIOR + 4] = params.prior_3, params.prior_4
    refresh(params, state)


@compiled
def refresh(params: Any, state: State) -> None:
    """Derive rates, surrogates, the rungs' weights, the two best arms and the baselines."""
    floats, scalars = state.floats, state.scalars
    unit = max(MOST_SPREAD * scalars[LARGEST] * scalars[LARGEST], TINY)
    eta = scalars[SCALE] / math.sqrt(unit + scalars[SPREAD] + scalars[SPREAD_FLOOR])
    scalars[ETA], scalars[JUDGED] = eta, NOBODY
    exponent = 0.5 * (ALPHA + 1.0)
    limited_surrogates(floats, RANK_LIMIT, floats[RANKED], eta, exponent, 1.0, floats[SURROGATE])
    scalars[SURROGATE_SUM] = total(floats[SURROGATE])
    rungs = int(params.rungs)
    if rungs > 1:
        regret, rate = scalars[REGRET], params.hedge_rate
        scalars[HEDGE_SUM] = fill_hedge(scalars, rungs, PRIOR, LOSS, WEIGHT, regret, rate)
    else:
        scalars[WEIGHT] = 1.0
    scalars[MIXED], scalars[EVEN_SHARE] = 0.0, params.uniform_share / floats.shape[1]
    if params.top_two_share > 0.0:
        share = params.top_two_share * max(scalars[WEIGHT + rungs - 1], params.top_two_floor)
        scalars[MIXED] = (1.0 - params.uniform_share) * share
        find_two_best(state)
    fill_baselines(state)


@compiled
def decide(params: Any, state: State, stream: Words) -> tuple[int, int, float, float]:
    """Draw a rung and its arm to exploit, and the arm to explore."""
    exploit = exploited(state, drawn_rung(params, state, stream), stream)
    explore, rank = explored(params, state, stream)
    share = share_of(state, explore, rank)
    if params.rungs > 1.0 and state.scalars[COVERED] == ALL_ARMS:
        prepare_judging(params, state, explore, rank)
    return exploit, explore, 1.0 / share, share


@compiled
def explored(params: Any, state: State, stream: Words) -> tuple[int, int]:
    """Draw the arm to explore; return it and its rank."""
    floats, scalars, order = state.floats, state.scalars, state.ints[ORDER]
    mixed, mark = scalars[MIXED], uniform(stream)
    if mark <= mixed:
        arm = one_of_two(state, mark / mixed, stream)
        return arm, rank_of(floats[RANKED], order, floats[ESTIMATES, arm], arm, 0)
    if mark <= mixed + params.uniform_share:
        rank = below(len(order), stream)
    else:
        rank = categorical(floats[SURROGATE], scalars[SURROGATE_SUM], stream)
    return order[rank], rank


@compiled
def share_of(state: State, arm: int, rank: int) -> float:
    """The probability with which an arm of this rank is explored."""
    share: float = surrogate_share(state) * state.floats[SURROGATE, rank] + state.scalars[EVEN_SHARE]
    return share + extra_share(state, arm)


@compiled
def update(params: Any, state: State, arm: int, weight: float, loss: float) -> None:
    """Learn a loss: the rungs' losses, the means, the estimates, and what the rates and the baseline come from."""
    scalars = state.scalars
    scalars[SEEN] += 1.0
    mean = START + scalars[RISE]
    if scalars[ROUND] <= 2.0:
        # The first loss only sets the level: there was no baseline to compare it with.
        scalars[RISE], scalars[LEAST] = loss - START, loss
        state.floats[ESTIMATES, :] = 0.0  # what unavailable arms were charged for this loss
        sort_arms(state.floats[ESTIMATES], state.floats[RANKED], state.ints[ORDER])
        if weight > 0.0:
            note_loss(state, arm, loss, loss)
    else:
        if scalars[COVERED] == NO_ARMS:  # from a log, or decided before the first loss
            fill_baselines(state)
            limit_fall(state, arm, weight)
            scalars[JUDGED] = NOBODY
        surprise = loss - state.floats[BASELINE, arm]
        if weight > 0.0:  # 0: the arm is gone, and only the baselines of the others count
            judge_rungs(params, state, arm, weight, surprise)
            note_loss(state, arm, loss, mean)
        move_estimates(state, arm, weight * surprise)
        unit = min(1.0, 2.0 * scalars[LARGEST])
        drift = unit * scalars[DRIFT] * scalars[DRIFT_SCALE]
        scalars[SPREAD] += MOST_SPREAD * (surprise * surprise + drift)
        scalars[LEAST] = min(scalars[LEAST], loss)
        scalars[RISE] += max(params.mean_rate, 1.0 / scalars[SEEN]) * (loss - mean)
        # The unit is at least the range of the gate, B - least, also if the level moves in small steps.
        level = START + scalars[RISE] - scalars[LEAST]
        largest = max(max(scalars[LARGEST], abs(surprise)), level)
        scalars[LARGEST] = largest
        # Round by round, so that a late record of the unit does not make the rates fall for all rounds at once.
        scalars[SPREAD_FLOOR] += params.least_spread * MOST_SPREAD * largest * largest
    refresh(params, state)


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
