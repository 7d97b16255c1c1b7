"""What the service answers, as clients see it, and the file that a log is written to."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ..base.files import write_atomically
from ..decision import Arm
from ..errors import ParameterError
from .errors import ServiceError, Undelivered

Format: TypeAlias = Literal["csv", "parquet"]
"""The format of a log."""
FilePath: TypeAlias = str | os.PathLike[str]
"""The path of a file."""
_FORMATS: dict[str, Format] = {".csv": "csv", ".parquet": "parquet"}


def format_of(file: FilePath, format: str | None = None) -> Format:
    """The format of a log: the given one, or else the one that the file's suffix names."""
    suffix = os.path.splitext(os.fspath(file))[1].lower() if format is None else f".{format}"
    if suffix in _FORMATS:
        return _FORMATS[suffix]
    if format is not None:
        rule = f"must be one of {', '.join(_FORMATS.values())}"
        raise ParameterError.of("format", format, rule, "or leave it out")
    rule = f"its suffix names no format; known are {', '.join(_FORMATS)}"
    remedy = "use one of them, or give the format: csv or parquet"
    raise ParameterError.of("file", os.fspath(file), rule, remedy)


def write_log(file: FilePath, content: bytes, *, overwrite: bool) -> None:
    """Write a log whole or not at all.

    A pipe or a device is written to, since it cannot be replaced.
    """
    if os.path.exists(file) and not os.path.isfile(file):
        Path(file).write_bytes(content)
    else:
        write_atomically(os.path.realpath(file), content, overwrite=overwrite)


@dataclass(frozen=True)
class RemoteDecision:
    """A decision of the service: use `exploit`, try `explore`, and send back the loss of `explore`.

    Attributes:
        id: identifies the decision in the service.
        experiment: the name of its experiment.
        mode: "both", "exploit" or "explore".
        exploit: the arm to use; None if the mode is "explore".
        explore: the arm to try, whose loss is the feedback; None if the decision explores nothing.
        propensity: the probability with which `explore` was drawn; None if it is not known.
        weight: the factor by which learning multiplies the loss, an unbiased 1 / propensity; None
            if it explores nothing.
        policy: the name of the policy that drew it.
        state_version: the last row of the log that the state contained from which it was drawn.
        made_at: when it was made, as an ISO 8601 time in UTC.
        expires_at: until when feedback is taken; None if there is no deadline.
        status: "pending", "applied", "expired" or "unobserved".
        loss: the loss that was learned; None before that.
        settled_at: when it was applied or expired; None before that.
        drawn: the arm that the policy drew to exploit; another than `exploit` if a guardrail
            replaced it.
        guard: the guardrail that chose `exploit` in place of `drawn`; None if the policy did.
        limited_by: the part of the budget that kept the decision from exploring; None if nothing
            did.
        tags: the tags it was made with.
        baseline: the losses that were predicted for the arms, by arm; None if there were none.
        key: what the service logs of the key that drew `exploit`, by default a keyed hash; None
            without a key.
        context: what was known of the request, by field, as the service logs it; None if nothing
            was.
        advice: what advisers said, by their names; None if there was none.
        label: whether it asks for a label: the true loss, in an experiment with labels.
        label_probability: the probability with which it did; None without labels.
        judged: what a judge said of it, as a loss; None if it was not judged. It is pending until a
            label that it asks for.
        position: how much the judge preferred what it saw first; None if that is not known.
        why: why a contextual policy drew `exploit`, if asked for: "rung", "segment" and the
            "weights" of rungs; else None.

    >>> decision = client.decide("models")
    >>> decision.exploit, decision.explore, decision.status
    ('small', 'large', 'pending')
    """

    id: str
    experiment: str
    mode: str
    exploit: Arm | None
    explore: Arm | None
    propensity: float | None
    weight: float | None
    policy: str
    state_version: int
    made_at: str
    expires_at: str | None
    status: str
    loss: float | None
    settled_at: str | None
    drawn: Arm | None = None
    guard: str | None = None
    limited_by: str | None = None
    tags: dict[str, str] = field(default_factory=dict, hash=False)
    baseline: dict[str, float] | None = field(default=None, hash=False)
    key: str | None = None
    context: dict[str, Any] | None = field(default=None, hash=False)
    advice: dict[str, Any] | None = field(default=None, hash=False)
    label: bool = False
    label_probability: float | None = None
    judged: float | None = None
    position: float | None = None
    why: dict[str, Any] | None = field(default=None, hash=False)

    @classmethod
    def of(cls, content: dict[str, Any]) -> "RemoteDecision":
        """Read a decision from JSON, and ignore fields that a later release may add.

        Args:
            content: a decision in an answer of the service.
        """
        return cls(**{name: content[name] for name in cls.__dataclass_fields__ if name in content})


@dataclass(frozen=True)
class Flushed:
    """The result of sending an outbox.

    Attributes:
        delivered: the decisions whose feedback was applied.
        refused: feedback that the service refused for good, each with the error. It is no longer in
            the outbox.
        left: how many items are still in the outbox.

    >>> client.flush()
    Flushed(delivered=[], refused=[], left=0)
    """

    delivered: list[RemoteDecision]
    refused: "list[tuple[Undelivered, ServiceError]]"
    left: int
