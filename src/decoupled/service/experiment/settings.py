"""Settings as text, and the checks they pass: what is stored is complete, so that defaults may change."""

import json
from dataclasses import fields
from typing import Any

from ...base.validation import as_float
from ...errors import DecoupledError, argument_of, invalid_value, reworded
from ...learner.loss_range import LossRange
from ...policies import FTPL, Policy
from ..errors import Invalid
from .records import LONGEST_DEADLINE, Settings

LONGEST_TEXT = 255
_A_POLICY = 'for example {"name": "FTPL"}'


def plain_text(argument: str, value: object) -> str:
    """A name that every database can hold."""
    if isinstance(value, str) and 1 <= len(value) <= LONGEST_TEXT and value.isprintable():
        return value
    rule = f"must be 1 to {LONGEST_TEXT} printable characters"
    raise Invalid(invalid_value(argument, value, rule, "letters and digits will do"))


def default_policy() -> dict[str, Any]:
    """The policy of an experiment that names none, in full.

    >>> default_policy() == FTPL.recommended().to_dict()
    True
    """
    return FTPL.recommended().to_dict()


def checked_policy(values: object, place: str = "policy") -> Policy:
    """The policy of a description; an error names the place in it, such as `policy.alpha`.

    >>> checked_policy({"name": "Forgetting", "policy": {"name": "FTPL", "alpha": 1}})
    Traceback (most recent call last):
        ...
    decoupled.service.errors.Invalid: policy.policy.alpha = 1: must be a finite number above 1 and below 1e+09; the default is 3
    """
    if not isinstance(values, dict) or "name" not in values:
        raise Invalid(
            invalid_value(place, values, "must be an object with the name of a policy", _A_POLICY)
        )
    try:
        return Policy.from_dict(values)
    except DecoupledError as error:
        inner = _inner(values["name"])
        for name in inner & values.keys():
            checked_policy(values[name], f"{place}.{name}")
        remedy = _A_POLICY if argument_of(error) in inner else None
        raise Invalid(f"{place}.{reworded(error, remedy=remedy)}") from None


def _inner(name: object) -> set[str]:
    """The parameters of a policy that are policies themselves."""
    known: Any = Policy.find(name)
    parameters = () if known is None else fields(known)
    return {each.name for each in parameters if isinstance(each.default, Policy)}


def checked(settings: Settings) -> Settings:
    """The settings with every default written out; whatever is wrong with them is an error."""
    policy = checked_policy(settings.policy)
    low, high = LossRange.checked(settings.loss_range)
    deadline = as_float(settings.deadline)
    if settings.deadline is not None and (deadline is None or not 0.0 < deadline <= LONGEST_DEADLINE):
        rule = f"must be a number of seconds above 0, of {LONGEST_DEADLINE:g} at most"
        raise Invalid(invalid_value("deadline", settings.deadline, rule, "leave it out for none"))
    expired = as_float(settings.expired_loss)
    if settings.expired_loss is not None and (expired is None or not low <= expired <= high):
        rule = f"must lie in [{low}, {high}]"
        raise Invalid(invalid_value("expired_loss", settings.expired_loss, rule, "leave it out for none"))
    if expired is not None and deadline is None:
        raise Invalid(
            invalid_value("expired_loss", expired, "needs a deadline", "set one, or leave both out")
        )
    if not isinstance(settings.demo, bool):
        raise Invalid(
            invalid_value("demo", settings.demo, "must be true or false", "leave it out for false")
        )
    return Settings(policy.to_dict(), tuple(settings.arms), (low, high), deadline, expired, settings.demo)


def as_text(settings: Settings) -> str:
    """Settings as JSON; equal settings give equal text."""
    content: dict[str, Any] = {
        "policy": settings.policy,
        "arms": list(settings.arms),
        "loss_range": list(settings.loss_range),
        "deadline": settings.deadline,
        "expired_loss": settings.expired_loss,
    }
    if (
        settings.demo
    ):  # only then: stores older than this setting hold texts without it, which must stay equal
        content["demo"] = True
    return json.dumps(content, sort_keys=True, allow_nan=False)


def as_settings(content: dict[str, Any]) -> Settings:
    """The settings of stored JSON; a policy that an earlier version wrote keeps the behaviour it had."""
    low, high = content["loss_range"]
    return Settings(
        Policy.completed(content["policy"]),
        tuple(content["arms"]),
        (low, high),
        content["deadline"],
        content["expired_loss"],
        content.get("demo", False),
    )


def agree(stored: str, settings: Settings) -> bool:
    """Whether an experiment was created with these settings, by this version or an earlier one.

    An earlier one did not write parameters that it did not know, and whoever creates an experiment at every
    start cannot know that: those do not count.
    """
    known, asked = json.loads(stored), json.loads(as_text(settings))
    asked["policy"] = _as_of(asked["policy"], known["policy"])
    return bool(asked == known)


def _as_of(asked: Any, known: Any) -> Any:
    if not isinstance(asked, dict) or not isinstance(known, dict):
        return asked
    return {name: _as_of(value, known[name]) for name, value in asked.items() if name in known}
