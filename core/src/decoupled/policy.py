"""What a policy is: its layout, its parameters, its compiled functions, and its laws.

A learner and a simulation run a `Definition`. `Policy`, which policies subclass, adds `start`.
"""

from collections.abc import Mapping
from threading import Lock
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from .base.arrays import Floats, Ints
from .base.spec import Description
from .kernels.context import ContextPlaces
from .kernels.dispatch import Entries, Functions, entries, register
from .kernels.lazy_numba import compiling_for
from .kernels.parameters import params_of, values_of
from .kernels.random.keyed import Keyed, keyed_race
from .kernels.state import Layout, State

_one_at_a_time = Lock()
_entries: dict[type, Entries] = {}


class Baselines:
    """What an update needs of the state its decision was made in, such as its arms' baselines.

    Feedback may be late, and the state then is another one. So what the update reads is kept with a
    pending decision, and written back before its update. A policy that needs this returns one such
    object; a subclass says what is special.

    Args:
        layout: the layout of the policy's form.
        row: the derived row, if any, whose values at decision time the update needs. `update` reads
            it from the state; zero means no baseline.
        kept: the derived rows and scalars, by name, that `update` needs as they were when the
            decision was made. Those that `write` writes need not be named. A learner keeps scalars
            only, as `prepare` leaves them.

    Attributes:
        layout: the layout of the policy's form.
        row: the derived row, or None.
        kept: the names of what else is kept.
        are_free: whether the update accepts any baselines. If not, it uses those of the state in
            which feedback arrives.
        keep_law: whether a pending decision keeps its law of exploration in place of baselines: see
            `recall_law`.

    >>> layout = Layout(floats=("estimates", "baseline"), learned=("estimates",))
    >>> state, baselines = layout.new_state(arms=3), Baselines(layout, "baseline")
    >>> baselines.write(state, np.array([0, 2]), np.array([0.25, 0.5]))
    >>> places, values = baselines.read(state)
    >>> places.tolist(), values.tolist()
    ([0, 2], [0.25, 0.5])
    """

    are_free = False
    keep_law = False

    def __init__(self, layout: Layout, row: str | None = None, kept: tuple[str, ...] = ()) -> None:
        self.layout = layout
        self.row = row
        self.kept = kept
        self._place = -1 if row is None else layout.floats.index(row)

    def read(self, state: State) -> tuple[Ints, Floats]:
        """The places and values of the baselines that arms have now, if the policy has such a row.

        Args:
            state: the state of the running policy.
        """
        row = state.floats[self._place]
        places = np.flatnonzero(row)
        return places, row[places]

    def write(self, state: State, places: Ints, values: Floats) -> None:
        """Write the baselines of a decision where `update` reads them; all other arms get none.

        Args:
            state: the state of the running policy.
            places: the places of the arms that have a baseline.
            values: the baseline of each of them.
        """
        row = state.floats[self._place]
        row[:] = 0.0
        row[places] = values

    def clear(self, state: State) -> None:
        """Tell `update` that a decision has no baselines.

        If any baselines are accepted, `update` then uses those of its own round.

        Args:
            state: the state of the running policy.
        """
        self.write(state, np.empty(0, np.int64), np.empty(0))

    def recall_law(self, state: State, places: Ints, chances: Floats, *, is_same: bool) -> None:
        """Write a late decision's law of exploration, if it keeps one, to where `update` reads it.

        The update computes the baselines from it, in the state in which the feedback arrives. Arms
        that the decision could not choose are charged the loss.

        Args:
            state: the state of the running policy.
            places: the places of the arms that the decision could choose.
            chances: the probability with which it explored each of them.
            is_same: whether the policy has the same arms as when the decision was made.
        """

    def prepare(self, state: State, arm: int) -> None:
        """Set the rows and scalars in `kept` as a decision that explores this arm would.

        Args:
            state: the state of the running policy.
            arm: the place of the explored arm.
        """


class Definition(Description, kind="policy", package="decoupled.policies"):
    """A frozen description of how to decide and learn, without a way to start it: see `Policy`.

    >>> import decoupled as dc
    >>> Definition.from_json('{"name": "FTPL", "alpha": 2.5}')
    FTPL(alpha=2.5, c=2.0, ranking='auto')
    >>> isinstance(dc.FTPL(), Definition)
    True
    """

    # A policy overrides these, most often with class attributes.

    @property
    def layout(self) -> Layout:
        """The rows of the policy's state."""
        raise NotImplementedError

    @property
    def params_type(self) -> Any:
        """The type of the named tuple that `params` returns, to which compiled functions belong."""
        raise NotImplementedError

    @property
    def functions(self) -> Functions:
        """The compiled functions."""
        raise NotImplementedError

    @property
    def cumulative(self) -> str | None:
        """The learned row that accumulates losses, or None: see Learner.decide(available=...)."""
        return "estimates"

    @property
    def fading(self) -> tuple[str, ...] | None:
        """The float rows and scalars that accumulate observations, which a discount shrinks: see
        `Forgetting`.

        None means the row that accumulates losses, if nothing else is learned.
        """
        return None

    @property
    def coupled(self) -> bool:
        """Whether the played arm is also the observed one, as in the standard game.

        `decide` then returns one arm twice.
        """
        return False

    @property
    def contextual(self) -> bool:
        """Whether decisions depend on a context: see `ContextualLadder`."""
        return False

    @property
    def baselines(self) -> Baselines | None:
        """What an update needs of the state in which its decision was made, or None."""
        return None

    @property
    def interpreted(self) -> bool:
        """Whether a step needs the Python interpreter. Then only a learner can run the policy."""
        return False

    @property
    def in_python(self) -> bool:
        """Whether its steps are plain Python.

        Simulations then run it in a plain Python loop: see `PythonPolicy`.
        """
        return False

    def register(self) -> None:
        """Register the compiled functions. Every process that runs the policy must do this once.

        >>> import decoupled as dc
        >>> dc.FTPL().register()
        """
        kind = self.params_type  # of this policy: a class may have several compiled forms
        with _one_at_a_time:
            register(kind, self.functions)

    def entries(self) -> Entries:
        """The entry points that a learner calls, registered and compiled on first use."""
        self.register()
        kind = self.params_type
        with _one_at_a_time:  # threads that start together share what is compiled
            if kind not in _entries:
                compiling_for(type(self).__name__)
                _entries[kind] = entries(kind)
            return _entries[kind]

    @classmethod
    def forms(cls) -> tuple[Self, ...]:
        """One policy for each form of the compiled functions.

        Policies with the same `params_type` share a form.
        """
        return (cls(),)

    def at(self, arms: int) -> Self:
        """The same policy in its form for a number of arms, perhaps with other rows and code.

        Learners and simulations run this form; it may change when arms are added or retired.
        Learned rows keep their values if the new form has rows of the same name.

        Args:
            arms: the number of arms.
        """
        return self

    def params(self) -> Any:
        """The parameters for compiled code: those that `params_type` names, unless overridden."""
        try:
            return params_of(self.params_type, self)
        except (AttributeError, TypeError, ValueError):
            rule = "is not defined, and params_type names what is no number of the policy"
            raise NotImplementedError(f"{type(self).__name__}.params: {rule}; define it") from None

    def param_values(self) -> Floats:
        """The parameters as an array, which `entries` take: flags as 0 or 1, vectors spread.

        >>> import decoupled as dc
        >>> dc.FTPL().params()._asdict()
        {'alpha': 3.0, 'c': 2.0, 'is_sorting': False, 'is_sharing': True}
        >>> dc.FTPL().param_values().tolist()
        [3.0, 2.0, 0.0, 1.0]
        """
        return values_of(self.params())

    def exploitation_law(self, state: State) -> Floats:
        """The exact probability with which each arm is exploited.

        Args:
            state: the state of the running policy.
        """
        raise NotImplementedError

    def exploration_law(self, state: State) -> Floats:
        """The exact probability with which each arm is explored.

        Args:
            state: the state of the running policy.
        """
        if self.coupled:
            return self.exploitation_law(state)
        raise NotImplementedError

    def keyed(self, state: State) -> Keyed:
        """How to draw the arm that a key exploits: see Learner.decide(key=...).

        Override it if your policy perturbs: a key then keeps its perturbations, and moves less
        often.

        Args:
            state: the state of the running policy.
        """
        return Keyed(keyed_race, (self.exploitation_law(state),))

    @property
    def keyed_in_place(self) -> bool:
        """Whether the arrays of `keyed` are those of the state, so that they change with it."""
        return False

    def rung_weights(self, state: State) -> dict[str, float]:
        """How often each rung plays, by name, if the policy has rungs.

        Args:
            state: the state of the running policy.
        """
        return {}

    def estimates(self, state: State) -> Floats:
        """What the policy learned about each arm: its summed loss estimates, unless overridden.

        Args:
            state: the state of the running policy.
        """
        return np.array(self.layout.row(state, "estimates"), np.float64)

    def unknown(self, state: State) -> NDArray[np.bool_]:
        """A mask of the arms about which nothing is learned, except perhaps losses of 0.

        Args:
            state: the state of the running policy.
        """
        is_unknown = np.ones(state.floats.shape[1], np.bool_)
        for name in self.layout.learned:
            row = self.layout.row(state, name)
            if name in self.layout.pairs:
                is_unknown &= ~row.any(axis=1)
            elif name not in self.layout.scalars:
                is_unknown &= row == 0
        return is_unknown

    def init_new_arms(self, state: State, first: int) -> None:
        """Set the learned rows of new arms: the arms from place `first` on, which are zero so far.

        If the policy accumulates losses, new arms copy the leader, the arm with the smallest sum,
        so they start level with the best arm. Otherwise they stay at zero, as unobserved arms;
        override this if zero means something else.

        Args:
            state: the state of the running policy.
            first: the place of the first new arm.
        """
        if self.cumulative is None:
            return
        leader = int(np.argmin(self.layout.row(state, self.cumulative)[:first]))
        for name in self.layout.learned:
            if name in self.layout.floats or name in self.layout.ints:
                row = self.layout.row(state, name)
                row[first:] = row[leader]


class ContextualDefinition(Protocol):
    """What a learner reads of a policy that uses contexts, beside what every `Definition` has."""

    @property
    def layout(self) -> Layout:
        """The rows of the policy's state."""

    @property
    def context_places(self) -> ContextPlaces:
        """Where the state has what a learner writes and reads of contexts."""

    @property
    def segments(self) -> tuple[str, ...]:
        """The fields of a context that tell segments apart."""

    @property
    def max_segments(self) -> int:
        """How many segments are told apart; all others share one."""

    @property
    def all_numbers(self) -> tuple[str, ...]:
        """The names of all numbers, those that vectors become included."""

    @property
    def vectors(self) -> tuple[str, ...]:
        """The fields whose values become several numbers."""

    @property
    def advisers(self) -> tuple[str, ...]:
        """Who gives advice, by name."""

    @property
    def rung_names(self) -> tuple[str, ...]:
        """The names of the rungs, in order."""

    def spread(self, name: str, value: object) -> Mapping[str, float]:
        """The numbers that the value of a field in `vectors` becomes, by name."""
