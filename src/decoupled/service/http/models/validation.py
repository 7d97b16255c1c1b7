"""Errors that Pydantic found in a request, in this service's own words.

A message gives the place in the request, the value, the rule and the remedy. The rule follows from the type of the
error. The remedy is the example, or the default, that the field has in the OpenAPI document.
"""

import types
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeAlias, Union, get_args, get_origin

from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from ...errors import Invalid
from .fields import CHOICES
from .problem_json import as_json, kind_of, problem_with, unknown_field
from .strict_json import BROKEN, HIDDEN

SEE = "see /v1/openapi.json"
_LISTED = 20  # errors in a response
_DETAILED = 2_000  # characters of their messages that its detail repeats

Model: TypeAlias = type[BaseModel]
Rule: TypeAlias = Callable[[Any, Mapping[str, Any]], str]


def _instead(what: str) -> Rule:
    return lambda value, _: f"must be {what}, not {kind_of(value)}"


def _plain(rule: str) -> Rule:
    return lambda value, context: rule.format_map(context)


def _number(value: Any, _: Mapping[str, Any]) -> str:
    if isinstance(value, int) and not isinstance(value, bool):  # too large for a float
        return "must be a finite number"
    return f"must be a number, not {kind_of(value)}"


def _at_least(least: int, what: str) -> str:
    return "must not be empty" if least == 1 else f"must have at least {least} {what}"


# The types of errors that the fields of requests can have; a test tries them all.
RULES: dict[str, Rule] = {
    BROKEN: _plain("{rule}"),
    "model_type": _instead("an object"),
    "model_attributes_type": _instead("an object"),
    "dict_type": _instead("an object"),
    "list_type": _instead("a list"),
    "bool_type": _plain("must be true or false"),
    "string_type": _instead("a string"),
    "float_type": _number,
    "float_parsing": _plain("must be a number"),
    "finite_number": _plain("must be a finite number"),
    "int_type": _plain("must be a whole number"),
    "int_parsing": _plain("must be a whole number"),
    "int_parsing_size": _plain("must be a whole number of fewer digits"),
    "greater_than": _plain("must be above {gt:,.15g}"),
    "greater_than_equal": _plain("must be at least {ge:,.15g}"),
    "less_than": _plain("must be below {lt:,.19g}"),
    "less_than_equal": _plain("must be at most {le:,.15g}"),
    "too_short": lambda _, context: _at_least(context["min_length"], "entries"),
    "too_long": _plain("must have at most {max_length:,} entries"),
    "string_too_short": lambda _, context: _at_least(context["min_length"], "characters"),
    "string_too_long": _plain("must have at most {max_length} characters"),
    "literal_error": _plain("must be {expected}"),
}


def invalid_body(error: ValidationError, model: Model) -> Invalid:
    """The refusal for a body that does not fit its model."""
    found = [{**each, "loc": ("body", *each["loc"])} for each in error.errors(include_url=False)[:_LISTED]]
    return _refusal(found, model, {})


def invalid_request(error: RequestValidationError, dependant: Dependant) -> Invalid:
    """The refusal for a request to a route of the framework with these parameters and this body."""
    params = [*dependant.path_params, *dependant.query_params, *dependant.header_params]
    body = dependant.body_params[0].field_info.annotation if dependant.body_params else None
    return _refusal(
        error.errors()[:_LISTED], _model_in(body), {each.alias: each.field_info for each in params}
    )


def _refusal(
    errors: Sequence[Mapping[str, Any]], body: Model | None, params: Mapping[str, FieldInfo]
) -> Invalid:
    found = []
    for each in errors:
        where, *place = (step for step in each["loc"] if step not in CHOICES)
        field, model = _at(body, place) if where == "body" else (params.get(place[0]), None)
        name = ".".join(map(str, place)) or str(where)
        found.append({"field": name, "message": _message(name, each, field, model)})
    messages = [each["message"] for each in found]
    detail, left = messages[:1], messages[1:]
    while left and sum(map(len, detail)) + len(left[0]) <= _DETAILED:
        detail.append(left.pop(0))
    if left:
        detail.append(f"and {len(left)} more, in errors")
    refusal = Invalid("; ".join(detail))
    refusal.errors = found
    return refusal


def _message(name: str, error: Mapping[str, Any], field: FieldInfo | None, model: Model | None) -> str:
    kind, value, context = error["type"], error.get("input"), error.get("ctx") or {}
    if kind == HIDDEN:
        return f"{name}: {context['rule']}"
    example = _example(field, model, error["loc"][-1])
    if kind == "missing":
        return f"{name}: is missing; give it, {example}"
    if kind == "extra_forbidden" and model is not None:
        return unknown_field(name, value, model.model_fields)
    rule = RULES[kind](value, context) if kind in RULES else "is not what this field takes"
    return problem_with(name, value, rule, context.get("remedy") or example)


def _at(model: Model | None, place: Sequence[str | int]) -> tuple[FieldInfo | None, Model | None]:
    """The field at a place of a body, and the model that it is or belongs to."""
    field = None
    for step in place:
        if isinstance(step, str) and model is not None:
            field = model.model_fields.get(step)
            model = _model_in(None if field is None else field.annotation) or model
    return field, model


def _model_in(kind: Any) -> Model | None:
    """The model that an annotation is, or lists."""
    if get_origin(kind) in (Annotated, Union, types.UnionType, list):
        return next((found for each in get_args(kind) if (found := _model_in(each))), None)
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _example(field: FieldInfo | None, model: Model | None, last: str | int) -> str:
    """A remedy: a value that the field takes."""
    if field is None:
        fields = {} if model is None else model.model_fields
        given = {name: each.examples[0] for name, each in fields.items() if each.examples}
        needed = {name: value for name, value in given.items() if fields[name].is_required()}
        # Without a required field, one that has an example will do.
        example = needed or dict(list(given.items())[:1])
        return f"for example {as_json(example)}" if model is not None else SEE
    value = field.examples[0] if field.examples else field.default
    if value is None or value is PydanticUndefined:
        return SEE
    if isinstance(last, int) and isinstance(value, list):
        value = value[0]
    return f"for example {as_json(value)}"
