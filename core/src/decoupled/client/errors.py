"""Errors of the clients, and the error that a response of the service describes."""

import httpx

from .outbox import Undelivered
from .service_errors import (
    BadRequest,
    Compiling,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotCompiled,
    NotFound,
    ServiceError,
    StoreError,
    TooLarge,
    TooMany,
    Unauthorized,
)

TEMPORARY = (429, 502, 503, 504)  # the same request may succeed later
_BY_STATUS: dict[int, type[ServiceError]] = {
    kind.status: kind
    for kind in (
        BadRequest,
        Unauthorized,
        Forbidden,
        NotFound,
        Conflict,
        Gone,
        TooLarge,
        Invalid,
        StoreError,
    )
}


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


class UndeliveredFeedback(ServiceError, status=503, title="Feedback was not delivered"):  # noqa: N818
    """Feedback that did not arrive. It is in `items`, and nowhere else.

    Args:
        message: what happened, and what to do.
        items: the feedback that was not delivered.

    >>> from decoupled.client import Client, Retries
    >>> nobody = Client("http://127.0.0.1:1", retries=Retries(attempts=1))
    >>> try:
    ...     nobody.feedback("1f2e-7", loss=0.25)
    ... except UndeliveredFeedback as error:
    ...     print(error.items)
    [Undelivered(decision='1f2e-7', loss=0.25, reward=None, arm=None, preference=None)]
    """

    def __init__(self, message: str, items: list[Undelivered]) -> None:
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
    status, seconds = response.status_code, retry_after(response)
    try:
        content = response.json()
        return error_from(status, str(content["detail"]), str(content.get("title")), seconds)
    except (ValueError, KeyError, TypeError):
        return error_from(status, f"status {status}: {response.text[:200]}", "", seconds)


def error_from(status: int, detail: str, title: str, seconds: float = 1.0) -> ServiceError:
    """The error with this status, detail and title.

    >>> error_from(404, "experiment 'models': is not known", "Not found")
    NotFound("experiment 'models': is not known")
    """
    if status == 429:
        return TooMany(detail, int(seconds))
    for kind in (Compiling, NotCompiled):
        if (status, title) == (kind.status, kind.title):
            return kind(detail)
    return _BY_STATUS.get(status, StoreError if status in TEMPORARY else ServiceError)(detail)
