"""Feedback: checked before it is sent, and sent in batches."""

from collections.abc import Sequence
from typing import Any

from ..base.validation import as_float, one_of
from ..decision import Arm
from ..errors import ParameterError
from ..learner.losses import PREFERENCES, Preference
from .errors import Unreachable, error_from, identified
from .exchange import ApiRequest, CompileWait, Endpoint, Exchange, send_for_json
from .outbox import Undelivered
from .results import RemoteDecision
from .service_errors import Compiling, ServiceError, StoreError, TooMany, neither_or_both

BATCH = 500  # the most items in one request
NOT_DELIVERED = (Unreachable, StoreError, Compiling, TooMany)  # errors after which to send feedback again


def checked_item(
    decision: RemoteDecision | str,
    loss: float | None,
    reward: float | None,
    arm: Arm | None,
    preference: Preference | None = None,
) -> Undelivered:
    """Feedback for a decision, with exactly one of loss, reward and preference.

    >>> checked_item("1f2e-7", True, None, None)
    Undelivered(decision='1f2e-7', loss=1.0, reward=None, arm=None, preference=None)
    """
    given = (loss is not None, reward is not None)
    wrong = neither_or_both(*given, preference_given=preference is not None)
    if wrong is not None:
        raise ParameterError("feedback: {}; {}".format(*wrong))
    name = decision if isinstance(decision, str) else decision.id
    if preference is not None:
        one_of("preference", preference, PREFERENCES)
    return Undelivered(name, _number("loss", loss), _number("reward", reward), arm, preference)


def _number(name: str, value: object) -> float | None:
    """A loss or a reward as a JSON number, from a number or truth value of Python or NumPy."""
    if value is None:
        return None
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    number = float(bool(value)) if isinstance(value, bool) or kind == "b" else as_float(value)
    if number is None:
        rule = f"must be a number, True or False, not {type(value).__name__}"
        if isinstance(value, (int, float)):
            rule = "must be a finite number"
        raise ParameterError.of(name, value, rule, f"give the {name} of the explored arm")
    return number


def deliver(
    items: Sequence[Undelivered], endpoint: Endpoint
) -> Exchange[list[RemoteDecision | ServiceError]]:
    """Send feedback in batches, and send again what has to wait until a policy is compiled."""
    results = yield from _send_batches(items, endpoint)
    compile_wait = CompileWait(endpoint)
    while waiting := [place for place, each in enumerate(results) if isinstance(each, Compiling)]:
        if compile_wait.over():
            break
        yield compile_wait.pause(1.0, str(results[waiting[0]]))
        again = yield from _send_batches([items[place] for place in waiting], endpoint)
        for place, result in zip(waiting, again, strict=True):
            results[place] = result
    return results


def _send_batches(
    items: Sequence[Undelivered], endpoint: Endpoint
) -> Exchange[list[RemoteDecision | ServiceError]]:
    results: list[RemoteDecision | ServiceError] = []
    for start in range(0, len(items), BATCH):
        body = {"items": [item.to_json() for item in items[start : start + BATCH]]}
        try:
            answer = yield from send_for_json(ApiRequest("POST", "/v1/feedback", body), endpoint)
        except NOT_DELIVERED as error:
            return results + [error] * (len(items) - start)
        results += [_result(each) for each in answer["results"]]
    return results


def _result(content: dict[str, Any]) -> RemoteDecision | ServiceError:
    if content["status"] == 200:
        return RemoteDecision.of(content["decision"])
    problem = content["problem"]
    return identified(
        error_from(content["status"], problem["detail"], problem["title"]), problem.get("request_id")
    )
