"""Routes: experiments and their arms."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import JSONResponse

from ...desk import Desk
from ...experiment.records import Settings
from ..futures import Bridge
from ..openapi import RETRY_AFTER, refusals
from ..rate_limit import LONGEST_NAME, MOST_LISTED
from ..schemas import NAME, NAMED, ArmsIn, ExperimentIn, ExperimentList, ExperimentOut, experiment_out
from ..strict_routes import StrictRoute, access_of

Name = Annotated[str, Path(pattern=NAME, max_length=LONGEST_NAME, examples=["checkout"]), NAMED]


def experiment_routes(desk: Desk, bridge: Bridge) -> APIRouter:
    """Create, show, list and archive experiments; add and retire arms."""
    router = APIRouter(prefix="/v1/experiments", tags=["experiments"], route_class=StrictRoute)

    @router.put(
        "/{name}",
        response_model=ExperimentOut,
        responses={
            201: {"description": "Created.", "model": ExperimentOut},
            202: {
                "description": "It is there, and its policy is being compiled; send the same again to wait for it.",
                "model": ExperimentOut,
                "headers": RETRY_AFTER,
            },
            **refusals(400, 409),
        },
    )
    async def put_experiment(request: Request, name: Name, body: ExperimentIn) -> Response:
        """Create an experiment. The same settings again: 200 and nothing changes; others: 409.

        202 if its policy, new to this machine, is still being compiled: it is on disk, and `status` says so.
        """
        access = access_of(request)
        access.require("admin")
        settings = Settings(
            policy=body.policy,
            arms=tuple(body.arms),
            loss_range=(body.loss_range[0], body.loss_range[1]),
            deadline=body.deadline_seconds,
            expired_loss=body.expired_loss,
            demo=body.demo,
        )
        found, created = await bridge.wait(
            desk.put_experiment(access.tenant, name, settings, seed=body.seed)
        )
        if found.status == "compiling":
            return JSONResponse(experiment_out(found), 202, headers={"Retry-After": "1"})
        return JSONResponse(experiment_out(found), 201 if created else 200)

    @router.get("", response_model=ExperimentList, responses=refusals())
    async def list_experiments(
        request: Request,
        after: Annotated[
            str | None, Query(max_length=LONGEST_NAME, pattern=NAME, examples=["checkout"]), NAMED
        ] = None,
        limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 100,
    ) -> Response:
        """The experiments of this tenant by name, archived ones too."""
        access = access_of(request)
        access.require("read")
        found = await bridge.wait(desk.list_experiments(access.tenant, after=after, limit=limit))
        following = found[-1].name if len(found) == limit else None
        return JSONResponse({"experiments": [experiment_out(each) for each in found], "next": following})

    @router.get("/{name}", response_model=ExperimentOut, responses=refusals(404))
    async def get_experiment(request: Request, name: Name) -> Response:
        """One experiment."""
        access = access_of(request)
        access.require("read")
        return JSONResponse(experiment_out(await bridge.wait(desk.get_experiment(access.tenant, name))))

    @router.post("/{name}/archive", response_model=ExperimentOut, responses=refusals(404, 409))
    async def archive_experiment(request: Request, name: Name) -> Response:
        """No more decisions; what is logged stays. Feedback for pending decisions is still taken."""
        access = access_of(request)
        access.require("admin")
        return JSONResponse(experiment_out(await bridge.wait(desk.archive(access.tenant, name))))

    @router.post("/{name}/arms", response_model=ExperimentOut, responses=refusals(400, 404, 409))
    async def add_arms(request: Request, name: Name, body: ArmsIn) -> Response:
        """Add arms; what is learned of the others stays."""
        access = access_of(request)
        access.require("admin")
        return JSONResponse(
            experiment_out(await bridge.wait(desk.add_arms(access.tenant, name, body.arms)))
        )

    @router.post("/{name}/arms/retire", response_model=ExperimentOut, responses=refusals(400, 404, 409))
    async def retire_arms(request: Request, name: Name, body: ArmsIn) -> Response:
        """Retire arms: no decision names them again; feedback for decisions already made is still taken."""
        access = access_of(request)
        access.require("admin")
        return JSONResponse(
            experiment_out(await bridge.wait(desk.retire_arms(access.tenant, name, body.arms)))
        )

    return router
