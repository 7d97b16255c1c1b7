"""Guardrails and budgets as clients give them: checked against the arms of their experiment."""

from collections.abc import Collection, Mapping
from typing import Any

from decoupled.client import Invalid, ServiceError
from decoupled.decision import Arm
from decoupled.errors import DecoupledError, near_name
from decoupled.learner import ArmNames, Budget, Guardrails

from . import numbered_arms

_STANDARD = "plays the standard game and learns from the arm that is served"
_OTHER_POLICY = "use a decoupled policy such as FTPL"
_REDUCES = "where every decision explores"


def changed_guardrails(
    now: Guardrails, changes: Mapping[str, Any], arms: Collection[Arm], coupled: bool
) -> Guardrails:
    """The guardrails with some of them changed; `Invalid` if the experiment cannot have them."""
    given = dict(changes)
    if isinstance(given.get("floors"), Mapping):
        given["floors"] = by_arm(given["floors"], arms)
    try:
        rules = now.updated(**given)
        if isinstance(arms, range):
            numbered_arms.check_guardrails(rules, arms)
        else:
            rules.check_arms(ArmNames(list(arms)))
    except ServiceError:
        raise
    except DecoupledError as error:
        raise Invalid(str(error)) from None
    if coupled and rules.replace_arms:
        raise Invalid(f"guardrails: the policy {_STANDARD}, so another must not be served; {_OTHER_POLICY}")
    return rules


def checked_budget(values: Mapping[str, Any], arms: Collection[Arm], coupled: bool) -> Budget:
    """A budget from its fields; `Invalid` if the experiment cannot have it."""
    given = dict(values)
    if isinstance(given.get("cost"), Mapping):
        given["cost"] = by_arm(given["cost"], arms)
    try:
        budget = Budget(**given)
    except DecoupledError as error:
        raise Invalid(str(error)) from None
    if isinstance(arms, range):
        numbered_arms.check_budget(budget, arms)
    elif isinstance(budget.cost, Mapping):
        for name in budget.cost:
            if name not in arms:
                raise Invalid.of("cost", name, "is not an arm", near_name(name, arms))
    if coupled and budget:
        raise Invalid(f"budget: the policy plays the standard game, {_REDUCES}; {_OTHER_POLICY}")
    return budget


def by_arm(given: Mapping[Any, Any], arms: Collection[Arm]) -> dict[Any, Any]:
    """A mapping by arm. The names in a JSON object are texts: "7" is the arm 7, unless there is an arm "7"."""
    return {_named(name, arms): value for name, value in given.items()}


def _named(name: Any, arms: Collection[Arm]) -> Any:
    if (
        isinstance(name, str)
        and name not in arms
        and name.removeprefix("-").isdecimal()
        and int(name) in arms
    ):
        return int(name)
    return name
