"""Forgetting: make any policy follow an environment that drifts, by restarts or discounts around its compiled functions.

The wrapped policy sees a part of the wrapper's state: the same rows, and the scalars from its own round on. So it
reads its round at the usual place, while the first scalar counts all observations.
"""

import re
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from threading import Lock
from typing import Any, NamedTuple, Self

from ..base.arrays import Words
from ..base.validation import MOST_ROUNDS, number_in, whole_number
from ..errors import ParameterError, UnsupportedError
from ..kernels.dispatch import Functions
from ..kernels.jit import compiled, is_ours, name_apart, translate
from ..kernels.state import ARMS, EVENTS, ROUND, SECRET, SHARED_SCALARS, Layout, State
from .base import Policy
from .ftpl import FTPL

# The wrapper's scalars: the number of observations not yet forgotten, which is learned, and the shared scalars of the
# wrapped policy.
OWN_SCALARS = ("forgetting_kept", *(f"forgetting_{name}" for name in SHARED_SCALARS))
KEPT = len(SHARED_SCALARS)
START = KEPT + 1

NOTHING = 1e-300  # values that fade below this become 0: smaller numbers lose digits and are slow


class Fading(NamedTuple):
    """What a discount shrinks: the numbers of a policy's rows of floats and of its scalars."""

    rows: tuple[int, ...]
    scalars: tuple[int, ...] = ()


class Wrapped(NamedTuple):
    """The parameter type and functions of a wrapper, made once for each policy's parameter type."""

    params_type: Any
    functions: Functions


_one_at_a_time = Lock()
_made: dict[tuple[Any, ...], Wrapped] = {}


def wrapped(
    params_type: Any, inner: Functions, fading: Fading | None, home: tuple[str, str] | None
) -> Wrapped:
    """The parameter type and functions of a policy that restarts, or that discounts what `fading` lists.

    `home` is the module and name under which any process can import the parameter type. Without one, machine code is
    not cached on disk, because a process that loads it must find every type named in it.
    """
    key = (params_type, inner, fading, home)
    with _one_at_a_time:  # two types for the same wrapper would compile twice
        if key not in _made:
            _made[key] = _wrap(params_type, inner, fading, home)
        return _made[key]


def _wrap(
    params_type: Any, inner: Functions, fading: Fading | None, home: tuple[str, str] | None
) -> Wrapped:
    name_apart(params_type)  # the compiler may see it here before the policy itself has registered it
    apart = f"{params_type.__module__}.{params_type.__qualname__}.{len(_made)}"
    module, name = home or ("forgetting", apart)
    kind = namedtuple("Params", [*params_type._fields, "forgetting"], module=module)  # type: ignore[misc]
    kind.__qualname__ = name
    if fading is None:
        functions = _restarting(params_type, inner)
    else:
        functions = _discounting(params_type, inner, fading)
    for function in functions:  # with the parameter type, this makes their names in machine code unique
        function.__module__ = module
    made: Any = [translate(each, keep=False, counting=False) for each in functions]
    return Wrapped(kind, Functions(*made))


@compiled
def inside(state: State) -> State:
    """The state as the wrapped policy sees it, without a copy. Its events are those of the whole, which go on."""
    state.scalars[START + EVENTS] = state.scalars[EVENTS]
    return State(state.scalars[START:], state.floats, state.ints)


@compiled
def set_round(state: State) -> None:
    """Set the shared scalars of the wrapped policy."""
    state.scalars[START + ROUND] = 1.0 + state.scalars[KEPT]
    state.scalars[START + ARMS] = state.scalars[ARMS]
    state.scalars[START + SECRET] = state.scalars[SECRET]


@compiled
def clear(state: State) -> None:
    """Reset everything but the shared scalars to the start."""
    state.scalars[KEPT:] = 0.0
    state.floats[:] = 0.0
    state.ints[:] = 0


@compiled
def fade(row: Any, discount: float) -> None:
    """Multiply every number of a row by the discount."""
    for i in range(len(row)):
        shrunk = discount * row[i]
        row[i] = shrunk if abs(shrunk) > NOTHING else 0.0


def _common(params_type: Any, inner: Functions) -> tuple[Any, Any]:
    """`init` and `decide`, which restarts and discounts share."""
    inner_init, inner_decide, _ = inner

    def init(params: Any, state: State) -> None:
        set_round(state)
        inner_init(params_type(*params[:-1]), inside(state))

    def decide(params: Any, state: State, stream: Words) -> tuple[int, int, float, float]:
        return inner_decide(params_type(*params[:-1]), inside(state), stream)

    return init, decide


def _restarting(params_type: Any, inner: Functions) -> Functions:
    inner_init, _, inner_update = inner

    def update(params: Any, state: State, arm: int, weight: float, loss: float) -> None:
        known = params_type(*params[:-1])
        # An observation that would be forgotten at once is not learned.
        if state.scalars[KEPT] + 1.0 >= params[-1]:
            clear(state)
            set_round(state)
            inner_init(known, inside(state))
        else:
            state.scalars[KEPT] += 1.0
            set_round(state)
            inner_update(known, inside(state), arm, weight, loss)

    return Functions(*_common(params_type, inner), update)


def _discounting(params_type: Any, inner: Functions, fading: Fading) -> Functions:
    inner_init, _, inner_update = inner
    rows, scalars = fading.rows, (KEPT, *(START + number for number in fading.scalars))

    def update(params: Any, state: State, arm: int, weight: float, loss: float) -> None:
        known, discount = params_type(*params[:-1]), params[-1]
        state.scalars[START + ROUND] += 1.0
        inner_update(known, inside(state), arm, weight, loss)
        state.scalars[KEPT] += 1.0
        for number in scalars:
            state.scalars[number] *= discount
        for row in rows:
            fade(state.floats[row], discount)
        set_round(state)
        inner_init(known, inside(state))

    return Functions(*_common(params_type, inner), update)


DEFAULT_POLICY = FTPL()
DEFAULT_PERIOD = 1000


@dataclass(frozen=True)
class Forgetting(Policy):
    r"""A policy that forgets, by restarts or by a discount, so that it can follow a drifting environment.

    With a `period`, the policy restarts after that many observations: it forgets everything and is in round 1 again.
    Within a period its guarantees hold: over $P$ periods of length $T / P$ its regret against the best arm *of each
    period* is $P$ times its bound at $T / P$, such as $P \cdot O(\sqrt{K T / P}) = O(\sqrt{P K T})$ for FTPL.

    With a `discount` $g$, every observation multiplies all sums by $g$, including the number of observations:

    - sums of loss estimates and of losses, and counts: $\sum_s g^{n - s + 1} x_s$ after $n$ observations;
    - the round, which is 1 + that number: $t \leftarrow 1 + g t$, from 1 up to $1 / (1 - g)$. So a learning rate that falls as
      $1 / \sqrt{t}$ falls to that of the remembered span and stays there, and so does the $\log t$ of UCB1.

    With a discount, sample means are those of the recent past. UCB1 becomes discounted UCB (Garivier, A. and Moulines,
    E. (2011). On upper-confidence bound policies for switching bandit problems. ALT), and Thompson sampling becomes
    discounted Thompson sampling (Raj, V. and Kalyani, S. (2017), arXiv:1707.09727). The sums behind JinHybrid's rates
    fade as well, and so does the spread of the losses with the schedule "losses"; the running mean of a centred
    estimator forgets by itself. Two things are ours: the order (learn, then shrink everything, including the newest
    observation) and the round that saturates. In an environment that does not change, forgetting costs: regret then
    grows linearly, because the policy never becomes certain.

    Every policy can restart. TopTwo takes no discount, because it keeps whole numbers of duels and the order in which
    arms were first seen. If your own policy learns more than `estimates`, list the rows that a discount may shrink in
    `fading`. Give a policy that takes a `horizon` the span it remembers: `period`, or 1 / (1 - discount).

    Forgetting happens when an observation arrives, so deciding changes nothing. Late feedback counts when it arrives,
    even after a restart. A restart drops the observation that causes it. The learner's own round keeps counting;
    `extend.diagnostics(learner)["forgetting_round"]` is the policy's.

    Args:
        policy: the policy that forgets, or its `to_dict()`.
        period: observations between restarts, 2 or more. The default is 1000 if there is no discount.
        discount: in (0, 1). The policy remembers about 1 / (1 - discount) observations.

    >>> import decoupled as dc
    >>> from decoupled.extend import diagnostics
    >>> learner = dc.Forgetting(dc.FTPL(), period=3).start(arms=2, seed=1)
    >>> learner.replay([(0, 0.5, 1.0), (1, 0.5, 0.5)])
    2
    >>> learner.estimates().tolist()
    [2.0, 1.0]
    >>> learner.replay([(0, 0.5, 1.0)])
    1
    >>> learner.estimates().tolist(), learner.round, diagnostics(learner)["forgetting_round"]
    ([0.0, 0.0], 4, 1.0)
    >>> fading = dc.Forgetting(dc.FTPL(), discount=0.5).start(arms=2, seed=1)
    >>> fading.replay([(0, 0.5, 1.0), (1, 0.5, 1.0)])
    2
    >>> fading.estimates().tolist(), diagnostics(fading)["forgetting_round"]
    ([0.5, 1.0], 1.75)
    """

    policy: Policy = DEFAULT_POLICY
    period: int | None = None
    discount: float | None = None

    def __post_init__(self) -> None:
        given: object = self.policy
        policy = Policy.from_dict(given) if isinstance(given, dict) else given
        if not isinstance(policy, Policy) or isinstance(policy, Forgetting):
            rule = "must be a policy that does not forget already"
            raise ParameterError.of("policy", policy, rule, "for example dc.FTPL()")
        if policy.interpreted or policy.in_python:
            raise UnsupportedError(
                f"policy = {policy!r}: needs the interpreter at every step, and Forgetting is compiled; "
                "use its compiled form"
            )
        if policy.contextual:
            raise UnsupportedError(
                f"policy = {policy!r}: keeps what it knows of segments apart, and Forgetting cannot reach that; "
                "start a new learner now and then, or forget with a policy that knows no context"
            )
        object.__setattr__(self, "policy", policy)
        if self.discount is None:
            self._check_period()
        else:
            self._check_discount()

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        from . import CoupledTsallisINF, TsallisINF  # other policies need not wait for these

        baselines = CoupledTsallisINF(estimator="reduced-variance", c=0.9)  # which a restart forgets, too
        return cls(FTPL(), period=29), cls(TsallisINF(), discount=0.97), cls(baselines, period=29)

    def _check_period(self) -> None:
        given = DEFAULT_PERIOD if self.period is None else self.period
        period = whole_number("period", given, 2, f"the default is {DEFAULT_PERIOD}")
        if period > MOST_ROUNDS:
            rule = f"must not exceed {MOST_ROUNDS}"
            raise ParameterError.of("period", period, rule, "use the policy itself")
        object.__setattr__(self, "period", period)

    def _check_discount(self) -> None:
        discount = number_in("discount", self.discount, 0.0, 1.0, "try 0.999, which remembers about 1000")
        if self.period is not None:
            rule = f"cannot be combined with period = {self.period}"
            raise ParameterError.of("discount", discount, rule, "leave one of them out")
        if not self._fading().rows:
            learned = ", ".join(self.policy.layout.learned)
            rule = (
                f"does not suit {type(self.policy).__name__}, which learns {learned}: not all of it fades"
            )
            remedy = "give a period, which suits every policy"
            raise ParameterError.of("discount", discount, rule, remedy)
        object.__setattr__(self, "discount", discount)

    def _fading(self) -> Fading:
        """What a discount shrinks; it has no rows if a discount does not suit the policy."""
        inner, layout = self.policy, self.policy.layout
        names = inner.fading
        if names is None:
            names = layout.learned if layout.learned == (inner.cumulative,) else ()
        scalars = SHARED_SCALARS + layout.scalars
        return Fading(
            tuple(layout.floats.index(name) for name in names if name in layout.floats),
            tuple(scalars.index(name) for name in names if name in scalars),
        )

    def _wrapped(self) -> Wrapped:
        fading = None if self.discount is None else self._fading()
        inner = self.policy
        what = "restarting" if fading is None else "discounting"
        return wrapped(inner.params_type, inner.functions, fading, _home(inner, what))

    def at(self, arms: int) -> Self:
        return replace(self, policy=self.policy.at(arms))

    def among(self, arms: int, whole: int) -> Self:
        return replace(self, policy=self.policy.among(arms, whole))

    def init_form(self, state: State, known: tuple[str, ...]) -> None:
        state.scalars[START + ROUND] = 1.0 + state.scalars[KEPT]
        self.policy.init_form(_inside(state), known)

    @property
    def label(self) -> str:
        """A short name for tables and figures."""
        how = f"period={self.period}" if self.discount is None else f"discount={self.discount!r}"
        return f"Forgetting({self.policy.label}, {how})"

    @property
    def layout(self) -> Layout:
        """The rows of the policy; its round and its number of arms are additional scalars."""
        inner = self.policy.layout
        return inner._replace(
            scalars=(*OWN_SCALARS, *inner.scalars), learned=(OWN_SCALARS[0], *inner.learned)
        )

    @property
    def params_type(self) -> Any:
        """The policy's parameters, and the period or discount."""
        return self._wrapped().params_type

    @property
    def functions(self) -> Functions:
        """The policy's functions, wrapped."""
        return self._wrapped().functions

    def params(self) -> Any:
        own = self.discount if self.period is None else float(self.period)
        return self.params_type(*self.policy.params(), own)


def _of_policy(name: str) -> property:
    """What the wrapped policy says of itself."""
    return property(lambda self: getattr(self.policy, name))


def _inside_of(name: str) -> Callable[..., Any]:
    """The method of the wrapped policy, on the state as that sees it."""

    @wraps(getattr(Policy, name))
    def inside(self: Any, state: State, *more: Any) -> Any:
        return getattr(self.policy, name)(_inside(state), *more)

    return inside


for _name in (
    *("common_rows", "cumulative", "branching", "coupled", "baseline", "kept", "any_baseline", "keeps_law"),
    "keyed_in_place",
):
    setattr(Forgetting, _name, _of_policy(_name))
for _name in (
    *("exploitation_law", "exploration_law", "keyed", "rung_weights", "estimates", "baselines"),
    *("set_baselines", "recall_law", "prepare", "most_predicted", "unknown", "clear_baselines"),
    "init_new_arms",
):
    setattr(Forgetting, _name, _inside_of(_name))


def _home(policy: Policy, what: str) -> tuple[str, str] | None:
    """The module and name under which any process finds the wrapped parameter type of one of our policies."""
    kind = type(policy)
    if kind.__name__ not in Policy.homes or not is_ours(kind, policy.params_type, *policy.functions):
        return None
    for number, form in enumerate(kind.forms()):
        if policy.params_type is form.params_type:
            return __name__, f"{what}_{kind.__name__}_{number}"
    return None


def __getattr__(name: str) -> Any:
    # Numba's cached machine code names its argument types, and Numba looks for them here.
    found = re.fullmatch("(restarting|discounting)_([A-Za-z0-9]+)_([0-9]+)", name)
    kind = Policy.find(found[2]) if found and found[2] in Policy.homes else None
    if found is None or kind is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    what, _, number = found.groups()
    policy = kind.forms()[int(number)]
    return Forgetting(policy, discount=0.5 if what == "discounting" else None).params_type


def _inside(state: State) -> State:
    """The state as the wrapped policy sees it. The compiled version cannot return arrays to the interpreter."""
    state.scalars[START + EVENTS] = state.scalars[EVENTS]
    return state._replace(scalars=state.scalars[START:])
