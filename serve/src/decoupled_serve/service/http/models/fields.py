"""Strict JSON in and out, and the fields and models that the bodies of several routes share."""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, NoReturn

from fastapi import Query
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictInt,
    StrictStr,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
)

from decoupled.base import LONGEST_VECTOR, NAME_SHAPE
from decoupled.client import BadRequest
from decoupled.learner import MOST_BYTES, key_text

from ...experiment.context import LONGEST_TAG, LONGEST_TAG_NAME, MOST_TAGS
from ...experiment.records import moment


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _each_name_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("an object has the same name twice")
    return content


_decode = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_each_name_once).decode
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def parsed(body: bytes) -> Any:
    """The content of a body. Refuses NaN, repeated names, lone surrogates and very deep nesting.

    >>> parsed(b'{"loss": 0.25}')
    {'loss': 0.25}
    >>> parsed(b'{"loss": 0.25, "loss": 0.75}')
    Traceback (most recent call last):
        ...
    decoupled.client.errors.BadRequest: body: is not JSON (an object has the same name twice); send a JSON object in UTF-8
    """
    try:
        text = body.decode("utf-8")
        content = _decode(text)
        if (
            "\\u" in text
        ):  # lone surrogates cannot be encoded: a UnicodeEncodeError, which is a ValueError
            json.dumps(content, ensure_ascii=False).encode("utf-8")
        return content
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"body: is not JSON ({error}); send a JSON object in UTF-8") from None


def encoded(content: Mapping[str, Any]) -> bytes:
    """Content as JSON for the wire."""
    return _encode(content).encode()


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


Whole = BeforeValidator(whole)
KEY_SCHEMA = {
    "anyOf": [{"type": "string", "minLength": 1, "maxLength": MOST_BYTES}, {"type": "integer"}]
}
CHOICES = ("<a list>", "<a number>")  # tags of a field that takes either; no field is called so
Arm = Annotated[
    Annotated[StrictStr, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
    | Annotated[StrictInt, Field(ge=-(2**53), le=2**53), Whole],
    one_rule(
        "must be a string of 1 to 200 characters without control characters, or a whole number"
    ),
]
StickyKey = Annotated[str | int, BeforeValidator(sticky_key), WithJsonSchema(KEY_SCHEMA)]
Number = Annotated[float, Field(allow_inf_nan=False, strict=True)]
CONTEXT_SCHEMA = {
    "anyOf": [
        *({"type": kind} for kind in ("string", "number", "boolean", "null")),
        {"type": "array", "items": {"type": "number"}, "maxItems": LONGEST_VECTOR},
    ]
}
ContextValue = Annotated[Any, WithJsonSchema(CONTEXT_SCHEMA)]
Advice = Annotated[
    Arm | dict[str, Number], one_rule("must be an arm, or an object of probabilities by arm")
]
Tags = Annotated[
    dict[
        Annotated[StrictStr, Field(max_length=LONGEST_TAG_NAME, pattern=f"^{NAME_SHAPE}$")],
        Annotated[
            StrictStr, Field(min_length=1, max_length=LONGEST_TAG, pattern=r"^[^\x00-\x1f\x7f]+$")
        ],
    ],
    Field(max_length=MOST_TAGS),
]
Loss = Annotated[Number, BeforeValidator(truth, json_schema_input_type=Number | bool)]


_TIMES = ("at", "since", "created_at", "archived_at")


def json_of(record: object, model: type[BaseModel], **more: Any) -> dict[str, Any]:
    """What a record has of the fields of a model, in their order, as JSON has it; and some fields more."""
    names = [name for name in model.model_fields if name not in more and hasattr(record, name)]
    known = {name: _plain(getattr(record, name)) for name in names}
    return known | {name: moment(known[name]) for name in _TIMES if name in known} | more


def _plain(value: Any) -> Any:
    """Records as objects, tuples as lists, and arms as texts where they are names."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    elif is_dataclass(value):
        value = {each.name: getattr(value, each.name) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def told(description: str, *examples: Any, **options: Any) -> Any:
    """A field, and what the document says of it."""
    return Field(description=description, examples=list(examples) or None, **options)


def left_out(description: str, *examples: Any, default: Any = None) -> Any:
    """A field that may be left out."""
    return told(description, *examples, default=default)


def asked(description: str, *examples: Any, **rules: Any) -> Any:
    """A query parameter, and what the document says of it."""
    return Query(description=description, examples=list(examples) or None, **rules)


_TAG = "Only decisions with this tag, as NAME:VALUE; repeat it to ask for several tags at once."
_OF_TAGS = asked(_TAG, ["country:de"], default_factory=list, max_length=MOST_TAGS)
TagFilter = Annotated[list[str], _OF_TAGS]


class Model(BaseModel):
    """A body that takes only the fields it knows."""

    model_config = ConfigDict(extra="forbid")


class Problem(BaseModel):
    """An error (RFC 9457): every error of the service has this shape."""

    type: str = Field(examples=["urn:decoupled:conflict"])
    title: str
    status: int
    detail: str = told("What was wrong, by which rule, and what to do.")
    errors: list[dict[str, str]] = left_out(
        "Each field that is wrong, if there are several.", default=[]
    )
    request_id: str = left_out(
        "The id of the request, as in X-Request-Id; the service's log has it, too.", default=""
    )
