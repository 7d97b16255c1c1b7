"""A judge's verdict: what it may say, and the loss that follows."""

from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

from ..base.validation import as_loss
from ..errors import DecoupledError, invalid_value

Preference: TypeAlias = Literal["explore", "exploit", "tie"]
PREFERENCES: tuple[Preference, ...] = get_args(Preference)
_REMEDY = 'answer {"loss": 0.25} or {"preference": "explore"}'


class BadVerdict(DecoupledError):  # noqa: N818
    """A judge answered something that is neither a loss nor a preference.

    >>> loss_of({"loss": 7})
    Traceback (most recent call last):
        ...
    decoupled.mirror.verdict.BadVerdict: loss = 7: must be a number in [0, 1]; answer {"loss": 0.25} or {"preference": "explore"}
    """


def loss_of_preference(preference: Preference) -> float:
    """The loss of the copy that a preference stands for: 0 if the copy is better, 1 if the served answer is.

    >>> [loss_of_preference(each) for each in PREFERENCES]
    [0.0, 1.0, 0.5]
    """
    return {"explore": 0.0, "exploit": 1.0, "tie": 0.5}[preference]


def loss_of(verdict: object) -> float | None:
    """The loss of the copy that a verdict means; None for no verdict.

    >>> loss_of(0.25), loss_of(True), loss_of("tie"), loss_of({"preference": "explore"}), loss_of(None)
    (0.25, 1.0, 0.5, 0.0, None)
    """
    if verdict is None:
        return None
    if isinstance(verdict, Mapping):
        named = [name for name in ("loss", "preference") if verdict.get(name) is not None]
        if len(named) != 1:
            rule = "must have either a loss or a preference"
            raise BadVerdict(invalid_value("verdict", dict(verdict), rule, _REMEDY))
        verdict = verdict[named[0]]
        if named == ["preference"] and not isinstance(verdict, str):
            raise BadVerdict(invalid_value("preference", verdict, f"must be one of {PREFERENCES}", _REMEDY))
    if isinstance(verdict, str):
        for each in PREFERENCES:
            if verdict == each:
                return loss_of_preference(each)
        raise BadVerdict(invalid_value("preference", verdict, f"must be one of {PREFERENCES}", _REMEDY))
    loss = as_loss(verdict)
    if loss is None or not 0.0 <= loss <= 1.0:
        raise BadVerdict(invalid_value("loss", verdict, "must be a number in [0, 1]", _REMEDY))
    return loss
