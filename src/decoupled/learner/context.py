"""Contexts: what a request says of itself, as a contextual policy sees it.

The state of such a policy has room for one segment. The numbers of all segments are kept here, and those of the segment at
hand are copied into the state, and back before another takes their place.
"""

import math
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from ..base.arrays import Floats, Ints
from ..base.packed import pack_floats, unpack_floats
from ..decision import Arm, ByArm
from ..errors import ParameterError, UnsupportedError, invalid_value, shown
from ..kernels.laws import contextual_state as at_place
from ..kernels.state import State
from .arms import ArmNames
from .pending import Baseline
from .protocol import ContextualPolicy, RunnablePolicy

Value: TypeAlias = str | bool | int | float | None
"""What a field of a context may be; None for a field that is missing."""
Context: TypeAlias = Mapping[str, Value]
"""A request's fields, by name."""
Advice: TypeAlias = Mapping[str, Arm | ByArm]
"""What advisers would exploit: each an arm, or the probabilities of arms."""
Segment: TypeAlias = tuple[str | None, ...]

MOST_CHARACTERS = 1_000  # of a value that tells segments apart
OTHERS: Segment = ("(other segments)",)
_FIRST = 8  # segments there is room for at first
_NO_SERIALS, _NO_VALUES = np.empty(0, np.int64), np.empty(0)


class Encoder:
    """Turns contexts into numbers: that of the segment, and the numbers for the regression.

    Segments are numbered in order of appearance. Those beyond `max_segments` are one, with the last number.
    """

    def __init__(self, policy: ContextualPolicy, segments: list[Segment] | None = None) -> None:
        self._fields, self._numbers = policy.segments, policy.numbers
        self._most = policy.max_segments
        self.segments = segments or []
        self._places = {each: place for place, each in enumerate(self.segments)}

    def encode(self, context: Context | None) -> tuple[int, list[float]]:
        """The number of a context's segment, and its numbers."""
        given: object = {} if context is None else context
        if not isinstance(given, Mapping):
            rule = "must be a mapping from the names of fields to their values"
            raise ParameterError(invalid_value("context", given, rule, "for example {'subject': 'law'}"))
        numbers = [_number(name, given.get(name)) for name in self._numbers]
        if not self._fields:
            return 0, numbers
        return self._place(tuple([_text(name, given.get(name)) for name in self._fields])), numbers

    def _place(self, segment: Segment) -> int:
        place = self._places.get(segment)
        if place is None:
            place = len(self.segments)
            if place >= self._most:
                return self._most
            self.segments.append(segment)
            self._places[segment] = place
        return place

    def name(self, place: int) -> Segment:
        """The values of a segment."""
        return self.segments[place] if place < len(self.segments) else OTHERS


class Contexts:
    """The segments of a running policy, and the context at hand.

    Args:
        policy: the policy.
        state: its state, which stays where it is.
        derive: what derives the state from what is learned: `Calls.init`.
        segments: the segments known so far; None for none.
        kept: what is kept of each, in the order of `KEPT_SCALARS` and `KEPT_ROWS`; None for nothing.
        current: the number of the segment that the state has; -1 for none.
    """

    def __init__(
        self,
        policy: ContextualPolicy,
        state: State,
        derive: Callable[[], None],
        segments: list[Segment] | None = None,
        kept: Floats | None = None,
        current: int = -1,
    ) -> None:
        self.policy, self.encoder = policy, Encoder(policy, segments)
        self._state, self._derive = state, derive
        self._arms, self._scalars = state.floats.shape[1], len(at_place.KEPT_SCALARS)
        self.kept = np.zeros((_FIRST, self.width(self._arms))) if kept is None else kept
        self.current = current
        self._at_hand: object = None  # the record whose context the state has
        layout = policy.layout
        first = [layout.floats.index(name) for name in at_place.KEPT_ROWS]
        names = ("round", "arms", "secret", *layout.scalars)
        # Of the rows and scalars of the segment in the state, those that are kept.
        self._rows, self._places = (
            np.array(first),
            np.array([names.index(x) for x in at_place.KEPT_SCALARS]),
        )
        self._given = at_place.given(state, len(policy.numbers))
        self._rungs = policy.rung_names
        self._chances = at_place.chances(state, len(self._rungs))
        self._weights = state.scalars[at_place.WEIGHT : at_place.WEIGHT + len(self._rungs)]
        end = at_place.ADVICE_AT + len(policy.advisers)
        self._advice = state.floats[at_place.ADVICE_AT : end]

    @staticmethod
    def width(arms: int) -> int:
        """How many numbers are kept of a segment."""
        return len(at_place.KEPT_SCALARS) + len(at_place.KEPT_ROWS) * arms

    # The context at hand

    def enter(self, context: Context | None, advice: "Floats | None" = None) -> None:
        """Put a context into the state, and the advice of each adviser: a law, or zeros for none."""
        segment, numbers = self.encoder.encode(context)
        self._at_hand = None
        self._advice[:] = 0.0 if advice is None else advice
        self._put(segment, numbers)

    def recall(self, record: object) -> None:
        """Put the context of a pending decision into the state, with what its rungs are judged with."""
        if record is not None and record is self._at_hand:
            self._at_hand = None  # the state changes now
            return
        self._at_hand = None
        if not isinstance(record, tuple):  # a decision of another policy's time
            self.enter(None)
            self._chances[:] = 0.0
            return
        (numbers,) = record[3].values()
        count = len(self._given)
        self._put(int(numbers[0]), numbers[1 : 1 + count])
        self._chances[:] = numbers[1 + count :]

    def record(self, state: State, serial: int) -> Baseline:
        """What a decision keeps until its feedback comes, if it was drawn in this state and explores this arm."""
        chances = self._chances if state is self._state else at_place.chances(state, len(self._rungs))
        kept = [float(self.current), *self._given.tolist(), *chances.tolist()]
        made: Baseline = (_NO_SERIALS, _NO_VALUES, False, {serial: kept})
        if state is self._state:
            self._at_hand = made
        return made

    def why(self, state: State) -> tuple[Any, ...]:
        """What `Why` is made of, for a decision that was drawn in this state."""
        served = int(state.scalars.item(at_place.SERVED))
        return self._rungs, served, self.encoder.name(self.current), self._weights.tolist()

    def _put(self, segment: int, numbers: list[float]) -> None:
        if numbers:
            self._given[:] = numbers
        if segment != self.current:
            self.flush()
            if segment >= len(self.kept):
                self._grow(segment + 1)
            self.current = -1
            self._load(self._state, self.kept[segment])
            self.current = segment
        self._state.scalars[at_place.ENTERING] = 1.0
        self._derive()

    def flush(self) -> None:
        """Keep what the state has learned of its segment."""
        if self.current >= 0:
            mine = self.kept[self.current]
            mine[: self._scalars] = self._state.scalars[self._places]
            mine[self._scalars :] = self._state.floats[self._rows].ravel()

    def _load(self, state: State, mine: Floats) -> None:
        state.scalars[self._places] = mine[: self._scalars]
        state.floats[self._rows] = mine[self._scalars :].reshape(len(self._rows), -1)

    def _grow(self, needed: int) -> None:
        more = np.zeros((max(needed, 2 * len(self.kept)), self.kept.shape[1]))
        more[: len(self.kept)] = self.kept
        self.kept = more

    def copy_context(self, part: Ints, state: State) -> None:
        """Put the context at hand into the state of a copy with some of the arms only."""
        at_place.given(state, len(self._given))[:] = self._given
        for mine, row in zip(self._advice, state.floats[at_place.ADVICE_AT :], strict=False):
            among = mine[part]
            row[:] = among / among.sum() if among.sum() > 0.0 else 0.0

    # Arms that come and go

    def following(self, state: State, derive: Callable[[], None], left: Ints, newcomers: int) -> "Contexts":
        """The same for another state, with these of the arms and as many new ones, which are level with the leader."""
        self.flush()
        arms = len(left) + newcomers
        rows = self.kept[:, self._scalars :].reshape(len(self.kept), -1, self._arms)
        kept = np.zeros((len(self.kept), self.width(arms)))
        kept[:, : self._scalars] = self.kept[:, : self._scalars]
        new = kept[:, self._scalars :].reshape(len(kept), -1, arms)
        new[:, :, : len(left)] = rows[:, :, left]
        if newcomers:
            sums = at_place.KEPT_ROWS.index("segment_estimates")
            new[:, sums, len(left) :] = rows[:, sums].min(axis=1)[:, None]
        kept[:, self._scalars :] = new.reshape(len(kept), -1)
        return Contexts(self.policy, state, derive, self.encoder.segments, kept, self.current)

    # Saving

    def snapshot(self) -> Callable[[], None]:
        """What takes back everything that is learned of segments from now on."""
        kept, current = self.kept.copy(), self.current

        def restore() -> None:
            self.kept[: len(kept)], self.kept[len(kept) :] = kept, 0.0
            self.current, self._at_hand = current, None

        return restore

    def to_json(self) -> dict[str, Any]:
        """The segments as plain values."""
        self.flush()
        known = min(len(self.encoder.segments) + 1, len(self.kept))
        return {
            "segments": [list(each) for each in self.encoder.segments],
            "current": self.current,
            "kept": pack_floats(self.kept[:known].ravel()),
        }

    @classmethod
    def from_json(
        cls, content: Any, policy: ContextualPolicy, state: State, derive: Callable[[], None]
    ) -> "Contexts":
        """Restore the result of `to_json`; raise an error if it cannot be."""
        segments = [tuple(each) for each in content["segments"]]
        values = chain.from_iterable(segments)
        fits = all(len(each) == len(policy.segments) for each in segments)
        if not fits or not all(each is None or isinstance(each, str) for each in values):
            raise ParameterError("segments: cannot be; they were changed")
        if len(set(segments)) != len(segments) or len(segments) > policy.max_segments:
            raise ParameterError("segments: are too many or repeated; they were changed")
        numbers, width = unpack_floats(content["kept"]), cls.width(state.floats.shape[1])
        kept = numbers.reshape(-1, width)
        sound = bool((np.abs(numbers) < at_place.MISSING).all())
        current = content["current"]
        if not sound or type(current) is not int or not -1 <= current < max(len(kept), 1):
            raise ParameterError("segments: have numbers that cannot be; they were changed")
        room = np.zeros((max(_FIRST, len(kept)), width))
        room[: len(kept)] = kept
        return cls(policy, state, derive, segments, room, current)

    def check(self, record: object) -> None:
        """Raise an error if a pending decision of a saved state has a record that cannot be."""
        if not isinstance(record, tuple) or len(record[3]) != 1:
            raise ParameterError("pending: a decision without its context; it was changed")
        (numbers,) = record[3].values()
        if len(numbers) != 1 + len(self._given) + len(self._rungs) or not 0 <= numbers[0] < len(self.kept):
            raise ParameterError("pending: a context that cannot be; it was changed")


def checked_advice(advice: Advice | None, policy: ContextualPolicy, arms: ArmNames) -> Floats | None:
    """The law of each adviser, zeros for those that say nothing; None if nobody says anything."""
    if not advice:
        return None
    laws = np.zeros((len(policy.advisers), len(arms)))
    for name, said in advice.items():
        if name not in policy.advisers:
            rule = f"is not an adviser of this policy, {shown(list(policy.advisers))}"
            raise ParameterError(
                invalid_value("advice", name, rule, "name it in ContextualLadder(advisers=...)")
            )
        law = laws[policy.advisers.index(name)]
        if not isinstance(said, Mapping):
            law[arms.place(said)] = 1.0
            continue
        for arm, chance in said.items():
            law[arms.place(arm)] = _chance(name, chance)
        if not math.isclose(law.sum(), 1.0, abs_tol=1e-6):
            rule = f"must be probabilities that sum to 1, and they sum to {law.sum():.6g}"
            raise ParameterError(invalid_value(f"advice[{name!r}]", said, rule, "scale them"))
        law /= law.sum()
    return laws


def refuse_context(policy: RunnablePolicy) -> None:
    """Raise the error of a policy that knows no context."""
    raise UnsupportedError(
        f"context: {type(policy).__name__} does not use one, so it would change nothing; leave it out, or use "
        "ContextualLadder(segments=..., numbers=...)"
    )


def _chance(name: str, value: object) -> float:
    if type(value) in (int, float) and 0.0 <= value <= 1.0:  # type: ignore[operator]
        return float(value)  # type: ignore[arg-type]
    rule = "must have a probability from 0 to 1 for each arm"
    raise ParameterError(invalid_value(f"advice[{name!r}]", value, rule, "or name one arm"))


def _number(name: str, value: object) -> float:
    if type(value) is float or type(value) is int or type(value) is bool:
        if -at_place.LARGEST_NUMBER <= value <= at_place.LARGEST_NUMBER:
            return float(value)
    elif value is None:
        return at_place.MISSING
    elif isinstance(value, (np.integer, np.floating, np.bool_)):
        return _number(name, value.item())
    rule = "must be a number from -1e+100 to 1e+100, or None if it is missing"
    raise ParameterError(
        invalid_value(f"context[{name!r}]", value, rule, "leave it out if it is not known")
    )


def _text(name: str, value: object) -> str | None:
    if type(value) is str:
        if len(value) <= MOST_CHARACTERS:
            return value
    elif value is None:
        return None
    elif type(value) is bool:
        return "true" if value else "false"
    elif type(value) is int:
        if value.bit_length() <= MOST_CHARACTERS:
            return str(value)
    elif isinstance(value, (str, np.str_, np.integer, np.bool_)):
        return _text(name, value.item() if isinstance(value, np.generic) else str(value))
    rule = f"must be a string of at most {MOST_CHARACTERS} characters, a boolean, a whole number, or None"
    remedy = "name a field of numbers in numbers=..., not in segments=..."
    raise ParameterError(invalid_value(f"context[{name!r}]", value, rule, remedy))
