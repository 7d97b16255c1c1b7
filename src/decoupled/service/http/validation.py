"""What the framework's validation finds wrong, in this service's own words.

A message names the place in the request, the value, the rule and the remedy. Rules come from the kind of
error; the remedy is the example, or the default, that the field has in the OpenAPI document.
"""

import types
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Union, get_args, get_origin

from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError, PydanticUndefined

from ..errors import Invalid
from .words import as_json, kind_of, problem_with, unknown_field

SEE = "see /v1/openapi.json"
_LISTED = 20  # errors in an answer
_TOLD = 2_000  # characters of the messages that its detail repeats
_BROKEN = "broken_rule"


def broken(rule: str, remedy: str = "") -> PydanticCustomError:
    """The error that a validator of ours raises: `rule` in words; without a remedy an example is given."""
    return PydanticCustomError(_BROKEN, "{rule}", {"rule": rule, "remedy": remedy})


def one_rule(rule: str) -> WrapValidator:
    """Reports whatever is wrong with a value as one rule; the parts of a union would each report their own."""

    def validate(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        try:
            return handler(value)
        except ValidationError:
            raise broken(rule) from None

    return WrapValidator(validate)


def _instead(what: str) -> Callable[[Any, Mapping[str, Any]], str]:
    return lambda value, _: f"must be {what}, not {kind_of(value)}"


def _plain(rule: str) -> Callable[[Any, Mapping[str, Any]], str]:
    return lambda value, context: rule.format_map(context)


def _at_least(least: int, what: str) -> str:
    return "must not be empty" if least == 1 else f"must have at least {least} {what}"


# The kinds of errors that fields of the requests can have; a test goes through them all.
RULES: dict[str, Callable[[Any, Mapping[str, Any]], str]] = {
    _BROKEN: _plain("{rule}"),
    "model_attributes_type": _instead("an object"),
    "dict_type": _instead("an object"),
    "list_type": _instead("a list"),
    "string_type": _instead("a string"),
    "float_type": _instead("a number"),
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


def invalid(error: RequestValidationError, dependant: Dependant) -> Invalid:
    """The refusal for a request to a route with these parameters and this body."""
    found = [_told(each, dependant) for each in error.errors()[:_LISTED]]
    messages = [each["message"] for each in found]
    told, left = messages[:1], messages[1:]
    while left and sum(map(len, told)) + len(left[0]) <= _TOLD:
        told.append(left.pop(0))
    if left:
        told.append(f"and {len(left)} more, in errors")
    refusal = Invalid("; ".join(told))
    refusal.errors = found  # type: ignore[attr-defined]
    return refusal


def _told(error: Mapping[str, Any], dependant: Dependant) -> dict[str, str]:
    where, *place = error["loc"]
    name = ".".join(map(str, place)) or str(where)
    field, model = _at(dependant, where, place)
    return {"field": name, "message": _message(name, error, field, model)}


def _message(
    name: str, error: Mapping[str, Any], field: FieldInfo | None, model: type[BaseModel] | None
) -> str:
    kind, value, context = error["type"], error.get("input"), error.get("ctx") or {}
    example = _example(field, model, error["loc"][-1])
    if kind == "missing":
        return f"{name}: is missing; give it, {example}"
    if kind == "extra_forbidden" and model is not None:
        return unknown_field(name, value, model.model_fields)
    rule = RULES[kind](value, context) if kind in RULES else "is not what this field takes"
    return problem_with(name, value, rule, context.get("remedy") or example)


def _at(
    dependant: Dependant, where: str, place: Sequence[str | int]
) -> tuple[FieldInfo | None, type[BaseModel] | None]:
    """The field at a place of a request, and the model it is, or is in."""
    if where != "body":
        params = [*dependant.path_params, *dependant.query_params, *dependant.header_params]
        return next((each.field_info for each in params if each.alias == place[0]), None), None
    kind = dependant.body_params[0].field_info.annotation
    model, field = _model_in(kind), None
    for step in place:
        if isinstance(step, str) and model is not None:
            field = model.model_fields.get(step)
            kind = None if field is None else field.annotation
            model = _model_in(kind) or model
    return field, model


def _model_in(kind: Any) -> type[BaseModel] | None:
    """The model that an annotation is, or lists."""
    if get_origin(kind) in (Annotated, Union, types.UnionType, list):
        return next((found for each in get_args(kind) if (found := _model_in(each))), None)
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _example(field: FieldInfo | None, model: type[BaseModel] | None, last: str | int) -> str:
    """A remedy: a value that the field takes."""
    if field is None:
        fields = {} if model is None else model.model_fields
        needed = {
            name: each.examples[0] for name, each in fields.items() if each.is_required() and each.examples
        }
        return f"for example {as_json(needed)}" if needed else SEE
    value = field.examples[0] if field.examples else field.default
    if value is None or value is PydanticUndefined:
        return SEE
    if isinstance(last, int) and isinstance(value, list):
        value = value[0]
    return f"for example {as_json(value)}"
