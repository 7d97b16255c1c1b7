"""Slow, obvious twins of the policies, written from their definitions and not from the package's code.

A twin keeps the sum of loss estimates, counts observations, and works out both laws from scratch each
time. Nothing is cached, kept in rank order or warm-started, so a mistake in those tricks shows up as a
difference.

A policy's twin is found by `twin_of`, once a function that makes it is marked with `twin_for`, in any file of
this folder.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Twin(ABC):
    """The part that every twin with importance-weighted estimates shares.

    `problem_arms` is K in the learning rate; it exceeds the number of estimates when the twin stands
    for a learner whose other arms are away. `knows_propensity` says whether the policy knows the probability
    of what it drew; if not, a decision's propensity is None.
    """

    knows_propensity: bool = True

    def __init__(self, arms: int, c: float = 2.0) -> None:
        self.c = c
        self.problem_arms = arms
        self.estimates: Floats = np.zeros(arms)
        self.observations = 0

    @property
    def round(self) -> int:
        return 1 + self.observations

    @property
    def eta(self) -> float:
        """The learning rate, for policies that have one."""
        raise NotImplementedError(f"{type(self).__name__} has no learning rate")

    @abstractmethod
    def exploration_law(self) -> Floats: ...

    @abstractmethod
    def exploitation_law(self) -> Floats: ...

    def update(self, arm: int, weight: float, loss: float) -> None:
        self.observations += 1
        self.estimates[arm] += weight * loss

    def follow(self, learner: Any) -> None:
        """Look at a learner that is one observation ahead, where a twin cannot know what the learner drew."""
        del learner  # most twins know everything

    def replay(self, arm: int, weight: float, loss: float) -> None:
        """Learn from a log that brings a weight and nothing else."""
        self.update(arm, weight, loss)

    def estimate_variance(self, losses: Floats) -> Floats:
        """The variance of one round's estimate of each arm's loss."""
        variance: Floats = losses**2 * (1 / self.exploration_law() - 1)
        return variance

    def gaps(self) -> Floats:
        gaps: Floats = self.estimates - self.estimates.min()
        return gaps

    def restricted(self, places: Sequence[int]) -> "Twin":
        """A twin that knows only these arms' estimates and keeps the learning rate of the whole."""
        part = object.__new__(type(self))
        part.__dict__.update(self.__dict__)
        part.estimates = self.estimates[list(places)]
        return part


MakeTwin = Callable[[Any, int], Twin]  # from a policy and a number of arms
_makers: dict[str, MakeTwin] = {}


def twin_for(policy: str) -> Callable[[MakeTwin], MakeTwin]:
    """Mark the function that makes the twins of a policy, given by the name of its class."""

    def mark(make: MakeTwin) -> MakeTwin:
        assert policy not in _makers, f"{policy} has two twins"
        _makers[policy] = make
        return make

    return mark


def twin_of(policy: Any, arms: int) -> Twin:
    """A twin of this policy that has learned nothing yet."""
    kind = type(policy)
    maker = makers().get(kind.__name__)
    if maker is None:
        file = kind.__module__.rpartition(".")[2]
        raise LookupError(
            f"{kind.__module__}.{kind.__name__} has no twin; write tests/support/twins/{file}.py with a "
            f"subclass of Twin that has its laws, and a function (policy, arms) -> Twin that is marked "
            f'@twin_for("{kind.__name__}")'
        )
    return maker(policy, arms)


@cache
def makers() -> dict[str, MakeTwin]:
    """What makes the twins of each policy, after all files of this folder are read."""
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    return _makers
