"""A policy set running: its state, its random stream, and its compiled calls over them."""

from typing import Any, ClassVar, Protocol

import numpy as np

from .arrays import Floats, Ints, Words
from .kernels.dispatch import Entries
from .kernels.state import ROUND, Layout, State
from .pending import Baseline


class RunnablePolicy(Protocol):
    """What a learner needs of a policy."""

    layout: ClassVar[Layout]
    cumulative: ClassVar[str | None]
    coupled: ClassVar[bool]
    baseline: ClassVar[str | None]

    def entries(self) -> Entries:
        """The compiled calls."""

    def params(self) -> Any:
        """The parameters as a tuple of floats."""

    def exploitation_law(self, state: State) -> Floats:
        """The exact probability with which each arm is exploited."""

    def exploration_law(self, state: State) -> Floats:
        """The exact probability with which each arm is explored."""

    def estimates(self, state: State) -> Floats:
        """What is learned about each arm."""

    def to_dict(self) -> dict[str, Any]:
        """The name and every parameter."""


class Running:
    """A policy's state and what happens to it. Arms are places here; names are the learner's."""

    def __init__(self, policy: RunnablePolicy, state: State, stream: Words) -> None:
        self.policy, self.state, self.stream = policy, state, stream
        self.layout = policy.layout
        self.values = np.array(policy.params(), np.float64)
        self.entries = policy.entries()
        self.entries.init(self.values, *state)
        # The arrays every compiled call takes, kept together because gathering them is part of its cost.
        self.flat = (self.values, *state)
        self.round = int(state.scalars[ROUND])  # every decision carries it, and an array is slow to ask
        self.baseline: Floats | None = None
        self._shared_baseline: Baseline | None = None
        self._shared_round = 0
        if policy.baseline is not None:
            self.baseline = self.layout.row(state, policy.baseline)

    def restricted(self, part: Ints) -> State:
        """A state of some arms alone."""
        state = self.layout.restrict(self.state, part)
        self.entries.init(self.values, *state)
        return state

    def draw(self, part: Ints | None) -> tuple[int, int, float, float]:
        """The arm to exploit, the arm to explore, its weight and its propensity."""
        if part is None:
            return self.entries.decide(*self.flat, self.stream)
        state = self.restricted(part)
        exploit, explore, weight, propensity = self.entries.decide(self.values, *state, self.stream)
        return int(part[exploit]), int(part[explore]), weight, propensity

    def baseline_of(self, part: Ints | None) -> Baseline | None:
        """The baselines of decisions made now, None if all are zero.

        An arm that cannot be had has none. Decisions made in one round share theirs.
        """
        if self.baseline is None:
            return None
        if part is not None:
            return _sparse(self.layout.row(self.restricted(part), str(self.policy.baseline)), part)
        if self._shared_round != self.round:
            self._shared_round, self._shared_baseline = self.round, _sparse(self.baseline)
        return self._shared_baseline

    def learn(self, arm: int, weight: float, loss: float, baseline: Baseline | None = None) -> None:
        """Learn the loss of an arm that was explored."""
        if self.baseline is not None:
            self.baseline[:] = 0.0
            if baseline is not None:
                self.baseline[baseline[0]] = baseline[1]
        self.entries.update(*self.flat, arm, weight, loss)
        self.round += 1

    def charge_absent(self, covered: tuple[int, ...], loss: float) -> None:
        """Add a loss to every arm that could not be chosen."""
        if self.policy.cumulative is None:
            return
        absent = np.ones(self.state.floats.shape[1], np.bool_)
        absent[list(covered)] = False
        self.layout.row(self.state, self.policy.cumulative)[absent] += loss
        self.entries.init(*self.flat)

    def law(self, law: Any, part: Ints | None) -> Floats:
        """The probabilities of all arms under one of the policy's laws."""
        probabilities = np.zeros(self.state.floats.shape[1])
        if part is None:
            probabilities[:] = law(self.state)
        else:
            probabilities[part] = law(self.restricted(part))
        return probabilities


def _sparse(row: Floats, places: Ints | None = None) -> Baseline | None:
    """The numbers of a row that are not zero, with the places of their arms; None for no number."""
    found = np.flatnonzero(row)
    if len(found) == 0:
        return None
    return (found if places is None else places[found]), row[found]
