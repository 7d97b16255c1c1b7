"""What a learner needs of a policy."""

from typing import Any, Protocol

from ..base.arrays import Floats, Ints
from ..kernels.dispatch import Entries
from ..kernels.state import Layout, State


class RunnablePolicy(Protocol):
    """A policy, as a learner sees it: `Policy` says what each of these means."""

    @property
    def layout(self) -> Layout:
        """The rows of its state."""

    @property
    def cumulative(self) -> str | None:
        """The learned row that adds up losses, or None."""

    @property
    def coupled(self) -> bool:
        """Whether the arm played is the arm seen."""

    @property
    def baseline(self) -> str | None:
        """The row of baselines that a pending decision keeps, or None."""

    def at(self, arms: int) -> "RunnablePolicy":
        """The same policy in the form that suits a number of arms."""

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

    def baselines(self, state: State) -> tuple[Ints, Floats]:
        """The places of the arms that have a baseline now, and what it is."""

    def set_baselines(self, state: State, places: Ints, values: Floats) -> None:
        """Put the baselines of a decision where the compiled update reads them."""

    def init_new_arms(self, state: State, first: int) -> None:
        """Fill in what arms that come later have learned."""

    def to_dict(self) -> dict[str, Any]:
        """The name and every parameter."""
