"""Predictions from the numbers of a context, by ridge regression of each arm's losses: recursive
least squares that forget.

With segments, the regression fits what their shrunk means leave. A number is scaled by its mean and
its deviation, of values that are first clipped to the quartiles of the last RECENT values and FENCE
times their distance beyond: no value can move the scale by more than that. With vectors, whose
numbers may tell nothing, what numbers add to a prediction counts by the slope of losses on it,
between 0 and 1, over all rounds so far, each predicted before its loss was known.
"""

import math

from ...base.arrays import Floats
from ...kernels.context import MISSING
from ...kernels.jit import compiled
from ...kernels.state import State
from ..ladder.state import START
from .state import (
    ADVICE_AT,
    AS_GIVEN,
    DEVIATION,
    MEAN,
    RECENT,
    SCALED,
    TIMES_SEEN,
    Params,
    R,
    S,
    explained_at,
    number_at,
    ranked_at,
    recent_at,
    steps_at,
)

EVERYWHERE = -1.0  # the arm of a rung that knows nothing yet: any
RIDGE = 1.0
MOST_SCALED = 5.0  # in standard deviations
FENCE = 3.0  # of a normal law, one value in 400,000 is beyond
MEMORY = 1_000.0  # so many values make the mean and the deviation of a number
# the share of what a regression knows that an observation lets it forget, so that 1 / sqrt(LEAK)
# count
LEAK = 1e-7


@compiled
def leader_of(params: Params, state: State, is_linear: bool) -> float:
    """The seen arm with the least value or predicted loss; the ladder's own leader wins a tie."""
    floats = state.floats
    leader = float(state.scalars[S.leader])
    best = leader
    trusted = trust(params, state) if is_linear else 0.0
    if best < 0.0:
        return EVERYWHERE
    least = predict(params, state, int(best), trusted) if is_linear else floats[R.value, int(best)]
    for arm in range(floats.shape[1]):
        if floats[R.counts, arm] > 0.0:
            value = predict(params, state, arm, trusted) if is_linear else floats[R.value, arm]
            is_tied = value == least and best != leader
            comes_first = floats[R.precedence, arm] < floats[R.precedence, int(best)]
            if value < least or (is_tied and comes_first):
                best = float(arm)
                least = value
    return best


@compiled
def scale_numbers(params: Params, state: State) -> None:
    """Scale a context's numbers by their means and deviations; a missing one counts as its mean."""
    scalars = state.scalars
    numbers = params.numbers
    for number in range(numbers):
        value = scalars[number_at(AS_GIVEN, number, numbers)]
        scaled = 0.0
        if value < MISSING and scalars[number_at(TIMES_SEEN, number, numbers)] > 0.0:
            apart = value - scalars[number_at(MEAN, number, numbers)]
            deviation = scalars[number_at(DEVIATION, number, numbers)]
            if apart != 0.0:  # any value that differs from a constant is as far as can be
                scaled = apart / deviation if deviation > 0.0 else math.copysign(MOST_SCALED, apart)
            scaled = min(max(scaled, -MOST_SCALED), MOST_SCALED)
        scalars[number_at(SCALED, number, numbers)] = scaled


@compiled
def note_numbers(params: Params, state: State) -> None:
    """Learn the means and the deviations of the numbers.

    The first RECENT values are clipped anew with each of them.
    """
    scalars = state.scalars
    numbers = params.numbers
    ranked = ranked_at(numbers)
    for number in range(numbers):
        latest = scalars[number_at(AS_GIVEN, number, numbers)]
        seen_at = number_at(TIMES_SEEN, number, numbers)
        mean_at = number_at(MEAN, number, numbers)
        deviation_at = number_at(DEVIATION, number, numbers)
        first = recent_at(number, numbers)
        if latest < MISSING:
            seen = scalars[seen_at] + 1.0
            scalars[first + int(seen - 1.0) % RECENT] = latest
            count = min(int(seen), RECENT)
            rank_values(scalars, first, count, ranked)
            low = scalars[ranked + count // 4]
            high = scalars[ranked + count - 1 - count // 4]
            fence = FENCE * (high - low)
            low -= fence
            high += fence
            counted = 0.0
            mean = 0.0
            variance = 0.0
            if seen > RECENT:
                scalars[ranked] = latest
                counted = min(seen, MEMORY) - 1.0
                mean = scalars[mean_at]
                variance = scalars[deviation_at] ** 2
                count = 1
            for place in range(ranked, ranked + count):
                value = min(max(scalars[place], low), high)
                counted += 1.0
                before = value - mean
                mean += before / counted
                variance += (before * (value - mean) - variance) / counted
            scalars[seen_at] = seen
            scalars[mean_at] = mean
            scalars[deviation_at] = math.sqrt(variance)


@compiled
def rank_values(scalars: Floats, first: int, count: int, to: int) -> None:
    """Copy so many values from the place `first` on to the place `to`, in rising order."""
    for place in range(count):
        value = scalars[first + place]
        hole = to + place
        while hole > to and scalars[hole - 1] > value:
            scalars[hole] = scalars[hole - 1]
            hole -= 1
        scalars[hole] = value


@compiled
def scaled_number(params: Params, state: State, place: int) -> float:
    """A coordinate of the regression: 1, or a scaled number."""
    if place == 0:
        return 1.0
    scaled: float = state.scalars[number_at(SCALED, place - 1, params.numbers)]
    return scaled


@compiled
def first_of_linear(params: Params) -> int:
    """The row of the first coefficient; those of what is known of them follow the coefficients."""
    return ADVICE_AT + params.advisers


@compiled
def starting_value(params: Params, state: State, arm: int) -> float:
    """What a regression predicts before it has learned: the shrunk mean, if there are segments."""
    if params.has_segments:
        value: float = state.floats[R.value, arm]
        return value
    return START


@compiled
def trust(params: Params, state: State) -> float:
    """The share of the regression's prediction that counts.

    It is 1 without vectors. With vectors it is the slope of past losses on what was predicted
    before them.
    """
    if not params.is_gated:
        return 1.0
    at = explained_at(params.numbers)
    explained = state.scalars[at]
    size = state.scalars[at + 1]
    return min(max(explained / size, 0.0), 1.0) if size > 0.0 else 0.0


@compiled
def predict(params: Params, state: State, arm: int, trusted: float) -> float:
    """The loss that the regression predicts for an arm, less the level of the segment.

    `trusted` says how much of the numbers' part counts.
    """
    at = first_of_linear(params)
    value: float = starting_value(params, state, arm) + state.floats[at, arm]
    for place in range(1, params.numbers + 1):
        value += trusted * (state.floats[at + place, arm] * scaled_number(params, state, place))
    return value


@compiled
def note_regression(params: Params, state: State, arm: int, loss: float) -> None:
    """Let the regression of an arm learn a loss.

    The inverse of the arm's matrix of moments is 1 / RIDGE on the diagonal less a reduction,
    which starts at 0 and leaks.
    """
    floats = state.floats
    scalars = state.scalars
    size = params.numbers + 1
    at = first_of_linear(params)
    steps = steps_at(params.numbers)
    level = scalars[S.segment_level] if params.has_segments else 0.0
    expected = predict(params, state, arm, 1.0)
    surprise = loss - level - expected
    spread = 1.0
    if params.is_gated:
        bare = predict(params, state, arm, 0.0)
        explained = explained_at(params.numbers)
        scalars[explained] += (expected - bare) * (loss - level - bare)
        scalars[explained + 1] += (expected - bare) ** 2
    for row in range(size):
        step = scaled_number(params, state, row) / RIDGE
        for column in range(size):
            reduction_at = at + size * (1 + row) + column
            step -= floats[reduction_at, arm] * scaled_number(params, state, column)
        scalars[steps + row] = step
        spread += step * scaled_number(params, state, row)
    for row in range(size):
        floats[at + row, arm] += scalars[steps + row] * surprise / spread
        for column in range(size):
            reduction_at = at + size * (1 + row) + column
            product = scalars[steps + row] * scalars[steps + column]
            floats[reduction_at, arm] = (1.0 - LEAK) * (
                floats[reduction_at, arm] + product / spread
            )
