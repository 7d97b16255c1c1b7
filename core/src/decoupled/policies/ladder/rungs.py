"""The rungs of the ladder: which one plays, which arm it exploits, and its estimated loss.

AdaHedge weighs the rungs by their estimated losses. The weights are proportional to prior *
exp(-rate * loss), with rate = `hedge_rate` / regret, where regret is the sum of the mixability gaps
so far. While it is 0, the rungs with the smallest loss share the weight. Losses may have any sign
and scale.

De Rooij, S., van Erven, T., Grunwald, P. D. and Koolen, W. M. (2014). Follow the leader if you can,
hedge if you must. JMLR 15.

What an explored arm says of a rung depends on its *strongest rival*: the perturbed leader among all
other arms.
"""

import math

import numpy as np

from ...base.arrays import Floats, Ints, Words
from ...kernels.jit import compiled
from ...kernels.order.ranked import rank_of
from ...kernels.powers import inverse_power, power
from ...kernels.random.keyed import RUNG, any_arm, key_unit, leader_at
from ...kernels.random.sampling import RARE, failures_before, pareto_leader, total
from ...kernels.random.stream import below, hashed_unit, key_with, scrambled, uniform
from ...kernels.state import EVENTS, SECRET, State
from .state import ALL_ARMS, ALPHA, BY_MEAN, START, N, Params, R, S

# In place of a regret of 0: the rate is then so large that only the best rungs have weight.
SMALLEST_REGRET = 1e-200


@compiled
def fill_hedge(
    scalars: Floats,
    rungs: int,
    prior: int,
    loss: int,
    weight: int,
    regret: float,
    hedge_rate: float,
) -> float:
    """Fill the weights of the rungs and return their sum before scaling, which `hedge_step` takes.

    Priors, losses and weights begin at these places of the scalars.
    """
    least = math.inf
    for m in range(rungs):
        least = min(scalars[loss + m], least)
    rate = hedge_rate / max(regret, SMALLEST_REGRET)
    mass = 0.0
    for m in range(rungs):
        share = scalars[prior + m] * math.exp(-rate * (scalars[loss + m] - least))
        scalars[weight + m] = share
        mass += share
    inverse = 1.0 / mass
    for m in range(rungs):
        scalars[weight + m] *= inverse
    return mass


@compiled
def hedge_step(
    scalars: Floats,
    rungs: int,
    prior: int,
    loss: int,
    weight: int,
    step: int,
    mass: float,
    regret: float,
    hedge_rate: float,
) -> float:
    """Add the rungs' losses of this round, at place `step`, and return the new regret.

    The mix loss comes from the summed losses. From the weights it would be wrong: a rung whose
    weight is too small for a float would be missing from the sum, even if it overtakes all others
    with this step.
    """
    mean = 0.0
    before = math.inf
    after = math.inf
    for m in range(rungs):
        mean += scalars[weight + m] * scalars[step + m]
        before = min(before, scalars[loss + m])
        scalars[loss + m] += scalars[step + m]
        after = min(after, scalars[loss + m])
    rate = hedge_rate / max(regret, SMALLEST_REGRET)
    shifted = 0.0
    for m in range(rungs):
        shifted += scalars[prior + m] * math.exp(-rate * (scalars[loss + m] - after))
    mixed = after - before - math.log(shifted / mass) / rate
    return regret + max(mean - mixed, 0.0)


@compiled
def hashed_pareto_excess(alpha: float, key: np.uint64, count: int) -> float:
    """A Pareto(alpha) draw less 1."""
    if alpha == 3.0 or alpha == 2.0:
        largest = max(hashed_unit(key, count), hashed_unit(key, count + 1))
        if alpha == 3.0:
            largest = max(largest, hashed_unit(key, count + 2))
        return (1.0 - largest) / largest
    return float(hashed_unit(key, count) ** (-1.0 / alpha) - 1.0)


@compiled
def strongest_rival(
    ranked: Floats, rank: int, eta: float, alpha: float, key: np.uint64
) -> tuple[int, float]:
    """The rank of the perturbed leader among all other arms, and by how much it beats 1.

    `rank` is the rank of the arm that is left out.

    The score of an arm is its Pareto(alpha) draw less eta times its gap to the best arm other than
    that at `rank`. The search is that of `pareto_leader`, where its comments are, but the winner's
    score is needed too.
    """
    arms = len(ranked)
    first = 1 if rank == 0 else 0
    lowest = ranked[first]
    best = 0.0
    leader = -1
    place = first + 1
    used = 0
    while place < arms:
        if place == rank:
            place += 1
            continue
        shift = eta * (ranked[place] - lowest)
        rarity = power(best + shift, alpha)
        mark = hashed_unit(key, used)
        used += 1
        bound = 1.0
        if rarity > RARE:
            if not (1.0 - mark) * rarity < arms - place:
                break
            place += failures_before(mark, rarity, arms)
            if place >= arms:
                break
            if place == rank:  # a place without a rival: nobody was found there
                place += 1
                continue
            bound = rarity
            shift = eta * (ranked[place] - lowest)
            rarity = power(best + shift, alpha)
            mark = hashed_unit(key, used)
            used += 1
        while leader < place and mark * rarity <= bound:
            excess = hashed_pareto_excess(alpha, key, used)
            used += 3
            if leader < 0:
                leader = first
                best = excess
                rarity = power(best + shift, alpha)
            else:
                leader = place
                best += (1.0 + (best + shift)) * excess
        place += 1
    if leader < 0:
        return first, hashed_pareto_excess(alpha, key, used)
    return leader, best


@compiled
def chance_against(
    ranked: Floats, rank: int, eta: float, alpha: float, key: np.uint64
) -> tuple[float, int]:
    """The chance that the arm at `rank` wins, given all other draws, and the rank of its rival.

    Its mean over the draws is the arm's probability of being the perturbed leader.
    """
    if len(ranked) == 1:
        return 1.0, rank
    rival, excess = strongest_rival(ranked, rank, eta, alpha, key)
    lowest = ranked[1] if rank == 0 else ranked[0]
    needed = excess + eta * (ranked[rank] - lowest)
    return (1.0 if needed <= 0.0 else inverse_power(needed, alpha)), rival


@compiled
def event_key(state: State) -> np.uint64:
    """A key for the judge's draws, from the seed's secret, the event and what was learned.

    No two events have the same key: the draws of a decision must be news to the weights that learn
    from it, also if the state is that of another decision, of another segment, or of before a
    restart. (A record of a log has half an event.)
    """
    scalars = state.scalars
    secret = scrambled(np.uint64(int(scalars[SECRET])))
    key = scrambled(secret ^ np.uint64(int(2.0 * scalars[EVENTS])))
    return key_with(key_with(key, START + scalars[S.rise]), scalars[S.spread])


@compiled
def draw_rung(params: Params, state: State, stream: Words) -> int:
    """A rung, drawn by its weight."""
    rung = 0
    if params.rungs > 1:
        mark = uniform(stream) - state.scalars[S.rung_weight]
        while mark > 0.0 and rung + 1 < params.rungs:
            rung += 1
            mark -= state.scalars[S.rung_weight + rung]
    return rung


@compiled
def leader_of_rung(scalars: Floats, rate: float) -> int:
    """The leader that a rung on means exploits; -1 if no arm was seen."""
    return int(scalars[S.leader if rate == BY_MEAN else S.recent_leader])


@compiled
def draw_exploited(state: State, rung: int, stream: Words) -> int:
    """The arm that a rung exploits."""
    ranked = state.floats[R.ranked]
    order = state.ints[N.order]
    scalars = state.scalars
    rate = scalars[S.rung_rate + rung]
    if rate < 0.0:
        leader = leader_of_rung(scalars, rate)
        return leader if leader >= 0 else below(len(order), stream)
    arm: int = order[pareto_leader(ranked, scalars[S.eta] * rate, ALPHA, stream)]
    return arm


@compiled
def prepare_judging(params: Params, state: State, arm: int, rank: int) -> None:
    """Draw the strongest rivals of an explored arm, and store what the rungs will be judged with.

    A rung that plays w has the loss <w, loss>. With W the probability of the explored arm under w,
    or an unbiased estimate of it, W * (loss - b) / p + <w, b> is an unbiased estimate of that. The
    chance is W, and the offset <w, b> less the highest baseline. They belong to the state of the
    decision, as the baseline of the explored arm: when a late loss arrives, other laws play. One
    event in one state gives the same draws again, so it does not matter whether this is called once
    or more often.
    """
    scalars = state.scalars
    order = state.ints[N.order]
    ranked = state.floats[R.ranked]
    baseline = state.floats[R.baseline]
    key = key_with(event_key(state), float(arm))
    for rung in range(params.rungs):
        rate = scalars[S.rung_rate + rung]
        if rate < 0.0:
            leader = leader_of_rung(scalars, rate)
            if leader >= 0:
                chance = 1.0 if arm == leader else 0.0
                mean_baseline = baseline[leader]
            else:
                chance = 1.0 / len(order)
                mean_baseline = total(baseline) / len(order)
        else:
            chance, rival = chance_against(ranked, rank, scalars[S.eta] * rate, ALPHA, key)
            mean_baseline = chance * baseline[arm] + (1.0 - chance) * baseline[order[rival]]
        scalars[S.rung_chance + rung] = chance
        scalars[S.rung_offset + rung] = mean_baseline - scalars[S.highest]
    scalars[S.judged] = arm
    scalars[S.own_baseline] = baseline[arm]


@compiled
def prepare_for(params: Params, state: State, arm: int) -> None:
    """Find the rank of an arm, and do what `prepare_judging` does."""
    rank = rank_of(
        state.floats[R.ranked], state.ints[N.order], state.floats[R.estimates, arm], arm, 0
    )
    prepare_judging(params, state, arm, rank)


@compiled
def judge_rungs(params: Params, state: State, arm: int, weight: float, loss: float) -> None:
    """Let the hedge learn every rung's estimated loss, less the highest baseline."""
    scalars = state.scalars
    rungs = params.rungs
    if rungs == 1 or scalars[S.covered] != ALL_ARMS:
        return
    if scalars[S.judged] != arm:
        prepare_for(params, state, arm)
    surprise = (loss - scalars[S.own_baseline]) * weight
    for rung in range(rungs):
        scalars[S.rung_step + rung] = (
            scalars[S.rung_chance + rung] * surprise + scalars[S.rung_offset + rung]
        )
    scalars[S.hedge_regret] = hedge_step(
        scalars,
        rungs,
        S.rung_prior,
        S.rung_loss,
        S.rung_weight,
        S.rung_step,
        scalars[S.hedge_sum],
        scalars[S.hedge_regret],
        params.hedge_rate,
    )


@compiled
def keyed_ladder(scalars: Floats, floats: Floats, rungs: int, serials: Ints, key_hash: int) -> int:
    """The arm that a key exploits.

    The key draws the rung and the perturbations, and any arm while none was seen.
    """
    rung = 0
    soonest = math.inf
    for candidate in range(rungs):
        weight = scalars[S.rung_weight + candidate]
        if weight > 0.0:
            time = -math.log(key_unit(key_hash, RUNG, candidate)) / weight
            if time < soonest:
                rung = candidate
                soonest = time
    rate = scalars[S.rung_rate + rung]
    if rate >= 0.0:
        return leader_at(floats[R.estimates], scalars[S.eta] * rate, ALPHA, serials, key_hash)
    leader = leader_of_rung(scalars, rate)
    return leader if leader >= 0 else any_arm(serials, key_hash)
