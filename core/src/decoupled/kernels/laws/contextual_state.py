"""The state and the parameters of the contextual ladder.

It holds two ladders, each as its own rows and scalars: one of all rounds, and one of the rounds with the segment at hand.
What is known of each segment is kept behind the scalars that have names, in room that a learner makes, and copied from
there and back when another segment is wanted. What a context says of this round, its numbers and the advice of others, is
written here too, before a call.

The rungs that know the context: means of segments, shrunk, and a regression on numbers.

*Shrunk*: an arm's mean in a segment, less its mean in all rounds, less what the segment's arms have in common, is a
difference r. It counts by the share that is not noise, n * variety / (n * variety + noise), with n losses seen. Noise is
the variance within segments and variety that between them, by the analysis of variance with unequal counts.

*Linear*: ridge regression of each arm's losses on the numbers, by recursive least squares that forget. With segments, it
fits what their shrunk means leave. A number is scaled by its mean and its deviation, of values that are first clipped to the
quartiles of the last RECENT values and FENCE times their distance beyond: no value can move the scale by more than that.
With vectors, whose numbers may tell nothing, what numbers add to a prediction counts by the slope of losses on it, between
0 and 1, over all rounds so far, each predicted before its loss was known.

Searle, S. R., Casella, G. and McCulloch, C. E. (1992). Variance Components. Wiley.
"""

import math
from collections import namedtuple
from functools import cache
from typing import Any

from ...base.arrays import Floats
from ..compose import START
from ..jit import compiled
from ..state import ARMS, EVENTS, ROUND, SECRET, SHARED_SCALARS, Layout, State, places_of, vector
from . import ladder_state

MOST_ADVISERS = 8
MOST_NUMBERS = 32
OWN_RUNGS = 4
MOST_RUNGS = OWN_RUNGS + MOST_ADVISERS
POOLED, SEGMENTS, SHRUNK, LINEAR, ADVICE = range(5)  # kinds of rungs; advisers count from the last
EVERYWHERE = -1.0  # the arm of a rung that knows nothing yet: any
MISSING = 1e140  # in place of a number that a context does not have; those that it has are smaller
LARGEST_NUMBER = 1e100
RECENT = 16  # so many values of a number are kept, and tell which are far out

_LADDER = (*SHARED_SCALARS, *ladder_state.SCALARS)

# How much the segments differ. Of each segment: the squares of what its means differ from those of all, how many of
# these are free, and how much a difference between segments counts in them. The sums of these over all segments.
LEARNED_SCALARS = (
    "outer_regret",
    *vector("outer_loss", MOST_RUNGS),
    "between",
    "between_free",
    "between_size",
    "within",
    "within_free",
)
DERIVED_SCALARS = (
    "entering",
    "wanted",
    "current",
    "outer_sum",
    "served_rung",
    "segment_level",
    "noise",
    "variety",
    "outer_even",
    "pooled_share",
    "segment_share",
    "law_known",  # whether the row "outer_law" is filled
    *vector("outer_weight", MOST_RUNGS),
    *vector("outer_prior", MOST_RUNGS),
    *vector("outer_kind", MOST_RUNGS),
    *vector("outer_arm", MOST_RUNGS),  # that a rung exploits, for rungs with one arm
    *vector("outer_chance", MOST_RUNGS),  # of the explored arm under a rung
    *vector("outer_step", MOST_RUNGS),
)
# The two ladders follow, each with all its scalars; the names of the first, that of all rounds, are those of a ladder.
NAMED_SCALARS = (
    *LEARNED_SCALARS,
    *DERIVED_SCALARS,
    *(f"pooled_{name}" for name in SHARED_SCALARS),
    *ladder_state.SCALARS,
    *(f"segment_{name}" for name in _LADDER),
    "segment_between",
    "segment_between_free",
    "segment_between_size",
)
NAMED_FLOATS = (
    *ladder_state.FLOATS,
    *(f"segment_{name}" for name in ladder_state.FLOATS),
    "outer_law",  # by which a decision explored, negative for arms that it could not choose
    "absent",  # arms that were away
    "value",  # shrunk means
)
S = places_of((*SHARED_SCALARS, *NAMED_SCALARS))
R = places_of(NAMED_FLOATS)
# As given; scaled; how often seen; their means; their deviations; work space; the last values of each; work space.
NUMBERS_AT = len(SHARED_SCALARS) + len(NAMED_SCALARS)
LADDER_ROWS = len(ladder_state.FLOATS)
ADVICE_AT = len(NAMED_FLOATS)

KEPT = vector("outer_chance", MOST_RUNGS)  # what a pending decision keeps

# What is kept of every segment: its learned scalars, which are neighbours, its differences, and these rows.
ROWS = (
    R.estimates,
    R.counts,
    R.means,
    R.centred_means,
    R.recent_weight,
    R.recent_sums,
    R.recent_centred_sums,
)
FIRST_LEARNED = S.segment_rise
LEARNED = len(ladder_state.LEARNED_SCALARS)
KEPT_SCALARS = LEARNED + 3
_KEPT_NAMES = (
    *(f"segment_{ladder_state.FLOATS[row]}" for row in ROWS),
    *(f"segment_{name}" for name in ladder_state.LEARNED_SCALARS),
    *("segment_between", "segment_between_free", "segment_between_size"),
)


@cache
def layout(numbers: int, advisers: int, gated: bool = False) -> Layout:
    """The rows for so many numbers of a context and advisers."""
    size = numbers + 1 if numbers else 0
    learned_numbers = tuple(
        f"number_{name}_{each}" for name in ("seen", "mean", "deviation") for each in range(numbers)
    )
    recent = tuple(f"number_recent_{each}_{at}" for each in range(numbers) for at in range(RECENT))
    linear = (
        *(f"linear_{each}" for each in range(size)),
        *(f"known_{each}" for each in range(size * size)),
    )
    return Layout(
        scalars=(
            *NAMED_SCALARS,
            *(f"number_given_{each}" for each in range(numbers)),
            *(f"number_scaled_{each}" for each in range(numbers)),
            *learned_numbers,
            *(f"linear_step_{each}" for each in range(size)),
            *recent,
            *(f"number_ranked_{at}" for at in range(RECENT if numbers else 0)),
            *(("vector_explained", "vector_size") if numbers else ()),
        ),
        floats=(
            *NAMED_FLOATS,
            *(f"advice_{each}" for each in range(advisers)),
            *linear,
        ),
        ints=("order", "segment_order"),
        learned=(
            *ladder_state.LAYOUT.learned,
            *LEARNED_SCALARS,
            *_KEPT_NAMES,
            *learned_numbers,
            *recent,
            *linear,
            *(("vector_explained", "vector_size") if gated else ()),
        ),
    )


PARAMS = (
    *ladder_state.PARAMS,
    *("exploration", "outer_rate", "outer_rungs", "segmented", "numbers", "advisers", "gated"),
    *vector("outer_prior", MOST_RUNGS),
    *vector("outer_kind", MOST_RUNGS),
)
Params: Any = namedtuple("Params", PARAMS)  # type: ignore[misc]
PRIORS_AT = len(ladder_state.PARAMS) + 7
KINDS_AT = PRIORS_AT + MOST_RUNGS
_INNER = len(ladder_state.PARAMS)


@compiled
def ladder_params(params: Any) -> Any:
    """The parameters of the two ladders."""
    return ladder_state.Params(*params[:_INNER])


@compiled
def pooled(state: State) -> State:
    """The ladder of all rounds, without a copy."""
    return State(
        state.scalars[S.pooled_round : S.segment_round], state.floats[:LADDER_ROWS], state.ints[:1]
    )


@compiled
def segment(state: State) -> State:
    """The ladder of the segment at hand, without a copy."""
    rows = state.floats[LADDER_ROWS : 2 * LADDER_ROWS]
    return State(state.scalars[S.segment_round : S.segment_between], rows, state.ints[1:2])


@compiled
def set_shared(state: State) -> None:
    """Set the shared scalars of the two ladders; a segment counts its own rounds."""
    scalars = state.scalars
    for at in (S.pooled_round, S.segment_round):
        scalars[at + ARMS], scalars[at + SECRET] = scalars[ARMS], scalars[SECRET]
        scalars[at + EVENTS] = scalars[EVENTS]
    scalars[S.pooled_round] = scalars[ROUND]
    scalars[S.segment_round] = 1.0 + scalars[S.segment_seen]


@compiled
def width(arms: int) -> int:
    """How many numbers are kept of a segment."""
    return KEPT_SCALARS + len(ROWS) * arms


@compiled
def recent_at(numbers: int) -> int:
    """Where the last values of the numbers begin."""
    return NUMBERS_AT + 6 * numbers + 1


@compiled
def end_of_names(numbers: int) -> int:
    """Where the room for segments begins: behind the scalars of the layout."""
    return recent_at(numbers) + RECENT * (numbers + 1) + 2 if numbers > 0 else NUMBERS_AT


@compiled
def exchange(state: State, at: int, taking: bool) -> None:
    """Take what is kept at this place into the state of the segment at hand, or put it there."""
    scalars, arms = state.scalars, state.floats.shape[1]
    for each in range(KEPT_SCALARS):
        own = FIRST_LEARNED + each if each < LEARNED else S.segment_between + each - LEARNED
        if taking:
            scalars[own] = scalars[at + each]
        else:
            scalars[at + each] = scalars[own]
    at += KEPT_SCALARS
    for row in ROWS:
        values = state.floats[LADDER_ROWS + row]
        for arm in range(arms):
            if taking:
                values[arm] = scalars[at + arm]
            else:
                scalars[at + arm] = values[arm]
        at += arms


@compiled
def change_segment(numbers: int, state: State) -> None:
    """Keep what is known of the segment at hand, and take the one that is wanted."""
    scalars, size = state.scalars, width(state.floats.shape[1])
    first = end_of_names(numbers)
    if scalars[S.wanted] != scalars[S.current]:
        exchange(state, first + size * int(scalars[S.current]), False)
        exchange(state, first + size * int(scalars[S.wanted]), True)
        scalars[S.current] = scalars[S.wanted]


def given(state: State, numbers: int) -> Any:
    """A view of the numbers of the context at hand."""
    return state.scalars[NUMBERS_AT : NUMBERS_AT + numbers]


def chances(state: State, rungs: int) -> Any:
    """A view of what the rungs of a decision are judged with."""
    return state.scalars[S.outer_chance : S.outer_chance + rungs]


LEVEL_PRIOR = 2.0  # so many losses of a segment count for its level as much as none at all
RIDGE = 1.0
MOST_SCALED = 5.0  # in standard deviations
FENCE = 3.0  # of a normal law, one value in 400,000 is beyond
MEMORY = 1_000.0  # so many values make the mean and the deviation of a number
LEAK = 1e-7  # the share of what a regression knows that an observation lets it forget, so that 1 / sqrt(LEAK) count


@compiled
def segment_level(state: State) -> float:
    """The mean of what a segment's losses differ from the arms' means in all rounds; 0 if none was seen."""
    floats, sum_of, count = state.floats, 0.0, 0.0
    for arm in range(floats.shape[1]):
        seen = floats[R.segment_counts, arm]
        sum_of += seen * (floats[R.segment_means, arm] - floats[R.means, arm])
        count += seen
    return sum_of / count if count > 0.0 else 0.0


@compiled
def note_segment(state: State) -> None:
    """Put the differences of the segment at hand, as they are now, into the sums over all segments."""
    floats, scalars = state.floats, state.scalars
    level, squares, cells, count, counts_squared = segment_level(state), 0.0, 0.0, 0.0, 0.0
    for arm in range(floats.shape[1]):
        seen = floats[R.segment_counts, arm]
        if seen > 0.0:
            apart = floats[R.segment_means, arm] - floats[R.means, arm] - level
            squares += seen * apart * apart
            cells += 1.0
            count += seen
            counts_squared += seen * seen
    free, size = max(cells - 1.0, 0.0), count - counts_squared / count if count > 0.0 else 0.0
    scalars[S.between] += squares - scalars[S.segment_between]
    scalars[S.between_free] += free - scalars[S.segment_between_free]
    scalars[S.between_size] += size - scalars[S.segment_between_size]
    scalars[S.segment_between], scalars[S.segment_between_free], scalars[S.segment_between_size] = (
        squares,
        free,
        size,
    )


@compiled
def fill_values(state: State) -> None:
    """Fill every arm's shrunk mean in the segment at hand, less the level of the segment."""
    floats, scalars = state.floats, state.scalars
    noise = scalars[S.within] / scalars[S.within_free] if scalars[S.within_free] > 0.0 else 0.0
    variety = 0.0
    if scalars[S.between_size] > 0.0:
        more = scalars[S.between] - scalars[S.between_free] * noise
        variety = max(more / scalars[S.between_size], 0.0)
    level, count = segment_level(state), 0.0
    for arm in range(floats.shape[1]):
        value = floats[R.means, arm]
        if floats[R.counts, arm] == 0.0:  # nobody has seen it
            value = START + scalars[S.rise]
        seen = floats[R.segment_counts, arm]
        count += seen
        if seen > 0.0 and variety > 0.0:
            apart = floats[R.segment_means, arm] - value - level
            value += apart * seen * variety / (seen * variety + noise)
        floats[R.value, arm] = value
    scalars[S.noise], scalars[S.variety] = noise, variety
    scalars[S.segment_level] = level * count / (count + LEVEL_PRIOR)


@compiled
def leader_of(params: Any, state: State, linear: bool) -> float:
    """The arm with the smallest value, or predicted loss, of those that were seen; the ladder's own leader if it ties."""
    floats, leader = state.floats, float(state.scalars[S.leader])
    best, trusted = leader, trust(params, state) if linear else 0.0
    if best < 0.0:
        return EVERYWHERE
    least = predicted(params, state, int(best), trusted) if linear else floats[R.value, int(best)]
    for arm in range(floats.shape[1]):
        if floats[R.counts, arm] > 0.0:
            value = predicted(params, state, arm, trusted) if linear else floats[R.value, arm]
            tied = value == least and best != leader
            if value < least or (
                tied and floats[R.precedence, arm] < floats[R.precedence, int(best)]
            ):
                best, least = float(arm), value
    return best


@compiled
def scale_numbers(params: Any, state: State) -> None:
    """Scale the numbers of the context by their means and deviations; a missing one counts as its mean."""
    scalars, numbers = state.scalars, int(params.numbers)
    for each in range(numbers):
        at, scaled = NUMBERS_AT + each, 0.0
        if scalars[at] < MISSING and scalars[at + 2 * numbers] > 0.0:
            apart, deviation = scalars[at] - scalars[at + 3 * numbers], scalars[at + 4 * numbers]
            if apart != 0.0:  # any value that differs from a constant is as far as can be
                scaled = apart / deviation if deviation > 0.0 else math.copysign(MOST_SCALED, apart)
            scaled = min(max(scaled, -MOST_SCALED), MOST_SCALED)
        scalars[at + numbers] = scaled


@compiled
def note_numbers(params: Any, state: State) -> None:
    """Learn the means and the deviations of the numbers. The first RECENT values are clipped anew with each of them."""
    scalars, numbers = state.scalars, int(params.numbers)
    recent, ranked = recent_at(numbers), recent_at(numbers) + RECENT * numbers
    for each in range(numbers):
        at, first = NUMBERS_AT + each, recent + RECENT * each
        if scalars[at] < MISSING:
            seen = scalars[at + 2 * numbers] + 1.0
            scalars[first + int(seen - 1.0) % RECENT] = scalars[at]
            known = min(int(seen), RECENT)
            rank_values(scalars, first, known, ranked)
            low, high = scalars[ranked + known // 4], scalars[ranked + known - 1 - known // 4]
            low, high = low - FENCE * (high - low), high + FENCE * (high - low)
            counted, mean, variance = 0.0, 0.0, 0.0
            if seen > RECENT:
                scalars[ranked] = scalars[at]
                counted = min(seen, MEMORY) - 1.0
                mean, variance = scalars[at + 3 * numbers], scalars[at + 4 * numbers] ** 2
                known = 1
            for place in range(ranked, ranked + known):
                value = min(max(scalars[place], low), high)
                counted += 1.0
                before = value - mean
                mean += before / counted
                variance += (before * (value - mean) - variance) / counted
            scalars[at + 2 * numbers], scalars[at + 3 * numbers] = seen, mean
            scalars[at + 4 * numbers] = math.sqrt(variance)


@compiled
def rank_values(scalars: Floats, first: int, count: int, to: int) -> None:
    """Copy values in rising order."""
    for place in range(count):
        value, hole = scalars[first + place], to + place
        while hole > to and scalars[hole - 1] > value:
            scalars[hole] = scalars[hole - 1]
            hole -= 1
        scalars[hole] = value


@compiled
def scaled_number(params: Any, state: State, place: int) -> float:
    """A coordinate of the regression: 1, or a scaled number."""
    if place == 0:
        return 1.0
    number: float = state.scalars[NUMBERS_AT + int(params.numbers) + place - 1]
    return number


@compiled
def first_of_linear(params: Any) -> int:
    """The row of the first coefficient; those of what is known of them follow the coefficients."""
    return ADVICE_AT + int(params.advisers)


@compiled
def starting_value(params: Any, state: State, arm: int) -> float:
    """What a regression predicts before it has learned: the shrunk mean, if there are segments."""
    if params.segmented > 0.0:
        value: float = state.floats[R.value, arm]
        return value
    return START


@compiled
def trust(params: Any, state: State) -> float:
    """The share of what numbers say that counts: 1, or with vectors the slope of past losses on it, as it was said before them."""
    if params.gated == 0.0:
        return 1.0
    at = end_of_names(int(params.numbers)) - 2
    explained, size = state.scalars[at], state.scalars[at + 1]
    return min(max(explained / size, 0.0), 1.0) if size > 0.0 else 0.0


@compiled
def predicted(params: Any, state: State, arm: int, trusted: float) -> float:
    """The loss that the regression predicts for an arm, less the level of the segment, where so much of the numbers counts."""
    at = first_of_linear(params)
    value: float = starting_value(params, state, arm) + state.floats[at, arm]
    for place in range(1, int(params.numbers) + 1):
        value += trusted * (state.floats[at + place, arm] * scaled_number(params, state, place))
    return value


@compiled
def note_regression(params: Any, state: State, arm: int, loss: float) -> None:
    """Let the regression of an arm learn a loss.

    The inverse of the arm's matrix of moments is 1 / RIDGE on the diagonal less what is known, which starts at 0 and leaks.
    """
    floats, scalars, size = state.floats, state.scalars, int(params.numbers) + 1
    at, steps = first_of_linear(params), recent_at(int(params.numbers)) - size
    level = scalars[S.segment_level] if params.segmented > 0.0 else 0.0
    said, whole = predicted(params, state, arm, 1.0), 1.0
    surprise = loss - level - said
    if params.gated > 0.0:
        bare, last = predicted(params, state, arm, 0.0), end_of_names(size - 1) - 1
        scalars[last - 1] += (said - bare) * (loss - level - bare)
        scalars[last] += (said - bare) ** 2
    for row in range(size):
        step = scaled_number(params, state, row) / RIDGE
        for column in range(size):
            step -= floats[at + size * (1 + row) + column, arm] * scaled_number(
                params, state, column
            )
        scalars[steps + row] = step
        whole += step * scaled_number(params, state, row)
    for row in range(size):
        floats[at + row, arm] += scalars[steps + row] * surprise / whole
        for column in range(size):
            known, more = (
                at + size * (1 + row) + column,
                scalars[steps + row] * scalars[steps + column],
            )
            floats[known, arm] = (1.0 - LEAK) * (floats[known, arm] + more / whole)
