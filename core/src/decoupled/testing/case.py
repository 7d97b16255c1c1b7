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

    @property
    def draws(self) -> int:
        """How many decisions to compare with the laws; fewer if each takes long."""
        return DRAWS // 5 if self.policy.in_python else DRAWS

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

    def check_finite(self, state: State, when: str) -> None:
        """Check that every number of the state is finite."""
        layout = self.policy.layout
        for name in (*layout.scalars, *layout.floats):
            row = layout.row(state, name)
            message = (
                f"{name!r} is {row.tolist()} {when}: not finite; look at what init and update write there"
            )
            self.expect(np.isfinite(row).all(), message)

    def check_laws(self, state: State) -> None:
        """Check both laws of a state."""
        self.law(state, "exploitation_law")
        self.law(state, "exploration_law")

    def law(self, state: State, name: str) -> Floats:
        """A law of the policy, checked."""
        return self.check_law(self.call(name, getattr(self.policy, name), state), name)

    def check_law(self, given: Any, name: str) -> Floats:
        """Check that an array holds probabilities that sum to 1."""
        law = _numbers(given)
        good = law.shape == (self.arms,) and (law >= 0.0).all() and abs(law.sum() - 1.0) < 1e-9
        message = f"{name} is {shown(_listed(given))}, which is not a law on {self.arms} arms; "
        self.expect(good, message + f"give {self.arms} probabilities that sum to 1")
        return law

    def check_estimates(self, state: State) -> None:
        """Check that there is a finite estimate for each arm."""
        given = self.call("estimates", self.policy.estimates, state)
        estimates = _numbers(given)
        message = (
            f"estimates gave {shown(_listed(given))}; give a finite number for each of {self.arms} arms"
        )
        self.expect(estimates.shape == (self.arms,) and np.isfinite(estimates).all(), message)

    def weighs(self) -> bool:
        """Whether the policy sums weighted losses; a mean does not depend on the weight."""
        return self.policy.cumulative == "estimates"


def _numbers(given: Any) -> Floats:
    try:
        return np.array(given, np.float64)
    except (TypeError, ValueError):
        return np.empty(0)


def _listed(given: Any) -> object:
    return given.tolist() if isinstance(given, np.ndarray) else given


def place_of(arm: object) -> int:
    """The place of an arm, whose name is a number."""
    return int(arm)  # type: ignore[call-overload,no-any-return]
