"""The base classes of environments."""

from functools import cache
from typing import Any, ClassVar, Self

import numpy as np

from ..base.spec import Description
from ..base.validation import set_number, set_whole
from ..errors import ParameterError
from ..kernels.dispatch import AdversaryFunctions, Memory, register_adversary
from ..kernels.parameters import params_of
from ..kernels.rounds import Table


class Environment(Description, kind="environment", package=__package__):
    """A frozen description of where losses come from. The horizon is not part of it.

    An *oblivious* environment has a table: rows of mean losses, and the row that applies in each
    round. To add one, subclass this with a frozen dataclass that has `arms` and `table`; it runs at
    compiled speed because the loop sees only the table. For one that reacts to what is played, see
    `Adversary`.

    >>> import decoupled as dc
    >>> environment = dc.environments.Alternating(arms=8, gap=0.125)
    >>> dc.environments.Environment.from_json(environment.to_json()) == environment
    True
    """

    arms: int

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """One or more examples to test the environment with.

        >>> import decoupled as dc
        >>> dc.environments.Alternating.examples()
        (Alternating(arms=8, gap=0.125, growth=1.6),)
        """
        raise NotImplementedError(
            f"{cls.__name__}.examples: is not defined; return a tuple of one or more, "
            f"such as ({cls.__name__}(...),), for the tests of all environments"
        )

    def table(self, horizon: int) -> Table:
        """The mean losses of every round.

        Args:
            horizon: the number of rounds.
        """
        raise NotImplementedError


class Adversary(Environment):
    """An environment that computes each round's losses from past plays, inside the compiled loop.

    To add one, subclass this with a frozen dataclass that has `arms`, a `Params` named tuple of
    floats, bools, ints and tuples of them, and two compiled functions: `losses(params, memory, t,
    out)` fills the mean loss of every arm, and `note(params, memory, t, exploit)` remembers what
    was exploited.

    Regret is against the best fixed arm in hindsight *on the losses that the policy met*. They are
    answers to its plays, so another policy would have met others. Losses are Bernoulli.

    >>> import decoupled as dc
    >>> issubclass(dc.environments.PunishLast, dc.environments.Adversary)
    True
    """

    params_type: ClassVar[Any]
    functions: ClassVar[AdversaryFunctions]

    def params(self) -> Any:
        """The parameters for compiled code: those that `params_type` names, unless overridden."""
        return params_of(self.params_type, self)

    def memory(self) -> Memory:
        """What the adversary remembers, before the first round."""
        return Memory(np.zeros(self.arms), np.zeros(self.arms, np.int64))

    @classmethod
    @cache
    def prepare(cls) -> None:
        """Register the compiled functions, on first use in each process."""
        register_adversary(cls.params_type, cls.functions)


def set_gap_below_level(environment: Environment, remedy: str) -> None:
    """Validate `level`, the loss of most arms, and `gap`, by which one is better.

    `remedy` is for the gap.
    """
    level = set_number(environment, "level", 0.0, 1.0, "the default is 0.5")
    gap = set_number(environment, "gap", 0.0, 1.0, remedy)
    if gap > level:
        raise ParameterError.of("gap", gap, f"must not exceed level = {level}", "lower it")


def set_best(environment: Environment) -> None:
    """Validate `best`, the number of an arm."""
    best = set_whole(environment, "best", 0, "the default is 0")
    if best >= environment.arms:
        rule = f"must be below arms = {environment.arms}"
        raise ParameterError.of("best", best, rule, "arms are numbered from 0")
