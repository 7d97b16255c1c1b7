"""Routes: pairs of answers that await a person's label."""

from typing import Annotated, Literal

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from ...api.pairs import KEEP_DAYS, LONGEST_KEPT, LONGEST_TEXT, Choice, Pair
from ...experiment.records import moment
from ...service import DecisionService
from ..framework import Decider, Labeller, StrictRoute, refusals
from ..models.fields import Model, left_out, told
from .decisions import Id
from .experiments import Name

Text = Annotated[str, Field(max_length=LONGEST_TEXT)]
Loss = Annotated[float, Field(ge=-1e300, le=1e300, allow_inf_nan=False)]


class PairIn(Model):
    """The answers of the two arms of a decision, without anything private."""

    title: Text = left_out("What the person reads first.", "POST /v1/chat", default="")
    request: Annotated[Text, Field(examples=["Say hello."])]
    exploit: Annotated[Text, told("The answer of the exploited arm.", "Hello!")]
    explore: Annotated[Text, told("The answer of the explored arm.", "Hi there.")]
    low: Loss | None = left_out(
        "The loss if the explored answer is the better one; null for the lowest."
    )
    high: Loss | None = left_out("The loss if it is the worse one; null for the highest.")
    keep_days: Annotated[
        float, Field(gt=0.0, le=LONGEST_KEPT, description="When it is deleted.")
    ] = KEEP_DAYS


class PairKeptOut(BaseModel):
    """The pair is kept."""

    id: str


class LeasedOut(BaseModel):
    """A pair: a request, and its two answers in an order drawn at random."""

    lease: str = told("Names the pair when you label it.")
    leased_until: str = told("After this somebody else may get it.")
    title: str
    request: str
    first: str
    second: str


class LeaseOut(BaseModel):
    """What to label next."""

    pair: LeasedOut | None = told("null if no pair is free.")
    waiting: int = told("How many pairs await a label, this one and those of others included.")


class PairLabelIn(Model):
    """Which answer is better."""

    lease: Annotated[str, Field(min_length=1, max_length=100)]
    choice: Choice


class LabelledOut(BaseModel):
    """The label is on disk."""

    status: Literal["labelled"]


def pair_routes(service: DecisionService) -> APIRouter:
    """Keep pairs, and label them one at a time."""
    router = APIRouter(prefix="/v1", tags=["labels"], route_class=StrictRoute)
    pairs = service.pairs

    @router.put(
        "/decisions/{id}/pair", response_model=PairKeptOut, responses=refusals(400, 404, 409)
    )
    async def put_pair(access: Decider, id: Id, body: PairIn) -> Response:  # noqa: A002
        """Keep the two answers of a decision that was judged and awaits a label, until a person has seen them.

        Remove what is private first. They are in no log, export or backup, and are deleted after `keep_days`, or with their
        experiment.
        """
        given = Pair(*(getattr(body, name) for name in Pair._fields))
        await pairs.keep(access.tenant, id, given, body.keep_days)
        return JSONResponse({"id": id})

    @router.post(
        "/experiments/{name}/pairs/lease", response_model=LeaseOut, responses=refusals(404)
    )
    async def lease_pair(access: Labeller, name: Name) -> Response:
        """Take the pair that has waited longest. Nobody else gets it for ten minutes.

        A key has one pair at a time: taking another gives the one before back.
        """
        leased, waiting = await pairs.lease(access.tenant, name, access.caller)
        found = None
        if leased is not None:
            found = leased._asdict() | {"leased_until": moment(leased.leased_until)}
        return JSONResponse({"pair": found, "waiting": waiting})

    @router.post(
        "/experiments/{name}/pairs/label",
        response_model=LabelledOut,
        responses=refusals(400, 404, 409, 410),
    )
    async def label_pair(access: Labeller, name: Name, body: PairLabelIn) -> Response:
        """Say which answer of the pair that you took is better. The same again: 200. Another choice: 409."""
        await pairs.label(access.tenant, name, access.caller, body.lease, body.choice)
        return JSONResponse({"status": "labelled"})

    return router
