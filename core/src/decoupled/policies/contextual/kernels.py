"""The kernels of the contextual ladder: a ladder of all rounds, one of each segment, rules that
know the context, and a hedge of these.

What is exploited does not change what is seen. So any number of rules, each a *rung*, can be judged
by one exploration. The exploration mixes an even share, the ladder of all rounds and that of the
segment, so that both ladders see what they would see by themselves, only less often. With many arms
an even share is expensive. So with more than two, the even share and that of the segment are small
until the rungs that know the context have earned weight.
"""

import math

from ...base.arrays import Floats, Ints, Words
from ...kernels.dispatch import Functions
from ...kernels.jit import compiled
from ...kernels.random.keyed import RUNG, any_arm, key_unit, keyed_race
from ...kernels.random.sampling import categorical, total
from ...kernels.random.stream import below, uniform
from ...kernels.state import ROUND, State
from ..ladder import kernels as ladder
from ..ladder.baselines import cover, limit_fall
from ..ladder.rungs import (
    draw_exploited,
    draw_rung,
    fill_hedge,
    hedge_step,
    keyed_ladder,
    prepare_for,
)
from ..ladder.state import GIVEN, NOBODY, START
from ..ladder.state import Params as LadderParams
from ..ladder.state import S as LADDER
from .regression import leader_of, note_numbers, note_regression, scale_numbers
from .segments import fill_values, note_segment
from .state import (
    ADVICE,
    ADVICE_AT,
    LADDER_ROWS,
    LINEAR,
    POOLED,
    SEGMENTS,
    SHRUNK,
    Params,
    R,
    S,
    change_segment,
    pooled,
    segment,
    set_shared,
)

OUTER = 1_000  # apart from the rungs of the ladders in the draws of a key
ROUNDING = 1e-9  # a decision's weight times the probability in its own state is 1, up to this


@compiled
def init(params: Params, state: State) -> None:
    """Derive everything, or only what depends on the context, if one was just written."""
    scalars = state.scalars
    inner = params.ladder
    is_entering = scalars[S.entering] > 0.0
    if is_entering:
        change_segment(params.numbers, state)
    set_shared(state)
    if not is_entering:
        ladder.init(inner, pooled(state))
        fill_priors(params, state)
    scalars[S.entering] = 0.0
    if params.has_segments:
        for arm in range(state.floats.shape[1]):
            state.floats[R.segment_precedence, arm] = state.floats[R.precedence, arm]
        ladder.init(inner, segment(state))
    refresh(params, state)


@compiled
def fill_priors(params: Params, state: State) -> None:
    """Fill the rungs' kinds and priors; with more arms the pooled ladder is trusted more."""
    scalars = state.scalars
    rungs = params.rungs
    sum_of_priors = 0.0
    for rung in range(rungs):
        kind = params.kinds[rung]
        prior = params.priors[rung]
        if kind == POOLED:
            prior /= least_earned(state)
        scalars[S.outer_kind + rung] = kind
        scalars[S.outer_prior + rung] = prior
        sum_of_priors += prior
    for rung in range(rungs):
        scalars[S.outer_prior + rung] /= sum_of_priors


@compiled
def least_earned(state: State) -> float:
    """The share of `uniform_share`, and of a segment's, that is there from the start: 2 / K."""
    share: float = min(1.0, 2.0 / state.floats.shape[1])
    return share


@compiled
def fill_shares(params: Params, state: State) -> None:
    """Fill the shares of the exploration from the weight that rungs with a context have earned."""
    scalars = state.scalars
    # The pooled rung is the first. What it keeps of its prior, the others have not earned.
    kept = scalars[S.outer_weight] / scalars[S.outer_prior]
    earned = max(1.0 - kept, least_earned(state))
    scalars[S.outer_even] = params.uniform_share * earned
    of_ladders = 1.0 - scalars[S.outer_even]
    if params.has_segments:
        scalars[S.segment_share] = 0.5 * earned * of_ladders
        scalars[S.pooled_share] = (1.0 - 0.5 * earned) * of_ladders
    else:
        scalars[S.segment_share] = 0.0
        scalars[S.pooled_share] = of_ladders


@compiled
def refresh(params: Params, state: State) -> None:
    """Derive the rungs' arms and weights, and the shares of the exploration."""
    scalars = state.scalars
    rungs = params.rungs
    if params.has_segments:
        fill_values(state)
    scale_numbers(params, state)
    for rung in range(rungs):
        kind = int(scalars[S.outer_kind + rung])
        if kind in (SHRUNK, LINEAR):
            scalars[S.outer_arm + rung] = leader_of(params, state, kind == LINEAR)
    scalars[S.outer_sum] = fill_hedge(
        scalars,
        rungs,
        S.outer_prior,
        S.outer_loss,
        S.outer_weight,
        scalars[S.outer_regret],
        params.hedge_rate,
    )
    fill_shares(params, state)


@compiled
def decide(params: Params, state: State, stream: Words) -> tuple[int, int, float, float]:
    """Draw a rung and its arm to exploit, and the arm to explore."""
    scalars = state.scalars
    arms = state.floats.shape[1]
    inner = params.ladder
    if scalars[S.entering] > 0.0:
        init(params, state)
    rung = 0
    mark = uniform(stream) - scalars[S.outer_weight]
    while mark > 0.0 and rung + 1 < params.rungs:
        rung += 1
        mark -= scalars[S.outer_weight + rung]
    scalars[S.served_rung] = rung
    exploit = draw_played(inner, state, rung, stream)
    mark = uniform(stream)
    if mark < scalars[S.outer_even]:
        explore = below(arms, stream)
    elif mark < scalars[S.outer_even] + scalars[S.pooled_share]:
        explore = ladder.draw_explored(inner, pooled(state), stream)[0]
    else:
        explore = ladder.draw_explored(inner, segment(state), stream)[0]
    fill_law(state)
    share = state.floats[R.outer_law, explore]
    fill_chances(params, state, explore)
    return exploit, explore, 1.0 / share, share


@compiled
def fill_law(state: State) -> None:
    """Fill the law of exploration, which a decision keeps for feedback that comes later."""
    floats = state.floats
    scalars = state.scalars
    arms = floats.shape[1]
    for arm in range(arms):
        share = scalars[S.outer_even] / arms + scalars[S.pooled_share] * floats[R.law, arm]
        if scalars[S.segment_share] > 0.0:
            share += scalars[S.segment_share] * floats[R.segment_law, arm]
        floats[R.outer_law, arm] = share
    scalars[S.law_known] = 1.0


@compiled
def kind_of(scalars: Floats, floats: Floats, rung: int) -> int:
    """The kind of a rung; that of an adviser who says nothing is the ladder of all rounds."""
    kind = int(scalars[S.outer_kind + rung])
    if kind >= ADVICE and total(floats[ADVICE_AT + kind - ADVICE]) == 0.0:
        return POOLED
    return kind


@compiled
def draw_played(inner: LadderParams, state: State, rung: int, stream: Words) -> int:
    """The arm that a rung exploits."""
    kind = kind_of(state.scalars, state.floats, rung)
    if kind in (POOLED, SEGMENTS):
        ladder_state = pooled(state) if kind == POOLED else segment(state)
        arm: int = draw_exploited(ladder_state, draw_rung(inner, ladder_state, stream), stream)
        return arm
    if kind >= ADVICE:
        return categorical(state.floats[ADVICE_AT + kind - ADVICE], 1.0, stream)
    leader = int(state.scalars[S.outer_arm + rung])
    return leader if leader >= 0 else below(state.floats.shape[1], stream)


@compiled
def fill_chances(params: Params, state: State, arm: int) -> None:
    """Store the probability of an explored arm under each rung, or an unbiased estimate of it."""
    scalars = state.scalars
    inner = params.ladder
    set_shared(state)
    for rung in range(params.rungs):
        kind = kind_of(scalars, state.floats, rung)
        if kind == POOLED:
            chance = ladder_chance(inner, pooled(state), arm)
        elif kind == SEGMENTS:
            chance = ladder_chance(inner, segment(state), arm)
        elif kind >= ADVICE:
            chance = state.floats[ADVICE_AT + kind - ADVICE, arm]
        elif scalars[S.outer_arm + rung] < 0.0:
            chance = 1.0 / state.floats.shape[1]
        else:
            chance = 1.0 if scalars[S.outer_arm + rung] == arm else 0.0
        scalars[S.outer_chance + rung] = chance


@compiled
def ladder_chance(inner: LadderParams, ladder_state: State, arm: int) -> float:
    """An unbiased estimate of the probability with which a ladder exploits an arm."""
    prepare_for(inner, ladder_state, arm)
    chance = 0.0
    for rung in range(inner.rungs):
        chance += (
            ladder_state.scalars[LADDER.rung_weight + rung]
            * ladder_state.scalars[LADDER.rung_chance + rung]
        )
    return chance


@compiled
def update(params: Params, state: State, arm: int, weight: float, loss: float) -> None:
    """Update the rungs' losses, the regression, both ladders, and how much the segments differ."""
    floats = state.floats
    scalars = state.scalars
    inner = params.ladder
    rungs = params.rungs
    if scalars[S.entering] > 0.0:
        scalars[ROUND] -= 1.0  # as it was before the call
        init(params, state)
        scalars[ROUND] += 1.0
    has_level = scalars[ROUND] > 2.0  # which the first loss sets
    if has_level and weight > 0.0 and rungs > 1:
        surprise = loss - (START + scalars[S.rise])
        for rung in range(rungs):
            scalars[S.outer_step + rung] = scalars[S.outer_chance + rung] * (surprise * weight)
        scalars[S.outer_regret] = hedge_step(
            scalars,
            rungs,
            S.outer_prior,
            S.outer_loss,
            S.outer_weight,
            S.outer_step,
            scalars[S.outer_sum],
            scalars[S.outer_regret],
            params.hedge_rate,
        )
    if weight > 0.0 and params.numbers > 0:
        note_regression(params, state, arm, loss)
    note_numbers(params, state)
    if scalars[S.law_known] == 0.0:  # from a log
        fill_law(state)
    for other in range(floats.shape[1]):
        if floats[R.absent, other] > 0.0:
            floats[R.outer_law, other] = -1.0
    seen = floats[R.segment_counts, arm]
    mean = floats[R.segment_means, arm]
    set_shared(state)
    cover_ladder(pooled(state), floats[R.outer_law], arm, weight, loss)
    ladder.update(inner, pooled(state), arm, weight, loss)
    if params.has_segments:
        scalars[S.segment_round] += 1.0  # a segment counts its own
        cover_ladder(segment(state), floats[R.outer_law], arm, weight, loss)
        ladder.update(inner, segment(state), arm, weight, loss)
        if weight > 0.0 and seen > 0.0:
            scalars[S.within] += (loss - mean) * (loss - floats[R.segment_means, arm])
            scalars[S.within_free] += 1.0
        note_segment(state)
    floats[R.absent, :] = 0.0
    scalars[S.law_known] = 0.0
    refresh(params, state)


@compiled
def cover_ladder(
    ladder_state: State, law: Floats, explored: int, weight: float, loss: float
) -> None:
    """Give a ladder's arms the baselines for this law of exploration; absent arms get the loss."""
    cover(ladder_state, law, loss)
    if weight * law[explored] > 1.0 + ROUNDING:  # a log may say that it was less likely
        limit_fall(ladder_state, explored, weight)
    ladder_state.scalars[LADDER.origin] = GIVEN
    ladder_state.scalars[LADDER.judged] = NOBODY


@compiled
def keyed_contextual(
    scalars: Floats, floats: Floats, rungs: int, inner_rungs: int, serials: Ints, key_hash: int
) -> int:
    """The arm that the key with this hash exploits: it draws the rung, and what that rung draws."""
    rung = 0
    soonest = math.inf
    for candidate in range(rungs):
        weight = scalars[S.outer_weight + candidate]
        if weight > 0.0:
            time = -math.log(key_unit(key_hash, RUNG, OUTER + candidate)) / weight
            if time < soonest:
                rung = candidate
                soonest = time
    scalars[S.served_rung] = rung
    kind = kind_of(scalars, floats, rung)
    if kind == POOLED:
        ladder_scalars = scalars[S.pooled_round : S.segment_round]
        rows = floats[:LADDER_ROWS]
        return keyed_ladder(ladder_scalars, rows, inner_rungs, serials, key_hash)
    if kind == SEGMENTS:
        ladder_scalars = scalars[S.segment_round :]
        rows = floats[LADDER_ROWS : 2 * LADDER_ROWS]
        return keyed_ladder(ladder_scalars, rows, inner_rungs, serials, key_hash)
    if kind >= ADVICE:
        arm: int = keyed_race(floats[ADVICE_AT + kind - ADVICE], serials, key_hash)
        return arm
    leader = int(scalars[S.outer_arm + rung])
    return leader if leader >= 0 else any_arm(serials, key_hash)


FUNCTIONS = Functions(init, decide, update)
