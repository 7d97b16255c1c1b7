"""Turns a judge's verdict into a loss."""

from collections.abc import Mapping

from decoupled.base import as_loss
from decoupled.errors import DecoupledError
from decoupled.learner import PREFERENCES, preference_loss

_REMEDY = 'answer {"loss": 0.25} or {"preference": "explore"}'


class BadVerdict(DecoupledError):  # noqa: N818
    """A judge answered something that is neither a loss nor a preference.

    >>> loss_of({"loss": 7})
    Traceback (most recent call last):
        ...
    decoupled_serve.mirror.verdict.BadVerdict: loss = 7: must be a number in [0, 1]; answer {"loss": 0.25} or {"preference": "explore"}
    """


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
            raise BadVerdict.of("verdict", dict(verdict), rule, _REMEDY)
        verdict = verdict[named[0]]
        if named == ["preference"] and not isinstance(verdict, str):
            raise BadVerdict.of("preference", verdict, f"must be one of {PREFERENCES}", _REMEDY)
    if isinstance(verdict, str):
        for each in PREFERENCES:
            if verdict == each:
                return preference_loss(each)
        raise BadVerdict.of("preference", verdict, f"must be one of {PREFERENCES}", _REMEDY)
    loss = as_loss(verdict)
    if loss is None or not 0.0 <= loss <= 1.0:
        raise BadVerdict.of("loss", verdict, "must be a number in [0, 1]", _REMEDY)
    return loss
