"""Every error the desk raises, with the status and title that HTTP gives it.

    ServiceError       500   something of the service itself
    |-- NotFound       404   no such experiment, decision or key for this tenant
    |-- Conflict       409   the same name, key or decision, with other contents
    |-- Gone           410   feedback after its deadline
    |-- Invalid        422   an argument outside its domain
    |-- StoreError     503   the store could not write or read; nothing was acknowledged
    |-- Compiling      503   the policy is being compiled: ask again
    |-- NotCompiled    500   the policy does not compile on this machine
    `-- ReplayError    500   the log and the learner disagree

Whatever raises one of these has changed nothing.
"""

from typing import Any, ClassVar

from ..errors import DecoupledError

HOW_LONG = "this happens once on a machine and takes from some seconds to a minute"


class ServiceError(DecoupledError):
    """The root of the service's errors.

    >>> NotFound("experiment 'checkout': is not known; create it with PUT").status
    404
    """

    status: ClassVar[int] = 500
    title: ClassVar[str] = "The service failed"


class NotFound(ServiceError):  # noqa: N818 - named for what HTTP calls it
    """Nothing of that name or id exists for this tenant."""

    status = 404
    title = "Not found"


class Conflict(ServiceError):  # noqa: N818
    """The same name, key or decision was used before with other contents."""

    status = 409
    title = "Conflict"


class Gone(ServiceError):  # noqa: N818
    """Feedback came after the decision's deadline."""

    status = 410
    title = "Too late"


class Invalid(ServiceError):  # noqa: N818
    """An argument lies outside its domain."""

    status = 422
    title = "Invalid request"


class StoreError(ServiceError):
    """The store could not write or read. Nothing of what was asked has been acknowledged: ask again."""

    status = 503
    title = "The store is not available"


class Compiling(ServiceError):  # noqa: N818
    """The policy of an experiment is being compiled, which happens once on a machine: ask again."""

    status = 503
    title = "Compiling"

    def __init__(self, message: str, job: Any = None) -> None:
        super().__init__(message)
        self.job = job


class NotCompiled(ServiceError):  # noqa: N818
    """The policy of an experiment does not compile on this machine, so that it can neither decide nor learn."""

    title = "Compilation failed"


class ReplayError(ServiceError):
    """The log, applied again, does not give what it says: other code, another machine, or damage."""

    title = "The log does not replay"


class BadRequest(ServiceError):  # noqa: N818
    """What was sent is not JSON, or not HTTP as this service speaks it."""

    status, title = 400, "Bad request"


class Unauthorized(ServiceError):  # noqa: N818
    """No key, or one that is unknown or revoked."""

    status, title = 401, "Unauthorized"


class Forbidden(ServiceError):  # noqa: N818
    """A key whose role does not reach so far."""

    status, title = 403, "Forbidden"


class MethodNotAllowed(ServiceError):  # noqa: N818
    """A path that exists, with a method that it does not take."""

    status, title = 405, "Method not allowed"


class TooSlow(ServiceError):  # noqa: N818
    """A body that does not come."""

    status, title = 408, "Request timeout"


class TooLarge(ServiceError):  # noqa: N818
    """A body beyond the limit."""

    status, title = 413, "Content too large"


class UnsupportedMedia(ServiceError):  # noqa: N818
    """A body that does not say that it is JSON."""

    status, title = 415, "Unsupported media type"


class TooMany(ServiceError):  # noqa: N818
    """More requests than the limit; `retry_after` says in how many seconds there is room again."""

    status, title = 429, "Too many requests"

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


def neither_or_both(
    loss_given: bool, reward_given: bool, loss: str = "loss", reward: str = "reward"
) -> tuple[str, str] | None:
    """The rule and the remedy for feedback that has not exactly one of loss and reward; None if it has.

    >>> neither_or_both(True, False)
    >>> neither_or_both(False, False)
    ('neither loss nor reward is given', 'give the loss of the explored arm, or its reward')
    >>> neither_or_both(True, True, "--loss", "--reward")
    ('--loss and --reward are both given', 'give the loss of the explored arm or its reward, not both')
    """
    if loss_given != reward_given:
        return None
    if loss_given:
        return (
            f"{loss} and {reward} are both given",
            "give the loss of the explored arm or its reward, not both",
        )
    return f"neither {loss} nor {reward} is given", "give the loss of the explored arm, or its reward"
