"""What a learner needs from a policy."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..base.arrays import Floats, Ints
from ..kernels.dispatch import Entries
from ..kernels.random.keyed import Keyed
from ..kernels.state import Layout, State


class RunnablePolicy(Protocol):
    """A policy as a learner sees it; `Policy` documents each of these."""

    @property
    def layout(self) -> Layout:
        """The rows of its state."""

    @property
    def cumulative(self) -> str | None:
        """The learned row that sums losses, or None."""

    @property
    def coupled(self) -> bool:
        """Whether the arm played is the arm seen."""

    @property
    def contextual(self) -> bool:
        """Whether decisions depend on a context."""

    @property
    def baseline(self) -> str | None:
        """The row of baselines that a pending decision keeps, or None."""

    @property
    def in_python(self) -> bool:
        """Whether its steps are plain Python."""

    @property
    def interpreted(self) -> bool:
        """Whether a step needs the Python interpreter."""

    @property
    def any_baseline(self) -> bool:
        """Whether the update takes any baselines, and otherwise those of the state."""

    @property
    def kept(self) -> tuple[str, ...]:
        """The names of what a pending decision keeps of the state beside its baselines."""

    def at(self, arms: int) -> "RunnablePolicy":
        """The form of this policy for a number of arms."""

    def among(self, arms: int, whole: int) -> "RunnablePolicy":
        """The form in which a decision among some of the arms is drawn."""

    def entries(self) -> Entries:
        """The compiled calls."""

    def params(self) -> Any:
        """The parameters as a tuple of floats."""

    def exploitation_law(self, state: State) -> Floats:
        """The exact probability of exploiting each arm."""

    def exploration_law(self, state: State) -> Floats:
        """The exact probability of exploring each arm."""

    def keyed(self, state: State) -> Keyed:
        """How to draw the arm that a key exploits."""

    @property
    def keyed_in_place(self) -> bool:
        """Whether that is true of the state for as long as it stays where it is."""

    def estimates(self, state: State) -> Floats:
        """What is learned about each arm."""

    def baselines(self, state: State) -> tuple[Ints, Floats]:
        """The places of the arms that have a baseline now, and their baselines."""

    def set_baselines(self, state: State, places: Ints, values: Floats) -> None:
        """Write a decision's baselines where the compiled update reads them."""

    def clear_baselines(self, state: State) -> None:
        """Say that a decision has no baselines of its own."""

    def prepare(self, state: State, arm: int) -> None:
        """Set what `kept` names as a decision that explores this arm would leave it."""

    def most_predicted(self, state: State) -> Floats:
        """The largest baseline that a prediction may give each arm."""

    def unknown(self, state: State) -> NDArray[np.bool_]:
        """A mask of the arms about which nothing is learned."""

    def init_form(self, state: State, known: tuple[str, ...]) -> None:
        """Set the learned rows that the form before did not have."""

    def init_new_arms(self, state: State, first: int) -> None:
        """Set what the arms from place `first` on have learned."""

    def to_dict(self) -> dict[str, Any]:
        """The name and every parameter."""


class ContextualPolicy(RunnablePolicy, Protocol):
    """A policy whose decisions depend on a context; `ContextualLadder` documents each of these."""

    @property
    def segments(self) -> tuple[str, ...]:
        """The fields that tell segments apart."""

    @property
    def numbers(self) -> tuple[str, ...]:
        """The fields of the regression."""

    @property
    def advisers(self) -> tuple[str, ...]:
        """The names of advisers."""

    @property
    def max_segments(self) -> int:
        """How many segments are told apart."""

    @property
    def rung_names(self) -> tuple[str, ...]:
        """The names of the rungs, in order."""
