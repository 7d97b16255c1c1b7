"""The errors of the service, those of its clients, and the error that a response describes."""

from typing import Any, ClassVar, NamedTuple

import httpx

from ..decision import Arm
from ..errors import DecoupledError
from ..learner.losses import Preference

# The errors of the service, with the status and title that HTTP gives each. Whatever raises one has
# changed nothing.


CLOSED = "service: is closed; open it again"
HOW_LONG = "this happens once on a machine and takes from some seconds to a minute"


class ServiceError(DecoupledError):
    """The base class of the service's errors.

    >>> NotFound("experiment 'checkout': is not known; create it with PUT").status
    404
    """

    status: ClassVar[int] = 500
    title: ClassVar[str] = "The service failed"
    request_id: str | None = (
        None  # of the request that a client sent, to find it in the service's log
    )

    def __init_subclass__(cls, status: int | None = None, title: str | None = None) -> None:
        super().__init_subclass__()
        cls.status = status or cls.status
        cls.title = title or cls.title


class BadRequest(ServiceError, status=400, title="Bad request"):  # noqa: N818 - named as in HTTP
    """The request is not JSON, or not well-formed HTTP."""


class Unauthorized(ServiceError, status=401, title="Unauthorized"):  # noqa: N818
    """The key is missing, unknown or revoked."""


class Forbidden(ServiceError, status=403, title="Forbidden"):  # noqa: N818
    """The key's role does not allow the request."""


class NotFound(ServiceError, status=404, title="Not found"):  # noqa: N818
    """Nothing with that name or id exists for this tenant."""


class MethodNotAllowed(ServiceError, status=405, title="Method not allowed"):  # noqa: N818
    """The path exists but does not support this method."""


class TooSlow(ServiceError, status=408, title="Request timeout"):  # noqa: N818
    """The body did not arrive in time."""


class Conflict(ServiceError, status=409, title="Conflict"):  # noqa: N818
    """The same name, key or decision was used before with other contents."""


class Gone(ServiceError, status=410, title="Too late"):  # noqa: N818
    """Feedback came after the decision's deadline."""


class TooLarge(ServiceError, status=413, title="Content too large"):  # noqa: N818
    """The body is larger than the limit."""


class UnsupportedMedia(ServiceError, status=415, title="Unsupported media type"):  # noqa: N818
    """The body is not declared as JSON."""


class Invalid(ServiceError, status=422, title="Invalid request"):  # noqa: N818
    """An argument is outside its domain; `errors` names each field of a request that is wrong."""

    errors: list[dict[str, str]] | None = None


class TooMany(ServiceError, status=429, title="Too many requests"):  # noqa: N818
    """More requests than the limit; try again after `retry_after` seconds.

    Args:
        message: what happened, and what to do.
        retry_after: seconds to wait before the next attempt.
    """

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class HeadersTooLarge(ServiceError, status=431, title="Request header fields too large"):  # noqa: N818
    """The headers are larger than the limit."""


class StoreError(ServiceError, status=503, title="The store is not available"):
    """The store could not write or read. Nothing of the request was acknowledged: try again."""


class Compiling(ServiceError, status=503, title="Compiling"):  # noqa: N818
    """The policy of an experiment is being compiled, once on this machine: try again.

    Args:
        message: what happened, and what to do.
        job: the compilation that is waited for, in the service; a client has None.
    """

    def __init__(self, message: str, job: Any = None) -> None:
        super().__init__(message)
        self.job = job


class Loading(ServiceError, status=503, title="Loading"):  # noqa: N818
    """The experiment is being restored from its log: try again.

    Args:
        message: what happened, and what to do.
        load: the restoration that is waited for, in the service; a client has None.
    """

    def __init__(self, message: str, load: Any = None) -> None:
        super().__init__(message)
        self.load = load


class NotCompiled(ServiceError, title="Compilation failed"):  # noqa: N818
    """The experiment's policy does not compile here, so it can neither decide nor learn."""


class ReplayError(ServiceError, title="The log does not replay"):
    """The log, applied again, gives another result: other code, another machine, or damage."""


def wrong_feedback(
    *,
    has_loss: bool,
    has_reward: bool,
    has_preference: bool = False,
    loss: str = "loss",
    reward: str = "reward",
) -> tuple[str, str] | None:
    """The rule and the remedy for feedback without exactly one of loss, reward and preference; None
    if it has one of them.

    Args:
        has_loss: whether a loss is given.
        has_reward: whether a reward is given.
        has_preference: whether a preference is given.
        loss: what the message calls the loss.
        reward: what the message calls the reward.

    >>> wrong_feedback(has_loss=True, has_reward=False)
    >>> wrong_feedback(has_loss=False, has_reward=False)
    ('neither loss nor reward is given', 'give the loss of the explored arm, or its reward')
    >>> rule, remedy = wrong_feedback(has_loss=True, has_reward=True, loss="--loss")
    >>> rule
    '--loss and reward are both given'
    >>> remedy
    'give the loss of the explored arm or its reward, not both'
    """
    if has_preference and (has_loss or has_reward):
        rule = f"{loss if has_loss else reward} and a preference are both given"
        return rule, "give the preference between both arms, or the loss of the explored arm"
    if has_preference or has_loss != has_reward:
        return None
    if has_loss:
        rule = f"{loss} and {reward} are both given"
        return rule, "give the loss of the explored arm or its reward, not both"
    rule = f"neither {loss} nor {reward} is given"
    return rule, "give the loss of the explored arm, or its reward"


TEMPORARY = (429, 502, 503, 504)  # the same request may succeed later
_REFUSALS = (BadRequest, Unauthorized, Forbidden, NotFound, Conflict, Gone, TooLarge, Invalid)
_BY_STATUS: dict[int, type[ServiceError]] = {kind.status: kind for kind in _REFUSALS}


class Unreachable(ServiceError, status=503, title="The service cannot be reached"):  # noqa: N818
    """The service could not be reached, or did not answer, in any attempt.

    >>> from decoupled.client import Client, Retries
    >>> nobody = Client("http://127.0.0.1:1", retries=Retries(attempts=1))
    >>> try:
    ...     nobody.state("models")
    ... except Unreachable as error:
    ...     print(error.title)
    The service cannot be reached
    """


class Undelivered(NamedTuple):
    """Feedback to deliver: a loss or reward of an explored arm, or a preference.

    Attributes:
        decision: the id of the decision.
        loss: the loss of the explored arm.
        reward: its reward, in place of the loss.
        arm: the arm whose loss it is, as a safeguard; None names none.
        preference: which of the two arms did better, in place of a number.
        judged: what a judge said, a loss or a preference, in an experiment with labels: then the
            others are the label.
        position: how much the judge preferred what it saw first.
        cost: what the look and its judgement really cost.

    >>> Undelivered("1f2e-7", loss=0.25).to_json()
    {'decision': '1f2e-7', 'loss': 0.25}
    """

    decision: str
    loss: float | None = None
    reward: float | None = None
    arm: Arm | None = None
    preference: Preference | None = None
    judged: float | Preference | None = None
    position: float | None = None
    cost: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The item as the service takes it in a batch."""
        return {name: value for name, value in self._asdict().items() if value is not None}


class UndeliveredFeedback(ServiceError, status=503, title="Feedback was not delivered"):  # noqa: N818
    """Feedback that could not be delivered, and that is in `items` and nowhere else.

    Args:
        message: what happened, and what to do.
        items: the feedback that was not delivered.

    >>> from decoupled.client import Client, Retries
    >>> nobody = Client("http://127.0.0.1:1", retries=Retries(attempts=1))
    >>> try:
    ...     nobody.feedback("1f2e-7", loss=0.25)
    ... except UndeliveredFeedback as error:
    ...     print([(item.decision, item.loss) for item in error.items])
    [('1f2e-7', 0.25)]
    """

    def __init__(self, message: str, items: "list[Undelivered]") -> None:
        super().__init__(message)
        self.items = items


def retry_after(response: httpx.Response) -> float:
    """The seconds that the service asks to wait before the next attempt, 60 at most."""
    text = response.headers.get("retry-after", "")
    return min(float(text), 60.0) if text.isdigit() else 0.0


def identified(error: ServiceError, request_id: str | None) -> ServiceError:
    """An error with the id of its request, which a traceback shows as well.

    >>> identified(NotFound("experiment 'models': is not known"), "1f2e-7").request_id
    '1f2e-7'
    """
    if request_id and error.request_id is None:
        error.request_id = request_id
        error.add_note(f"The id of the request is {request_id}: the log of the service has it.")
    return error


def error_in(response: httpx.Response) -> ServiceError:
    """The error that a response describes."""
    status = response.status_code
    seconds = retry_after(response)
    try:
        content = response.json()
        return error_from(status, str(content["detail"]), str(content.get("title")), seconds)
    except (ValueError, KeyError, TypeError):
        return error_from(status, f"status {status}: {response.text[:200]}", "", seconds)


def error_from(status: int, detail: str, title: str, seconds: float = 1.0) -> ServiceError:
    """The error with this status, detail and title."""
    if status == 429:
        return TooMany(detail, int(seconds))
    for kind in (Compiling, NotCompiled):
        if (status, title) == (kind.status, kind.title):
            return kind(detail)
    return _BY_STATUS.get(status, StoreError if status in TEMPORARY else ServiceError)(detail)
