"""The contextual ladder: a ladder of all rounds, one of each segment, rules that know the context, and a hedge of these.

What is exploited does not change what is seen. So any number of rules, each a *rung*, can be judged by one exploration.
The exploration mixes an even share, the ladder of all rounds and that of the segment, so that both ladders see what they
would see by themselves, only less often. With many arms an even share is expensive. So with more than two, the even share
and that of the segment are small until the rungs that know the context have earned weight.
"""

import math
from typing import Any

from ...base.arrays import Floats, Ints, Words
from ..compose import START
from ..dispatch import Functions
from ..jit import compiled
from ..random.keyed import RUNG, any_arm, key_unit, keyed_race
from ..random.sampling import categorical, total
from ..random.stream import below, uniform
from ..state import ROUND, State
from . import ladder
from .contextual_state import (
    ADVICE,
    ADVICE_AT,
    KINDS_AT,
    LADDER_ROWS,
    LINEAR,
    POOLED,
    PRIORS_AT,
    SEGMENTS,
    SHRUNK,
    R,
    S,
    change_segment,
    fill_values,
    ladder_params,
    leader_of,
    note_numbers,
    note_regression,
    note_segment,
    pooled,
    scale_numbers,
    segment,
    set_shared,
)
from .ladder_rungs import drawn_rung, exploited, fill_hedge, hedge_step, keyed_ladder, prepare_for
from .ladder_state import GIVEN, NOBODY, cover, limit_fall
from .ladder_state import S as LADDER

OUTER = 1_000  # apart from the rungs of the ladders in the draws of a key
ROUNDING = 1e-9  # a decision's weight times the probability in its own state is 1, up to this


@compiled
def init(params: Any, state: State) -> None:
    """Derive everything, or only what depends on the context, if one was just written."""
    scalars, inner = state.scalars, ladder_params(params)
    entering = scalars[S.entering] > 0.0
    if entering:
        change_segment(int(params.numbers), state)
    set_shared(state)
    if not entering:
        ladder.init(inner, pooled(state))
        fill_priors(params, state)
    scalars[S.entering] = 0.0
    if params.segmented > 0.0:
        for arm in range(state.floats.shape[1]):
            state.floats[R.segment_precedence, arm] = state.floats[R.precedence, arm]
        ladder.init(inner, segment(state))
    refresh(params, state)


@compiled
def fill_priors(params: Any, state: State) -> None:
    """Fill the kinds of the rungs and their priors: the more arms there are, the more the pooled ladder is trusted."""
    scalars, rungs, whole = state.scalars, int(params.outer_rungs), 0.0
    for rung in range(rungs):
        kind, prior = params[KINDS_AT + rung], params[PRIORS_AT + rung]
        if kind == POOLED:
            prior /= least_earned(state)
        scalars[S.outer_kind + rung], scalars[S.outer_prior + rung] = kind, prior
        whole += prior
    for rung in range(rungs):
        scalars[S.outer_prior + rung] /= whole


@compiled
def least_earned(state: State) -> float:
    """The share of `uniform_share`, and of a segment's, that is there from the start: 2 / K."""
    share: float = min(1.0, 2.0 / state.floats.shape[1])
    return share


@compiled
def fill_shares(params: Any, state: State) -> None:
    """Fill the shares of the exploration, from the weight that the rungs that know the context have earned."""
    scalars = state.scalars
    left = (
        scalars[S.outer_weight] / scalars[S.outer_prior]
    )  # of the pooled rung's trust; it is the first
    earned = max(1.0 - left, least_earned(state))
    scalars[S.outer_even] = params.exploration * earned
    rest = 1.0 - scalars[S.outer_even]
    scalars[S.segment_share] = 0.5 * earned * rest if params.segmented > 0.0 else 0.0
    scalars[S.pooled_share] = (1.0 - 0.5 * earned) * rest if params.segmented > 0.0 else rest


@compiled
def refresh(params: Any, state: State) -> None:
    """Derive the arms of the rungs that know the context, the weights of all rungs, and the shares of the exploration."""
    scalars, rungs = state.scalars, int(params.outer_rungs)
    if params.segmented > 0.0:
        fill_values(state)
    scale_numbers(params, state)
    for rung in range(rungs):
        kind = int(scalars[S.outer_kind + rung])
        if kind in (SHRUNK, LINEAR):
            scalars[S.outer_arm + rung] = leader_of(params, state, kind == LINEAR)
    rate, regret = params.outer_rate, scalars[S.outer_regret]
    scalars[S.outer_sum] = fill_hedge(
        scalars, rungs, S.outer_prior, S.outer_loss, S.outer_weight, regret, rate
    )
    fill_shares(params, state)


@compiled
def decide(params: Any, state: State, stream: Words) -> tuple[int, int, float, float]:
    """Draw a rung and its arm to exploit, and the arm to explore."""
    scalars, arms, inner = state.scalars, state.floats.shape[1], ladder_params(params)
    if scalars[S.entering] > 0.0:
        init(params, state)
    rung, mark = 0, uniform(stream) - scalars[S.outer_weight]
    while mark > 0.0 and rung + 1 < int(params.outer_rungs):
        rung += 1
        mark -= scalars[S.outer_weight + rung]
    scalars[S.served_rung] = rung
    exploit = played(inner, state, rung, stream)
    mark = uniform(stream)
    if mark < scalars[S.outer_even]:
        explore = below(arms, stream)
    elif mark < scalars[S.outer_even] + scalars[S.pooled_share]:
        explore = ladder.explored(inner, pooled(state), stream)[0]
    else:
        explore = ladder.explored(inner, segment(state), stream)[0]
    fill_law(state)
    share = state.floats[R.outer_law, explore]
    fill_chances(params, state, explore)
    return exploit, explore, 1.0 / share, share


@compiled
def fill_law(state: State) -> None:
    """Fill the law of exploration, which a decision keeps: feedback may come when another law explores."""
    floats, scalars, arms = state.floats, state.scalars, state.floats.shape[1]
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
def played(inner: Any, state: State, rung: int, stream: Words) -> int:
    """The arm that a rung exploits."""
    kind = kind_of(state.scalars, state.floats, rung)
    if kind in (POOLED, SEGMENTS):
        part = pooled(state) if kind == POOLED else segment(state)
        arm: int = exploited(part, drawn_rung(inner, part, stream), stream)
        return arm
    if kind >= ADVICE:
        return categorical(state.floats[ADVICE_AT + kind - ADVICE], 1.0, stream)
    leader = int(state.scalars[S.outer_arm + rung])
    return leader if leader >= 0 else below(state.floats.shape[1], stream)


@compiled
def fill_chances(params: Any, state: State, arm: int) -> None:
    """Store the probability of an explored arm under each rung, or an unbiased estimate of it."""
    scalars, inner = state.scalars, ladder_params(params)
    set_shared(state)
    for rung in range(int(params.outer_rungs)):
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
def ladder_chance(inner: Any, part: State, arm: int) -> float:
    """An unbiased estimate of the probability with which a ladder exploits an arm."""
    prepare_for(inner, part, arm)
    chance = 0.0
    for rung in range(int(inner.rungs)):
        chance += part.scalars[LADDER.rung_weight + rung] * part.scalars[LADDER.rung_chance + rung]
    return chance


@compiled
def update(params: Any, state: State, arm: int, weight: float, loss: float) -> None:
    """Learn a loss: the rungs' losses, the regression, the two ladders, and how much the segments differ."""
    floats, scalars, inner = state.floats, state.scalars, ladder_params(params)
    segmented, rungs = params.segmented > 0.0, int(params.outer_rungs)
    if scalars[S.entering] > 0.0:
        scalars[ROUND] -= 1.0  # as it was before the call
        init(params, state)
        scalars[ROUND] += 1.0
    known = scalars[ROUND] > 2.0  # the first loss only sets the level
    if known and weight > 0.0 and rungs > 1:
        surprise = loss - (START + scalars[S.rise])
        for rung in range(rungs):
            scalars[S.outer_step + rung] = scalars[S.outer_chance + rung] * (surprise * weight)
        regret, whole = scalars[S.outer_regret], scalars[S.outer_sum]
        scalars[S.outer_regret] = hedge_step(
            scalars,
            rungs,
            S.outer_prior,
            S.outer_loss,
            S.outer_weight,
            S.outer_step,
            whole,
            regret,
            params.outer_rate,
        )
    if weight > 0.0 and params.numbers > 0.0:
        note_regression(params, state, arm, loss)
    note_numbers(params, state)
    if scalars[S.law_known] == 0.0:  # from a log
        fill_law(state)
    for each in range(floats.shape[1]):
        if floats[R.absent, each] > 0.0:
            floats[R.outer_law, each] = -1.0
    seen, mean = (
        floats[R.segment_counts, arm],
        floats[R.segment_means, arm],
    )
    set_shared(state)
    cover_part(pooled(state), floats[R.outer_law], arm, weight, loss)
    ladder.update(inner, pooled(state), arm, weight, loss)
    if segmented:
        scalars[S.segment_round] += 1.0  # a segment counts its own
        cover_part(segment(state), floats[R.outer_law], arm, weight, loss)
        ladder.update(inner, segment(state), arm, weight, loss)
        if weight > 0.0 and seen > 0.0:
            scalars[S.within] += (loss - mean) * (loss - floats[R.segment_means, arm])
            scalars[S.within_free] += 1.0
        note_segment(state)
    floats[R.absent, :], scalars[S.law_known] = 0.0, 0.0
    refresh(params, state)


@compiled
def cover_part(part: State, law: Floats, explored: int, weight: float, loss: float) -> None:
    """Give the arms of a ladder the baselines for this law of exploration; absent ones are charged the loss."""
    cover(part, law, loss)
    if weight * law[explored] > 1.0 + ROUNDING:  # a log may say that it was less likely
        limit_fall(part, explored, weight)
    part.scalars[LADDER.origin], part.scalars[LADDER.judged] = GIVEN, NOBODY


@compiled
def keyed_contextual(
    scalars: Floats, floats: Floats, rungs: int, inner_rungs: int, serials: Ints, key: int
) -> int:
    """The arm that a key exploits: the key draws the rung, and what that rung draws."""
    rung, soonest = 0, math.inf
    for each in range(rungs):
        if scalars[S.outer_weight + each] > 0.0:
            time = -math.log(key_unit(key, RUNG, OUTER + each)) / scalars[S.outer_weight + each]
            if time < soonest:
                rung, soonest = each, time
    scalars[S.served_rung] = rung
    kind = kind_of(scalars, floats, rung)
    if kind == POOLED:
        part, rows = scalars[S.pooled_round : S.segment_round], floats[:LADDER_ROWS]
        return keyed_ladder(part, rows, inner_rungs, serials, key)
    if kind == SEGMENTS:
        part, rows = scalars[S.segment_round :], floats[LADDER_ROWS : 2 * LADDER_ROWS]
        return keyed_ladder(part, rows, inner_rungs, serials, key)
    if kind >= ADVICE:
        arm: int = keyed_race(floats[ADVICE_AT + kind - ADVICE], serials, key)
        return arm
    leader = int(scalars[S.outer_arm + rung])
    return leader if leader >= 0 else any_arm(serials, key)


FUNCTIONS = Functions(init, decide, update)
