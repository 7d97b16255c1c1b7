"""Bodies: strict JSON, and the checks of the two hot routes by hand."""

import json
import math
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

from ...errors import shown
from ..problems import Invalid
from ..records import Mode
from .limits import LONGEST_KEY, MOST_DECISIONS
from .refusals import BadRequest, UnsupportedMedia

MODES = ("both", "exploit", "explore")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


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
        raise BadRequest(f"body: is not JSON ({error}); send a JSON object in UTF-8") from None


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
        raise Invalid(f"body = {shown(content)}: must be a JSON object; for example {{}}")
    for name in content:
        if name not in allowed:
            raise Invalid(
                f"{shown(name)}: is no field of this request; the fields are {', '.join(sorted(allowed))}"
            )
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
        raise Invalid(f"mode = {shown(mode)}: must be one of {', '.join(MODES)}")
    if count is not None and not (type(count) is int and 1 <= count <= MOST_DECISIONS):
        raise Invalid(f"count = {shown(count)}: must be a whole number from 1 to {MOST_DECISIONS:,}")
    if available is not None:
        available = _arms(available)
    return Wanted(mode, count, available)


def _arms(value: object) -> list[str | int]:
    arms = [whole(arm) for arm in value] if isinstance(value, list) else []
    if not arms or not all(type(arm) is str or type(arm) is int for arm in arms):
        raise Invalid(
            f"available = {shown(value)}: must be a list of arms; leave it out where all can be had"
        )
    return arms


def whole(value: Any) -> Any:
    """A whole number, however it is written: in JSON, 2.0 is one. Anything else is given back.

    >>> whole(2.0), whole(2.5), whole("2")
    (2, 2.5, '2')
    """
    return int(value) if type(value) is float and value.is_integer() else value


class Feedback(NamedTuple):
    """The loss or the reward of the explored arm, and that arm where the sender names it."""

    loss: float | None
    reward: float | None
    arm: str | int | None


def feedback(body: bytes) -> Feedback:
    """The body of `PUT .../feedback`.

    >>> feedback(b'{"loss": 0.25}')
    Feedback(loss=0.25, reward=None, arm=None)
    """
    content = json_object(body, _FEEDBACK)
    if ("loss" in content) == ("reward" in content):
        raise Invalid(
            "loss, reward: one of them is needed, and not both; send the loss of the explored arm, or its reward"
        )
    name = "loss" if "loss" in content else "reward"
    _finite(name, content[name])
    arm = whole(content.get("arm"))
    if arm is not None and type(arm) is not str and type(arm) is not int:
        raise Invalid(f"arm = {shown(arm)}: must be the explored arm; or leave it out")
    return Feedback(content.get("loss"), content.get("reward"), arm)


def _finite(name: str, value: object) -> None:
    if type(value) is float or type(value) is int:
        try:
            if math.isfinite(value):
                return
        except OverflowError:
            pass
    raise Invalid(f"{name} = {shown(value)}: must be a finite number; send the {name} of the explored arm")


def idempotency_key(header: bytes | None) -> str | None:
    """The Idempotency-Key, if there is one."""
    if header is None:
        return None
    if not 1 <= len(header) <= LONGEST_KEY or not all(33 <= byte <= 126 for byte in header):
        raise BadRequest(
            f"Idempotency-Key = {shown(header.decode('latin-1'))}: must be 1 to {LONGEST_KEY} visible ASCII characters"
        )
    return header.decode("ascii")
