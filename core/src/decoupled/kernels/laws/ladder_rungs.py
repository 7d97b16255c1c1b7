"""The rungs of the ladder: which one plays, which arm it exploits, and what its loss is estimated to be."""

import math
from typing import Any

from ...base.arrays import Floats, Ints, Words
from ..jit import compiled
from ..order.ranked import rank_of
from ..random.hashed import key_with
from ..random.keyed import RUNG, any_arm, key_unit, leader_at
from ..random.sampling import pareto_leader, total
from ..random.stream import below, uniform
from ..state import State
from .hedge import hedge_step
from .ladder_state import (
    ALL_ARMS,
    ALPHA,
    BASELINE,
    CHANCE,
    COVERED,
    ESTIMATES,
    ETA,
    HEDGE_SUM,
    HIGHEST,
    JUDGED,
    LEADER,
    LOSS,
    OFFSET,
    ORDER,
    PRIOR,
    RANKED,
    RATE,
    REGRET,
    STEP,
    WEIGHT,
    event_key,
)
from .rival import chance_against


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
def exploited(state: State, rung: int, stream: Words) -> int:
    """The arm that a rung exploits."""
    ranked, order, scalars = state.floats[RANKED], state.ints[ORDER], state.scalars
    rate = scalars[RATE + rung]
    if rate < 0.0:
        leader = int(scalars[LEADER])
        return leader if leader >= 0 else below(len(order), stream)
    arm: int = order[pareto_leader(ranked, scalars[ETA] * rate, ALPHA, stream)]
    return arm


@compiled
def prepare_judging(params: Any, state: State, arm: int, rank: int) -> None:
    """Draw the strongest rivals of an explored arm, and store what the rungs will be judged with.

    A rung that plays w has the loss <w, loss>. With W the probability of the explored arm under w, or an unbiased
    estimate of it, W * (loss - b) / p + <w, b> is an unbiased estimate of that. The chance is W, and the offset <w, b>
    less the highest baseline. They belong to the state of the decision: when a late loss arrives, other laws play. One
    event in one state gives the same draws again, so it does not matter whether this is called once or more often.
    """
    scalars, order = state.scalars, state.ints[ORDER]
    ranked, baseline = state.floats[RANKED], state.floats[BASELINE]
    key = key_with(event_key(state), float(arm))
    for rung in range(int(params.rungs)):
        rate = scalars[RATE + rung]
        if rate < 0.0:
            leader = int(scalars[LEADER])
            if leader >= 0:
                chance, mean_baseline = (1.0 if arm == leader else 0.0), baseline[leader]
            else:
                chance, mean_baseline = 1.0 / len(order), total(baseline) / len(order)
        else:
            chance, rival = chance_against(ranked, rank, scalars[ETA] * rate, ALPHA, key)
            mean_baseline = chance * baseline[arm] + (1.0 - chance) * baseline[order[rival]]
        scalars[CHANCE + rung] = chance
        scalars[OFFSET + rung] = mean_baseline - scalars[HIGHEST]
    scalars[JUDGED] = arm


@compiled
def prepare_for(params: Any, state: State, arm: int) -> None:
    """Do the same for an arm whose rank is not at hand."""
    rank = rank_of(state.floats[RANKED], state.ints[ORDER], state.floats[ESTIMATES, arm], arm, 0)
    prepare_judging(params, state, arm, rank)


@compiled
def judge_rungs(params: Any, state: State, arm: int, weight: float, surprise: float) -> None:
    """Let the hedge learn every rung's estimated loss, less the highest baseline."""
    scalars, rungs = state.scalars, int(params.rungs)
    if rungs == 1 or scalars[COVERED] != ALL_ARMS:
        return
    if scalars[JUDGED] != arm:
        prepare_for(params, state, arm)
    for rung in range(rungs):
        scalars[STEP + rung] = scalars[CHANCE + rung] * (surprise * weight) + scalars[OFFSET + rung]
    regret, whole = scalars[REGRET], scalars[HEDGE_SUM]
    scalars[REGRET] = hedge_step(
        scalars, rungs, PRIOR, LOSS, WEIGHT, STEP, whole, regret, params.hedge_rate
    )


@compiled
def keyed_ladder(scalars: Floats, floats: Floats, rungs: int, serials: Ints, key: int) -> int:
    """The arm that a key exploits: the key draws the rung and the perturbations, and any arm while none was seen."""
    rung, soonest = 0, math.inf
    for each in range(rungs):
        if scalars[WEIGHT + each] > 0.0:
            time = -math.log(key_unit(key, RUNG, each)) / scalars[WEIGHT + each]
            if time < soonest:
                rung, soonest = each, time
    rate = scalars[RATE + rung]
    if rate >= 0.0:
        return leader_at(floats[ESTIMATES], scalars[ETA] * rate, ALPHA, serials, key)
    leader = int(scalars[LEADER])
    return leader if leader >= 0 else any_arm(serials, key)
