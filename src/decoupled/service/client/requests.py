"""What both clients hold, and the requests that they make."""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, Union

import httpx

from ...base.files import write_atomically
from ...base.spec import Description
from ...base.validation import as_float
from ...decision import Arm
from ...errors import ParameterError, invalid_value
from ..errors import neither_or_both
from .conversation import (
    KEY_VARIABLE,
    Decision,
    Line,
    Remedies,
    Retries,
    Send,
    UndeliveredFeedback,
    experiment_at,
)
from .outbox import Outbox, Undelivered

if TYPE_CHECKING:
    from ...policies import Policy

Mode = Literal["both", "exploit", "explore"]
Format = Literal["csv", "parquet"]
_ENDINGS: dict[str, Format] = {".csv": "csv", ".parquet": "parquet"}
_log = logging.getLogger("decoupled.client")


class Caller:
    """A service to call, and how.

    Args:
        url: where the service is.
        key: an API key; the environment variable DECOUPLED_KEY if not given.
        outbox: keeps feedback that cannot be delivered now: an `Outbox`, or a path for one that survives
            the program. Without one, such feedback is raised.
        retries: how often and how patiently to try.
        notify: is told why a call waits, as while a policy is compiled; by default it is logged as a warning.
        timeout: seconds for one attempt.
        verify: False trusts any certificate; a path names one to trust.
    """

    remedies: ClassVar[Remedies] = Remedies()

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        outbox: Outbox | str | os.PathLike[str] | None = None,
        retries: Retries | None = None,
        notify: Callable[[str], None] = _log.warning,
        timeout: float = 10.0,
        verify: bool | str = True,
    ) -> None:
        address = _checked_url(url)
        key = key or os.environ.get(KEY_VARIABLE)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._options: dict[str, Any] = {
            "base_url": address,
            "headers": headers,
            "timeout": timeout,
            "verify": verify,
        }
        self.retries = retries or Retries()
        # Without the user and password that an address may hold: it is shown in errors.
        self.url = str(address.copy_with(userinfo=b"")).rstrip("/")
        self._has_key = bool(key)
        self.notify = notify
        self.outbox = outbox if isinstance(outbox, Outbox) or outbox is None else Outbox(outbox)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"  # the key stays out of logs

    @property
    def _line(self) -> Line:
        return Line(self.url, self._has_key, self.retries, self.remedies)

    def _need_outbox(self) -> Outbox:
        if self.outbox is None:
            raise ParameterError(
                "outbox: this client has none; give one, as Client(url, outbox='outbox.jsonl')"
            )
        return self.outbox

    def _check_empty(self) -> None:
        if self.outbox is not None and self.outbox.path is None and len(self.outbox):
            items = self.outbox.items()
            raise UndeliveredFeedback(
                f"outbox: {len(items)} losses were not delivered, and no file keeps them; they are this error's `items`",
                items,
            )


def _checked_url(url: str) -> httpx.URL:
    try:
        address = httpx.URL(url)
    except (httpx.InvalidURL, TypeError):
        address = httpx.URL()
    if address.scheme not in ("http", "https") or not address.host:
        rule = "must be an address that begins with http:// or https://"
        raise ParameterError(invalid_value("url", url, rule, "for example http://127.0.0.1:8000"))
    return address


def arguments(send: Send) -> dict[str, Any]:
    """What the HTTP library wants for a request."""
    found: dict[str, Any] = {"headers": send.headers, "params": send.params}
    if send.json is not None:
        found["json"] = send.json
    return found


def item_of(
    decision: Decision | str, loss: float | None, reward: float | None, arm: Arm | None
) -> Undelivered:
    """Feedback for a decision: its loss or its reward.

    >>> item_of("1f2e-7", True, None, None)
    Undelivered(decision='1f2e-7', loss=1.0, reward=None, arm=None)
    """
    wrong = neither_or_both(loss is not None, reward is not None)
    if wrong is not None:
        raise ParameterError("feedback: {}; {}".format(*wrong))
    name = decision if isinstance(decision, str) else decision.id
    return Undelivered(name, _number("loss", loss), _number("reward", reward), arm)


def checked_items(items: Sequence[Undelivered]) -> list[Undelivered]:
    """Feedback for many decisions, each with one number."""
    return [item_of(*each) for each in items]


def _number(name: str, value: object) -> float | None:
    """A loss or a reward as JSON can hold it, from Python's numbers and truth values or NumPy's."""
    if value is None:
        return None
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    number = float(bool(value)) if isinstance(value, bool) or kind == "b" else as_float(value)
    if number is None:
        rule = f"must be a number, True or False, not {type(value).__name__}"
        if isinstance(value, (int, float)):
            rule = "must be a finite number"
        raise ParameterError(invalid_value(name, value, rule, f"give the {name} of the explored arm"))
    return number


PolicyLike: TypeAlias = Union["Policy", Mapping[str, Any], str]


def experiment_of(
    name: str,
    arms: Sequence[Arm],
    policy: PolicyLike | None,
    loss_range: Sequence[float] | None,
    deadline_seconds: float | None,
    expired_loss: float | None,
    seed: int | None,
    demo: bool,
) -> Send:
    """An experiment to create; what is None is left to the service."""
    settings = {
        "policy": None if policy is None else _described(policy),
        "arms": list(arms),
        "loss_range": None if loss_range is None else list(loss_range),
        "deadline_seconds": deadline_seconds,
        "expired_loss": expired_loss,
        "seed": seed,
        "demo": demo or None,
    }
    given = {field: value for field, value in settings.items() if value is not None}
    return Send("PUT", experiment_at(name), given)


def _described(policy: object) -> dict[str, Any]:
    if isinstance(policy, Description):
        return policy.to_dict()
    if isinstance(policy, str):
        return {"name": policy}
    if isinstance(policy, Mapping):
        return dict(policy)
    rule = "must be a policy, a policy's to_dict(), or its name"
    raise ParameterError(invalid_value("policy", policy, rule, "for example dc.FTPL.recommended()"))


def listing(after: str | None, limit: int) -> Send:
    """A page of experiments."""
    params: dict[str, Any] = {"limit": limit} if after is None else {"limit": limit, "after": after}
    return Send("GET", "/v1/experiments", params=params)


def arms_of(name: str, what: str, arms: Sequence[Arm]) -> Send:
    """Arms that come or go."""
    return Send("POST", f"{experiment_at(name)}/{what}", {"arms": list(arms)})


def format_of(file: str | os.PathLike[str], format: str | None = None) -> Format:  # noqa: A002
    """How to write a log: as asked, or as the name of its file ends.

    >>> format_of("log.parquet"), format_of("log.txt", "csv")
    ('parquet', 'csv')
    """
    known = ", ".join(_ENDINGS)
    if format is not None:
        asked = f".{format}"
        if asked not in _ENDINGS:
            rule = f"must be one of {', '.join(_ENDINGS.values())}"
            raise ParameterError(invalid_value("format", format, rule, "or leave it out"))
        return _ENDINGS[asked]
    found = _ENDINGS.get(os.path.splitext(os.fspath(file))[1].lower())
    if found is None:
        rule = f"its ending names no format; known are {known}"
        remedy = "use one of them, or say the format: csv or parquet"
        raise ParameterError(invalid_value("file", os.fspath(file), rule, remedy))
    return found


def log_of(name: str, format: str) -> Send:  # noqa: A002
    """A log, as a file."""
    return Send("GET", f"{experiment_at(name)}/log", params={"format": format})


def write_log(file: str | os.PathLike[str], content: bytes, overwrite: bool) -> None:
    """Write a log whole or not at all; or to a pipe or a device, which nothing can take the place of."""
    if os.path.exists(file) and not os.path.isfile(file):
        Path(file).write_bytes(content)
    else:
        write_atomically(os.path.realpath(file), content, overwrite=overwrite)
