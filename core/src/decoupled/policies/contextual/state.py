"""The state and the parameters of the contextual ladder.

The state holds two ladders, each as its own rows and scalars: one of all rounds, and one of the
rounds with the segment at hand. What is known of each segment is kept behind the scalars that have
names, in room that a learner makes, and copied from there and back when another segment is wanted.
What a context says of this round, its numbers and the advice of others, is written here too, before
a call.
"""

from collections import namedtuple
from functools import cache
from typing import Any, cast

from ...kernels.context import ContextPlaces
from ...kernels.jit import compiled
from ...kernels.state import (
    ARMS,
    EVENTS,
    ROUND,
    SECRET,
    SHARED_SCALARS,
    Layout,
    State,
    places_of,
    vector,
)
from ..ladder import state as ladder_state

MOST_ADVISERS = 8
MOST_NUMBERS = 32
OWN_RUNGS = 4
MOST_RUNGS = OWN_RUNGS + MOST_ADVISERS
POOLED, SEGMENTS, SHRUNK, LINEAR, ADVICE = range(5)  # kinds of rungs; advisers count from the last
RECENT = 16  # so many values of a number are kept, and tell which are far out

_LADDER = (*SHARED_SCALARS, *ladder_state.SCALARS)

# How much the segments differ. Of each segment: the squares of what its means differ from those of
# all, how many of these are free, and how much a difference between segments counts in them. The
# sums of these over all segments.
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
# The two ladders follow, each with all its scalars; the names of the first, that of all rounds, are
# those of a ladder.
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
# What the state has of the numbers of a context. First come as many scalars of each of these kinds
# as there are numbers; see `number_at`. Then come the work space of the regression, the last values
# of each number, the work space that ranks them, and what vectors explain.
NUMBERS_AT = len(SHARED_SCALARS) + len(NAMED_SCALARS)
AS_GIVEN, SCALED, TIMES_SEEN, MEAN, DEVIATION = range(5)
_KINDS_OF_NUMBERS = 5
LADDER_ROWS = len(ladder_state.FLOATS)
ADVICE_AT = len(NAMED_FLOATS)

KEPT = vector("outer_chance", MOST_RUNGS)  # what a pending decision keeps

# What is kept of every segment: its learned scalars, which are neighbours, its differences, and
# these rows.
ROWS = (
    R.estimates,
    R.counts,
    R.means,
    R.centred_means,
    R.recent_weight,
    R.recent_sums,
    R.recent_centred_sums,
)
FIRST_LEARNED: int = S.segment_rise
LEARNED = len(ladder_state.LEARNED_SCALARS)
DIFFERENCES = ("segment_between", "segment_between_free", "segment_between_size")
KEPT_SCALARS = LEARNED + len(DIFFERENCES)
_KEPT_NAMES = (
    *(f"segment_{ladder_state.FLOATS[row]}" for row in ROWS),
    *(f"segment_{name}" for name in ladder_state.LEARNED_SCALARS),
    *DIFFERENCES,
)
PLACES = ContextPlaces(
    scalars=S,
    rows=R,
    numbers=NUMBERS_AT,
    advice=ADVICE_AT,
    kept_scalars=(
        *range(FIRST_LEARNED, FIRST_LEARNED + LEARNED),
        *(getattr(S, name) for name in DIFFERENCES),
    ),
    kept_rows=tuple(LADDER_ROWS + row for row in ROWS),
)


@cache
def layout_for(numbers: int, advisers: int, *, gated: bool = False) -> Layout:
    """The rows for so many numbers of a context and advisers."""
    coordinates = numbers + 1 if numbers else 0
    learned_numbers = (
        *vector("number_seen", numbers),
        *vector("number_mean", numbers),
        *vector("number_deviation", numbers),
    )
    recent = tuple(
        f"number_recent_{number}_{place}" for number in range(numbers) for place in range(RECENT)
    )
    linear = (*vector("linear", coordinates), *vector("known", coordinates * coordinates))
    explained = ("vector_explained", "vector_size") if numbers else ()
    return Layout(
        scalars=(
            *NAMED_SCALARS,
            *vector("number_given", numbers),
            *vector("number_scaled", numbers),
            *learned_numbers,
            *vector("linear_step", coordinates),
            *recent,
            *vector("number_ranked", RECENT if numbers else 0),
            *explained,
        ),
        floats=(*NAMED_FLOATS, *vector("advice", advisers), *linear),
        ints=("order", "segment_order"),
        learned=(
            *ladder_state.LAYOUT.learned,
            *LEARNED_SCALARS,
            *_KEPT_NAMES,
            *learned_numbers,
            *recent,
            *linear,
            *(explained if gated else ()),
        ),
    )


PARAMS = (
    *ladder_state.PARAMS,
    "outer_uniform_share",
    "outer_hedge_rate",
    "outer_rungs",
    "segmented",
    "numbers",
    "advisers",
    "gated",
    *vector("outer_prior", MOST_RUNGS),
    *vector("outer_kind", MOST_RUNGS),
)
Params = cast(Any, namedtuple("Params", PARAMS))
P = places_of(PARAMS)
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
        scalars[at + ARMS] = scalars[ARMS]
        scalars[at + SECRET] = scalars[SECRET]
        scalars[at + EVENTS] = scalars[EVENTS]
    scalars[S.pooled_round] = scalars[ROUND]
    scalars[S.segment_round] = 1.0 + scalars[S.segment_seen]


@compiled
def width(arms: int) -> int:
    """How many numbers are kept of a segment."""
    return KEPT_SCALARS + len(ROWS) * arms


@compiled
def number_at(kind: int, number: int, numbers: int) -> int:
    """Where the state has what a kind, such as `MEAN`, says of a number."""
    return NUMBERS_AT + kind * numbers + number


@compiled
def steps_at(numbers: int) -> int:
    """Where the work space of the regression begins: one scalar for each coordinate."""
    return NUMBERS_AT + _KINDS_OF_NUMBERS * numbers


@compiled
def recent_at(number: int, numbers: int) -> int:
    """Where the last values of a number begin."""
    coordinates = numbers + 1
    return steps_at(numbers) + coordinates + RECENT * number


@compiled
def ranked_at(numbers: int) -> int:
    """Where the work space begins in which the last values of a number are ranked."""
    return recent_at(numbers, numbers)


@compiled
def explained_at(numbers: int) -> int:
    """Where the state has what the parts of vectors explain; their size follows."""
    return ranked_at(numbers) + RECENT


@compiled
def end_of_names(numbers: int) -> int:
    """Where the room for segments begins: behind the scalars of the layout."""
    return explained_at(numbers) + 2 if numbers > 0 else NUMBERS_AT


@compiled
def own_place(kept: int) -> int:
    """The place of a kept scalar in the state of the segment at hand."""
    if kept < LEARNED:
        return FIRST_LEARNED + kept
    place: int = S.segment_between + kept - LEARNED
    return place


@compiled
def put_away(state: State, at: int) -> None:
    """Keep at this place what is known of the segment at hand."""
    scalars = state.scalars
    arms = state.floats.shape[1]
    for kept in range(KEPT_SCALARS):
        scalars[at + kept] = scalars[own_place(kept)]
    at += KEPT_SCALARS
    for row in ROWS:
        values = state.floats[LADDER_ROWS + row]
        for arm in range(arms):
            scalars[at + arm] = values[arm]
        at += arms


@compiled
def take_out(state: State, at: int) -> None:
    """Make what is kept at this place the state of the segment at hand."""
    scalars = state.scalars
    arms = state.floats.shape[1]
    for kept in range(KEPT_SCALARS):
        scalars[own_place(kept)] = scalars[at + kept]
    at += KEPT_SCALARS
    for row in ROWS:
        values = state.floats[LADDER_ROWS + row]
        for arm in range(arms):
            values[arm] = scalars[at + arm]
        at += arms


@compiled
def change_segment(numbers: int, state: State) -> None:
    """Keep what is known of the segment at hand, and take the one that is wanted."""
    scalars = state.scalars
    size = width(state.floats.shape[1])
    first = end_of_names(numbers)
    if scalars[S.wanted] != scalars[S.current]:
        put_away(state, first + size * int(scalars[S.current]))
        take_out(state, first + size * int(scalars[S.wanted]))
        scalars[S.current] = scalars[S.wanted]
