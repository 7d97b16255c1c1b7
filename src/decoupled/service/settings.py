"""Settings as text, and the checks they pass: what is stored is complete, so that defaults may change."""

import json
from typing import Any

from ..checks import as_float
from ..errors import complaint
from ..loss_range import LossRange
from ..policies import Policy
from .problems import Invalid
from .records import Settings

LONGEST_TEXT = 255


def plain_text(argument: str, value: object) -> str:
    """A name that every database can hold."""
    if isinstance(value, str) and 1 <= len(value) <= LONGEST_TEXT and value.isprintable():
        return value
    rule = f"must be 1 to {LONGEST_TEXT} printable characters"
    raise Invalid(complaint(argument, value, rule, "letters and digits will do"))


def checked(settings: Settings) -> Settings:
    """The settings with every default written out; whatever is wrong with them is an error."""
    policy = Policy.from_dict(settings.policy)
    low, high = LossRange.checked(settings.loss_range)
    deadline = as_float(settings.deadline)
    if settings.deadline is not None and (deadline is None or not 0.0 < deadline <= 1e10):
        rule = "must be a number of seconds above 0, of 1e10 at most"
        raise Invalid(complaint("deadline", settings.deadline, rule, "leave it out for none"))
    expired = as_float(settings.expired_loss)
    if settings.expired_loss is not None and (expired is None or not low <= expired <= high):
        rule = f"must lie in [{low}, {high}]"
        raise Invalid(complaint("expired_loss", settings.expired_loss, rule, "leave it out for none"))
    if expired is not None and deadline is None:
        raise Invalid(complaint("expired_loss", expired, "needs a deadline", "set one, or leave both out"))
    if not isinstance(settings.demo, bool):
        raise Invalid(complaint("demo", settings.demo, "must be true or false", "leave it out for false"))
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
    """The settings of stored JSON."""
    low, high = content["loss_range"]
    return Settings(
        content["policy"],
        tuple(content["arms"]),
        (low, high),
        content["deadline"],
        content["expired_loss"],
        content.get("demo", False),
    )
