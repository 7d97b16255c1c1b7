"""The round loops with late, lost, rare, altered or judged feedback: see `simulation.traffic` for the rules in words.

A pending decision keeps what its update needs: the explored arm, its weight, the reported loss, and what the state held
for it when it was made (the rows in `Late.kept`). The slots of a ring hold the pending decisions, as many as
the longest delay can have. Each slot also heads the list of those that arrive in its round, the oldest first.

The random numbers of these rules are addressed by round and purpose instead of drawn in a row, so no rule moves the
numbers of another, and none touches the losses or the policy's draws.
"""

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..base.arrays import Floats, Ints, Words
from .dispatch import Memory, decide, fill_losses, init, note_play, update
from .jit import compiled, translate
from .random.sampling import BERNOULLI, draw_loss
from .random.stream import scrambled, unit
from .rounds import EXPLOITED, EXPLORED, Table, count
from .state import EVENTS, State

CONSTANT, GEOMETRIC, UNIFORM = range(3)  # laws of the delay
EXACT, FLIP, NOISE, SCALE = range(4)  # how losses are reported

# What a random number is for, and how many numbers a round has. The last two are for the judge and the label's coin if
# there is a judge.
_SLICE, _MISSING, _DELAY, _REPORT, _REPORT_TOO, _PURPOSES = range(6)

# Columns of a slot's floats and ints; what is kept of the state follows.
_WEIGHT, _LOSS, _JUDGED, _LABEL, OWN_FLOATS = range(5)
_ARM, _NEXT, _FIRST, _LAST, OWN_INTS = range(5)
_NOBODY = -1
_NO_LABEL = -1.0

# What labels say: how many there are, and sums of judged loss s, label g, s^2 and s g. Then how many decisions there were.
_DECISIONS, TOLD = 5, 6

_HEAD = 3  # numbers before the places in `kept`

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ONE = np.uint64(1)


class Rules(NamedTuple):
    """The numbers of a `Traffic`, for compiled code."""

    law: int
    low: int  # the constant delay, or the lowest
    span: int  # how many delays a uniform law has
    tail: float  # the logarithm of the chance that a geometric delay goes on for another round
    missing: float
    share: float
    report: int
    first: float  # probability, standard deviation or factor
    second: float  # shift
    judged: bool
    label_share: float  # 0 without labels
    first_labels: int
    label_delay: int
    width: float  # of the range of what is learned


class Late(NamedTuple):
    """The rules of one run, and room for its pending decisions."""

    rules: Rules
    kept: Ints  # three counts, then the places of scalars, rows of floats and rows of ints
    floats: Floats  # slots x columns
    ints: Ints
    key: Words
    judge: Floats  # arms x 2: the chance that the judged loss is 1 if the true one is 0, and if it is 1
    told: Floats  # what labels say so far


@compiled
def mark_at(key: Words, t: int, purpose: int) -> float:
    """The random number of a round for one purpose, uniform in (0, 1]."""
    counter = np.uint64(t) * np.uint64(_PURPOSES) + np.uint64(purpose) + _ONE
    return unit(scrambled(scrambled(key[0] + counter * _GOLDEN) ^ key[1]))


@compiled
def explores(rules: Rules, key: Words, t: int) -> bool:
    """Whether the round is one that explores."""
    return mark_at(key, t, _SLICE) <= rules.share


@compiled
def is_lost(rules: Rules, key: Words, t: int) -> bool:
    """Whether the feedback of the round never arrives."""
    return mark_at(key, t, _MISSING) <= rules.missing


@compiled
def delay_at(rules: Rules, key: Words, t: int) -> int:
    """By how many rounds the feedback of the round is late."""
    if rules.law == CONSTANT:
        return rules.low
    mark = mark_at(key, t, _DELAY)
    if rules.law == UNIFORM:
        return rules.low + min(int((1.0 - mark) * rules.span), rules.span - 1)
    return int(math.log(mark) / rules.tail)


@compiled
def reported_at(rules: Rules, key: Words, t: int, loss: float) -> float:
    """What is reported of a loss."""
    if rules.report == EXACT:
        return loss
    if rules.report == FLIP:
        return 1.0 - loss if mark_at(key, t, _REPORT) <= rules.first else loss
    if rules.report == NOISE:
        radius = math.sqrt(-2.0 * math.log(mark_at(key, t, _REPORT)))
        loss += rules.first * (radius * math.cos(2.0 * math.pi * mark_at(key, t, _REPORT_TOO)))
    else:
        loss = rules.first * loss + rules.second
    return min(max(loss, 0.0), 1.0)


@compiled
def _judged_at(late: Late, slot: int, t: int, arm: int, loss: float) -> int:
    """Keep what is learned from a judge, and perhaps a label, as a learner with labels does; return by how much it is later.

    All but the label is fixed by the decision, so that what is learned is worked out now.
    """
    rules, key, floats, told = late.rules, late.key, late.floats, late.told
    low, high = late.judge[arm, 0], late.judge[arm, 1]
    judged = 1.0 if mark_at(key, t, _REPORT) <= low + loss * (high - low) else 0.0
    floats[slot, _LOSS] = judged
    if rules.label_share == 0.0:
        return 0
    told[_DECISIONS] += 1.0
    rho = 1.0 if told[_DECISIONS] <= rules.first_labels else rules.label_share
    # The line through past labels, as `decision.fit_line` has it.
    count, s, g, ss, sg = (
        told[0] + 20.0,
        told[1] + 10.0,
        told[2] + 10.0,
        told[3] + 10.0,
        told[4] + 10.0,
    )
    lam = min(max((count * sg - s * g) / (count * ss - s * s), 0.0), 1.0)
    found = min(max((g - lam * s) / count, 0.0), 1.0 - lam) + lam * judged
    wanted = mark_at(key, t, _REPORT_TOO) <= rho
    if wanted:
        found += (loss - found) / rho
        floats[slot, _JUDGED] = judged
        floats[slot, _LABEL] = loss
    floats[slot, _LOSS] = min(max(0.5 + (found - 0.5) / rules.width, 0.0), 1.0)
    return rules.label_delay if wanted else 0


@compiled
def clear(late: Late) -> None:
    """Forget the pending decisions of an earlier run, and what labels said."""
    if late.rules.judged:
        late.told[:] = 0.0
    for slot in range(late.ints.shape[0]):
        late.ints[slot, _FIRST] = _NOBODY
        late.ints[slot, _LAST] = _NOBODY


@compiled
def _copy(state: State, late: Late, slot: int, keep: bool) -> None:
    """Keep what the update of a decision will need of the state, or write it back where the update reads it."""
    kept, arms = late.kept, state.floats.shape[1]
    scalars, floats, ints = kept[0], kept[1], kept[2]
    column = OWN_FLOATS
    for place in kept[_HEAD : _HEAD + scalars]:
        if keep:
            late.floats[slot, column] = state.scalars[place]
        else:
            state.scalars[place] = late.floats[slot, column]
        column += 1
    for place in kept[_HEAD + scalars : _HEAD + scalars + floats]:
        for arm in range(arms):
            if keep:
                late.floats[slot, column + arm] = state.floats[place, arm]
            else:
                state.floats[place, arm] = late.floats[slot, column + arm]
        column += arms
    column = OWN_INTS
    for place in kept[_HEAD + scalars + floats : _HEAD + scalars + floats + ints]:
        for arm in range(arms):
            if keep:
                late.ints[slot, column + arm] = state.ints[place, arm]
            else:
                state.ints[place, arm] = late.ints[slot, column + arm]
        column += arms


@compiled
def _wait(state: State, late: Late, t: int, arm: int, weight: float, loss: float) -> None:
    """Put the decision of round t into the list of the round in which its feedback arrives, if it does."""
    rules, key, ints = late.rules, late.key, late.ints
    slots = ints.shape[0]
    slot, delay = t % slots, 0
    late.floats[slot, _WEIGHT] = weight
    late.floats[slot, _LABEL] = _NO_LABEL
    if rules.judged:
        delay = _judged_at(late, slot, t, arm, loss)
    else:
        late.floats[slot, _LOSS] = reported_at(rules, key, t, loss)
    if is_lost(rules, key, t):
        return
    delay += delay_at(rules, key, t)
    if delay >= slots:  # after the last round
        return
    arrival = (t + delay) % slots
    ints[slot, _ARM] = arm
    ints[slot, _NEXT] = _NOBODY
    _copy(state, late, slot, True)
    if ints[arrival, _LAST] == _NOBODY:
        ints[arrival, _FIRST] = slot
    else:
        ints[ints[arrival, _LAST], _NEXT] = slot
    ints[arrival, _LAST] = slot


# Not cached on disk by itself: the parameters may be a user's, which no other process can load.
@partial(translate, keep=False, counting=False)
def learn_arrived(params: Any, state: State, late: Late, t: int) -> None:
    """Learn from all feedback that arrives in round t, in the order of the decisions."""
    ints = late.ints
    here = t % ints.shape[0]
    slot = ints[here, _FIRST]
    ints[here, _FIRST] = _NOBODY
    ints[here, _LAST] = _NOBODY
    while slot != _NOBODY:
        _copy(state, late, slot, False)
        update(
            params, state, ints[slot, _ARM], late.floats[slot, _WEIGHT], late.floats[slot, _LOSS]
        )
        judged, label = late.floats[slot, _JUDGED], late.floats[slot, _LABEL]
        if label != _NO_LABEL:
            for place, value in enumerate((1.0, judged, label, judged * judged, judged * label)):
                late.told[place] += value
        slot = ints[slot, _NEXT]


@compiled
def drive_late(
    params: Any,
    state: State,
    stream: Words,
    noise: Words,
    local: Words,
    table: Table,
    best: int,
    checkpoints: Ints,
    regret: Floats,
    plays: Ints,
    late: Late,
) -> None:
    """Like `drive`, with the rules of `late`. The regret is of the losses suffered, whatever is reported."""
    init(params, state)
    clear(late)
    rows, row_at = table.rows, table.row_at
    so_far = 0.0
    checkpoint = 0
    upcoming = checkpoints[0]
    for t in range(len(row_at)):
        row = row_at[t]
        exploit, explore, weight, _ = decide(params, state, stream)
        # In every round, so that the same losses are met whatever the rules.
        loss = draw_loss(table.noise, table.concentration, rows[row, explore], noise, local)
        count(plays, EXPLOITED, exploit)
        if explores(late.rules, late.key, t):
            _wait(state, late, t, explore, weight, loss)
            count(plays, EXPLORED, explore)
        else:
            state.scalars[EVENTS] -= 1.0  # what is served only is no decision
        learn_arrived(params, state, late, t)
        so_far += rows[row, exploit] - rows[row, best]
        if t + 1 == upcoming:
            regret[checkpoint] = so_far
            checkpoint += 1
            upcoming = checkpoints[checkpoint] if checkpoint < len(checkpoints) else 0


@compiled
def drive_adaptive_late(
    params: Any,
    state: State,
    stream: Words,
    noise: Words,
    local: Words,
    adversary: Any,
    memory: Memory,
    horizon: int,
    losses: Floats,
    arm_sums: Floats,
    checkpoints: Ints,
    suffered: Floats,
    arm_losses: Floats,
    plays: Ints,
    late: Late,
) -> None:
    """Like `drive_adaptive`, with the rules of `late`. The adversary answers what was exploited, as ever."""
    init(params, state)
    clear(late)
    so_far = 0.0
    checkpoint = 0
    upcoming = checkpoints[0]
    for t in range(horizon):
        fill_losses(adversary, memory, t, losses)
        exploit, explore, weight, _ = decide(params, state, stream)
        loss = draw_loss(BERNOULLI, 1.0, losses[explore], noise, local)
        count(plays, EXPLOITED, exploit)
        if explores(late.rules, late.key, t):
            _wait(state, late, t, explore, weight, loss)
            count(plays, EXPLORED, explore)
        else:
            state.scalars[EVENTS] -= 1.0  # what is served only is no decision
        learn_arrived(params, state, late, t)
        note_play(adversary, memory, t, exploit)
        so_far += losses[exploit]
        for arm in range(len(losses)):
            arm_sums[arm] += losses[arm]
        if t + 1 == upcoming:
            suffered[checkpoint] = so_far
            for arm in range(len(losses)):
                arm_losses[checkpoint, arm] = arm_sums[arm]
            checkpoint += 1
            upcoming = checkpoints[checkpoint] if checkpoint < len(checkpoints) else 0
