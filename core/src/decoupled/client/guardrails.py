"""The guardrails and budgets that clients send."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from ..decision import Arm, ByArm


class GuardrailChanges(TypedDict, total=False):
    """Guardrails to change; those that are left out stay as they are, and None removes a rule.

    Attributes:
        pinned: the arm that every decision exploits.
        floors: the least probability of exploiting each of these arms.
        holdout: the share of decisions that exploit `control`.
        control: the arm of the hold-out; None draws one of all arms.
        incumbent: the arm to exploit until another is known to be better.
        risk: the probability, at most, that the incumbent is ever left although no other arm is better at that moment.
        drift: whether losses may drift; False may find a better arm sooner, if no arm's mean loss ever changes.
        down: the arms that are not available.

    >>> changes: GuardrailChanges = {"floors": {"small": 0.1}, "holdout": 0.05, "control": "medium"}
    >>> client.change_guardrails("models", **changes)["guardrails"]["floors"]
    {'small': 0.1}
    """

    pinned: Arm | None
    floors: ByArm | None
    holdout: float | None
    control: Arm | None
    incumbent: Arm | None
    risk: float | None
    drift: bool | None
    down: Sequence[Arm] | None


class BudgetLimits(TypedDict, total=False):
    """The limits of a budget for exploring; what is left out has none.

    Attributes:
        share: at most this share of the decisions explores.
        rate: (n, seconds): at most n decisions explore in any window of that many seconds.
        cost: the price of exploring an arm: one number, or a number for each arm.
        total: at most this much is spent in all.
        allowance: (amount, seconds): at most this amount is spent in each period of that many seconds.

    >>> limits: BudgetLimits = {"rate": (100, 60), "cost": {"large": 2.0}, "total": 500}
    >>> client.set_budget("models", **limits)["budget"]["rate"]
    [100, 60.0]
    """

    share: float | None
    rate: Sequence[float] | None
    cost: float | ByArm | None
    total: float | None
    allowance: Sequence[float] | None


def as_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """Guardrails or limits as JSON takes them: lists and objects, whose names are texts."""
    return {name: _plain(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(arm): each for arm, each in value.items()}
    return value if value is None or isinstance(value, (str, int, float)) else list(value)
