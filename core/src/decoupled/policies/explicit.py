"""Policies that keep both laws as rows of weights, up to their sums."""

from ..base.arrays import Floats
from ..kernels.random.keyed import Keyed, keyed_race
from ..kernels.state import State
from .base import Policy

EXPLICIT_SUMS = ("exploit_sum", "explore_sum")
"""The scalars of such a policy: the sums of its rows "exploit" and "explore"."""


class ExplicitLaws(Policy):
    """A policy with the rows "exploit" and "explore", and the scalars `EXPLICIT_SUMS`."""

    keyed_in_place = True

    def exploitation_law(self, state: State) -> Floats:
        return self._law(state, "exploit")

    def exploration_law(self, state: State) -> Floats:
        return self._law(state, "explore")

    def _law(self, state: State, name: str) -> Floats:
        """The weights in a row, divided by their sum."""
        law: Floats = self.layout.row(state, name) / self.layout.row(state, f"{name}_sum")
        return law

    def keyed(self, state: State) -> Keyed:
        return Keyed(keyed_race, (self.layout.row(state, "exploit"),))
