"""Feedback in the round loop: at once, or late, lost or rare.

See `simulation.traffic` for the rules in words.

A pending decision keeps what its update needs: the explored arm, its weight, its loss, and what the
state held for it when it was made (the rows in `FeedbackQueue.kept`). The slots of a ring hold the
pending decisions, as many as the longest delay can have. Each slot also heads the list of those
that arrive in its round, the oldest first.

The random numbers of these rules are addressed by round and purpose instead of drawn in a row, so
no rule moves the numbers of another, and none touches the losses or the policy's draws.
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

# What a random number is for. A round has five of them, two of which are free.
_EXPLORES, _MISSING, _DELAY = range(3)
_NUMBERS_A_ROUND = 5

# Columns of a slot's floats and ints; what is kept of the state follows.
_WEIGHT, _LOSS, OWN_FLOATS = range(3)
_ARM, _NEXT, _FIRST, _LAST, OWN_INTS = range(5)
_NOBODY = -1

_HEAD = 3  # numbers before the places in `kept`

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ONE = np.uint64(1)


class Rules(NamedTuple):
    """The numbers of a `Traffic`, for compiled code.

    Attributes:
        law: the law of delays.
        low: the constant delay, or the lowest.
        span: how many delays a uniform law has.
        tail: the logarithm of the chance that a geometric delay goes on for another round.
        missing: the probability with which the feedback of a round never arrives.
        explore_share: the share of rounds that explore.
    """

    law: int
    low: int
    span: int
    tail: float
    missing: float
    explore_share: float


class FeedbackQueue(NamedTuple):
    """Feedback that is late, lost or not asked for: the rules, and the pending decisions.

    Attributes:
        rules: the rules.
        kept: three counts, then the places of scalars, rows of floats and rows of ints that a
            pending decision keeps.
        floats: the numbers of the pending decisions, a row for each slot.
        ints: their whole numbers, a row for each slot.
        key: the key of the draws of delays.
    """

    rules: Rules
    kept: Ints
    floats: Floats
    ints: Ints
    key: Words


@compiled
def uniform_at(key: Words, t: int, purpose: int) -> float:
    """The random number of a round for one purpose, uniform in (0, 1]."""
    counter = np.uint64(t) * np.uint64(_NUMBERS_A_ROUND) + np.uint64(purpose) + _ONE
    return unit(scrambled(scrambled(key[0] + counter * _GOLDEN) ^ key[1]))


@compiled
def explores(rules: Rules, key: Words, t: int) -> bool:
    """Whether the round is one that explores."""
    return uniform_at(key, t, _EXPLORES) <= rules.explore_share


@compiled
def is_lost(rules: Rules, key: Words, t: int) -> bool:
    """Whether the feedback of the round never arrives."""
    return uniform_at(key, t, _MISSING) <= rules.missing


@compiled
def delay_at(rules: Rules, key: Words, t: int) -> int:
    """By how many rounds the feedback of the round is late."""
    if rules.law == CONSTANT:
        return rules.low
    number = uniform_at(key, t, _DELAY)
    if rules.law == UNIFORM:
        return rules.low + min(int((1.0 - number) * rules.span), rules.span - 1)
    return int(math.log(number) / rules.tail)


@compiled
def clear(queue: FeedbackQueue) -> None:
    """Forget the pending decisions of an earlier run."""
    for slot in range(queue.ints.shape[0]):
        queue.ints[slot, _FIRST] = _NOBODY
        queue.ints[slot, _LAST] = _NOBODY


@compiled
def _keep(state: State, queue: FeedbackQueue, slot: int) -> None:
    """Keep what the update of a decision will need of the state."""
    kept = queue.kept
    arms = state.floats.shape[1]
    first_row = _HEAD + kept[0]
    end_of_rows = first_row + kept[1]
    column = OWN_FLOATS
    for place in kept[_HEAD:first_row]:
        queue.floats[slot, column] = state.scalars[place]
        column += 1
    for row in kept[first_row:end_of_rows]:
        for arm in range(arms):
            queue.floats[slot, column + arm] = state.floats[row, arm]
        column += arms
    column = OWN_INTS
    for row in kept[end_of_rows : end_of_rows + kept[2]]:
        for arm in range(arms):
            queue.ints[slot, column + arm] = state.ints[row, arm]
        column += arms


@compiled
def _restore(state: State, queue: FeedbackQueue, slot: int) -> None:
    """Write back what the update of a decision needs of the state in which it was made."""
    kept = queue.kept
    arms = state.floats.shape[1]
    first_row = _HEAD + kept[0]
    end_of_rows = first_row + kept[1]
    column = OWN_FLOATS
    for place in kept[_HEAD:first_row]:
        state.scalars[place] = queue.floats[slot, column]
        column += 1
    for row in kept[first_row:end_of_rows]:
        for arm in range(arms):
            state.floats[row, arm] = queue.floats[slot, column + arm]
        column += arms
    column = OWN_INTS
    for row in kept[end_of_rows : end_of_rows + kept[2]]:
        for arm in range(arms):
            state.ints[row, arm] = queue.ints[slot, column + arm]
        column += arms


@compiled
def _enqueue(
    state: State, queue: FeedbackQueue, t: int, arm: int, weight: float, loss: float
) -> None:
    """Put the decision of round t into the list of the round in which its feedback arrives."""
    rules = queue.rules
    key = queue.key
    ints = queue.ints
    slots = ints.shape[0]
    slot = t % slots
    if is_lost(rules, key, t):
        return
    delay = delay_at(rules, key, t)
    if delay >= slots:  # after the last round
        return
    arrival = (t + delay) % slots
    queue.floats[slot, _WEIGHT] = weight
    queue.floats[slot, _LOSS] = loss
    ints[slot, _ARM] = arm
    ints[slot, _NEXT] = _NOBODY
    _keep(state, queue, slot)
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
    """Let the feedback of a round wait, and learn what arrives, in the order of the decisions."""
    has_explored = explores(queue.rules, queue.key, t)
    if has_explored:
        _enqueue(state, queue, t, arm, weight, loss)
    else:
        state.scalars[EVENTS] -= 1.0  # what is served only is no decision
    ints = queue.ints
    arrivals = t % ints.shape[0]
    slot = ints[arrivals, _FIRST]
    ints[arrivals, _FIRST] = _NOBODY
    ints[arrivals, _LAST] = _NOBODY
    while slot != _NOBODY:
        _restore(state, queue, slot)
        explored = ints[slot, _ARM]
        update(params, state, explored, queue.floats[slot, _WEIGHT], queue.floats[slot, _LOSS])
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
