"""The contextual ladder: a ladder of all rounds, one of each segment, rules that know the context, and a hedge of these.

What is exploited does not change what is seen. So any number of rules, each a *rung*, can be judged by one exploration.
The exploration mixes an even share, the ladder of all rounds and that of the segment, so that both ladders see what they
would see by themselves, only less often.
"""

import math
from typing import Any

from ...base.arrays import Floats, Ints, Words
from ..compose import START
from ..dispatch import Functions
from ..jit import compiled
from ..order.ranked import rank_of
from ..random.keyed import RUNG, any_arm, key_unit, keyed_race
from ..random.sampling import categorical, total
from ..random.stream import below, uniform
from ..state import ROUND, State
from . import ladder
from .contextual_rungs import (
    fill_values,
    leader_of,
    note_numbers,
    note_regression,
    note_segment,
    scale_numbers,
)
from .contextual_state import (
    ABSENT,
    ADVICE,
    ADVICE_AT,
    ARM,
    CHANCE,
    ENTERING,
    HEDGE_SUM,
    KIND,
    KINDS_AT,
    LADDER_ROWS,
    LAW,
    LINEAR,
    LOSS,
    POOLED,
    POOLED_AT,
    PRIOR,
    PRIORS_AT,
    REGRET,
    SEGMENT_AT,
    SEGMENTS,
    SERVED,
    SHRUNK,
    STEP,
    WEIGHT,
    WITHIN,
    WITHIN_FREE,
    change_segment,
    ladder_params,
    pooled,
    segment,
    set_shared,
)
from .hedge import fill_hedge, hedge_step
from .ladder_rungs import drawn_rung, exploited, keyed_ladder, prepare_for
from .ladder_state import (
    ALL_ARMS,
    BASELINE,
    COUNTS,
    COVERED,
    DRIFT,
    ESTIMATES,
    ETA,
    HIGHEST,
    JUDGED,
    LARGEST,
    LEAST,
    MEANS,
    NOBODY,
    ORDER,
    PRECEDENCE,
    RANKED,
    RISE,
    SOME_ARMS,
    SURROGATE,
)
from .ladder_state import CHANCE as INNER_CHANCE
from .ladder_state import WEIGHT as INNER_WEIGHT

OUTER = 1_000  # apart from the rungs of the ladders in the draws of a key


@compiled
def init(params: Any, state: State) -> None:
    """Derive everything, or only what depends on the context, if one was just written."""
    scalars, inner = state.scalars, ladder_params(params)
    entering = scalars[ENTERING] > 0.0
    if entering:
        change_segment(int(params.numbers), state)
    set_shared(state)
    if not entering:
        ladder.init(inner, pooled(state))
        for rung in range(int(params.outer_rungs)):
            scalars[PRIOR + rung] = params[PRIORS_AT + rung]
            scalars[KIND + rung] = params[KINDS_AT + rung]
    scalars[ENTERING] = 0.0
    if params.segmented > 0.0:
        for arm in range(state.floats.shape[1]):
            state.floats[LADDER_ROWS + PRECEDENCE, arm] = state.floats[PRECEDENCE, arm]
        ladder.init(inner, segment(state))
    refresh(params, state)


@compiled
def refresh(params: Any, state: State) -> None:
    """Derive the arms of the rungs that know the context, and the weights of all rungs."""
    scalars, rungs = state.scalars, int(params.outer_rungs)
    if params.segmented > 0.0:
        fill_values(state)
    scale_numbers(params, state)
    for rung in range(rungs):
        kind = int(scalars[KIND + rung])
        if kind in (SHRUNK, LINEAR):
            scalars[ARM + rung] = leader_of(params, state, kind == LINEAR)
    rate, regret = params.outer_rate, scalars[REGRET]
    scalars[HEDGE_SUM] = fill_hedge(scalars, rungs, PRIOR, LOSS, WEIGHT, regret, rate)


@compiled
def decide(params: Any, state: State, stream: Words) -> tuple[int, int, float, float]:
    """Draw a rung and its arm to exploit, and the arm to explore."""
    scalars, arms, inner = state.scalars, state.floats.shape[1], ladder_params(params)
    if scalars[ENTERING] > 0.0:
        init(params, state)
    rung, mark = 0, uniform(stream) - scalars[WEIGHT]
    while mark > 0.0 and rung + 1 < int(params.outer_rungs):
        rung += 1
        mark -= scalars[WEIGHT + rung]
    scalars[SERVED] = rung
    exploit = played(inner, state, rung, stream)
    mark, own = uniform(stream), own_share(params)
    if mark < params.exploration:
        explore = below(arms, stream)
    elif mark < params.exploration + own:
        explore = ladder.explored(inner, pooled(state), stream)[0]
    else:
        explore = ladder.explored(inner, segment(state), stream)[0]
    share = chance_explored(params, state, explore)
    fill_chances(params, state, explore)
    return exploit, explore, 1.0 / share, share


@compiled
def own_share(params: Any) -> float:
    """The share of the exploration that each ladder has."""
    rest: float = 1.0 - params.exploration
    return 0.5 * rest if params.segmented > 0.0 else rest


@compiled
def chance_explored(params: Any, state: State, arm: int) -> float:
    """The probability with which an arm is explored."""
    own = own_share(params)
    share: float = params.exploration / state.floats.shape[1]
    share += own * ladder_share(pooled(state), arm)
    if params.segmented > 0.0:
        share += own * ladder_share(segment(state), arm)
    return share


@compiled
def ladder_share(part: State, arm: int) -> float:
    """The probability with which a ladder by itself would explore an arm."""
    rank = rank_of(part.floats[RANKED], part.ints[ORDER], part.floats[ESTIMATES, arm], arm, 0)
    share: float = ladder.share_of(part, arm, rank)
    return share


@compiled
def kind_of(scalars: Floats, floats: Floats, rung: int) -> int:
    """The kind of a rung; that of an adviser who says nothing is the ladder of all rounds."""
    kind = int(scalars[KIND + rung])
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
    leader = int(state.scalars[ARM + rung])
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
        elif scalars[ARM + rung] < 0.0:
            chance = 1.0 / state.floats.shape[1]
        else:
            chance = 1.0 if scalars[ARM + rung] == arm else 0.0
        scalars[CHANCE + rung] = chance


@compiled
def ladder_chance(inner: Any, part: State, arm: int) -> float:
    """An unbiased estimate of the probability with which a ladder exploits an arm."""
    prepare_for(inner, part, arm)
    chance = 0.0
    for rung in range(int(inner.rungs)):
        chance += part.scalars[INNER_WEIGHT + rung] * part.scalars[INNER_CHANCE + rung]
    return chance


@compiled
def update(params: Any, state: State, arm: int, weight: float, loss: float) -> None:
    """Learn a loss: the rungs' losses, the regression, the two ladders, and how much the segments differ."""
    floats, scalars, inner = state.floats, state.scalars, ladder_params(params)
    segmented, rungs = params.segmented > 0.0, int(params.outer_rungs)
    if scalars[ENTERING] > 0.0:
        scalars[ROUND] -= 1.0  # as it was before the call
        init(params, state)
        scalars[ROUND] += 1.0
    known = scalars[ROUND] > 2.0  # the first loss only sets the level
    if known and weight > 0.0 and rungs > 1:
        surprise = loss - (START + scalars[POOLED_AT + RISE])
        for rung in range(rungs):
            scalars[STEP + rung] = scalars[CHANCE + rung] * (surprise * weight)
        regret, whole = scalars[REGRET], scalars[HEDGE_SUM]
        scalars[REGRET] = hedge_step(
            scalars, rungs, PRIOR, LOSS, WEIGHT, STEP, whole, regret, params.outer_rate
        )
    if weight > 0.0 and params.numbers > 0.0:
        note_regression(params, state, arm, loss)
    note_numbers(params, state)
    for each in range(floats.shape[1]):
        floats[LAW, each] = chance_explored(params, state, each)
    seen, mean = floats[LADDER_ROWS + COUNTS, arm], floats[LADDER_ROWS + MEANS, arm]
    set_shared(state)
    cover(pooled(state), floats[LAW], floats[ABSENT], loss)
    ladder.update(inner, pooled(state), arm, weight, loss)
    if segmented:
        scalars[SEGMENT_AT + ROUND] += 1.0  # a segment counts its own
        cover(segment(state), floats[LAW], floats[ABSENT], loss)
        ladder.update(inner, segment(state), arm, weight, loss)
        if weight > 0.0 and seen > 0.0:
            scalars[WITHIN] += (loss - mean) * (loss - floats[LADDER_ROWS + MEANS, arm])
            scalars[WITHIN_FREE] += 1.0
        note_segment(state)
    floats[ABSENT, :] = 0.0
    refresh(params, state)


@compiled
def cover(part: State, law: Floats, absent: Floats, loss: float) -> None:
    """Give the arms of a ladder the baselines of its soft gate, for this law of exploration; absent ones are charged the loss.

    See `fill_baselines`, which does this for the ladder's own law.
    """
    floats, scalars, order = part.floats, part.scalars, part.ints[ORDER]
    ranked, baseline, surrogate = floats[RANKED], floats[BASELINE], floats[SURROGATE]
    mean, half_unit = START + scalars[RISE], 0.5 / scalars[ETA]
    least, lowest = min(scalars[LEAST], mean), ranked[0]
    if scalars[LARGEST] == 0.0:  # no surprise yet, so no unit to measure falls in
        half_unit = math.inf
    highest, everyone = 0.0, True
    for rank in range(len(order)):
        arm = order[rank]
        if absent[arm] > 0.0:
            baseline[arm], everyone = loss, False
        else:
            baseline[arm] = min(mean, least + law[arm] * (half_unit + 0.5 * (ranked[rank] - lowest)))
            highest = max(highest, baseline[arm])
    drift = 0.0
    for rank in range(len(order)):
        if absent[order[rank]] == 0.0:
            drift += surrogate[rank] * surrogate[rank] * (highest - baseline[order[rank]])
    scalars[HIGHEST], scalars[DRIFT], scalars[JUDGED] = highest, drift, NOBODY
    scalars[COVERED] = ALL_ARMS if everyone else SOME_ARMS


@compiled
def keyed_contextual(
    scalars: Floats, floats: Floats, rungs: int, inner_rungs: int, serials: Ints, key: int
) -> int:
    """The arm that a key exploits: the key draws the rung, and what that rung draws."""
    rung, soonest = 0, math.inf
    for each in range(rungs):
        if scalars[WEIGHT + each] > 0.0:
            time = -math.log(key_unit(key, RUNG, OUTER + each)) / scalars[WEIGHT + each]
            if time < soonest:
                rung, soonest = each, time
    scalars[SERVED] = rung
    kind = kind_of(scalars, floats, rung)
    if kind == POOLED:
        part, rows = scalars[POOLED_AT:SEGMENT_AT], floats[:LADDER_ROWS]
        return keyed_ladder(part, rows, inner_rungs, serials, key)
    if kind == SEGMENTS:
        part, rows = scalars[SEGMENT_AT:], floats[LADDER_ROWS : 2 * LADDER_ROWS]
        return keyed_ladder(part, rows, inner_rungs, serials, key)
    if kind >= ADVICE:
        arm: int = keyed_race(floats[ADVICE_AT + kind - ADVICE], serials, key)
        return arm
    leader = int(scalars[ARM + rung])
    return leader if leader >= 0 else any_arm(serials, key)


FUNCTIONS = Functions(init, decide, update)
