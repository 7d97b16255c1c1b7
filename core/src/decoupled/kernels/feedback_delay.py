"""Feedback in the round loop: at once, or late, lost, rare, altered or judged. See `simulation.traffic` for the rules in words.

A pending decision keeps what its update needs: the explored arm, its weight, the reported loss, and what the state held
for it when it was made (the rows in `FeedbackQueue.kept`). The slots of a ring hold the pending decisions, as many as
the longest delay can have. Each slot also heads the list of those that arrive in its round, the oldest first.

The random numbers of these rules are addressed by round and purpose instead of drawn in a row, so no rule moves the
numbers of another, and none touches the losses or the policy's draws.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from ..base.arrays import Floats, Ints, Words
from .dispatch import FeedbackFunctions, register_feedback, update
from .jit import compiled
from .random.stream import scrambled, unit
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
_DECISIONS, LABEL_SUMS = 5, 6

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


class FeedbackQueue(NamedTuple):
    """The rules of one run, and room for its pending decisions."""

    rules: Rules
    kept: Ints  # three counts, then the places of scalars, rows of floats and rows of ints
    floats: Floats  # slots x columns
    ints: Ints
    key: Words
    judge: Floats  # arms x 2: the chance that the judged loss is 1 if the true one is 0, and if it is 1
    label_sums: Floats  # what labels say so far


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
def _judged_at(queue: FeedbackQueue, slot: int, t: int, arm: int, loss: float) -> int:
    """Keep what is learned from a judge, and perhaps a label, as a learner with labels does; return by how much it is later.

    All but the label is fixed by the decision, so that what is learned is worked out now.
    """
    rules, key, floats, label_sums = queue.rules, queue.key, queue.floats, queue.label_sums
    low, high = queue.judge[arm, 0], queue.judge[arm, 1]
    judged = 1.0 if mark_at(key, t, _REPORT) <= low + loss * (high - low) else 0.0
    floats[slot, _LOSS] = judged
    if rules.label_share == 0.0:
        return 0
    label_sums[_DECISIONS] += 1.0
    rho = 1.0 if label_sums[_DECISIONS] <= rules.first_labels else rules.label_share
    # The line through past labels, as `decision.fitted` has it.
    count, s, g, ss, sg = (
        label_sums[0] + 20.0,
        label_sums[1] + 10.0,
        label_sums[2] + 10.0,
        label_sums[3] + 10.0,
        label_sums[4] + 10.0,
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
def clear(queue: FeedbackQueue) -> None:
    """Forget the pending decisions of an earlier run, and what labels said."""
    if queue.rules.judged:
        queue.label_sums[:] = 0.0
    for slot in range(queue.ints.shape[0]):
        queue.ints[slot, _FIRST] = _NOBODY
        queue.ints[slot, _LAST] = _NOBODY


@compiled
def _copy(state: State, queue: FeedbackQueue, slot: int, keep: bool) -> None:
    """Keep what the update of a decision will need of the state, or write it back where the update reads it."""
    kept, arms = queue.kept, state.floats.shape[1]
    scalars, floats, ints = kept[0], kept[1], kept[2]
    column = OWN_FLOATS
    for place in kept[_HEAD : _HEAD + scalars]:
        if keep:
            queue.floats[slot, column] = state.scalars[place]
        else:
            state.scalars[place] = queue.floats[slot, column]
        column += 1
    for place in kept[_HEAD + scalars : _HEAD + scalars + floats]:
        for arm in range(arms):
            if keep:
                queue.floats[slot, column + arm] = state.floats[place, arm]
            else:
                state.floats[place, arm] = queue.floats[slot, column + arm]
        column += arms
    column = OWN_INTS
    for place in kept[_HEAD + scalars + floats : _HEAD + scalars + floats + ints]:
        for arm in range(arms):
            if keep:
                queue.ints[slot, column + arm] = state.ints[place, arm]
            else:
                state.ints[place, arm] = queue.ints[slot, column + arm]
        column += arms


@compiled
def _wait(state: State, queue: FeedbackQueue, t: int, arm: int, weight: float, loss: float) -> None:
    """Put the decision of round t into the list of the round in which its feedback arrives, if it does."""
    rules, key, ints = queue.rules, queue.key, queue.ints
    slots = ints.shape[0]
    slot, delay = t % slots, 0
    queue.floats[slot, _WEIGHT] = weight
    queue.floats[slot, _LABEL] = _NO_LABEL
    if rules.judged:
        delay = _judged_at(queue, slot, t, arm, loss)
    else:
        queue.floats[slot, _LOSS] = reported_at(rules, key, t, loss)
    if is_lost(rules, key, t):
        return
    delay += delay_at(rules, key, t)
    if delay >= slots:  # after the last round
        return
    arrival = (t + delay) % slots
    ints[slot, _ARM] = arm
    ints[slot, _NEXT] = _NOBODY
    _copy(state, queue, slot, True)
    if ints[arrival, _LAST] == _NOBODY:
        ints[arrival, _FIRST] = slot
    else:
        ints[ints[arrival, _LAST], _NEXT] = slot
    ints[arrival, _LAST] = slot


def _clear_queue(queue: FeedbackQueue) -> None:
    clear(queue)


def _queue_feedback(
    queue: FeedbackQueue, params: Any, state: State, t: int, arm: int, weight: float, loss: float
) -> bool:
    """Let the feedback of a round that explores wait, and learn what arrives, in the order of the decisions."""
    has_explored = explores(queue.rules, queue.key, t)
    if has_explored:
        _wait(state, queue, t, arm, weight, loss)
    else:
        state.scalars[EVENTS] -= 1.0  # what is served only is no decision
    ints = queue.ints
    arrivals = t % ints.shape[0]
    slot = ints[arrivals, _FIRST]
    ints[arrivals, _FIRST] = _NOBODY
    ints[arrivals, _LAST] = _NOBODY
    while slot != _NOBODY:
        _copy(state, queue, slot, False)
        explored = ints[slot, _ARM]
        update(params, state, explored, queue.floats[slot, _WEIGHT], queue.floats[slot, _LOSS])
        judged, label = queue.floats[slot, _JUDGED], queue.floats[slot, _LABEL]
        if label != _NO_LABEL:
            for place, value in enumerate((1.0, judged, label, judged * judged, judged * label)):
                queue.label_sums[place] += value
        slot = ints[slot, _NEXT]
    return has_explored


register_feedback(FeedbackQueue, FeedbackFunctions(_clear_queue, _queue_feedback))


class Direct(NamedTuple):
    """Every round explores, and its loss is learned at once."""


def _clear_nothing(feedback: Direct) -> None:
    pass


def _learn_at_once(
    feedback: Direct, params: Any, state: State, t: int, arm: int, weight: float, loss: float
) -> bool:
    update(params, state, arm, weight, loss)
    return True


register_feedback(Direct, FeedbackFunctions(_clear_nothing, _learn_at_once))
