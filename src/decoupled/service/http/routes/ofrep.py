"""Routes: experiments as feature flags, for the providers of OpenFeature."""

import asyncio
import logging
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Request, Response
from fastapi.responses import JSONResponse

from ...decision_service import DecisionService
from ...errors import ServiceError, TooMany
from ...experiment.records import Experiment
from ..auth import Admission
from ..limits import MOST_FLAGS, MOST_LISTED
from ..ofrep import (
    EvaluationIn,
    FlagOut,
    FlagsOut,
    checked_key,
    etag,
    failures,
    flag_out,
    flag_problem,
    is_known,
    read_evaluation,
    too_many,
)
from ..openapi import body_of, refusals
from ..problem_json import PROBLEM, headers_of, is_fault
from ..strict_routes import Decider, StrictRoute
from .decisions import Key

faults = logging.getLogger("decoupled.service")
FlagKey = Annotated[str, Path(description="The name of an experiment.", examples=["checkout"])]
IfNoneMatch = Annotated[
    str | None, Header(alias="If-None-Match", description="The ETag of an earlier response.")
]
_ETAG = {"description": "Changes when something was learned.", "schema": {"type": "string"}}


def ofrep_routes(service: DecisionService, admission: Admission) -> APIRouter:
    """Evaluate one flag, or all of them."""
    router = APIRouter(prefix="/ofrep/v1/evaluate/flags", tags=["OpenFeature"], route_class=StrictRoute)

    @router.post(
        "/{key:path}",
        response_model=FlagOut,
        responses={**refusals(), **failures(400, 404, 500)},
        openapi_extra=body_of(EvaluationIn, required=False),
    )
    async def evaluate_flag(access: Decider, request: Request, key: FlagKey, again: Key = None) -> Response:
        """Evaluate a flag: draw a decision with mode exploit, and return its arm. It takes no feedback.

        Every evaluation is a draw of its own, also for the same `targetingKey`, which is not needed. Only the same
        Idempotency-Key gives the same arm again.
        """
        try:
            read_evaluation(await request.body())
            return JSONResponse(await _evaluated(access.tenant, key, again))
        except ServiceError as error:
            return _failed(error, key)

    @router.post(
        "",
        response_model=FlagsOut,
        responses={
            200: {"model": FlagsOut, "headers": {"ETag": _ETAG}},
            304: {"description": "Nothing was learned since, so what the provider has still holds."},
            **refusals(),
            **failures(400, 500),
        },
        openapi_extra=body_of(EvaluationIn, required=False),
    )
    async def evaluate_flags(access: Decider, request: Request, known: IfNoneMatch = None) -> Response:
        """Evaluate every experiment that is not archived, 200 at most. Each counts against the rate limit.

        A flag that cannot be evaluated has its error in the list.
        """
        try:
            read_evaluation(await request.body())
            found = await _unarchived(access.tenant)
            tag = etag(found)
            if is_known(tag, known):
                return Response(status_code=304, headers={"ETag": tag})
            admission.charge(access, len(found) - 1)
            flags = await asyncio.gather(*(_flag(access.tenant, each.name) for each in found))
            return JSONResponse({"flags": flags}, headers={"ETag": tag})
        except TooMany:
            raise
        except ServiceError as error:
            return _failed(error)

    async def _evaluated(tenant: str, key: str, again: str | None = None) -> dict[str, Any]:
        [made] = await service.decisions.decide(tenant, checked_key(key), mode="exploit", key=again)
        return flag_out(made)

    async def _flag(tenant: str, key: str) -> dict[str, Any]:
        try:
            return await _evaluated(tenant, key)
        except ServiceError as error:
            return flag_problem(error, key)

    async def _unarchived(tenant: str) -> list[Experiment]:
        found: list[Experiment] = []
        after = None
        while True:
            page = await service.experiments.list(tenant, after=after, limit=MOST_LISTED)
            found += [each for each in page if each.archived_at is None]
            if len(found) > MOST_FLAGS:
                raise too_many()
            if len(page) < MOST_LISTED:
                return found
            after = page[-1].name

    return router


def _failed(error: ServiceError, key: str | None = None) -> Response:
    if is_fault(error):
        faults.error("%s: %s", error.title, error)
    problem = flag_problem(error, key)
    headers = {name.decode(): value.decode() for name, value in headers_of(error)}
    return JSONResponse(problem, problem["status"], headers, PROBLEM.decode())
