"""The rungs of the ladder: which one plays, which arm it exploits, and what its loss is estimated to be."""

from typing import Any

from ...base.arrays import Words
from ..jit import compiled
from ..order.ranked import rank_of
from ..random.hashed import key_with
from ..random.sampling import pareto_leader, total
from ..random.stream import below, uniform
from ..state import State
from .hedge import hedge_step
from .ladder_state import (
    ALL_ARMS,
    BASELINE,
    COVERED,
    ESTIMATES,
    ETA,
    FOLLOW,
    HIGHEST,
    LEADER,
    LOSS,
    ORDER,
    RANKED,
    RATE,
    REGRET,
    STEP,
    WEIGHT,
    state_key,
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
