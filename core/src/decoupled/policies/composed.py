"""Policies whose round is composed of a law, an estimator and rates."""

from functools import lru_cache
from typing import Any, ClassVar

from ..base.arrays import Floats
from ..base.validation import check_number, one_of, set_number
from ..kernels.compose import SCALARS, Composed, Law
from ..kernels.dispatch import Functions
from ..kernels.random.keyed import Keyed, keyed_race
from ..kernels.state import Layout, State
from ..policy import Baselines
from .base import Policy


class ComposedPolicy(Policy):
    """A published policy with our options: centred losses, a rate for each of the two arms, rates that follow the losses.

    A subclass returns its law from `composed` and the law's parameters from `law_params`, and lists the fields of the
    published policy in `published_fields`.
    """

    c: float
    estimator: str
    c_exploit: float | None
    kappa: float
    lam: float
    schedule: str

    published_fields: ClassVar[tuple[str, ...]]
    fading: ClassVar[tuple[str, ...] | None] = (
        "estimates",
        "spread",
    )  # the running mean forgets by itself

    def _check_options(self) -> None:
        set_number(self, "c", 0.0, 1e100, "the default is 2")
        one_of("estimator", self.estimator, ("importance", "centred"))
        if self.c_exploit is not None:
            set_number(self, "c_exploit", 0.0, 1e100, "the default, None, is c")
        set_number(self, "kappa", 0.0, 1e100, "the default is 0.1")
        object.__setattr__(
            self,
            "lam",
            check_number("lam", self.lam, "the default is 0.05", at_least=0.0, below=1.0),
        )
        one_of("schedule", self.schedule, ("rounds", "losses"))

    def __repr__(self) -> str:
        return self._short_repr(self.published_fields)  # our options only if they are set

    @property
    def composed(self) -> Composed:
        """The law and its compiled functions."""
        raise NotImplementedError

    def law_params(self) -> dict[str, float]:
        """The law's own parameters."""
        return {}

    @property
    def two_rates(self) -> bool:
        """Whether exploitation has a rate of its own."""
        return self.c_exploit not in (None, self.c)

    @property
    def published(self) -> bool:
        """Whether this is the published policy: importance weighting, and one rate that falls with the rounds."""
        return self.estimator == "importance" and not self.two_rates and self.schedule == "rounds"

    @property
    def layout(self) -> Layout:
        """The rows that the law needs with these options."""
        more = self.estimator == "centred" or self.two_rates
        return _layout(self.composed.law, more, self.published, self.schedule == "losses")

    @property
    def params_type(self) -> Any:
        return self.composed.params_type

    @property
    def functions(self) -> Functions:
        return self.composed.functions

    @property
    def baselines(self) -> Baselines | None:
        return Baselines(self.layout, "baseline") if self.estimator == "centred" else None

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


class ExplicitLaws(Policy):
    """A policy with explicit weights: the rows "exploit" and "explore", and the scalars that hold their sums."""

    keyed_in_place = True

    def exploitation_law(self, state: State) -> Floats:
        return self._law(state, "exploit")

    def exploration_law(self, state: State) -> Floats:
        return self._law(state, "explore")

    def _law(self, state: State, name: str) -> Floats:
        law: Floats = self.layout.row(state, name) / self.layout.row(state, f"{name}_sum")
        return law

    def keyed(self, state: State) -> Keyed:
        return Keyed(keyed_race, (self.layout.row(state, "exploit"),))


class ExplicitPolicy(ExplicitLaws, ComposedPolicy):
    """A composed policy whose law has explicit weights."""


@lru_cache(maxsize=64)  # every row that is read needs the layout
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
