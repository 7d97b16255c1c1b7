"""Strict JSON in and out, and the validators that the models of bodies share."""

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from pydantic import ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from decoupled.client import BadRequest
from decoupled.learner import key_text


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _each_name_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("an object has the same name twice")
    return content


_decode = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_each_name_once).decode
text_of = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def parsed(body: bytes) -> Any:
    """The content of a body. Refuses NaN, repeated names, lone surrogates and very deep nesting.

    >>> parsed(b'{"loss": 0.25}')
    {'loss': 0.25}
    >>> parsed(b'{"loss": 0.25, "loss": 0.75}')
    Traceback (most recent call last):
        ...
    decoupled.client.service_errors.BadRequest: body: is not JSON (an object has the same name twice); send a JSON object in UTF-8
    """
    try:
        text = body.decode("utf-8")
        content = _decode(text)
        if "\\u" in text:  # lone surrogates cannot be encoded: a UnicodeEncodeError, which is a ValueError
            json.dumps(content, ensure_ascii=False).encode("utf-8")
        return content
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"body: is not JSON ({error}); send a JSON object in UTF-8") from None


def encoded(content: Mapping[str, Any]) -> bytes:
    """Content as JSON for the wire."""
    return text_of(content).encode()


# Validators


def sticky_key(value: Any) -> Any:
    """A key of a decision. The error for a bad one does not show it, because it may be a user's.

    >>> sticky_key(17.0)
    '17'
    """
    return key_text(whole(value))


def one_rule(rule: str) -> WrapValidator:
    """Reports any error in a value as one rule; otherwise each part of a union would report its own."""

    def validate(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        try:
            return handler(value)
        except ValidationError:
            raise ValueError(rule) from None

    return WrapValidator(validate)


def whole(value: Any) -> Any:
    """A whole number, even if it is written as a float, as JSON allows. Anything else is returned as it is.

    >>> whole(2.0), whole(2.5), whole("2")
    (2, 2.5, '2')
    """
    return int(value) if type(value) is float and value.is_integer() else value


def truth(value: Any) -> Any:
    """True as 1 and false as 0, such as for a click. Anything else is returned as it is.

    >>> truth(True), truth(0.5)
    (1.0, 0.5)
    """
    return float(value) if isinstance(value, bool) else value
