"""The contextual ladder: which arm is best for this request."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ...base.arrays import Floats
from ...base.validation import check_number, set_number, set_whole
from ...base.vectors import LONGEST_VECTOR, hash_text, project
from ...errors import ParameterError
from ...kernels.context import ContextPlaces
from ...kernels.random.keyed import Keyed
from ...kernels.state import Layout, State
from ...policy import Baselines
from ..base import Policy
from ..ladder.policy import Ladder
from . import kernels
from .state import (
    ADVICE,
    ADVICE_AT,
    KEPT,
    LINEAR,
    MOST_ADVISERS,
    MOST_NUMBERS,
    MOST_RUNGS,
    PLACES,
    POOLED,
    SEGMENTS,
    SHRUNK,
    Params,
    S,
    layout_for,
    pooled,
    segment,
)

MOST_ARMS = 4_095  # as many as rounds with work for every arm are quick enough for
MOST_SEGMENTS = 100_000
_LADDER = Ladder()
# How much the rungs are trusted at first: the ladder of all rounds, of segments, shrunk means, the
# regression, an adviser.
_PRIORS = (2.0, 1.0, 4.0, 2.0, 1.0)
_NAMES = ("pooled", "segments", "shrunk", "linear")


@dataclass(frozen=True, repr=False)
class ContextualLadder(Policy):
    r"""A ladder that learns which arm is best for each request, from the request's *context*.

    A context is a flat mapping of names to values, known before the decision. What is exploited
    does not change what is seen, so one exploration can judge any number of rules that map a
    context to an arm. Each rule is a *rung*:

    - "pooled": the `Ladder`, blind to the context;
    - "segments": a `Ladder` for each value (or combination of values) of the fields in `segments`;
    - "shrunk": the arm with the smallest mean loss in the segment, shrunk towards that of all
      rounds as far as the data say;
    - "linear": the arm with the smallest predicted loss, by ridge regression on `numbers`, on top
      of the shrunk means;
    - an adviser of your own, each time you pass its choice to `decide(advice=...)`.

    AdaHedge learns how often to play each rung, from the same observations. Rounds in which all
    rungs agree teach it nothing and cost nothing. With two arms, a share $\gamma$ of the
    exploration is even, and the pooled ladder and the segment's ladder share the rest equally. With
    $K$ arms, the even share and the segment's start at $2 / K$ of that, and grow up to all of it as
    contextual rungs earn weight. The propensity is exact; see `least_propensity`.

    docs/context.md shows what it gains and what it costs where the context tells nothing.

    Args:
        segments: the names of fields whose values, together, tell segments apart. Their values are
            strings, booleans or whole numbers; a missing one is a value too. Empty for no segments.
        numbers: the names of fields for the regression, at most 32. They are scaled by their recent
            values, so outliers cost little. A missing number counts as the mean. Empty for no
            regression.
        advisers: the names of the advisers whose advice you may pass to `decide`, at most 8.
        max_segments: how many segments are told apart, in order of appearance; all later ones are
            one segment.
        uniform_share: the largest share $\gamma$ of the exploration that is even over all arms,
            above 0 and at most 1.
        hedge_rate: AdaHedge's learning rate is this number divided by its regret; above 0.
        vectors: the names of fields with a text or an embedding each, such as a prompt. A text is
            hashed (`hash_text`), an embedding is projected (`project`), and the regression learns
            from the few numbers that come out, which count towards its 32. It then trusts numbers
            only as far as they have predicted losses.
        vector_length: how many numbers each embedding has, at most 4,096; 0 for texts.
        vector_numbers: how many numbers each text or embedding becomes, 1 to 32.

    >>> import decoupled as dc
    >>> learner = dc.ContextualLadder(segments=("language",)).start(arms=["small", "large"], seed=1)
    >>> for t in range(400):
    ...     request = {"language": "de" if t % 2 else "en"}
    ...     decision = learner.decide(context=request)
    ...     best = "large" if request["language"] == "de" else "small"
    ...     learner.observe(decision, loss=0.2 if decision.explore == best else 0.6)
    >>> [learner.decide(context={"language": each}).exploit for each in ("de", "en")]
    ['large', 'small']
    """

    segments: tuple[str, ...] = field(default=(), metadata={"depth": 1})
    numbers: tuple[str, ...] = field(default=(), metadata={"depth": 1})
    advisers: tuple[str, ...] = field(default=(), metadata={"depth": 1})
    max_segments: int = 1000
    uniform_share: float = 0.5
    hedge_rate: float = 1.0
    vectors: tuple[str, ...] = field(default=(), metadata={"depth": 1})
    vector_length: int = 0
    vector_numbers: int = 16

    params_type = Params
    functions = kernels.FUNCTIONS
    contextual: ClassVar[bool] = True
    keyed_in_place = True

    def __post_init__(self) -> None:
        most = MOST_NUMBERS
        limits = {
            "segments": 32,
            "numbers": most,
            "advisers": MOST_ADVISERS,
            "vectors": most,
        }
        for name, limit in limits.items():
            object.__setattr__(self, name, _checked_names(name, getattr(self, name), limit))
        reserved = set(self.advisers) & set(_NAMES)
        if reserved:
            rule = f"must not have the name of a rung, {', '.join(_NAMES)}"
            raise ParameterError.of("advisers", sorted(reserved)[0], rule, "choose another")
        set_whole(self, "max_segments", 1, "the default is 1000", MOST_SEGMENTS)
        share = check_number(
            "uniform_share",
            self.uniform_share,
            "the default is 0.5",
            at_least=1e-6,
            at_most=1.0,
        )
        object.__setattr__(self, "uniform_share", share)
        set_number(self, "hedge_rate", 0.0, 1e100, "the default is 1")
        set_whole(self, "vector_length", 0, "0 is for texts", LONGEST_VECTOR)
        set_whole(self, "vector_numbers", 1, "the default is 16", most)
        if not len(set(self.all_numbers)) == len(self.all_numbers) <= most:
            rule = (
                f"become {self.vector_numbers} numbers each, "
                f"and with numbers there may be {most} different"
            )
            raise ParameterError.of(
                "vectors", self.vectors, rule, "lower vector_numbers, or drop a field"
            )

    def __repr__(self) -> str:
        return self._short_repr()

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(), cls(segments=("s",), numbers=("x", "y"), advisers=("a",), uniform_share=0.3))

    @cached_property
    def rung_names(self) -> tuple[str, ...]:
        """The names of the rungs, in order."""
        return tuple(_NAMES[kind] for kind in self._own_kinds) + self.advisers

    @cached_property
    def all_numbers(self) -> tuple[str, ...]:
        """The names of all numbers that the regression learns from; those of a vector "prompt" are
        "prompt.0" and so on.

        >>> import decoupled as dc
        >>> policy = dc.ContextualLadder(
        ...     numbers=("tokens",), vectors=("prompt",), vector_numbers=2
        ... )
        >>> policy.all_numbers
        ('tokens', 'prompt.0', 'prompt.1')
        """
        return (*self.numbers, *(key for name in self.vectors for key in self._keys(name)))

    def spread(self, name: str, value: object) -> dict[str, float]:
        """The numbers that a text or an embedding becomes, by name.

        Contexts and logs may have these in its place.

        Args:
            name: the name of the field.
            value: its value: a text if `vector_length` is 0, else that many numbers.

        >>> import decoupled as dc
        >>> policy = dc.ContextualLadder(vectors=("e",), vector_length=3, vector_numbers=2)
        >>> policy.spread("e", [0, 3, 4])
        {'e.0': 1.4, 'e.1': 1.4}
        """
        try:
            if self.vector_length == 0:
                numbers = hash_text(value, self.vector_numbers)  # type: ignore[arg-type]
            else:
                numbers = project(value, self.vector_numbers)
        except ParameterError as error:
            raise ParameterError(f"context[{name!r}]: {str(error).partition(': ')[2]}") from None
        if self.vector_length and len(value) != self.vector_length:  # type: ignore[arg-type]
            rule = f"has {len(value)} numbers, and vector_length = {self.vector_length}"  # type: ignore[arg-type]
            raise ParameterError(f"context[{name!r}]: {rule}; use one embedding for all requests")
        return dict(zip(self._keys(name), numbers, strict=True))

    def _keys(self, name: str) -> list[str]:
        return [f"{name}.{number}" for number in range(self.vector_numbers)]

    def least_propensity(self, arms: int) -> float:
        """The smallest probability with which any arm is explored, given the number of arms.

        Args:
            arms: the number of arms.

        >>> import decoupled as dc
        >>> [round(dc.ContextualLadder().least_propensity(arms), 4) for arms in (2, 8, 64)]
        [0.255, 0.0178, 0.0006]
        """
        even = self.uniform_share * min(1.0, 2.0 / arms)
        return (even + (1.0 - even) * _LADDER.uniform_share) / arms

    @property
    def _own_kinds(self) -> tuple[int, ...]:
        kinds = [POOLED]
        if self.segments:
            kinds += [SEGMENTS, SHRUNK]
        if self.all_numbers:
            kinds.append(LINEAR)
        return tuple(kinds)

    @property
    def context_places(self) -> ContextPlaces:
        """Where the state has what a learner writes and reads of contexts."""
        return PLACES

    @property
    def layout(self) -> Layout:
        return layout_for(len(self.all_numbers), len(self.advisers), gated=bool(self.vectors))

    def params(self) -> Any:
        kinds = [*self._own_kinds, *(ADVICE + place for place in range(len(self.advisers)))]
        priors = [_PRIORS[min(kind, ADVICE)] for kind in kinds]  # the kernel scales them
        unused = [0.0] * (MOST_RUNGS - len(kinds))
        return Params(
            **_LADDER.params()._asdict(),
            outer_uniform_share=self.uniform_share,
            outer_hedge_rate=self.hedge_rate,
            outer_rungs=float(len(kinds)),
            segmented=float(bool(self.segments)),
            numbers=float(len(self.all_numbers)),
            advisers=float(len(self.advisers)),
            gated=float(bool(self.vectors)),
            **{f"outer_prior_{rung}": prior for rung, prior in enumerate(priors + unused)},
            **{f"outer_kind_{rung}": float(kind) for rung, kind in enumerate(kinds + unused)},
        )

    def at(self, arms: int) -> Self:
        if arms > MOST_ARMS:
            rule = f"must be below {MOST_ARMS + 1} for a contextual policy"
            raise ParameterError.of("arms", arms, rule, "use Ladder() for so many")
        return self

    # Arms that come

    def init_new_arms(self, state: State, first: int) -> None:
        for ladder in self._ladders(state):
            _LADDER.init_new_arms(ladder, first)

    def unknown(self, state: State) -> NDArray[np.bool_]:
        return _LADDER.unknown(_ladder_states(state)[0])

    @property
    def baselines(self) -> Baselines:
        return ContextualBaselines(self)

    def _ladders(self, state: State) -> list[State]:
        return _ladder_states(state) if self.segments else _ladder_states(state)[:1]

    # Laws

    def exploitation_law(self, state: State) -> Floats:
        """The mixture of the rungs' laws, in the context at hand."""
        arms = state.floats.shape[1]
        law = np.zeros(arms)
        for rung in range(len(self.rung_names)):
            weight = state.scalars[S.outer_weight + rung]
            kind = int(state.scalars[S.outer_kind + rung])
            if kind >= ADVICE:
                advice = state.floats[ADVICE_AT + kind - ADVICE]
                if advice.sum() == 0.0:  # an adviser without advice counts as the pooled ladder
                    advice = _LADDER.exploitation_law(_ladder_states(state)[0])
                law += weight * advice
            elif kind in (POOLED, SEGMENTS):
                law += weight * _LADDER.exploitation_law(_ladder_states(state)[kind])
            else:
                leader = state.scalars[S.outer_arm + rung]
                law += weight * (np.arange(arms) == leader if leader >= 0.0 else 1.0 / arms)
        return law

    def exploration_law(self, state: State) -> Floats:
        """The even share, and the ladders' own laws."""
        arms = state.floats.shape[1]
        law = np.full(arms, state.scalars.item(S.outer_even) / arms)
        shares = (S.pooled_share, S.segment_share)
        for share, ladder in zip(shares, self._ladders(state), strict=False):
            law += state.scalars.item(share) * _LADDER.exploration_law(ladder)
        return law

    def keyed(self, state: State) -> Keyed:
        counts = len(self.rung_names), _LADDER.rung_count
        return Keyed(kernels.keyed_contextual, (state.scalars, state.floats, *counts))


class ContextualBaselines(Baselines):
    """What the rungs of a pending decision are judged with; baselines are of the arrival."""

    are_free = True

    def __init__(self, policy: ContextualLadder) -> None:
        super().__init__(policy.layout, None, KEPT)
        self._policy = policy

    def prepare(self, state: State, arm: int) -> None:
        kernels.fill_chances(self._policy.params(), state, arm)


# As plain Python: slices need no machine code.
_pooled = getattr(pooled, "py_func", pooled)
_segment = getattr(segment, "py_func", segment)


def _ladder_states(state: State) -> list[State]:
    """The ladder of all rounds and that of the segment at hand, as `kernels` sees them."""
    return [_pooled(state), _segment(state)]


def _checked_names(name: str, fields: object, most: int) -> tuple[str, ...]:
    """Names of fields: different strings that are not empty."""
    if isinstance(fields, (list, tuple)):
        names = tuple(item for item in fields if isinstance(item, str) and 0 < len(item) <= 200)
        if len(names) == len(fields) == len(set(names)) <= most:
            return names
    rule = f"must be a tuple of at most {most} different names of 1 to 200 characters"
    raise ParameterError.of(name, fields, rule, "for example ('subject',)")
