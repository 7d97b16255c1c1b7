"""The state of a running policy: three plain arrays.

Every policy's state has the same type, so the learner, the round loop and a saved file treat all
policies alike, and a compiled call takes few, flat arguments. A policy names its rows with a
`Layout` and reads them by number.
"""

from collections import namedtuple
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..base.arrays import Floats, Ints
from ..errors import ParameterError

# The scalars that every policy has. The package maintains them and policies only read them.
# 1 + the number of observations that are not forgotten; all of them, unless the policy forgets
ROUND = 0
ARMS = 1  # the number of arms of the whole problem, even if the state holds only some of them
# a whole number below 2^52 that only the seed tells, for draws without a stream: see
# `kernels.random.stream`
SECRET = 2
EVENTS = 3  # how many decisions were made and observations applied, the one at hand included
OBSERVED = 4  # how many observations were applied, those that are forgotten included
PERIOD = 5  # after how many observations the policy restarts; 0 for never
DISCOUNT = 6  # what an observation multiplies all sums by; 0 if nothing fades
FADING = 7  # the place of the first of the last scalars, which say what fades: see `Forgets`
SHARED_SCALARS = ("round", "arms", "secret", "events", "observed", "period", "discount", "fading")

# A square of this many arms takes 8 MB, and a saved state contains every number.
MOST_PAIRED_ARMS = 1000


def vector(name: str, length: int) -> tuple[str, ...]:
    """The names of neighbours: scalars of one kind, or rows.

    >>> vector("weight", 3)
    ('weight_0', 'weight_1', 'weight_2')
    """
    return tuple(f"{name}_{number}" for number in range(length))


_TUPLE_METHODS = ("count", "index")


def places_of(names: Sequence[str]) -> Any:
    """The place of each name as the fields of one tuple, which compiled code reads like constants.

    The first of a `vector` is also there under the vector's own name.

    >>> places_of(("eta", *vector("weight", 2)))
    Places(eta=0, weight_0=1, weight_1=2, weight=1)
    """
    for name in _TUPLE_METHODS:
        if name in names:
            rule = (
                "is the name of a method of tuples, which compiled code for GPUs would take it for"
            )
            raise ParameterError.of("layout", name, rule, f"name it '{name}_of_arms', for example")
    places = {name: place for place, name in enumerate(names)}
    firsts = {
        name.removesuffix("_0"): place for name, place in places.items() if name.endswith("_0")
    }
    kind = namedtuple("Places", [*places, *firsts])  # type: ignore[misc]
    return kind(*places.values(), *firsts.values())


class State(NamedTuple):
    """The state of a running policy, as compiled code sees it.

    Attributes:
        scalars: single numbers, by their place in the layout: first the round, the number of arms,
            a secret of the seed and the number of events, then the policy's own.
        floats: one row per quantity and one column per arm.
        ints: the same for whole numbers. A count of ordered pairs of arms is a square: one row per
            arm.

    >>> layout = Layout(scalars=("eta",), floats=("estimates",), learned=("estimates",))
    >>> state = layout.new_state(arms=3)
    >>> eta = len(SHARED_SCALARS)  # the place of the first scalar of its own
    >>> state.scalars[[ROUND, ARMS, eta]].tolist()
    [1.0, 3.0, 0.0]
    >>> state.floats[0].tolist()
    [0.0, 0.0, 0.0]
    """

    scalars: Floats
    floats: Floats
    ints: Ints


class Forgets(NamedTuple):
    """How a policy forgets, as data that a state holds; `dispatch.update` forgets, for every policy
    alike.

    Attributes:
        period: after how many observations everything is forgotten; 0 for never.
        discount: what every observation multiplies the round and what fades by; 0 if nothing fades.
        fading: the names of the rows of floats and of the scalars that fade. The state has one more
            scalar for each, at its end: the number of the row, or the number of all rows plus the
            place of the scalar.
    """

    period: float = 0.0
    discount: float = 0.0
    fading: tuple[str, ...] = ()


NEVER_FORGETS = Forgets()


class Layout(NamedTuple):
    """The names of a policy's scalars and rows, and which of them are learned.

    Learned rows are saved; the policy's `init` derives all others from them.

    Attributes:
        scalars: the policy's own scalars. They come after the shared ones, `round`, `arms`,
            `secret` and `events`.
        floats: the rows of `State.floats`.
        ints: the rows of `State.ints`.
        learned: which of these are learned.
        pairs: squares of whole numbers, one for each ordered pair of arms. In `State.ints` they
            follow the rows that `ints` names.
        forgets: how the policy forgets: see `decoupled.Forgetting`.

    >>> layout = Layout(
    ...     floats=("estimates", "weights"), ints=("seen",), learned=("estimates", "seen")
    ... )
    >>> state = layout.new_state(arms=3)
    >>> state.floats.shape, layout.row(state, "seen").tolist()
    ((2, 3), [0, 0, 0])
    """

    scalars: tuple[str, ...] = ()
    floats: tuple[str, ...] = ()
    ints: tuple[str, ...] = ()
    learned: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()
    forgets: Forgets = NEVER_FORGETS

    @property
    def all_scalars(self) -> tuple[str, ...]:
        """The names of all scalars in order.

        First come those that every policy has, then the policy's own, then those of forgetting.
        """
        return (*SHARED_SCALARS, *self.scalars, *(f"fading_{name}" for name in self.forgets.fading))

    def places(self) -> tuple[Any, Any, Any]:
        """The places of the scalars, of the rows of floats and of the rows of ints, by name.

        >>> S, R, _ = Layout(scalars=("eta",), floats=("estimates", "law")).places()
        >>> S.eta, R.law
        (8, 1)
        """
        return places_of(self.all_scalars), places_of(self.floats), places_of(self.ints)

    def new_state(self, arms: int, secret: float = 0.0) -> State:
        """A state before the first observation: round 1, everything else zero.

        Args:
            arms: the number of arms.
            secret: a number that only the seed tells: see `secret_of`.
        """
        if self.pairs and arms > MOST_PAIRED_ARMS:
            rule = f"must not exceed {MOST_PAIRED_ARMS} for a policy that counts every pair of arms"
            raise ParameterError.of("arms", arms, rule, "choose another policy, or fewer arms")
        state = State(
            np.zeros(len(self.all_scalars)),
            np.zeros((len(self.floats), arms)),
            np.zeros((len(self.ints) + len(self.pairs) * arms, arms), np.int64),
        )
        state.scalars[ROUND] = 1.0
        state.scalars[ARMS] = arms
        state.scalars[SECRET] = secret
        self.set_forgetting(state)
        return state

    def set_forgetting(self, state: State) -> None:
        """Write how the policy forgets into a state with this layout.

        Args:
            state: the state.
        """
        first = len(SHARED_SCALARS) + len(self.scalars)
        state.scalars[PERIOD] = self.forgets.period
        state.scalars[DISCOUNT] = self.forgets.discount
        state.scalars[FADING] = first
        for place, name in enumerate(self.forgets.fading):
            if name in self.floats:
                number = self.floats.index(name)
            else:
                number = len(self.floats) + self.all_scalars.index(name)
            state.scalars[first + place] = number

    def row(self, state: State, name: str) -> Any:
        """A view of the row called `name`.

        A scalar is a view of length one, a count of pairs a square.

        Args:
            state: a state with this layout.
            name: the name of a row, a scalar or a square.

        Returns:
            The view: what is written to it is written to the state.
        """
        if name in self.floats:
            return state.floats[self.floats.index(name)]
        if name in self.ints:
            return state.ints[self.ints.index(name)]
        if name in self.pairs:
            arms = state.ints.shape[1]
            start = len(self.ints) + self.pairs.index(name) * arms
            return state.ints[start : start + arms]
        place = self.all_scalars.index(name)
        return state.scalars[place : place + 1]

    def restrict(self, state: State, arms: Ints, layout: "Layout | None" = None) -> State:
        """A new state with the learned values of the given arms only.

        Args:
            state: a state with this layout.
            arms: the places of the arms to keep.
            layout: the layout of the new state; None for this one. What it does not learn is
                dropped, and what only it learns is zero.
        """
        new = layout or self
        restricted = new.new_state(len(arms))
        restricted.scalars[: len(SHARED_SCALARS)] = state.scalars[: len(SHARED_SCALARS)]
        new.set_forgetting(restricted)  # whose places may be others
        for name in self._shared_with(new):
            values = self.row(state, name)
            if name in self.pairs:
                values = values[np.ix_(arms, arms)]
            elif name not in self.scalars:
                values = values[arms]
            new.row(restricted, name)[:] = values
        return restricted

    def extend(self, state: State, newcomers: int, layout: "Layout | None" = None) -> State:
        """A new state with more arms at the end, whose values are zero.

        Args:
            state: a state with this layout.
            newcomers: the number of new arms.
            layout: the layout of the new state, as in `restrict`; None for this one.
        """
        new = layout or self
        arms = state.floats.shape[1]
        extended = new.new_state(arms + newcomers)
        extended.scalars[: len(SHARED_SCALARS)] = state.scalars[: len(SHARED_SCALARS)]
        new.set_forgetting(extended)
        extended.scalars[ARMS] = arms + newcomers
        for name in self._shared_with(new):
            values = self.row(state, name)
            row = new.row(extended, name)
            if name in self.pairs:
                row[:arms, :arms] = values
            else:
                row[: len(values)] = values
        return extended

    def _shared_with(self, other: "Layout") -> list[str]:
        """What both layouts learn."""
        return [name for name in self.learned if name in other.learned]
