"""A policy under test, and the checks that several tests share."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..base.arrays import Floats
from ..errors import ContractError, shown
from ..kernels.state import State
from ..learner.learner import Learner
from ..policies import Policy
from .failures import fail, raised_from

DRAWS = 50_000
HISTORY = 60


class Case(NamedTuple):
    """A policy under test."""

    policy: Policy
    arms: int
    rounds: int
    seed: int

    def expect(self, holds: object, message: str) -> None:
        """Raise an error with this message unless `holds`."""
        if not holds:
            fail(self.policy, message)

    def call(self, what: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a part of the policy; an exception breaks the contract."""
        try:
            return function(*arguments)
        except ContractError:
            raise
        except Exception as error:
            raised_from(self.policy, what, error)

    def losses(self, rounds: int) -> Floats:
        """Losses that differ between arms and rounds."""
        generator = np.random.default_rng(self.seed)
        return generator.random((rounds, self.arms)) * np.linspace(0.4, 1.0, self.arms)

    def learner(self, rounds: int) -> Learner:
        """A learner that has seen every arm, and then this many rounds."""
        learner = self.policy.start(self.arms, self.seed, max_pending=10 * DRAWS)
        learner.replay([(arm, 1.0 / self.arms, arm / self.arms) for arm in range(self.arms)])
        for losses in self.losses(rounds):
            decision = learner.decide()
            learner.observe(decision, loss=float(losses[place_of(decision.explore)]))
        return learner


def check_finite(case: Case, state: State, when: str) -> None:
    """Check that every number of the state is finite."""
    layout = case.policy.layout
    for name in (*layout.scalars, *layout.floats):
        row = layout.row(state, name)
        message = f"{name!r} is {row.tolist()} {when}: not finite; look at what init and update write there"
        case.expect(np.isfinite(row).all(), message)


def check_both_laws(case: Case, state: State) -> None:
    """Check both laws of a state."""
    law_of(case, state, "exploitation_law")
    law_of(case, state, "exploration_law")


def law_of(case: Case, state: State, name: str) -> Floats:
    """A law of the policy, checked."""
    return checked_law(case, case.call(name, getattr(case.policy, name), state), name)


def checked_law(case: Case, given: Any, name: str) -> Floats:
    """Check that an array holds probabilities that sum to 1."""
    law = numbers_in(given)
    good = law.shape == (case.arms,) and (law >= 0.0).all() and abs(law.sum() - 1.0) < 1e-9
    message = f"{name} is {shown(listed(given))}, which is no law on {case.arms} arms; "
    case.expect(good, message + f"give {case.arms} probabilities that sum to 1")
    return law


def numbers_in(given: Any) -> Floats:
    """An array of floats, empty if the values are not numbers."""
    try:
        return np.array(given, np.float64)
    except (TypeError, ValueError):
        return np.empty(0)


def listed(given: Any) -> object:
    """An array as a list, for an error."""
    return given.tolist() if isinstance(given, np.ndarray) else given


def weighs(policy: Policy) -> bool:
    """Whether the policy sums weighted losses; a mean does not depend on the weight."""
    return policy.cumulative == "estimates"


def place_of(arm: object) -> int:
    """The place of an arm, whose name is a number."""
    return int(arm)  # type: ignore[call-overload,no-any-return]
