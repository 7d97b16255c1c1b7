"""A policy set running: its state, its random stream, and its compiled calls over them."""

from typing import Any, ClassVar, Protocol

import numpy as np

from .arrays import Floats, Ints, Words
from .kernels.dispatch import Entries
from .kernels.state import ARMS, ROUND, Layout, State
from .pending import Baseline, Covered, Pending
from .serials import Serials


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

    def welcome(self, state: State, first: int) -> None:
        """Fill in what arms that come later have learned."""

    def to_dict(self) -> dict[str, Any]:
        """The name and every parameter."""


class Running:
    """A policy's state and what happens to it.

    Arms are places here, names are the learner's, and what is pending knows arms by their serials.
    """

    def __init__(
        self, policy: RunnablePolicy, state: State, stream: Words, serials: Serials | None = None
    ) -> None:
        self.serials = serials or Serials(state.floats.shape[1])
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

    def baseline_of(
        self, part: Ints | None, predicted: tuple[Ints, Floats] | None = None
    ) -> Baseline | None:
        """The baselines of decisions made now, None if all are zero.

        An arm that cannot be had has none. Decisions made in one round share theirs. What is `predicted`
        for some places takes the place of the policy's own numbers, for the arms that it gives one.
        """
        if self.baseline is None:
            return None
        if part is None and predicted is None:
            if self._shared_round != self.round:
                self._shared_round = self.round
                self._shared_baseline = _sparse(self.baseline, self.serials.kept)
            return self._shared_baseline
        row = np.zeros(len(self.baseline))
        if part is None:
            row[:] = self.baseline
        else:
            row[part] = self.layout.row(self.restricted(part), str(self.policy.baseline))
        if predicted is not None:
            places, values = predicted
            # An arm with a number of the policy's own passed its gate; where that number is 0, none did.
            row[places] = np.where(row[places] != 0.0, values, 0.0)
        return _sparse(row, self.serials.kept)

    # Learning

    def settle(self, pending: Pending, loss: float) -> None:
        """Learn from the feedback of a decision, which may have explored an arm that is here no longer."""
        decision, serial, covered, baseline = pending
        arm = self.serials.place(serial)
        if covered is not None:
            self._charge_absent(covered, loss)
        if arm is not None:
            self.learn(arm, decision.weight, loss, baseline)
        elif self.policy.cumulative is not None:
            self.learn(0, 0.0, loss, baseline)  # of no weight: what the other arms get is all there is
        else:
            self._learn_of_a_stranger(decision.weight, loss)

    def learn(self, arm: int, weight: float, loss: float, baseline: Baseline | None = None) -> None:
        """Learn the loss of an arm that was explored."""
        if self.baseline is not None:
            self.baseline[:] = 0.0
            if baseline is not None:
                places, found = self.serials.places(baseline[0])
                self.baseline[places] = baseline[1][found]
        self.entries.update(*self.flat, arm, weight, loss)
        self.round += 1

    def _charge_absent(self, covered: Covered, loss: float) -> None:
        """Add a loss to every arm that could not be chosen."""
        if self.policy.cumulative is None:
            return
        absent = np.ones(self.state.floats.shape[1], np.bool_)
        if isinstance(covered, tuple):
            absent[self.serials.places(np.array(covered, np.int64))[0]] = False
        elif covered is not None:
            absent[: self.serials.first_from(covered)] = False
        self.layout.row(self.state, self.policy.cumulative)[absent] += loss
        self.entries.init(*self.flat)

    def _learn_of_a_stranger(self, weight: float, loss: float) -> None:
        """Learn the loss of an arm that is here for this one observation, so that it counts as one."""
        arms = self.state.floats.shape[1]
        crowd = self._extended(1)
        crowd.scalars[ARMS] = arms
        self.entries.init(self.values, *crowd)
        self.entries.update(self.values, *crowd, arms, weight, loss)
        left = self.layout.restrict(crowd, np.arange(arms))
        for mine, new in zip(self.state, left, strict=True):
            mine[:] = new
        self.entries.init(*self.flat)
        self.round += 1

    # Coming and going

    def extended(self, newcomers: int) -> "Running":
        """With so many arms more."""
        serials = self.serials.extended(newcomers)
        return Running(self.policy, self._extended(newcomers), self.stream, serials)

    def without(self, gone: Ints) -> "Running":
        """Without the arms of these places."""
        stays = np.ones(self.state.floats.shape[1], np.bool_)
        stays[gone] = False
        left = np.flatnonzero(stays)
        state = self.layout.restrict(self.state, left)
        state.scalars[ARMS] = len(left)
        return Running(self.policy, state, self.stream, self.serials.only(left))

    def _extended(self, newcomers: int) -> State:
        state = self.layout.extend(self.state, newcomers)
        self.policy.welcome(state, self.state.floats.shape[1])
        return state

    def law(self, law: Any, part: Ints | None) -> Floats:
        """The probabilities of all arms under one of the policy's laws."""
        probabilities = np.zeros(self.state.floats.shape[1])
        if part is None:
            probabilities[:] = law(self.state)
        else:
            probabilities[part] = law(self.restricted(part))
        return probabilities


def _sparse(row: Floats, serials: Ints | None) -> Baseline | None:
    """The numbers of a row that are not zero, with the serials of their arms; None for no number."""
    found = np.flatnonzero(row)
    if len(found) == 0:
        return None
    return (found if serials is None else serials[found]), row[found]
