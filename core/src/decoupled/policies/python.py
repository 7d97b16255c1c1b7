"""Policies in plain Python: two methods with NumPy, and no compiler."""

from collections.abc import Callable
from functools import cache
from itertools import count
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..base.arrays import Floats, Ints, Words
from ..errors import ContractError, UnsupportedError, shown
from ..kernels.dispatch import Entries, Functions
from ..kernels.random.stream import uniform
from ..kernels.state import OBSERVED, ROUND, Layout, State
from .base import Policy

OWN_NAMES = ("arms", "round", "random")  # what a `Knowledge` has beside the learned rows
_RETURN = (
    "return two lists of probabilities, one to exploit and one to explore, "
    "with a number for each arm"
)
_TOLERANCE = 1e-6  # for the sum of the probabilities


class Knowledge:
    """What the methods of a `PythonPolicy` see: an array for each name in `learned`, and these.

    Attributes:
        arms: the number of arms.
        round: 1 + the number of losses learned so far.
        random: a function that draws a number, uniform in (0, 1], from the policy's random stream.

    Args:
        names: the names of the learned arrays.
        state: the state of the running policy.
        random: draws a number, uniform in (0, 1], from the policy's random stream.
    """

    arms: int
    round: int
    random: Callable[[], float]

    def __init__(self, names: tuple[str, ...], state: State, random: Callable[[], float]) -> None:
        self.arms = state.floats.shape[1]
        self.round = int(state.scalars[ROUND])
        self.random = random
        vars(self).update(zip(names, state.floats, strict=True))

    def __getattr__(self, name: str) -> Floats:
        raise AttributeError(f"{name!r} is not learned; name it in `learned`")


class PythonPolicy(Policy):
    """A policy of your own in plain Python: a frozen dataclass with two methods, `decide` and
    `update`.

    Such a policy can do what the compiled policies do: run as a learner with late feedback and
    saved states, in simulations on the CPU, in comparisons, and in `check_policy`. It needs no
    compiler and runs at the speed of Python, some hundred times slower than compiled code. Override
    `estimates` if no array called estimates is learned.

    Attributes:
        learned: the names of the arrays that the policy learns. Each has one number for each arm, 0
            at the start.

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> import decoupled as dc
    >>> @dataclass(frozen=True)
    ... class SoftGreedy(dc.PythonPolicy):
    ...     rate: float = 0.1
    ...
    ...     def decide(self, known):
    ...         weights = np.exp(-self.rate * (known.estimates - known.estimates.min()))
    ...         return weights / weights.sum(), np.full(known.arms, 1 / known.arms)
    ...
    ...     def update(self, known, arm, weight, loss):
    ...         known.estimates[arm] += weight * loss
    >>> learner = SoftGreedy().start(arms=["a", "b"], seed=7)
    >>> for _ in range(200):
    ...     decision = learner.decide()
    ...     learner.observe(decision, loss=0.9 if decision.explore == "a" else 0.2)
    >>> learner.exploit().exploit
    'b'
    """

    learned: ClassVar[tuple[str, ...]] = ("estimates",)

    def __new__(cls, *arguments: object, **named: object) -> "PythonPolicy":
        """Refuse a class that is not a dataclass, before anything else fails because of that."""
        if "__dataclass_fields__" not in vars(cls):
            raise ContractError(
                f"class {cls.__name__}: is not a dataclass; put @dataclass(frozen=True) above it"
            )
        return super().__new__(cls)

    # What a policy of your own defines

    def decide(self, known: Knowledge) -> tuple[ArrayLike, ArrayLike]:
        """Return the probability of exploiting each arm, and that of exploring each arm.

        The package draws from them. Learn nothing here.

        Args:
            known: what the policy has learned so far.

        Returns:
            Two lists or arrays of probabilities. If a policy draws the arm to exploit itself, such
            as the leader after random perturbations, the number of that arm takes the place of the
            first.
        """
        raise NotImplementedError

    def update(self, known: Knowledge, arm: int, weight: float, loss: float) -> None:
        """Learn the loss of the explored arm. `known.round` counts this loss already.

        Args:
            known: what the policy has learned so far; change its arrays in place.
            arm: the number of the explored arm.
            weight: 1 / the probability with which it was explored, so that adding weight * loss to
                the arm's entry estimates the sum of its losses without bias.
            loss: its loss, in [0, 1].
        """
        raise NotImplementedError

    # What the package makes of it

    in_python = True

    @property
    def layout(self) -> Layout:
        return Layout(floats=self.learned, learned=self.learned)

    @property
    def cumulative(self) -> str | None:
        """The array called estimates, if there is one: it adds up losses."""
        return "estimates" if "estimates" in self.learned else None

    @property
    def params_type(self) -> Any:
        return _form_of(self).params_type

    @property
    def functions(self) -> Functions:
        return _form_of(self).functions

    def params(self) -> Any:
        return self.params_type(0.0)  # the methods see the parameters as they are

    def entries(self) -> Entries:
        functions = _form_of(self).functions

        def init(values: Floats, *state: Floats | Ints) -> None:
            pass

        def decide(values: Floats, *arguments: Any) -> tuple[int, int, float, float]:
            *state, stream = arguments
            return functions.decide(None, State(*state), stream)

        def update(values: Floats, *arguments: Any) -> None:
            *state, arm, weight, loss = arguments
            state[0][ROUND] += 1.0
            state[0][OBSERVED] += 1.0
            functions.update(None, State(*state), arm, weight, loss)

        return Entries(init, decide, update)

    def exploitation_law(self, state: State) -> Floats:
        exploit, _ = _checked_laws(self, state, _no_stream())
        if isinstance(exploit, int):
            raise UnsupportedError(
                f"{type(self).__name__}: draws the arm to exploit itself, "
                "so its probabilities are not known; have decide give them, "
                "or add a method exploitation_law(self, state)"
            )
        return exploit

    def exploration_law(self, state: State) -> Floats:
        _, explore = _checked_laws(self, state, _no_stream())
        return explore

    def estimates(self, state: State) -> Floats:
        if "estimates" not in self.learned:
            raise ContractError(
                f"{type(self).__name__}: learns no array called estimates; "
                "add a method estimates(self, state) that gives what is learned about each arm"
            )
        return super().estimates(state)


def _checked_laws(
    policy: PythonPolicy, state: State, random: Callable[[], float]
) -> tuple[Floats | int, Floats]:
    """Call `decide`, which may return an arm as its first law, and check both laws."""
    name = f"{type(policy).__name__}.decide"
    arms = state.floats.shape[1]
    returned: Any = policy.decide(Knowledge(policy.learned, state, random))
    if not isinstance(returned, (tuple, list)) or len(returned) != 2:
        raise ContractError(f"{name}: returned {shown(returned)}; {_RETURN}")
    exploit, explore = returned
    if not isinstance(exploit, (int, np.integer)) or isinstance(exploit, bool):
        exploitation_law = _checked_law(name, "exploit", exploit, arms)
        return exploitation_law, _checked_law(name, "explore", explore, arms)
    if not 0 <= exploit < arms:
        raise ContractError(
            f"{name}: gave arm {exploit} to exploit; arms are numbered 0 to {arms - 1}"
        )
    return int(exploit), _checked_law(name, "explore", explore, arms)


def _checked_law(name: str, role: str, probabilities: Any, arms: int) -> Floats:
    """The probabilities as an array that sums to 1; raise an error if they are not a law."""
    try:
        law = np.asarray(probabilities, np.float64)
    except (TypeError, ValueError):
        law = np.empty(0)
    if law.shape != (arms,):
        raise ContractError(f"{name}: gave {shown(probabilities)} to {role} {arms} arms; {_RETURN}")
    total = law.sum()
    if not (law.min() >= 0.0 and abs(total - 1.0) <= _TOLERANCE):  # NaN is refused, too
        raise ContractError(
            f"{name}: gave {shown(law.tolist())} to {role} {arms} arms, "
            "which are not probabilities that sum to 1; divide them by their sum"
        )
    return np.asarray(law / total)


class _Form(NamedTuple):
    """What a policy in Python has where others have a type of parameters and compiled functions."""

    params_type: type
    functions: Functions


@cache  # policies that are equal share their type, by which the round loop finds their functions
def _form_of(policy: PythonPolicy) -> _Form:
    """Give the methods of a policy the signatures of compiled functions."""

    class Params(NamedTuple):
        unused: float

    owner = type(policy)
    Params.__module__ = owner.__module__
    Params.__qualname__ = f"{owner.__qualname__}.{next(_numbers)}"
    learned = policy.learned

    def init(params: object, state: State) -> None:
        pass

    def decide(params: object, state: State, stream: Words) -> tuple[int, int, float, float]:
        def random() -> float:
            return uniform(stream)

        exploit, law = _checked_laws(policy, state, random)
        if not isinstance(exploit, int):
            exploit = _draw_from(exploit, random())
        explore = _draw_from(law, random())
        propensity = float(law[explore])
        return exploit, explore, 1.0 / propensity, propensity

    def update(params: object, state: State, arm: int, weight: float, loss: float) -> None:
        policy.update(Knowledge(learned, state, _no_draws), arm, weight, loss)

    return _Form(Params, Functions(init, decide, update))


_numbers = count()


def _draw_from(law: Floats, mark: float) -> int:
    """The arm that a uniform number draws from a law."""
    sums = np.cumsum(law)
    return int(np.searchsorted(sums, mark * sums[-1]))


def _no_stream() -> Callable[[], float]:
    """Numbers for a policy that draws in `decide`, when only its probabilities are wanted."""
    return np.random.default_rng(0).random


def _no_draws() -> float:
    raise ContractError(
        "update: draws a random number; draw in decide, so that saved states continue bit for bit"
    )
