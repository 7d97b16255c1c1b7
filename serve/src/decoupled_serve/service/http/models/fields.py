"""The fields and models that the bodies of several routes share."""

from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictInt, StrictStr, WithJsonSchema

from decoupled.base import NAME_SHAPE
from decoupled.learner import MOST_BYTES

from ...experiment.annotations import LONGEST_TAG, LONGEST_TAG_NAME, MOST_TAGS
from ...experiment.context import LONGEST_VALUE
from .strict_json import one_rule, sticky_key, truth, whole

Whole = BeforeValidator(whole)
KEY_SCHEMA = {"anyOf": [{"type": "string", "minLength": 1, "maxLength": MOST_BYTES}, {"type": "integer"}]}
CHOICES = ("<a list>", "<a number>")  # tags of a field that takes either; no field is called so
Arm = Annotated[
    Annotated[StrictStr, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
    | Annotated[StrictInt, Field(ge=-(2**53), le=2**53), Whole],
    one_rule("must be a string of 1 to 200 characters without control characters, or a whole number"),
]
StickyKey = Annotated[str | int, BeforeValidator(sticky_key), WithJsonSchema(KEY_SCHEMA)]
Number = Annotated[float, Field(allow_inf_nan=False, strict=True)]
CONTEXT_SCHEMA = {
    "anyOf": [
        {"type": "string", "maxLength": LONGEST_VALUE},
        *({"type": kind} for kind in ("number", "boolean", "null")),
    ]
}
ContextValue = Annotated[Any, WithJsonSchema(CONTEXT_SCHEMA)]
Advice = Annotated[
    Arm | dict[str, Number], one_rule("must be an arm, or an object of probabilities by arm")
]
Tags = Annotated[
    dict[
        Annotated[StrictStr, Field(max_length=LONGEST_TAG_NAME, pattern=f"^{NAME_SHAPE}$")],
        Annotated[StrictStr, Field(min_length=1, max_length=LONGEST_TAG, pattern=r"^[^\x00-\x1f\x7f]+$")],
    ],
    Field(max_length=MOST_TAGS),
]
TagFilter = Annotated[
    list[str],
    Query(
        default_factory=list,
        description="Only decisions with this tag, as NAME:VALUE; repeat it to ask for several tags at once.",
        examples=[["country:de"]],
        max_length=MOST_TAGS,
    ),
]
Loss = Annotated[Number, BeforeValidator(truth, json_schema_input_type=Number | bool)]


def fields_of(record: object, model: type[BaseModel]) -> dict[str, Any]:
    """What a record has of the fields of a model, in their order."""
    return {name: getattr(record, name) for name in model.model_fields if hasattr(record, name)}


class Model(BaseModel):
    """A body that takes only the fields it knows."""

    model_config = ConfigDict(extra="forbid")


class Problem(BaseModel):
    """An error (RFC 9457): every error of the service has this shape."""

    type: str = Field(examples=["urn:decoupled:conflict"])
    title: str
    status: int
    detail: str = Field(description="What was wrong, by which rule, and what to do.")
    errors: list[dict[str, str]] = Field(
        default=[], description="Each field that is wrong, if there are several."
    )
    request_id: str = Field(
        default="", description="The id of the request, as in X-Request-Id; the service's log has it, too."
    )
