"""Bodies: strict JSON, and the checks of the two hot routes by hand."""

import json
import math
from dataclasses import dataclass
from typing import Any, NoReturn

from ...errors import shown
from ..errors import BadRequest, Invalid, UnsupportedMedia, neither_or_both
from ..experiment.records import MODES, Feedback, Mode
from .rate_limit import LONGEST_KEY, MOST_DECISIONS
from .words import kind_of, problem_with, unknown_field


class _NotJson(ValueError):  # noqa: N818
    """Why a body is not JSON, in a few words."""


def _no_constant(name: str) -> NoReturn:
    raise _NotJson(f"{name} is not a JSON number")


_decoder = json.JSONDecoder(parse_constant=_no_constant)


def parsed(body: bytes) -> Any:
    """What a body holds; NaN, lone surrogates and towers of brackets are refused.

    >>> parsed(b'{"loss": 0.25}')
    {'loss': 0.25}
    """
    try:
        text = body.decode("utf-8")
        content = _decoder.decode(text)
        if "\\u" in text:
            _no_lone_surrogates(content)
        return content
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"body: is not JSON ({_why(error)}); send a JSON object in UTF-8") from None


def _why(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno}, column {error.colno}: {error.msg[0].lower()}{error.msg[1:]}"
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is not UTF-8"
    if isinstance(error, UnicodeEncodeError):
        return "a string holds half a surrogate pair"
    if isinstance(error, RecursionError):
        return "lists or objects are nested too deeply"
    return str(error) if isinstance(error, _NotJson) else "a number has too many digits"


def _no_lone_surrogates(content: Any) -> None:
    json.dumps(content, ensure_ascii=False).encode("utf-8")  # a UnicodeEncodeError is a ValueError


def check_content_type(content_type: bytes | None) -> None:
    """Refuse a body that does not say that it is JSON: a form of another site's page cannot say so."""
    if content_type is None or content_type.split(b";")[0].strip().lower() != b"application/json":
        sent = (content_type or b"").decode("latin-1")
        raise UnsupportedMedia(
            f"Content-Type = {shown(sent)}: must be application/json; say so and send JSON"
        )


def json_object(body: bytes, allowed: frozenset[str]) -> dict[str, Any]:
    """A body as an object with no key but those allowed; an empty body is an empty object."""
    if not body:
        return {}
    content = parsed(body)
    if not isinstance(content, dict):
        raise Invalid(problem_with("body", content, "must be a JSON object", "for example {}"))
    for name, value in content.items():
        if name not in allowed:
            raise Invalid(unknown_field(name, value, allowed))
    return content


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a request for decisions asks."""

    mode: Mode
    count: int | None
    available: list[str | int] | None


_DECIDE = frozenset(("mode", "count", "available"))
_FEEDBACK = frozenset(("loss", "reward", "arm"))


def wanted(body: bytes) -> Wanted:
    """The body of `POST .../decisions`.

    >>> wanted(b'{"count": 2, "mode": "explore"}')
    Wanted(mode='explore', count=2, available=None)
    """
    content = json_object(body, _DECIDE)
    mode, count, available = (
        content.get("mode", "both"),
        whole(content.get("count")),
        content.get("available"),
    )
    if mode not in MODES:
        rule = "must be 'both', 'exploit' or 'explore'"
        raise Invalid(problem_with("mode", mode, rule, "leave it out for 'both'"))
    if count is not None and not (type(count) is int and 1 <= count <= MOST_DECISIONS):
        rule = f"must be a whole number from 1 to {MOST_DECISIONS:,}"
        raise Invalid(problem_with("count", count, rule, "leave it out for a single decision"))
    if available is not None:
        available = _arms(available)
    return Wanted(mode, count, available)


def _arms(value: object) -> list[str | int]:
    arms = [whole(arm) for arm in value] if isinstance(value, list) else []
    if not arms or not all(type(arm) is str or type(arm) is int for arm in arms):
        rule = "must be a list of arms, one at least"
        raise Invalid(problem_with("available", value, rule, "leave it out where every arm can be had"))
    return arms


def whole(value: Any) -> Any:
    """A whole number, however it is written: in JSON, 2.0 is one. Anything else is given back.

    >>> whole(2.0), whole(2.5), whole("2")
    (2, 2.5, '2')
    """
    return int(value) if type(value) is float and value.is_integer() else value


def feedback(decision: str, body: bytes) -> Feedback:
    """The body of `PUT /v1/decisions/{decision}/feedback`.

    >>> feedback("1f2e-7", b'{"loss": 0.25}')
    Feedback(decision='1f2e-7', loss=0.25, reward=None, arm=None)
    >>> feedback("1f2e-7", b'{"reward": true}').reward
    1.0
    """
    content = json_object(body, _FEEDBACK)
    wrong = neither_or_both("loss" in content, "reward" in content)
    if wrong is not None:
        raise Invalid(problem_with("body", content, *wrong))
    arm = whole(content.get("arm"))
    if arm is not None and type(arm) is not str and type(arm) is not int:
        rule = "must be the explored arm, a string or a whole number"
        raise Invalid(problem_with("arm", arm, rule, "or leave it out"))
    if "loss" in content:
        return Feedback(decision, loss=_number("loss", content["loss"]), arm=arm)
    return Feedback(decision, reward=_number("reward", content["reward"]), arm=arm)


def _number(name: str, value: Any) -> float:
    """A loss or a reward; true counts as 1, false as 0."""
    if type(value) is float or type(value) is int or type(value) is bool:
        try:
            number = float(value)
            if math.isfinite(number):
                return number
        except OverflowError:
            pass
        rule = "must be a finite number"
    else:
        rule = f"must be a number, true or false, not {kind_of(value)}"
    raise Invalid(problem_with(name, value, rule, f"send the {name} of the explored arm"))


def idempotency_key(header: bytes | None) -> str | None:
    """The Idempotency-Key, if there is one."""
    if header is None:
        return None
    if not 1 <= len(header) <= LONGEST_KEY or not all(33 <= byte <= 126 for byte in header):
        raise BadRequest(
            f"Idempotency-Key = {shown(header.decode('latin-1'))}: must be 1 to {LONGEST_KEY} visible ASCII "
            "characters; a UUID will do"
        )
    return header.decode("ascii")
