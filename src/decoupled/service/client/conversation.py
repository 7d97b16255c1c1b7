"""What a client says to the service, written once for the client that waits and the one that awaits.

Each function is a generator: it yields a `Send` or a `Pause`, is given the answer, and returns a result.
"""

import random
import time
import uuid
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar
from urllib.parse import quote

import httpx

from ...decision import Arm
from ...errors import ParameterError, invalid_value
from ..errors import (
    HOW_LONG,
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
from .outbox import Outbox, Undelivered

KEY_VARIABLE = "DECOUPLED_KEY"
BATCH = 500  # items of a flush sent at once
_PASSING = (429, 502, 503, 504)
_KINDS: dict[int, type[ServiceError]] = {
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


class Unreachable(ServiceError):  # noqa: N818
    """The service could not be reached, or did not answer, however often it was tried."""

    status, title = 503, "The service cannot be reached"


class UndeliveredFeedback(ServiceError):  # noqa: N818
    """Feedback that did not arrive. It is in `items`: nothing else holds it now."""

    status, title = 503, "Feedback was not delivered"

    def __init__(self, message: str, items: list[Undelivered]) -> None:
        super().__init__(message)
        self.items = items


@dataclass(frozen=True)
class Decision:
    """A decision as the service made it: use `exploit`, try `explore`, send back the loss of `explore`."""

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

    @classmethod
    def of(cls, content: dict[str, Any]) -> "Decision":
        """From JSON; fields that a later release adds are passed over."""
        return cls(**{name: content[name] for name in cls.__dataclass_fields__})


@dataclass(frozen=True)
class Flushed:
    """What became of an outbox: delivered, refused for good (and why), and still waiting."""

    delivered: list[Decision]
    refused: list[tuple[Undelivered, ServiceError]]
    left: int


@dataclass(frozen=True)
class Retries:
    """How often and how patiently to try: waits double from `first` seconds to `most`, with full jitter.

    While the service compiles a policy it is asked again for `compiling` seconds, however few the attempts.
    """

    attempts: int = 6
    first: float = 0.1
    most: float = 5.0
    compiling: float = 600.0

    def pause(self, attempt: int, retry_after: float) -> float:
        """The seconds to wait after that many attempts; never less than the service asked for."""
        return retry_after + random.uniform(0.0, min(self.most, self.first * 2.0 ** (attempt - 1)))


@dataclass(frozen=True)
class Remedies:
    """What to do about errors that depend on who calls: these are for a program, the shell has its own."""

    key: str = f"pass key=... to the client, or set {KEY_VARIABLE}"
    url: str = "is `decoupled serve` running there? pass its address to the client"
    undelivered: str = "send it again, or pass outbox=... to the client, which keeps it"


@dataclass(frozen=True)
class Line:
    """The service at the other end, and how to talk to it."""

    url: str
    has_key: bool
    retries: Retries
    remedies: Remedies

    def impatient(self) -> "Line":
        """The same without waiting for policies to be compiled."""
        return replace(self, retries=replace(self.retries, compiling=0.0))


@dataclass(frozen=True)
class Send:
    """A request to make. Every request of this service may be made twice: that is the same as once."""

    method: str
    path: str
    json: Any = None
    params: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Pause:
    """Seconds to wait, and why, where whoever waits is to be told."""

    seconds: float
    reason: str | None = None


Answer: TypeAlias = httpx.Response | httpx.TransportError | None
T = TypeVar("T")
Talk: TypeAlias = Generator[Send | Pause, Answer, T]


def ask(send: Send, line: Line) -> Talk[Any]:
    """Make a request until it is answered; what the service refuses is raised."""
    what, retries = f"{send.method} {line.url}{send.path}", line.retries
    problem: ServiceError = Unreachable(f"{what}: was never tried; allow an attempt")
    attempt, patience = 0, Patience(retries)
    while attempt < retries.attempts:
        attempt += 1
        wait = 0.0
        answer = yield send
        if isinstance(answer, httpx.Response):
            if answer.is_success:
                return answer
            problem = _error(answer, line)
            if answer.status_code not in _PASSING:
                raise problem
            wait = _retry_after(answer)
            if isinstance(problem, Compiling) and patience.left():
                attempt -= 1
                yield patience.pause(wait, str(problem))
                continue
        else:
            reason = f"{type(answer).__name__}: {answer}"
            problem = Unreachable(f"{what}: no answer ({reason}); {line.remedies.url}")
        if attempt < retries.attempts:
            yield Pause(retries.pause(attempt, wait))
    raise problem


class Patience:
    """How long to wait for a policy that the service compiles. The reason is told once."""

    def __init__(self, retries: Retries) -> None:
        self._retries, self._until, self._told = retries, time.monotonic() + retries.compiling, False

    def left(self) -> bool:
        """Whether to wait on."""
        return time.monotonic() < self._until

    def pause(self, retry_after: float, reason: str) -> Pause:
        """A wait: as long as the service asks for, so that many who wait do not come at once."""
        told, self._told = self._told, True
        return Pause(self._retries.pause(1, retry_after), None if told else reason)


def create(name: str, send: Send, line: Line) -> Talk[dict[str, Any]]:
    """Create an experiment, and wait until its policy is compiled."""
    patience = Patience(line.retries)
    while True:
        answer: httpx.Response = yield from ask(send, line)
        found: dict[str, Any] = _json(send, line, answer)
        if found.get("status") == "failed":
            raise NotCompiled(str(found.get("problem")))
        if answer.status_code != 202:
            return found
        if not patience.left():
            raise Compiling(
                f"experiment {name!r}: is created, and its policy is not compiled after "
                f"{line.retries.compiling:g} s; wait on by creating it again, the same way"
            )
        known = found.get("policy_label", "its policy")
        yield patience.pause(
            _retry_after(answer), f"the service is compiling {known} for experiment {name!r}; {HOW_LONG}"
        )


def _retry_after(answer: httpx.Response) -> float:
    text = answer.headers.get("retry-after", "")
    return min(float(text), 60.0) if text.isdigit() else 0.0


def _error(answer: httpx.Response, line: Line) -> ServiceError:
    if answer.status_code == 401:  # the service tells which header to send; a client sends it by itself
        rule = (
            f"is unknown to {line.url}, or revoked" if line.has_key else f"is missing; {line.url} needs one"
        )
        return Unauthorized(f"key: {rule}; {line.remedies.key}")
    try:
        content = answer.json()
        detail = str(content["detail"])
    except (ValueError, KeyError, TypeError):
        detail = f"status {answer.status_code}: {answer.text[:200]}"
        return error_of(answer.status_code, detail, _retry_after(answer))
    return error_of(answer.status_code, detail, _retry_after(answer), str(content.get("title")))


def error_of(status: int, detail: str, retry_after: float = 1.0, title: str = "") -> ServiceError:
    """The error that a status, its detail and its title stand for."""
    if status == 429:
        return TooMany(detail, int(retry_after))
    for kind in (Compiling, NotCompiled):
        if (status, title) == (kind.status, kind.title):
            return kind(detail)
    return _KINDS.get(status, StoreError if status in _PASSING else ServiceError)(detail)


def experiment_at(name: str) -> str:
    """The path of an experiment."""
    return f"/v1/experiments/{_part('name', name)}"


def decision_at(decision: str) -> str:
    """The path of a decision."""
    return f"/v1/decisions/{_part('decision', decision)}"


def _part(argument: str, name: str) -> str:
    """A name as one part of a path: with a slash in it, it would be the address of something else."""
    if not name or "/" in name or set(name) == {"."}:
        rule = "must be one part of an address, without '/'"
        raise ParameterError(invalid_value(argument, name, rule, "check it"))
    return quote(name, safe="")


def decide(
    name: str,
    mode: str,
    count: int | None,
    available: Sequence[Arm] | None,
    key: str | None,
    line: Line,
) -> Talk[Any]:
    """Ask for decisions; every attempt carries the same Idempotency-Key, so that none is drawn twice."""
    content: dict[str, Any] = {"mode": mode}
    if count is not None:
        content["count"] = count
    if available is not None:
        content["available"] = list(available)
    headers = {"Idempotency-Key": key or str(uuid.uuid4())}
    answer = yield from ask(
        Send("POST", f"{experiment_at(name)}/decisions", content, headers=headers), line
    )
    found = answer.json()
    return Decision.of(found) if count is None else [Decision.of(each) for each in found["decisions"]]


def feedback(item: Undelivered, outbox: Outbox | None, line: Line) -> Talk[Decision | None]:
    """Send the loss of an explored arm. If it cannot be delivered it goes to the outbox, or is raised."""
    body = {name: value for name, value in item.to_json().items() if name != "decision"}
    try:
        # With an outbox nobody need wait for a policy to be compiled.
        patient = line if outbox is None else line.impatient()
        answer = yield from ask(Send("PUT", f"{decision_at(item.decision)}/feedback", body), patient)
    except (Unreachable, StoreError, Compiling, TooMany) as error:
        if outbox is None:
            raise UndeliveredFeedback(
                f"decision {item.decision!r}: its feedback was not delivered: {error}; {line.remedies.undelivered}",
                [item],
            ) from error
        outbox.add(item)
        return None
    return Decision.of(answer.json())


def feedback_many(items: Sequence[Undelivered], line: Line) -> Talk[list[Decision | ServiceError]]:
    """Send the losses of many explored arms; one result each.

    What is refused because a policy is being compiled is sent again; the rest is not held up by it.
    """
    results = yield from _sent(items, line)
    patience = Patience(line.retries)
    while held_up := [place for place, each in enumerate(results) if isinstance(each, Compiling)]:
        if not patience.left():
            break
        yield patience.pause(1.0, str(results[held_up[0]]))
        again = yield from _sent([items[place] for place in held_up], line)
        for place, result in zip(held_up, again, strict=True):
            results[place] = result
    return results


def _sent(items: Sequence[Undelivered], line: Line) -> Talk[list[Decision | ServiceError]]:
    results: list[Decision | ServiceError] = []
    for start in range(0, len(items), BATCH):
        body = {"items": [item.to_json() for item in items[start : start + BATCH]]}
        try:
            answer = yield from ask(Send("POST", "/v1/feedback", body), line)
        except (Unreachable, StoreError, Compiling, TooMany) as error:
            return results + [error] * (len(items) - start)
        for result in answer.json()["results"]:
            if result["status"] == 200:
                results.append(Decision.of(result["decision"]))
            else:
                problem = result["problem"]
                results.append(error_of(result["status"], problem["detail"], title=problem["title"]))
    return results


def flush(outbox: Outbox, line: Line) -> Talk[Flushed]:
    """Send what waits in the outbox; what is refused for good is taken out and told."""
    items = outbox.items()
    results = yield from feedback_many(items, line.impatient())  # they can wait where they are
    delivered: list[Decision] = []
    refused: list[tuple[Undelivered, ServiceError]] = []
    for item, result in zip(items, results, strict=True):
        if isinstance(result, Decision):
            delivered.append(result)
        elif result.status not in _PASSING:
            refused.append((item, result))
    outbox.remove([each.id for each in delivered] + [item.decision for item, _ in refused])
    return Flushed(delivered, refused, len(outbox))


def json_of(send: Send, line: Line) -> Talk[Any]:
    """Make a request and return the JSON of its answer."""
    return _json(send, line, (yield from ask(send, line)))


def _json(send: Send, line: Line, answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        raise ServiceError(
            f"{send.method} {line.url}{send.path}: the answer is not JSON; {line.remedies.url}"
        ) from None


def bytes_of(send: Send, line: Line) -> Talk[bytes]:
    """Make a request and return its body."""
    answer: httpx.Response = yield from ask(send, line)
    return answer.content
