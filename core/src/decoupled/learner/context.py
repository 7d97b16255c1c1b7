"""Contexts: what a request says of itself, as a contextual policy sees it.

The compiled functions read a context from the state, where `Contexts` writes it before a call.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from ..base.arrays import Floats, Ints
from ..base.packed import pack_floats, unpack_floats
from ..base.validation import as_float, as_loss
from ..decision import Arm, ByArm
from ..errors import ParameterError, UnsupportedError, shown
from ..kernels.context import LARGEST_NUMBER, MISSING
from ..kernels.state import State
from ..policy import ContextualDefinition, Definition
from .arms import ArmNames, Serials
from .pending import Baseline

Value: TypeAlias = str | bool | int | float | Sequence[float] | Floats | None
"""The value of a field of a context; None if it is missing."""
Context: TypeAlias = Mapping[str, Value]
"""A request's fields, by name."""
Advice: TypeAlias = Mapping[str, Arm | ByArm]
"""What each adviser would exploit: an arm, or probabilities by arm."""
Segment: TypeAlias = tuple[str | None, ...]

MOST_CHARACTERS = 1_000  # of a value that tells segments apart
OTHERS: Segment = ("(other segments)",)
_NO_SERIALS = np.empty(0, np.int64)
_NO_VALUES = np.empty(0)


class Encoder:
    """Numbers a context's segment in order of appearance, all beyond `max_segments` as one, and
    gives its own numbers.
    """

    def __init__(self, policy: ContextualDefinition, segments: list[Segment] | None = None) -> None:
        self._fields = policy.segments
        self._numbers = policy.all_numbers
        self._policy = policy
        self._most = policy.max_segments
        self.segments = segments or []
        self._places = {segment: place for place, segment in enumerate(self.segments)}

    def encode(self, context: Context | None, *, new: bool = True) -> tuple[int, list[float]]:
        """The number of a context's segment, and its numbers.

        Unless it may be `new`, it has the next number for now.
        """
        fields: object = {} if context is None else context
        if type(fields) is not dict and not isinstance(fields, Mapping):  # the first is quicker
            rule = "must be a mapping from the names of fields to their values"
            raise ParameterError.of("context", fields, rule, "for example {'subject': 'law'}")
        get: Any = fields.get
        for name in self._policy.vectors:
            value = get(name)
            if value is not None:
                fields = {**fields, **self._policy.spread(name, value)}
                get = fields.get
        numbers = [_number(name, get(name)) for name in self._numbers]
        if not self._fields:
            return 0, numbers
        segment = tuple([_text(name, get(name)) for name in self._fields])
        return self._place(segment, new=new), numbers

    def _place(self, segment: Segment, *, new: bool) -> int:
        """The place of a segment, which it gets now if it may be `new`; of those without room, the
        last.
        """
        place = self._places.get(segment)
        if place is None:
            place = len(self.segments)
            if place >= self._most:
                return self._most
            if new:
                self.segments.append(segment)
                self._places[segment] = place
        return place

    def name(self, place: int) -> Segment:
        """The values of a segment; none if nothing tells segments apart."""
        if not self._fields:
            return ()
        return self.segments[place] if place < len(self.segments) else OTHERS


class Contexts:
    """The segments of a running policy, whose state has `room` for them, and the context at hand;
    `derive` is `Calls.init`.
    """

    def __init__(
        self,
        policy: ContextualDefinition,
        state: State,
        derive: Callable[[], None],
        segments: list[Segment] | None = None,
    ) -> None:
        self.policy = policy
        self.encoder = Encoder(policy, segments)
        self._places = policy.context_places
        self._S = self._places.scalars
        self._R = self._places.rows
        self._state = state
        self._derive = derive
        # The snapshot of the decision whose context the state has; None for any other.
        self._at_hand: Any = None
        self._rungs = policy.rung_names
        self._scalars = state.scalars
        self._given = _given(policy, state)
        self._chances = _chances(policy, state)
        first_weight = self._S.outer_weight
        self._weights = state.scalars[first_weight : first_weight + len(self._rungs)]
        self._advice = _advice_rows(policy, state)
        self._advised = False

    # The context at hand

    def enter(
        self, context: Context | None, advice: Floats | None = None, *, new: bool = True
    ) -> Baseline:
        """Put a context into the state, for the next call, and the advice of each adviser: a law,
        or zeros for none.

        Return what a decision keeps until its `snapshot` is known. Only with `new`, an unknown
        segment gets a number: a replay makes all decisions again, but not what else was asked in
        between.
        """
        segment, numbers = self.encoder.encode(context, new=new)
        # What a decision keeps if it is interrupted before its snapshot is known: nothing.
        snapshot = Baseline(_NO_SERIALS, _NO_VALUES, "sparse", {})
        self._put(segment, numbers)
        if advice is not None or self._advised:
            self._advice[:] = 0.0 if advice is None else advice
            self._advised = advice is not None
        self._at_hand = snapshot
        return snapshot

    @property
    def segment(self) -> int:
        """The place of the segment of the context at hand."""
        return int(self._scalars.item(self._S.wanted))

    def derive(self) -> None:
        """Derive what depends on the context, before anything but a decision or an update reads the
        state.
        """
        if self._scalars.item(self._S.entering):
            self._derive()

    def recall(self, snapshot: Any, serials: Serials) -> None:
        """Put the context of a pending decision into the state, with its law and what its rungs are
        judged with.
        """
        if snapshot is self._at_hand and snapshot is not None:
            return
        if snapshot is None or not snapshot.scalars_of:  # interrupted before it was known
            self.enter(None)
            self._chances[:] = 0.0
        else:
            (numbers,) = snapshot.scalars_of.values()
            count = 1 + len(self._given)
            self._put(int(numbers[0]), numbers[1:count])
            self._chances[:] = numbers[count:]
            places, indices = serials.places(snapshot.serials)
            law = self._state.floats[self._R.outer_law]
            law[:] = -1.0
            law[places] = snapshot.values[indices]
            self._scalars[self._S.law_known] = 1.0
        self._at_hand = snapshot

    def snapshot(self, state: State, serials: Serials, serial: int) -> Baseline:
        """What a decision keeps until its feedback comes, drawn in this state with these arms, if
        it explores this one.
        """
        chances = self._chances if state is self._state else _chances(self.policy, state)
        law = state.floats[self._R.outer_law].copy()
        kept = [self._scalars.item(self._S.wanted), *self._given.tolist(), *chances.tolist()]
        return Baseline(serials.ids(np.arange(len(law))), law, "law", {serial: kept})

    def why(self, state: State) -> tuple[Any, ...]:
        """What `Why` is made of, for a decision that was drawn in this state."""
        segment = self.encoder.name(int(self._scalars.item(self._S.wanted)))
        return (
            self._rungs,
            int(state.scalars.item(self._S.served_rung)),
            segment,
            self._weights.tolist(),
        )

    def _put(self, segment: int, numbers: list[float]) -> None:
        scalars = self._scalars
        scalars[self._S.wanted] = segment
        if numbers:
            self._given[:] = numbers
        scalars[self._S.entering] = 1.0
        scalars[self._S.law_known] = 0.0

    def leave(self) -> None:
        """Enter the first segment: what is saved, or follows, must not depend on the context of the
        last call.
        """
        self._put(0, [])
        self._at_hand = None
        self._derive()

    def copy_context(self, places: Ints, state: State) -> None:
        """Put the context at hand into the state of a copy with some of the arms only."""
        _given(self.policy, state)[:] = self._given
        for law, row in zip(self._advice, _advice_rows(self.policy, state), strict=True):
            chances = law[places]
            total = chances.sum()
            row[:] = chances / total if total > 0.0 else 0.0

    # What is kept of segments

    @staticmethod
    def room(policy: ContextualDefinition, state: State) -> State:
        """The same state with room for all segments.

        Memory is taken when a segment is first seen.
        """
        first = _first_kept(policy)
        width = policy.context_places.width(state.floats.shape[1])
        scalars = np.zeros(first + (policy.max_segments + 1) * width)
        scalars[:first] = state.scalars[:first]
        return State(scalars, state.floats, state.ints)

    def _kept(self) -> Floats:
        """What is kept of each segment that was seen, and of the one that others share, in this
        state.
        """
        self.derive()
        scalars = self._scalars
        floats = self._state.floats
        room = scalars[_first_kept(self.policy) :].reshape(-1, self._places.width(floats.shape[1]))
        # The segment at hand, as the kernels of the policy keep it.
        count = len(self._places.kept_scalars)
        current = room[int(scalars[self._S.current])]
        current[:count] = scalars[list(self._places.kept_scalars)]
        current[count:] = floats[list(self._places.kept_rows)].ravel()
        last = len(self.encoder.segments)
        return room[: last + (last == self.policy.max_segments) or 1]

    def with_arms(self, state: State, derive: Callable[[], None], left: Ints) -> "Contexts":
        """The same for another state, with these of the arms and new ones, which are level with the
        leader.
        """
        kept = self._kept()
        new = Contexts(self.policy, state, derive, self.encoder.segments)
        arms = state.floats.shape[1]
        count = len(self._places.kept_scalars)
        kept_rows = len(self._places.kept_rows)
        room = state.scalars[_first_kept(self.policy) :].reshape(-1, self._places.width(arms))
        new_kept = room[: len(kept)]
        new_kept[:, :count] = kept[:, :count]
        old = kept[:, count:].reshape(len(kept), kept_rows, -1)
        rows = np.zeros((len(kept), kept_rows, arms))
        rows[:, :, : len(left)] = old[:, :, left]
        # The sums; the new arms are unseen.
        rows[:, 0, len(left) :] = old[:, 0].min(axis=1, keepdims=True)
        new_kept[:, count:] = rows.reshape(len(kept), -1)
        current = self._scalars[self._S.current]
        state.scalars[self._S.wanted] = current
        state.scalars[self._S.current] = current
        return new

    # Saving

    def to_json(self) -> dict[str, Any]:
        """The segments as plain values."""
        return {
            "segments": [list(segment) for segment in self.encoder.segments],
            "kept": pack_floats(self._kept().ravel()),
            "current": int(self._scalars[self._S.current]),
        }

    def restore(self, content: Any) -> None:
        """Restore the result of `to_json`; raise an error if it cannot be."""
        segments = [tuple(segment) for segment in content["segments"]]
        most = self.policy.max_segments
        fits = all(len(segment) == len(self.policy.segments) for segment in segments)
        if not fits or not all(
            x is None or isinstance(x, str) for x in chain.from_iterable(segments)
        ):
            raise ParameterError("segments: cannot be; they were changed")
        if len(set(segments)) != len(segments) or len(segments) > most:
            raise ParameterError("segments: are too many or repeated; they were changed")
        kept = unpack_floats(content["kept"])
        current = content["current"]
        size = self._places.width(self._state.floats.shape[1])
        sound = bool((np.abs(kept) < MISSING).all()) and len(kept) % size == 0
        if (
            not sound
            or type(current) is not int
            or not 0 <= current < len(kept) // size <= most + 1
        ):
            raise ParameterError("segments: have numbers that cannot be; they were changed")
        self.encoder = Encoder(self.policy, segments)
        first = _first_kept(self.policy)
        self._scalars[first : first + len(kept)] = kept
        self._scalars[self._S.wanted] = current
        self._scalars[self._S.current] = current

    def check(self, snapshot: Any) -> None:
        """Raise an error if a pending decision of a saved state has a snapshot that cannot be."""
        if snapshot is None or not snapshot.scalars_of:
            return
        (numbers,) = snapshot.scalars_of.values()
        fits = len(numbers) == 1 + len(self._given) + len(self._rungs)
        if not fits or not 0 <= numbers[0] <= len(self.encoder.segments):
            raise ParameterError("pending: a context that cannot be; it was changed")


def _first_kept(policy: ContextualDefinition) -> int:
    return len(policy.layout.all_scalars)


def _given(policy: ContextualDefinition, state: State) -> Any:
    """A view of the numbers of the context at hand."""
    first = policy.context_places.numbers
    return state.scalars[first : first + len(policy.all_numbers)]


def _chances(policy: ContextualDefinition, state: State) -> Any:
    """A view of what the rungs of a decision are judged with."""
    first = policy.context_places.scalars.outer_chance
    return state.scalars[first : first + len(policy.rung_names)]


def _advice_rows(policy: ContextualDefinition, state: State) -> Any:
    first = policy.context_places.advice
    return state.floats[first : first + len(policy.advisers)]


def checked_advice(
    advice: Advice | None, policy: ContextualDefinition, arms: ArmNames
) -> Floats | None:
    """The law of each adviser, zeros for those that say nothing; None if nobody says anything."""
    unchecked: object = advice
    if unchecked is not None and not isinstance(unchecked, Mapping):
        rule = "must be a mapping from advisers to an arm, or to the probabilities of arms"
        raise ParameterError.of("advice", unchecked, rule, "for example {'router': 'small'}")
    if not advice:
        return None
    laws = np.zeros((len(policy.advisers), len(arms)))
    for name, said in advice.items():
        if name not in policy.advisers:
            rule = f"is not an adviser of this policy, {shown(list(policy.advisers))}"
            raise ParameterError.of(
                "advice", name, rule, "name it in ContextualLadder(advisers=...)"
            )
        law = laws[policy.advisers.index(name)]
        if not isinstance(said, Mapping):
            law[arms.place(said)] = 1.0
            continue
        for arm, value in said.items():
            chance = as_float(value)
            if chance is None or not 0.0 <= chance <= 1.0:
                rule = "must have a probability from 0 to 1 for each arm"
                raise ParameterError.of(f"advice[{name!r}]", value, rule, "or name one arm")
            law[arms.place(arm)] = chance
        if not math.isclose(law.sum(), 1.0, abs_tol=1e-6):
            rule = f"must be probabilities that sum to 1, and they sum to {law.sum():.6g}"
            raise ParameterError.of(f"advice[{name!r}]", said, rule, "scale them")
        law /= law.sum()
    return laws


def refuse_context(policy: Definition) -> None:
    """Raise the error of a policy that knows no context.

    >>> import decoupled as dc
    >>> refuse_context(dc.FTPL())  # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
    decoupled.errors.UnsupportedError: context: FTPL does not use one, so it would change nothing;
    leave it out, or use ContextualLadder(segments=..., numbers=...)
    """
    problem = f"context: {type(policy).__name__} does not use one, so it would change nothing"
    raise UnsupportedError(
        f"{problem}; leave it out, or use ContextualLadder(segments=..., numbers=...)"
    )


def _number(name: str, value: object) -> float:
    if value is None:
        return MISSING
    number = value if type(value) is float else as_loss(value)
    if number is not None and -LARGEST_NUMBER <= number <= LARGEST_NUMBER:
        return number
    rule = "must be a number from -1e+100 to 1e+100, or None if it is missing"
    raise ParameterError.of(f"context[{name!r}]", value, rule, "leave it out if it is not known")


def _text(name: str, value: object) -> str | None:
    """The text of a value of a segment; None if it is missing, and an error if it can be none."""
    if type(value) is str:
        if len(value) <= MOST_CHARACTERS:
            return value
    elif value is None:
        return None
    elif isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    elif isinstance(value, str):
        return _text(name, str.__str__(value))  # that of an enum is the name of its member
    elif isinstance(value, (int, np.integer)) and int(value).bit_length() <= MOST_CHARACTERS:
        return str(int(value))
    rule = (
        f"must be a string of at most {MOST_CHARACTERS} characters, a boolean, a whole number, or "
        "None"
    )
    remedy = "name a field of numbers in numbers=..., not in segments=..."
    raise ParameterError.of(f"context[{name!r}]", value, rule, remedy)
