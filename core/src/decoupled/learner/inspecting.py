"""The state of a running policy by the names of its layout, for authors of policies who test what
theirs learns.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ..kernels.state import Layout, State
from .learner import Learner


class NamedState(Mapping[str, Any]):
    """A copy of a policy's state: each scalar as a number, each row and square as a read-only
    array, by its name.

    Args:
        layout: the names, usually the `layout` of a policy.
        state: a state with this layout.

    >>> import decoupled as dc
    >>> layout = dc.FTPL().layout
    >>> state = NamedState(layout, layout.new_state(3))
    >>> state["arms"], state["estimates"].tolist()
    (3.0, [0.0, 0.0, 0.0])
    """

    def __init__(self, layout: Layout, state: State) -> None:
        self._layout = layout
        self._state = _copied(state)
        for array in self._state:
            array.flags.writeable = False

    def __getitem__(self, name: str) -> Any:
        if name not in self._names():
            raise KeyError(name)
        row = self._layout.row(self._state, name)
        return float(row[0]) if name in self._scalars() else row

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def _scalars(self) -> tuple[str, ...]:
        return self._layout.all_scalars

    def _names(self) -> tuple[str, ...]:
        return self._scalars() + self._layout.floats + self._layout.ints + self._layout.pairs

    def to_state(self) -> State:
        """A copy of the state, as compiled functions and `Policy.exploration_law` take it."""
        return _copied(self._state)


def _copied(state: State) -> State:
    return State(state.scalars.copy(), state.floats.copy(), state.ints.copy())


def state_of(learner: Learner) -> NamedState:
    """The state of a learner's policy as it is now, by the names of the policy's `Layout`.

    It is for the tests of your own policy: of what the policy has learned, and of what it derives
    from that.

    Args:
        learner: the running policy. Nothing about it changes.

    >>> import decoupled as dc
    >>> from decoupled.testing import state_of
    >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7)
    >>> learner.replay([("a", 0.5, 0.9), ("b", 0.5, 0.2)])
    2
    >>> state = state_of(learner)
    >>> state["round"], state["estimates"].tolist()
    (3.0, [1.8, 0.4])
    >>> law = learner.policy.exploration_law(state.to_state())
    >>> law.tolist() == learner.exploration_probabilities().tolist()
    True
    """
    return learner.inspect(
        lambda parts: NamedState(parts.policy_state.layout, parts.policy_state.state)
    )
