"""Requests without I/O: what to send, when to try again, how to read the answer.

An exchange is a generator. It yields an `ApiRequest` to send, or a number of seconds to wait; it is
resumed with the response, or with the error of a failed attempt; it returns a result. Both clients
run the same exchanges.
"""

import random
import time
import uuid
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

import httpx

from .errors import (
    HOW_LONG,
    TEMPORARY,
    Compiling,
    NotCompiled,
    ServiceError,
    Unauthorized,
    Unreachable,
    error_in,
    identified,
    retry_after,
)

KEY_VARIABLE = "DECOUPLED_KEY"
REQUEST_ID = "X-Request-Id"


@dataclass(frozen=True)
class Retries:
    """How often to try, and how long to wait between attempts.

    Args:
        attempts: the most attempts for one request.
        first: seconds to wait after the first attempt; waits double from there, with full jitter.
        most: the longest wait in seconds.
        compiling: seconds to wait while the service compiles a policy. They do not count as
            attempts.

    >>> Retries(attempts=3, first=0.0).pause(attempt=1, retry_after=2.0)
    2.0
    """

    attempts: int = 6
    first: float = 0.1
    most: float = 5.0
    compiling: float = 600.0

    def pause(self, attempt: int, retry_after: float = 0.0) -> float:
        """Seconds to wait after the given attempt: never less than the service asked for.

        Args:
            attempt: the number of the attempt, from 1 on.
            retry_after: seconds that the service asked to wait.
        """
        return retry_after + random.uniform(
            0.0, min(self.most, self.first * 2.0 ** min(attempt - 1, 64))
        )


@dataclass(frozen=True)
class Remedies:
    """Remedies that error messages name to a program; the command line has its own."""

    key: str = f"pass key=... to the client, or set {KEY_VARIABLE}"
    url: str = "is `decoupled serve` running there? pass its address to the client"
    undelivered: str = "send it again, or pass outbox=... to the client to keep it"


@dataclass(frozen=True)
class Endpoint:
    """A service, and how to call it."""

    url: str
    has_key: bool
    retries: Retries
    remedies: Remedies
    notify: Callable[[str], None]

    def without_compile_wait(self) -> "Endpoint":
        """The same endpoint, without waiting while the service compiles a policy."""
        return replace(self, retries=replace(self.retries, compiling=0.0))


@dataclass(frozen=True)
class ApiRequest:
    """A request to send, as HTTPX takes it. Sending it twice has the effect of sending it once."""

    method: str
    url: str
    json: Any = None
    params: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes | None = None


Received: TypeAlias = httpx.Response | httpx.TransportError | None
T = TypeVar("T")
Exchange: TypeAlias = Generator[ApiRequest | float, Received, T]


class CompileWait:
    """Waits while the service compiles a policy, and notifies the caller of the reason once."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._notified = False
        self._deadline = time.monotonic() + endpoint.retries.compiling

    def over(self) -> bool:
        """Whether to stop waiting."""
        return time.monotonic() >= self._deadline

    def pause(self, seconds: float, reason: str) -> float:
        """Seconds to wait: the service's, and some at random so that clients spread out."""
        if not self._notified:
            self._endpoint.notify(reason)
            self._notified = True
        return self._endpoint.retries.pause(1, seconds)


def send(request: ApiRequest, endpoint: Endpoint) -> Exchange[httpx.Response]:
    """Send a request until it succeeds.

    Raise the error if it is not temporary, or after the last attempt.
    """
    target = f"{request.method} {endpoint.url}{request.url}"
    # Every attempt carries the same id: the log of the service shows them together.
    request_id = request.headers.get(REQUEST_ID) or str(uuid.uuid4())
    request = replace(request, headers={**request.headers, REQUEST_ID: request_id})
    error: ServiceError = Unreachable(
        f"{target}: no attempt is allowed; use Retries(attempts=1) or more"
    )
    retries = endpoint.retries
    compile_wait = CompileWait(endpoint)
    attempt = 0
    while attempt < retries.attempts:
        attempt += 1
        seconds = 0.0
        reply = yield request
        if isinstance(reply, httpx.Response):
            if reply.is_success:
                return reply
            error = _error(reply, endpoint)
            seconds = retry_after(reply)
            error = identified(error, reply.headers.get(REQUEST_ID) or request_id)
            if reply.status_code not in TEMPORARY:
                raise error
            if isinstance(error, Compiling) and not compile_wait.over():
                attempt -= 1
                yield compile_wait.pause(seconds, str(error))
                continue
        else:
            reason = f"{type(reply).__name__}: {reply}"
            error = Unreachable(f"{target}: no answer ({reason}); {endpoint.remedies.url}")
            error = identified(error, request_id)
        if attempt < retries.attempts:
            yield retries.pause(attempt, seconds)
    raise error


def _error(response: httpx.Response, endpoint: Endpoint) -> ServiceError:
    if response.status_code != 401:
        return error_in(response)
    # The service's own message is about the header, which the caller of a client never sets.
    url = endpoint.url
    rule = (
        f"is unknown to {url}, or revoked" if endpoint.has_key else f"is missing; {url} needs one"
    )
    return Unauthorized(f"key: {rule}; {endpoint.remedies.key}")


def send_for_json(request: ApiRequest, endpoint: Endpoint) -> Exchange[Any]:
    """Send a request and read the JSON of its answer."""
    return _json(request, endpoint, (yield from send(request, endpoint)))


def _json(request: ApiRequest, endpoint: Endpoint, response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        target = f"{request.method} {endpoint.url}{request.url}"
        raise ServiceError(f"{target}: the answer is not JSON; {endpoint.remedies.url}") from None


def create(name: str, request: ApiRequest, endpoint: Endpoint) -> Exchange[dict[str, Any]]:
    """Create an experiment, and wait until its policy is compiled."""
    compile_wait = CompileWait(endpoint)
    while True:
        response = yield from send(request, endpoint)
        experiment: dict[str, Any] = _json(request, endpoint, response)
        if experiment.get("status") == "failed":
            raise NotCompiled(str(experiment.get("problem")))
        if response.status_code != 202:
            return experiment
        if compile_wait.over():
            seconds = f"{endpoint.retries.compiling:g} s"
            rule = f"was created, but its policy is not compiled after {seconds}"
            remedy = "to wait longer, create it again with the same settings"
            raise Compiling(f"experiment {name!r}: {rule}; {remedy}")
        policy = experiment.get("policy_label", "its policy")
        reason = f"the service is compiling {policy} for experiment {name!r}; {HOW_LONG}"
        yield compile_wait.pause(retry_after(response), reason)
