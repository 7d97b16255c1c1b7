"""Routes: experiments as feature flags, by OFREP, OpenFeature's remote evaluation protocol.

The key of a flag is the name of an experiment, and its value is the arm to use. The providers of OpenFeature read errors
as `errorCode` and `errorDetails`, and only with certain statuses. So an error here has the shape of all others, with
these two fields and the key added.
"""

import asyncio
import hashlib
import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeAlias

from fastapi import APIRouter, Header, Path, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictStr, WithJsonSchema

from decoupled.base import is_name
from decoupled.client import BadRequest, Conflict, Invalid, NotFound, ServiceError, TooMany
from decoupled.errors import shown

from ...experiment.records import DecisionRecord, Experiment
from ...service import DecisionService
from ..admission import MOST_FLAGS, Admission
from ..framework import Decider, StrictRoute, as_problem, body_of, refusal, refusals
from ..models.fields import Arm, Problem, left_out, sticky_key, told
from ..models.problem_json import log_fault, problem_of
from .decisions import Key, validated

FlagKey = Annotated[str, Path(description="The name of an experiment.", examples=["checkout"])]
IfNoneMatch = Annotated[
    str | None, Header(alias="If-None-Match", description="The ETag of an earlier response.")
]
_ETAG = {"description": "Changes when something was learned.", "schema": {"type": "string"}}
_WHY = {
    400: "PARSE_ERROR: the body is not JSON. INVALID_CONTEXT: the context is not an object. GENERAL: no arm can be "
    "chosen, such as for an archived experiment.",
    404: "FLAG_NOT_FOUND: no such experiment for this tenant.",
    500: "GENERAL: the store cannot write now, or the policy is being compiled; try again.",
}
ErrorCode: TypeAlias = Literal[
    "PARSE_ERROR", "INVALID_CONTEXT", "TARGETING_KEY_MISSING", "FLAG_NOT_FOUND", "GENERAL"
]


def _targeting_key(value: Any) -> Any:
    """A targeting key; None for an empty one."""
    if not isinstance(value, str):
        raise ValueError("must be a string")
    return sticky_key(value) if value else None


class EvaluationContext(BaseModel):
    """Who a flag is evaluated for: the targeting key, and the fields that the experiment declares as its context.

    Other fields are neither used nor stored.
    """

    model_config = ConfigDict(extra="allow")

    targeting_key: Annotated[
        StrictStr | None, BeforeValidator(_targeting_key), WithJsonSchema({"type": "string"})
    ] = Field(
        default=None,
        alias="targetingKey",
        description="The user or the session: the `key` of the decision, which keeps its arm. Without one, or "
        "with an empty one, every evaluation is a new draw.",
        examples=["user-4711"],
    )

    @property
    def fields(self) -> dict[str, Any]:
        """What is known besides the targeting key."""
        return dict(self.model_extra or {})


class EvaluationIn(BaseModel):
    """What providers send. Other fields are ignored, because later versions of the protocol may add some."""

    context: EvaluationContext = told(
        "The evaluation context; an empty object will do.",
        {"targetingKey": "user-4711"},
        default_factory=EvaluationContext,
    )


class FlagOut(BaseModel):
    """A flag: the arm to use, from a decision that was drawn for this evaluation."""

    key: str = told("The name of the experiment.")
    value: Arm = told("The arm to use.")
    variant: str = told("The arm as a string.")
    reason: Literal["SPLIT", "STATIC"] = told("STATIC if the arm is pinned, and SPLIT otherwise.")
    metadata: dict[str, str | int] = told(
        "`decision`, its id; `policy`; `state_version`; if a guardrail chose the arm, also `guard`, and "
        "`drawn`, the arm that the policy drew.",
        {"decision": "1f2e-7", "policy": "FTPL", "state_version": 12},
    )


class FlagProblem(Problem):
    """An error of the service, with the fields in which providers of OpenFeature look for it."""

    key: str | None = left_out("The flag.")
    errorCode: ErrorCode  # noqa: N815
    errorDetails: str = told("The same as `detail`.")  # noqa: N815


class FlagsOut(BaseModel):
    """Every flag: each experiment that is not archived, in the order of their names."""

    flags: list[FlagOut | FlagProblem]


def flag_out(decision: DecisionRecord) -> dict[str, Any]:
    """A decision as a flag."""
    assert decision.exploit is not None  # its mode is exploit
    metadata: dict[str, Any] = {"decision": decision.id, "policy": decision.policy}
    metadata["state_version"] = decision.state_version
    if decision.guard is not None:
        metadata |= {"guard": decision.guard, "drawn": decision.drawn}
    reason = "STATIC" if decision.guard == "pinned" else "SPLIT"
    arm = {"value": decision.exploit, "variant": str(decision.exploit)}
    return {"key": decision.experiment, **arm, "reason": reason, "metadata": metadata}


def flag_problem(error: ServiceError, key: str | None = None) -> dict[str, Any]:
    """An error as providers read it. They know the statuses 400, 404 and 500.

    >>> found = flag_problem(NotFound("experiment 'checkout': is not known; check the name"), "checkout")
    >>> found["errorCode"], found["status"], found["key"]
    ('FLAG_NOT_FOUND', 404, 'checkout')
    """
    problem = problem_of(error)
    code, status = _code(error)
    named = {} if key is None else {"key": key}
    return (
        problem | named | {"status": status, "errorCode": code, "errorDetails": problem["detail"]}
    )


def _code(error: ServiceError) -> tuple[ErrorCode, int]:
    if isinstance(error, NotFound):
        return "FLAG_NOT_FOUND", 404
    if isinstance(error, BadRequest):
        return "PARSE_ERROR", 400
    if isinstance(error, Invalid) and str(error).startswith("context."):
        return "INVALID_CONTEXT", 400
    if isinstance(error, Invalid) and error.errors:
        in_context = all(each["field"].split(".")[0] == "context" for each in error.errors)
        return ("INVALID_CONTEXT" if in_context else "PARSE_ERROR"), 400
    return "GENERAL", 500 if error.status >= 500 else 400


def etag(experiments: Sequence[Experiment], context: EvaluationContext) -> str:
    """A tag that changes when something was learned, and with the context, the experiments, their arms and guardrails.

    As long as it is the same, evaluations would be drawn from the same distributions, so a provider may keep what it has.
    Of the context, the targeting key counts and what an experiment declares. The seeds, which nobody sees, make it hard to guess.
    """
    known = [
        (
            each.name,
            each.seed,
            each.created_at,
            each.state_version,
            each.status,
            each.guardrails.to_dict(),
        )
        for each in experiments
    ]
    declared = {name for each in experiments for name in each.settings.context}
    given = {name: value for name, value in context.fields.items() if name in declared}
    text = json.dumps([known, context.targeting_key, given], sort_keys=True, default=str)
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def is_known(tag: str, if_none_match: str | None) -> bool:
    """Whether a header lists this tag.

    >>> is_known('"a"', 'W/"b", "a"'), is_known('"a"', None), is_known('"a"', "*")
    (True, False, True)
    """
    listed = [each.strip().removeprefix("W/") for each in (if_none_match or "").split(",")]
    return tag in listed or "*" in listed


def ofrep_routes(service: DecisionService, admission: Admission) -> APIRouter:
    """Evaluate one flag, or all of them."""
    router = APIRouter(
        prefix="/ofrep/v1/evaluate/flags", tags=["OpenFeature"], route_class=StrictRoute
    )

    @router.post(
        "/{key:path}",
        response_model=FlagOut,
        responses={**refusals(), **_failures(400, 404, 500)},
        openapi_extra=body_of(EvaluationIn, required=False),
    )
    async def evaluate_flag(
        access: Decider, request: Request, key: FlagKey, again: Key = None
    ) -> Response:
        """Evaluate a flag: draw a decision with mode exploit, and return its arm. It takes no feedback.

        The same `targetingKey` gives the same arm again, until what is learned moves it. Without one every evaluation is a
        draw of its own, and only the same Idempotency-Key gives the same arm again.
        """
        try:
            about = validated(EvaluationIn, await request.body()).context
            return JSONResponse(await _evaluated(access.tenant, key, about, again))
        except ServiceError as error:
            return _failed(error, key)

    @router.post(
        "",
        response_model=FlagsOut,
        responses={
            200: {"model": FlagsOut, "headers": {"ETag": _ETAG}},
            304: {
                "description": "Nothing was learned since, so what the provider has still holds."
            },
            **refusals(),
            **_failures(400, 500),
        },
        openapi_extra=body_of(EvaluationIn, required=False),
    )
    async def evaluate_flags(
        access: Decider, request: Request, known: IfNoneMatch = None
    ) -> Response:
        """Evaluate every experiment that is not archived, 200 at most. Each counts against the rate limit.

        A flag that cannot be evaluated has its error in the list.
        """
        try:
            about = validated(EvaluationIn, await request.body()).context
            found = await _unarchived(access.tenant)
            tag = etag(found, about)
            if is_known(tag, known):
                return Response(status_code=304, headers={"ETag": tag})
            admission.charge(access, len(found) - 1)
            flags = await asyncio.gather(
                *(_flag(access.tenant, each.name, about) for each in found)
            )
            return JSONResponse({"flags": flags}, headers={"ETag": tag})
        except TooMany:
            raise
        except ServiceError as error:
            return _failed(error)

    async def _evaluated(
        tenant: str, flag: str, about: EvaluationContext, again: str | None = None
    ) -> dict[str, Any]:
        if not is_name(flag):  # not every string is a valid name
            raise NotFound(f"experiment {shown(flag)}: is not known; check the key of the flag")
        [made] = await service.decisions.decide(
            tenant, flag, mode="exploit", key=about.targeting_key, idempotency_key=again,
            context=about.fields, ignore_unknown=True,
        )  # fmt: skip
        return flag_out(made)

    async def _flag(tenant: str, key: str, about: EvaluationContext) -> dict[str, Any]:
        try:
            return await _evaluated(tenant, key, about)
        except ServiceError as error:
            return flag_problem(error, key)

    async def _unarchived(tenant: str) -> list[Experiment]:
        page = await service.listing.experiments(tenant, limit=MOST_FLAGS + 1, status="active")
        if len(page.items) > MOST_FLAGS:
            rule = f"a bulk evaluation takes at most {MOST_FLAGS} that are not archived"
            remedy = "evaluate flags one by one, or archive experiments that have ended"
            raise Conflict(f"experiments: {rule}; {remedy}")
        return page.items

    return router


def _failed(error: ServiceError, key: str | None = None) -> Response:
    log_fault(error)
    return as_problem(error, flag_problem(error, key))


def _failures(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The refusals that an evaluation has in its own shape."""
    return {status: refusal(_WHY[status], FlagProblem) for status in statuses}
