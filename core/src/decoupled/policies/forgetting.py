"""Forgetting: make any policy follow an environment that drifts, by restarts or by a discount.

How a policy forgets is data in its state, and `kernels.dispatch.update` does it for every policy
alike. So a policy that forgets has the functions, the parameters and the laws of the policy itself.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..base.arrays import Floats
from ..base.validation import MOST_ROUNDS, check_number, whole_number
from ..errors import ParameterError, UnsupportedError
from ..kernels.dispatch import Functions
from ..kernels.random.keyed import Keyed
from ..kernels.state import Forgets, Layout, State
from ..policy import Baselines
from .base import Policy
from .ftpl import FTPL

DEFAULT_POLICY = FTPL()
DEFAULT_PERIOD = 1000


@dataclass(frozen=True)
class Forgetting(Policy):
    r"""A policy that forgets, by restarts or by a discount, so that it can follow a drift.

    With a `period`, the policy restarts after that many observations: it forgets everything and is
    in round 1 again. Within a period its guarantees hold: over $P$ periods of length $T / P$ its
    regret against the best arm *of each period* is $P$ times its bound at $T / P$, such as $P \cdot
    O(\sqrt{K T / P}) = O(\sqrt{P K T})$ for FTPL.

    With a `discount` $g$, every observation multiplies all sums by $g$, including the number of
    observations:

    - sums of loss estimates and of losses, and counts: $\sum_s g^{n - s + 1} x_s$ after $n$
      observations;
    - the round, which is 1 + that number: $t \leftarrow 1 + g t$, from 1 up to $1 / (1 - g)$. So a
      learning rate that falls as $1 / \sqrt{t}$ falls to that of the remembered span and stays
      there, and so does the $\log t$ of UCB1.

    With a discount, sample means are those of the recent past. UCB1 becomes discounted UCB
    (Garivier, A. and Moulines, E. (2011). On upper-confidence bound policies for switching bandit
    problems. ALT), and Thompson sampling becomes discounted Thompson sampling (Raj, V. and Kalyani,
    S. (2017), arXiv:1707.09727). The sums behind JinHybrid's rates fade as well, and so does the
    spread of the losses with the schedule "losses"; the running mean of a centred estimator forgets
    by itself. Two things are ours: the order (learn, then shrink everything, including the newest
    observation) and the round that saturates. In an environment that does not change, forgetting
    costs: regret then grows linearly, because the policy never becomes certain.

    Every policy can restart. TopTwo takes no discount, because it keeps whole numbers of duels and
    the order in which arms were first seen. If your own policy learns more than `estimates`, list
    the rows that a discount may shrink in `fading`. Give a policy that takes a `horizon` the span
    it remembers: `period`, or 1 / (1 - discount).

    Forgetting happens when an observation arrives, so deciding changes nothing. Late feedback
    counts when it arrives, even after a restart. A restart drops the observation that causes it.
    The learner's own round keeps counting; `extend.diagnostics(learner)["round"]` is the policy's.

    Args:
        policy: the policy that forgets, or its `to_dict()`.
        period: observations between restarts, 2 or more. The default is 1000 if there is no
            discount.
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
    >>> learner.estimates().tolist(), learner.round, diagnostics(learner)["round"]
    ([0.0, 0.0], 4, 1.0)
    >>> fading = dc.Forgetting(dc.FTPL(), discount=0.5).start(arms=2, seed=1)
    >>> fading.replay([(0, 0.5, 1.0), (1, 0.5, 1.0)])
    2
    >>> fading.estimates().tolist(), diagnostics(fading)["round"]
    ([0.5, 1.0], 1.75)
    """

    policy: Policy = DEFAULT_POLICY
    period: int | None = None
    discount: float | None = None

    def __post_init__(self) -> None:
        policy: object = self.policy
        if isinstance(policy, dict):
            policy = Policy.from_dict(policy)
        if not isinstance(policy, Policy) or isinstance(policy, Forgetting):
            rule = "must be a policy that does not forget already"
            raise ParameterError.of("policy", policy, rule, "for example dc.FTPL()")
        if policy.interpreted or policy.in_python:
            raise UnsupportedError(
                f"policy = {policy!r}: needs the interpreter at every step, "
                "and Forgetting is compiled; use its compiled form"
            )
        if policy.contextual:
            raise UnsupportedError(
                f"policy = {policy!r}: keeps what it knows of segments apart, "
                "and Forgetting cannot reach that; start a new learner now and then, "
                "or forget with a policy that knows no context"
            )
        object.__setattr__(self, "policy", policy)
        if self.discount is None:
            self._check_period()
        else:
            self._check_discount()

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        from . import CoupledTsallisINF, TsallisINF  # other policies need not wait for these

        has_baselines = CoupledTsallisINF(estimator="reduced-variance", c=0.9)
        return (
            cls(FTPL(), period=29),
            cls(TsallisINF(), discount=0.97),
            cls(has_baselines, period=29),  # a restart forgets its baselines, too
        )

    def _check_period(self) -> None:
        period = DEFAULT_PERIOD if self.period is None else self.period
        period = whole_number("period", period, 2, f"the default is {DEFAULT_PERIOD}")
        if period > MOST_ROUNDS:
            rule = f"must not exceed {MOST_ROUNDS}"
            raise ParameterError.of("period", period, rule, "use the policy itself")
        object.__setattr__(self, "period", period)

    def _check_discount(self) -> None:
        """Check the discount, and that everything that the policy learns can fade."""
        discount = check_number(
            "discount",
            self.discount,
            "try 0.999, which remembers about 1000",
            above=0.0,
            below=1.0,
        )
        if self.period is not None:
            rule = f"cannot be combined with period = {self.period}"
            raise ParameterError.of("discount", discount, rule, "leave one of them out")
        if not self._fading():
            learned = ", ".join(self.policy.layout.learned)
            name = type(self.policy).__name__
            rule = f"does not suit {name}, which learns {learned}: not all of it fades"
            remedy = "give a period, which suits every policy"
            raise ParameterError.of("discount", discount, rule, remedy)
        object.__setattr__(self, "discount", discount)

    def _fading(self) -> tuple[str, ...]:
        """What a discount shrinks, by name; nothing if a discount does not suit the policy."""
        names = self.policy.fading
        layout = self.policy.layout
        if names is None:
            names = layout.learned if layout.learned == (self.policy.cumulative,) else ()
        rows = tuple(name for name in names if name in layout.floats)
        return (*rows, *(name for name in names if name in layout.scalars)) if rows else ()

    def at(self, arms: int) -> Self:
        return replace(self, policy=self.policy.at(arms))

    @property
    def label(self) -> str:
        """A short name for tables and figures."""
        how = f"period={self.period}" if self.discount is None else f"discount={self.discount!r}"
        return f"Forgetting({self.policy.label}, {how})"

    @property
    def layout(self) -> Layout:
        """The rows of the policy, and how it forgets."""
        if self.discount is None:
            forgets = Forgets(period=float(self.period or 0))
        else:
            forgets = Forgets(discount=self.discount, fading=self._fading())
        return self.policy.layout._replace(forgets=forgets)

    # Everything else is the policy's.

    @property
    def params_type(self) -> Any:
        return self.policy.params_type

    @property
    def functions(self) -> Functions:
        return self.policy.functions

    def params(self) -> Any:
        return self.policy.params()

    @property
    def cumulative(self) -> str | None:
        return self.policy.cumulative

    @property
    def coupled(self) -> bool:
        return self.policy.coupled

    @property
    def baselines(self) -> Baselines | None:
        return self.policy.baselines

    @property
    def keyed_in_place(self) -> bool:
        return self.policy.keyed_in_place

    def exploitation_law(self, state: State) -> Floats:
        return self.policy.exploitation_law(state)

    def exploration_law(self, state: State) -> Floats:
        return self.policy.exploration_law(state)

    def keyed(self, state: State) -> Keyed:
        return self.policy.keyed(state)

    def rung_weights(self, state: State) -> dict[str, float]:
        return self.policy.rung_weights(state)

    def estimates(self, state: State) -> Floats:
        return self.policy.estimates(state)

    def unknown(self, state: State) -> NDArray[np.bool_]:
        return self.policy.unknown(state)

    def init_new_arms(self, state: State, first: int) -> None:
        self.policy.init_new_arms(state, first)
