"""The models of guardrails and budgets, with their JSON."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, Field, StrictBool, StrictInt

from decoupled.learner import MOST_IN_A_WINDOW, Budget, Guardrails

from ..admission.limits import MOST_NAMED
from .fields import Arm, Model, Number, Whole, fields_of
from .strict_json import one_rule

Share = Annotated[Number, Field(ge=0.0, le=1.0)]
Amount = Annotated[Number, Field(ge=0.0)]
Seconds = Annotated[Number, Field(gt=0.0)]
Cost = Annotated[
    Amount | dict[str, Amount],
    one_rule("must be a number from 0 on, or an object with such a number by arm"),
]
Rate = tuple[Annotated[StrictInt, Field(ge=0, le=MOST_IN_A_WINDOW), Whole], Seconds]
Allowance = tuple[Amount, Seconds]


class GuardrailsIn(Model):
    """Guardrails to set. Those that are left out stay as they are; null removes a rule."""

    pinned: Arm | None = Field(
        default=None, description="The arm that every decision exploits: the kill switch.", examples=["a"]
    )
    floors: dict[str, Share] | None = Field(
        default=None,
        description="The least probability of exploiting each of these arms. They replace all floors.",
        examples=[{"a": 0.05}],
    )
    holdout: Share | None = Field(
        default=None, description="The share of decisions that exploit `control`.", examples=[0.05]
    )
    control: Arm | None = Field(
        default=None,
        description="The arm of the hold-out; null draws one of the available arms, all alike.",
        examples=["a"],
    )
    incumbent: Arm | None = Field(
        default=None,
        description="The arm to exploit until the observed losses show that another is better.",
        examples=["a"],
    )
    risk: Annotated[Number, Field(gt=0.0, lt=1.0)] | None = Field(
        default=None,
        description="The probability, at most, that the incumbent is ever left at a moment at which no other arm is better.",
        examples=[0.05],
    )
    drift: StrictBool | None = Field(
        default=None,
        description="Whether losses may drift. If no arm's mean loss ever changes, false may find a better arm sooner.",
        examples=[True],
    )
    down: Annotated[list[Arm], Field(max_length=MOST_NAMED)] | None = Field(
        default=None,
        description="Arms that are not available until they are taken off this list.",
        examples=[["c"]],
    )

    def changes(self) -> dict[str, Any]:
        """What to change, by the names of `Guardrails`; null means its default."""
        given = {name: getattr(self, name) for name in self.model_fields_set}
        return {name: _DEFAULTS[name] if value is None else value for name, value in given.items()}


_DEFAULTS: dict[str, Any] = {name: getattr(Guardrails(), name) for name in Guardrails.__dataclass_fields__}


class GuardrailsOut(BaseModel):
    """The guardrails of an experiment."""

    pinned: Arm | None
    floors: dict[str, float]
    holdout: float
    control: Arm | None
    incumbent: Arm | None
    risk: float
    drift: bool
    down: list[Arm]


class DownIn(Model):
    """The arms that are down, such as those that fail a health check; all others are up."""

    arms: Annotated[list[Arm], Field(max_length=MOST_NAMED, examples=[["c"]])]


class BudgetIn(Model):
    """A budget for exploring. What is left out has no limit."""

    share: Share | None = Field(
        default=None, description="At most this share of the decisions explores.", examples=[0.01]
    )
    rate: Rate | None = Field(
        default=None,
        description="A number and seconds: at most so many decisions explore in any window of that length.",
        examples=[[100, 60]],
    )
    cost: Cost | None = Field(
        default=None,
        description="The price of exploring an arm: one number, or a number for each arm. An arm that is left out "
        "costs as much as the dearest.",
        examples=[{"a": 0.2, "b": 3.0}],
    )
    total: Amount | None = Field(
        default=None, description="At most this much is spent in all.", examples=[500]
    )
    allowance: Allowance | None = Field(
        default=None,
        description="An amount and seconds: at most this much is spent in each period of that length since 1970 (UTC).",
        examples=[[50, 86400]],
    )

    def limits(self) -> dict[str, Any]:
        """The limits, by the names of `Budget`."""
        return {name: value for name in BudgetIn.model_fields if (value := getattr(self, name)) is not None}


class BudgetOut(BaseModel):
    """The budget of an experiment; null where there is no limit."""

    share: float | None
    rate: tuple[int, float] | None
    cost: float | dict[str, float] | None
    total: float | None
    allowance: tuple[float, float] | None


def guardrails_out(rules: Guardrails) -> dict[str, Any]:
    """Guardrails as JSON."""
    return fields_of(rules, GuardrailsOut) | {"floors": _by_name(rules.floors), "down": list(rules.down)}


def budget_out(budget: Budget) -> dict[str, Any]:
    """A budget as JSON."""
    cost = _by_name(budget.cost) if isinstance(budget.cost, Mapping) else budget.cost
    return fields_of(budget, BudgetOut) | {"cost": cost}


def _by_name(values: Mapping[Any, float]) -> dict[str, float]:
    return {str(arm): value for arm, value in values.items()}
