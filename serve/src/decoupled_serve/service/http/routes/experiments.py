"""Routes: experiments and their arms."""

from dataclasses import fields
from typing import Annotated, Any

from fastapi import APIRouter, Path, Response
from fastapi.responses import JSONResponse

from decoupled.base import LONGEST_NAME, NAME_SHAPE
from decoupled.client import Invalid
from decoupled.learner import Budget, Guardrails

from ...api.listing import ExperimentSort, Filed
from ...commits.replies import Reply
from ...experiment.records import Experiment, Settings, moment
from ...experiment.settings import changed_guardrails, checked_budget, checked_labels
from ...experiment.snapshots import checked_learner
from ...service import DecisionService
from ..admission import MOST_LISTED
from ..framework import RETRY_AFTER, Admin, Decider, Reader, StrictRoute, refusals
from ..models.fields import asked
from ..models.schemas import (
    NAME,
    ArmsIn,
    BudgetIn,
    DeletedOut,
    DownIn,
    ExperimentIn,
    ExperimentList,
    ExperimentOut,
    GuardrailsIn,
    experiment_out,
)

Name = Annotated[str, Path(pattern=NAME, max_length=LONGEST_NAME, examples=["checkout"])]
_AFTER = "`next` of the page before, with the same filters and sort."
After = Annotated[
    str | None, asked(_AFTER, "checkout", max_length=400, pattern=f"^~?{NAME_SHAPE}$")
]
Limit = Annotated[int, asked("How many at most.", ge=1, le=MOST_LISTED)]
_PREFIX = asked(
    "Only those whose name begins with it.", "checkout", max_length=LONGEST_NAME, pattern=NAME
)


def experiment_routes(service: DecisionService) -> APIRouter:
    """Create, show, list and archive experiments; change their arms, guardrails and budgets."""
    router = APIRouter(prefix="/v1/experiments", tags=["experiments"], route_class=StrictRoute)
    experiments = service.experiments

    @router.put(
        "/{name}",
        response_model=ExperimentOut,
        responses={
            201: {"description": "Created.", "model": ExperimentOut},
            202: {
                "description": "Stored, and its policy is being compiled; send the same again to wait for it.",
                "model": ExperimentOut,
                "headers": RETRY_AFTER,
            },
            **refusals(400, 409),
        },
    )
    async def put_experiment(access: Admin, name: Name, body: ExperimentIn) -> Response:
        """Create an experiment. The same settings again: 200 and nothing changes; others: 409.

        202 if its policy is new to this machine and still being compiled: it is on disk, and `status` says so. With a
        saved `learner` it goes on from there, bit for bit; decisions that were pending there stay there.
        """
        arms = tuple(range(body.arms) if isinstance(body.arms, int) else body.arms)
        guardrails, budget = body.guardrails, body.budget
        given: dict[str, Any] = {
            "arms": arms,
            "loss_range": (body.loss_range[0], body.loss_range[1]),
            "deadline": body.deadline_seconds,
            "guardrails": checked_learner(body.learner).guardrails
            if body.learner
            else Guardrails(),
            "budget": Budget() if budget is None else checked_budget(budget.limits(), arms, False),
            "labels": None if body.labels is None else checked_labels(body.labels.model_dump()),
        }
        if guardrails is not None:
            given["guardrails"] = changed_guardrails(
                Guardrails(), guardrails.changes(), arms, False
            )
        same = {
            each.name for each in fields(Settings)
        } & ExperimentIn.model_fields.keys() - given.keys()
        settings = Settings(**{name: getattr(body, name) for name in same}, **given)
        found, created = await experiments.put(
            access.tenant, name, settings, body.seed, body.learner
        )
        if found.status == "compiling":
            return JSONResponse(experiment_out(found), 202, headers={"Retry-After": "1"})
        return JSONResponse(experiment_out(found), 201 if created else 200)

    @router.get("", response_model=ExperimentList, responses=refusals())
    async def list_experiments(
        access: Reader,
        after: After = None,
        limit: Limit = 100,
        sort: Annotated[
            ExperimentSort, asked("By name or by age; with a minus, the last or the newest first.")
        ] = "name",
        status: Annotated[Filed | None, asked("Only archived ones, or only the others.")] = None,
        policy: Annotated[
            str | None, asked("The name of their policy.", "FTPL", min_length=1, max_length=200)
        ] = None,
        prefix: Annotated[str | None, _PREFIX] = None,
    ) -> Response:
        """The experiments of this tenant, in the order of their names unless sorted otherwise."""
        page = await service.listing.experiments(
            access.tenant, after=after, limit=limit, sort=sort, status=status, policy=policy, prefix=prefix or ""
        )  # fmt: skip
        listed = [experiment_out(each) for each in page.items]
        return JSONResponse({"experiments": listed, "next": page.next})

    @router.get("/{name}", response_model=ExperimentOut, responses=refusals(404))
    async def get_experiment(access: Reader, name: Name) -> Response:
        """One experiment."""
        return await shown(experiments.get(access.tenant, name))

    @router.delete("/{name}", response_model=DeletedOut, responses=refusals(404, 409))
    async def delete_experiment(
        access: Admin,
        name: Name,
        confirm: Annotated[str, asked("The name of the experiment again.", "checkout")],
    ) -> Response:
        """Delete an experiment that was archived long enough ago (`--delete-after`, 30 days), with its whole log.

        It is gone when this answers: its name is free, and its decisions are 410. Its rows are removed in the background.
        Backups keep it.
        """
        if confirm != name:
            rule, remedy = "must be the name of the experiment", f"pass confirm={name}"
            raise Invalid.of("confirm", confirm, rule, remedy)
        at = await service.deletion.delete(access.tenant, name)
        return JSONResponse({"name": name, "deleted_at": moment(at)})

    @router.post("/{name}/archive", response_model=ExperimentOut, responses=refusals(404, 409))
    async def archive_experiment(access: Admin, name: Name) -> Response:
        """Stop making decisions. The log stays, and pending decisions still take feedback."""
        return await shown(experiments.archive(access.tenant, name))

    @router.post("/{name}/arms", response_model=ExperimentOut, responses=refusals(400, 404, 409))
    async def add_arms(access: Admin, name: Name, body: ArmsIn) -> Response:
        """Add arms; what is learned about the others stays."""
        return await shown(experiments.add_arms(access.tenant, name, body.arms))

    @router.post(
        "/{name}/arms/retire", response_model=ExperimentOut, responses=refusals(400, 404, 409)
    )
    async def retire_arms(access: Admin, name: Name, body: ArmsIn) -> Response:
        """Retire arms: no decision chooses them again, and decisions already made still take feedback."""
        return await shown(experiments.retire_arms(access.tenant, name, body.arms))

    @router.patch(
        "/{name}/guardrails", response_model=ExperimentOut, responses=refusals(400, 404, 409)
    )
    async def change_guardrails(access: Admin, name: Name, body: GuardrailsIn) -> Response:
        """Change what is served: a pinned arm (the kill switch), floors, a hold-out, an incumbent, arms that are down.

        Guardrails that are left out stay as they are. What is explored and learned does not change, except that arms
        that are down are not explored.
        """
        return await shown(experiments.change_guardrails(access.tenant, name, body.changes()))

    @router.put("/{name}/down", response_model=ExperimentOut, responses=refusals(400, 404, 409))
    async def set_down(access: Decider, name: Name, body: DownIn) -> Response:
        """Set the list of arms that are down, for a health check. Decisions neither exploit nor explore them."""
        return await shown(experiments.change_guardrails(access.tenant, name, {"down": body.arms}))

    @router.put("/{name}/budget", response_model=ExperimentOut, responses=refusals(400, 404, 409))
    async def set_budget(access: Admin, name: Name, body: BudgetIn) -> Response:
        """Set the budget for exploring; an empty object sets no limit. What was spent stays spent.

        A decision that may not explore has the mode exploit, and `limited_by` says why. No limit is ever exceeded, also
        not by several replicas on one store.
        """
        return await shown(experiments.set_budget(access.tenant, name, body.limits()))

    return router


async def shown(reply: Reply[Experiment]) -> Response:
    """An experiment that is awaited, as a response."""
    return JSONResponse(experiment_out(await reply))
