"""Policies whose round is composed: a law, an estimator and rates."""

from dataclasses import fields
from functools import lru_cache
from typing import Any, ClassVar, cast

from ..base.arrays import Floats
from ..base.validation import number_from, number_in, one_of
from ..kernels.compose import SCALARS, Composed, Law
from ..kernels.dispatch import Functions
from ..kernels.state import Layout, State
from .base import Policy


class ComposedPolicy(Policy):
    """A published policy with options of ours: centred losses, a rate for each of the two arms, rates by losses.

    A subclass names its law in `composed`, its parameters for compiled code in `law_params`, and in
    `published_fields` those of its fields that are the published policy's own.
    """

    c: float
    estimator: str
    c_exploit: float | None
    kappa: float
    lam: float
    schedule: str

    published_fields: ClassVar[tuple[str, ...]]
    fading: tuple[str, ...] | None = ("estimates", "spread")  # the running mean forgets by itself
    branching: tuple[str, ...] = ("centred", "by_losses", "exploit_ratio")

    def _check_options(self) -> None:
        def put(name: str, value: float) -> None:
            object.__setattr__(self, name, value)

        put("c", number_in("c", self.c, 0.0, 1e100, "the default is 2"))
        one_of("estimator", self.estimator, ("importance", "centred"))
        if self.c_exploit is not None:
            put("c_exploit", number_in("c_exploit", self.c_exploit, 0.0, 1e100, "the default, None, is c"))
        put("kappa", number_in("kappa", self.kappa, 0.0, 1e100, "the default is 0.1"))
        put("lam", number_from("lam", self.lam, 0.0, 1.0, "the default is 0.05"))
        one_of("schedule", self.schedule, ("rounds", "losses"))

    def __repr__(self) -> str:
        # The published parameters always, ours where they are set.
        told = [
            f"{field.name}={value!r}"
            for field in fields(cast(Any, self))
            if (value := getattr(self, field.name)) != field.default or field.name in self.published_fields
        ]
        return f"{type(self).__qualname__}({', '.join(told)})"

    @property
    def composed(self) -> Composed:
        """The law and its compiled functions."""
        raise NotImplementedError

    def law_params(self) -> dict[str, float]:
        """The law's own parameters."""
        return {}

    @property
    def two_rates(self) -> bool:
        """Whether the two arms have rates of their own."""
        return self.c_exploit not in (None, self.c)

    @property
    def published(self) -> bool:
        """Whether this is the published policy: importance weighting, one rate, which falls with the rounds."""
        return self.estimator == "importance" and not self.two_rates and self.schedule == "rounds"

    @property
    def layout(self) -> Layout:
        """The rows that the law needs with these options."""
        return _layout(
            self.composed.law,
            self.estimator == "centred" or self.two_rates,
            self.published,
            self.schedule == "losses",
        )

    @property
    def params_type(self) -> Any:
        """The type of the parameters of compiled code."""
        return self.composed.params_type

    @property
    def functions(self) -> Functions:
        """The compiled functions of the law."""
        return self.composed.functions

    @property
    def baseline(self) -> str | None:
        """The row of baselines that a pending decision keeps."""
        return "baseline" if self.estimator == "centred" else None

    def params(self) -> Any:
        return self.params_type(
            **self.law_params(),
            c=self.c,
            exploit_ratio=1.0 if self.c_exploit is None else self.c_exploit / self.c,
            centred=float(self.estimator == "centred"),
            kappa=self.kappa,
            lam=0.0 if self.published else self.lam,
            by_losses=float(self.schedule == "losses"),
        )


class ExplicitPolicy(ComposedPolicy):
    """A composed policy whose law is explicit weights of all arms."""

    def exploitation_law(self, state: State) -> Floats:
        row = self.layout.row
        law: Floats = row(state, "exploit") / row(state, "exploit_sum")
        return law

    def exploration_law(self, state: State) -> Floats:
        row = self.layout.row
        law: Floats = row(state, "explore") / row(state, "explore_sum")
        return law


@lru_cache(maxsize=64)  # asked for with every row that is read
def _layout(law: Law, more: bool, published: bool, by_losses: bool) -> Layout:
    rows = law.rows
    return Layout(
        scalars=(*SCALARS, *rows.scalars),
        floats=("estimates", *rows.floats, *(rows.more_floats if more else ())),
        ints=(*rows.ints, *(rows.more_ints if more else ())),
        learned=(
            *("estimates", *rows.learned, *(rows.more_learned if more else ())),
            *(() if published else ("rise",)),
            *(("spread",) if by_losses else ()),
        ),
    )
