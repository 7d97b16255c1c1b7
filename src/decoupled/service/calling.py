"""What both clients hold, and the requests that they make."""

import logging
import os
from collections.abc import Callable, Sequence
from typing import Any, Literal

from ..decision import Arm
from ..errors import ParameterError, complaint
from .conversation import Decision, Retries, Send, UndeliveredFeedback
from .outbox import Outbox, Undelivered

Mode = Literal["both", "exploit", "explore"]
KEY_VARIABLE = "DECOUPLED_KEY"
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
        key = key or os.environ.get(KEY_VARIABLE)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._options: dict[str, Any] = {
            "base_url": url,
            "headers": headers,
            "timeout": timeout,
            "verify": verify,
        }
        self.retries = retries or Retries()
        self.notify = notify
        self.outbox = outbox if isinstance(outbox, Outbox) or outbox is None else Outbox(outbox)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._options['base_url']!r})"  # the key stays out of logs

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
                f"outbox: {len(items)} losses were not delivered, and no file keeps them", items
            )


def arguments(send: Send) -> dict[str, Any]:
    """What the HTTP library wants for a request."""
    found: dict[str, Any] = {"headers": send.headers, "params": send.params}
    if send.json is not None:
        found["json"] = send.json
    return found


def item_of(
    decision: Decision | str, loss: float | None, reward: float | None, arm: Arm | None
) -> Undelivered:
    """Feedback for a decision: its loss or its reward."""
    if (loss is None) == (reward is None):
        rule, remedy = "and reward: one of them is needed, and not both", "give that of the explored arm"
        raise ParameterError(complaint("loss", loss, rule, remedy))
    return Undelivered(decision if isinstance(decision, str) else decision.id, loss, reward, arm)


def listing(after: str | None, limit: int) -> Send:
    """A page of experiments."""
    params: dict[str, Any] = {"limit": limit} if after is None else {"limit": limit, "after": after}
    return Send("GET", "/v1/experiments", params=params)


def arms_of(name: str, what: str, arms: Sequence[Arm]) -> Send:
    """Arms that come or go."""
    return Send("POST", f"/v1/experiments/{name}/{what}", {"arms": list(arms)})


def log_of(name: str, format: str) -> Send:  # noqa: A002
    """A log, as a file."""
    return Send("GET", f"/v1/experiments/{name}/log", params={"format": format})
