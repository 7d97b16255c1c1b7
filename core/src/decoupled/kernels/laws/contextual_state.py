"""The state and the parameters of the contextual ladder.

It holds two ladders, each as its own rows and scalars: one of all rounds, and one of the rounds with the segment at hand.
What is known of each segment is kept behind the scalars that have names, in room that a learner makes, and copied from
there and back when another segment is wanted. What a context says of this round, its numbers and the advice of others, is
written here too, before a call.
"""

from collections import namedtuple
from functools import cache
from typing import Any

from ..jit import compiled
from ..state import ARMS, EVENTS, ROUND, SECRET, SHARED_SCALARS, Layout, State
from . import ladder_state as at_place

MOST_ADVISERS = 8
MOST_NUMBERS = 32
OWN_RUNGS = 4
MOST_RUNGS = OWN_RUNGS + MOST_ADVISERS
POOLED, SEGMENTS, SHRUNK, LINEAR, ADVICE = range(5)  # kinds of rungs; advisers count from the last
EVERYWHERE = -1.0  # the arm of a rung that knows nothing yet: any
MISSING = 1e140  # in place of a number that a context does not have; those that it has are smaller
LARGEST_NUMBER = 1e100
RECENT = 16  # so many values of a number are kept, and tell which are far out

_LADDER = (*SHARED_SCALARS, *at_place.SCALARS)


def _numbered(name: str, count: int = MOST_RUNGS) -> tuple[str, ...]:
    return tuple(f"{name}_{number}" for number in range(count))


# How much the segments differ. Of each segment: the squares of what its means differ from those of all, how many of
# these are free, and how much a difference between segments counts in them. The sums of these over all segments.
LEARNED_SCALARS = (
    *("outer_regret", *_numbered("outer_loss")),
    *("between", "between_free", "between_size", "within", "within_free"),
)
DERIVED_SCALARS = (
    *("entering", "wanted", "current", "outer_sum", "served_rung", "segment_level", "noise", "variety"),
    *_numbered("outer_weight"),
    *_numbered("outer_prior"),
    *_numbered("outer_kind"),
    *_numbered("outer_arm"),
    *_numbered("outer_chance"),
    *_numbered("outer_step"),
)
OWN_SCALARS = (*LEARNED_SCALARS, *DERIVED_SCALARS)
REGRET = len(SHARED_SCALARS)
LOSS = REGRET + 1
BETWEEN, BETWEEN_FREE, BETWEEN_SIZE, WITHIN, WITHIN_FREE = range(LOSS + MOST_RUNGS, LOSS + MOST_RUNGS + 5)
(ENTERING, WANTED, CURRENT, HEDGE_SUM, SERVED, LEVEL, NOISE, VARIETY) = range(
    WITHIN_FREE + 1, WITHIN_FREE + 9
)
WEIGHT = VARIETY + 1
PRIOR = WEIGHT + MOST_RUNGS
KIND = PRIOR + MOST_RUNGS
ARM = KIND + MOST_RUNGS  # that a rung exploits, for rungs with one arm
CHANCE = ARM + MOST_RUNGS  # of the explored arm under a rung
STEP = CHANCE + MOST_RUNGS
POOLED_AT = STEP + MOST_RUNGS
SEGMENT_AT = POOLED_AT + len(_LADDER)
OWN_BETWEEN, OWN_FREE, OWN_SIZE = range(SEGMENT_AT + len(_LADDER), SEGMENT_AT + len(_LADDER) + 3)
# As given; scaled; how often seen; their means; their deviations; work space; the last values of each; work space.
NUMBERS_AT = OWN_SIZE + 1

LADDER_ROWS = len(at_place.FLOATS)
LAW, ABSENT, VALUE = range(2 * LADDER_ROWS, 2 * LADDER_ROWS + 3)
ADVICE_AT = VALUE + 1

KEPT = _numbered("outer_chance")  # what a pending decision keeps

# What is kept of every segment: its learned scalars, which are neighbours, its differences, and these rows.
ROWS = (at_place.ESTIMATES, at_place.COUNTS, at_place.MEANS, at_place.CENTRED)
FIRST_LEARNED = SEGMENT_AT + len(SHARED_SCALARS)
LEARNED = len(at_place.LEARNED_SCALARS)
KEPT_SCALARS = LEARNED + 3
_KEPT_NAMES = (
    *(f"segment_{at_place.FLOATS[row]}" for row in ROWS),
    *(f"segment_{name}" for name in at_place.LEARNED_SCALARS),
    *("segment_between", "segment_between_free", "segment_between_size"),
)


@cache
def layout(numbers: int, advisers: int) -> Layout:
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
            *OWN_SCALARS,
            *(f"pooled_{name}" for name in SHARED_SCALARS),
            *at_place.SCALARS,
            *(f"segment_{name}" for name in _LADDER),
            *("segment_between", "segment_between_free", "segment_between_size"),
            *(f"number_given_{each}" for each in range(numbers)),
            *(f"number_scaled_{each}" for each in range(numbers)),
            *learned_numbers,
            *(f"linear_step_{each}" for each in range(size)),
            *recent,
            *(f"number_ranked_{at}" for at in range(RECENT if numbers else 0)),
        ),
        floats=(
            *at_place.FLOATS,
            *(f"segment_{name}" for name in at_place.FLOATS),
            *("law", "absent", "value"),
            *(f"advice_{each}" for each in range(advisers)),
            *linear,
        ),
        ints=("order", "segment_order"),
        learned=(
            *at_place.LAYOUT.learned,
            *LEARNED_SCALARS,
            *_KEPT_NAMES,
            *learned_numbers,
            *recent,
            *linear,
        ),
    )


PARAMS = (
    *at_place.PARAMS,
    *("exploration", "outer_rate", "outer_rungs", "segmented", "numbers", "advisers"),
    *_numbered("outer_prior"),
    *_numbered("outer_kind"),
)
Params: Any = namedtuple("Params", PARAMS)  # type: ignore[misc]
PRIORS_AT = len(at_place.PARAMS) + 6
KINDS_AT = PRIORS_AT + MOST_RUNGS
_INNER = len(at_place.PARAMS)


@compiled
def ladder_params(params: Any) -> Any:
    """The parameters of the two ladders."""
    return at_place.Params(*params[:_INNER])


@compiled
def pooled(state: State) -> State:
    """The ladder of all rounds, without a copy."""
    return State(state.scalars[POOLED_AT:SEGMENT_AT], state.floats[:LADDER_ROWS], state.ints[:1])


@compiled
def segment(state: State) -> State:
    """The ladder of the segment at hand, without a copy."""
    rows = state.floats[LADDER_ROWS : 2 * LADDER_ROWS]
    return State(state.scalars[SEGMENT_AT:OWN_BETWEEN], rows, state.ints[1:2])


@compiled
def set_shared(state: State) -> None:
    """Set the shared scalars of the two ladders; a segment counts its own rounds."""
    scalars = state.scalars
    for at in (POOLED_AT, SEGMENT_AT):
        scalars[at + ARMS], scalars[at + SECRET] = scalars[ARMS], scalars[SECRET]
        scalars[at + EVENTS] = scalars[EVENTS]
    scalars[POOLED_AT + ROUND] = scalars[ROUND]
    scalars[SEGMENT_AT + ROUND] = 1.0 + scalars[SEGMENT_AT + at_place.SEEN]


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
    return recent_at(numbers) + RECENT * (numbers + 1) if numbers > 0 else NUMBERS_AT


@compiled
def exchange(state: State, at: int, taking: bool) -> None:
    """Take what is kept at this place into the state of the segment at hand, or put it there."""
    scalars, arms = state.scalars, state.floats.shape[1]
    for each in range(KEPT_SCALARS):
        own = FIRST_LEARNED + each if each < LEARNED else OWN_BETWEEN + each - LEARNED
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
    if scalars[WANTED] != scalars[CURRENT]:
        exchange(state, first + size * int(scalars[CURRENT]), False)
        exchange(state, first + size * int(scalars[WANTED]), True)
        scalars[CURRENT] = scalars[WANTED]


def given(state: State, numbers: int) -> Any:
    """A view of the numbers of the context at hand."""
    return state.scalars[NUMBERS_AT : NUMBERS_AT + numbers]


def chances(state: State, rungs: int) -> Any:
    """A view of what the rungs of a decision are judged with."""
    return state.scalars[CHANCE : CHANCE + rungs]
