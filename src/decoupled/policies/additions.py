"""What goes beyond the paper in a policy with explicit laws: centred losses, and two rates."""

import math
from dataclasses import fields
from typing import Any, ClassVar, NamedTuple, cast

from ..arrays import Floats
from ..checks import number_from, number_in, one_of
from ..kernels.dispatch import Functions
from ..kernels.state import Layout, State
from .base import Policy

ADDITIONS = ("estimator", "c_exploit", "kappa", "lam")


class Form(NamedTuple):
    """A state, and the functions over it."""

    layout: Layout
    params_type: type
    functions: Functions


class OfForm:
    """An attribute of the class that each policy has according to its form."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, policy: Any, owner: Any) -> Any:
        return getattr(owner.published_form if policy is None else policy.form, self.name)


class PolicyWithAdditions(Policy):
    """A published policy, and a second form of it that the options of ours call for.

    The published one has compiled functions of its own, which the additions do not slow down.
    """

    c: float
    estimator: str
    c_exploit: float | None
    kappa: float
    lam: float

    published_form: ClassVar[Form]
    centred_form: ClassVar[Form]

    layout: ClassVar[Layout] = cast(Any, OfForm("layout"))
    params_type: ClassVar[Any] = OfForm("params_type")
    functions: ClassVar[Functions] = cast(Any, OfForm("functions"))
    fading: ClassVar[tuple[str, ...] | None] = (
        "estimates",
    )  # the running mean of the losses forgets by itself

    @classmethod
    def forms(cls) -> tuple[Policy, ...]:
        make: Any = cls
        return make(), make(estimator="centred")

    def _check_additions(self) -> None:
        def put(name: str, value: float) -> None:
            object.__setattr__(self, name, value)

        put("c", number_in("c", self.c, 0.0, 1e100, "the default is 2"))
        one_of("estimator", self.estimator, ("importance", "centred"))
        if self.c_exploit is not None:
            put("c_exploit", number_in("c_exploit", self.c_exploit, 0.0, 1e100, "the default, None, is c"))
        put("kappa", number_in("kappa", self.kappa, 0.0, 1e100, "the default is 0.1"))
        put("lam", number_from("lam", self.lam, 0.0, 1.0, "the default is 0.05"))

    def __repr__(self) -> str:
        # The published parameters always, ours where they are set.
        told = [
            f"{field.name}={value!r}"
            for field in fields(cast(Any, self))
            if (value := getattr(self, field.name)) != field.default or field.name not in ADDITIONS
        ]
        return f"{type(self).__qualname__}({', '.join(told)})"

    @property
    def published(self) -> bool:
        """Whether this is the published policy: importance weighting, one rate."""
        return self.estimator == "importance" and self.c_exploit in (None, self.c)

    @property
    def form(self) -> Form:
        """The state and the compiled functions that its parameters call for."""
        return self.published_form if self.published else self.centred_form

    @property
    def baseline(self) -> str | None:  # type: ignore[override]
        """The row of baselines that a pending decision keeps."""
        return "baseline" if self.estimator == "centred" else None

    def params(self) -> Any:
        published = self.published_params()
        if self.published:
            return published
        c_exploit = self.c if self.c_exploit is None else self.c_exploit
        kappa = self.kappa if self.estimator == "centred" else math.inf
        return self.params_type(*published, c_exploit, kappa, self.lam)

    def published_params(self) -> Any:
        """The parameters of the published policy, as compiled code takes them."""
        raise NotImplementedError

    def exploitation_law(self, state: State) -> Floats:
        row = self.layout.row
        law: Floats = row(state, "exploit") / row(state, "exploit_sum")
        return law

    def exploration_law(self, state: State) -> Floats:
        row = self.layout.row
        law: Floats = row(state, "explore") / row(state, "explore_sum")
        return law
