"""Every error of the service, with the status and title that HTTP gives it.

    ServiceError           500   the service itself failed
    |-- BadRequest         400   not JSON, or not well-formed HTTP
    |-- Unauthorized       401   no key, or one that is unknown or revoked
    |-- Forbidden          403   the key's role does not allow it
    |-- NotFound           404   no such experiment, decision or key for this tenant
    |-- MethodNotAllowed   405   the path does not take this method
    |-- TooSlow            408   the body did not arrive in time
    |-- Conflict           409   the same name, key or decision, with other contents
    |-- Gone               410   feedback after its deadline
    |-- TooLarge           413   the body is larger than the limit
    |-- UnsupportedMedia   415   the body is not declared as JSON
    |-- Invalid            422   an argument outside its domain
    |-- TooMany            429   more requests than the limit
    |-- HeadersTooLarge    431   the headers are larger than the limit
    |-- StoreError         503   the store could not write or read; nothing was acknowledged
    |-- Compiling          503   the policy is being compiled: try again
    |-- Loading            503   the experiment is being restored: try again
    |-- NotCompiled        500   the policy does not compile on this machine
    `-- ReplayError        500   the log and the learner disagree

Whatever raises one of these has changed nothing.
"""

from typing import Any, ClassVar

from ..errors import DecoupledError

HOW_LONG = "this happens once on a machine and takes from some seconds to a minute"


class ServiceError(DecoupledError):
    """The base class of the service's errors.

    >>> NotFound("experiment 'checkout': is not known; create it with PUT").status
    404
    """

    status: ClassVar[int] = 500
    title: ClassVar[str] = "The service failed"
    request_id: str | None = None  # of the request that a client sent, to find it in the service's log


class BadRequest(ServiceError):  # noqa: N818 - named as in HTTP
    """The request is not JSON, or not well-formed HTTP."""

    status, title = 400, "Bad request"


class Unauthorized(ServiceError):  # noqa: N818
    """The key is missing, unknown or revoked."""

    status, title = 401, "Unauthorized"


class Forbidden(ServiceError):  # noqa: N818
    """The key's role does not allow the request."""

    status, title = 403, "Forbidden"


class NotFound(ServiceError):  # noqa: N818
    """Nothing with that name or id exists for this tenant."""

    status, title = 404, "Not found"


class MethodNotAllowed(ServiceError):  # noqa: N818
    """The path exists, and does not take this method."""

    status, title = 405, "Method not allowed"


class TooSlow(ServiceError):  # noqa: N818
    """The body did not arrive in time."""

    status, title = 408, "Request timeout"


class Conflict(ServiceError):  # noqa: N818
    """The same name, key or decision was used before with other contents."""

    status, title = 409, "Conflict"


class Gone(ServiceError):  # noqa: N818
    """Feedback came after the decision's deadline."""

    status, title = 410, "Too late"


class TooLarge(ServiceError):  # noqa: N818
    """The body is larger than the limit."""

    status, title = 413, "Content too large"


class UnsupportedMedia(ServiceError):  # noqa: N818
    """The body is not declared as JSON."""

    status, title = 415, "Unsupported media type"


class Invalid(ServiceError):  # noqa: N818
    """An argument is outside its domain; `errors` names each field of a request that is wrong."""

    status, title = 422, "Invalid request"
    errors: list[dict[str, str]] | None = None


class TooMany(ServiceError):  # noqa: N818
    """More requests than the limit; try again after `retry_after` seconds.

    Args:
        message: what happened, and what to do.
        retry_after: seconds to wait before the next attempt.
    """

    status, title = 429, "Too many requests"

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class HeadersTooLarge(ServiceError):  # noqa: N818
    """The headers are larger than the limit."""

    status, title = 431, "Request header fields too large"


class StoreError(ServiceError):
    """The store could not write or read. Nothing of the request was acknowledged: try again."""

    status, title = 503, "The store is not available"


class Compiling(ServiceError):  # noqa: N818
    """The policy of an experiment is being compiled, once on this machine: try again.

    Args:
        message: what happened, and what to do.
        job: the compilation that is waited for, in the service; a client has None.
    """

    status, title = 503, "Compiling"

    def __init__(self, message: str, job: Any = None) -> None:
        super().__init__(message)
        self.job = job


class Loading(ServiceError):  # noqa: N818
    """The experiment is being restored from its log: try again.

    Args:
        message: what happened, and what to do.
        load: the restoration that is waited for, in the service; a client has None.
    """

    status, title = 503, "Loading"

    def __init__(self, message: str, load: Any = None) -> None:
        super().__init__(message)
        self.load = load


class NotCompiled(ServiceError):  # noqa: N818
    """The policy of an experiment does not compile on this machine, so it can neither decide nor learn."""

    title = "Compilation failed"


class ReplayError(ServiceError):
    """The log, applied again, gives another result: other code, another machine, or damage."""

    title = "The log does not replay"


def neither_or_both(
    loss_given: bool,
    reward_given: bool,
    loss: str = "loss",
    reward: str = "reward",
    *,
    preference_given: bool = False,
) -> tuple[str, str] | None:
    """The rule and the remedy for feedback without exactly one of loss, reward and preference; None if it has one.

    >>> neither_or_both(True, False)
    >>> neither_or_both(False, False)
    ('neither loss nor reward is given', 'give the loss of the explored arm, or its reward')
    >>> neither_or_both(True, True, "--loss", "--reward")
    ('--loss and --reward are both given', 'give the loss of the explored arm or its reward, not both')
    """
    if preference_given and (loss_given or reward_given):
        return (
            f"{loss if loss_given else reward} and a preference are both given",
            "give the preference between both arms, or the loss of the explored arm",
        )
    if preference_given or loss_given != reward_given:
        return None
    if loss_given:
        return (
            f"{loss} and {reward} are both given",
            "give the loss of the explored arm or its reward, not both",
        )
    return f"neither {loss} nor {reward} is given", "give the loss of the explored arm, or its reward"
