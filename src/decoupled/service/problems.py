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
