"""Routes: what was learned, the log, what it says about each arm, retention, and moving what was learned."""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import FileResponse, JSONResponse
from starlette.types import Receive, Scope, Send

from decoupled.client import BadRequest, Invalid, TooMany, TooSlow, UnsupportedMedia
from decoupled.errors import shown

from ...analysis.export import LoggedDecision
from ...analysis.history import MOST_POINTS
from ...api.replaying import LogFormat, Replayed
from ...experiment.context import MOST_FIELDS, tag_filter
from ...service import DecisionService
from ..admission import MOST_AT_ONCE, MOST_LISTED, REPLAY, Limits, save_body
from ..framework import Admin, Reader, StrictRoute, refusals
from ..models.fields import TagFilter, asked, json_of, parsed
from ..models.schemas import EvaluationOut, RetentionIn, RetentionOut, StateOut, state_out
from ..models.watched import (
    GateOut,
    HistoryOut,
    SegmentsOut,
    VerdictOut,
    gate_out,
    history_out,
    segments_out,
    verdict_out,
)
from .experiments import Name

FORMATS: dict[str, LogFormat] = {
    "text/csv": "csv",
    "application/x-ndjson": "jsonl",
    "application/vnd.apache.parquet": "parquet",
}
_SCHEMAS: dict[str, Any] = {kind: {"schema": {"type": "string"}} for kind in FORMATS}
_SCHEMAS["application/vnd.apache.parquet"]["schema"]["format"] = "binary"
_BODY = {"requestBody": {"required": True, "content": _SCHEMAS}}
_LEARNER: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The text that `Learner.from_json` reads.",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
}


def moving_routes(service: DecisionService, limits: Limits) -> APIRouter:
    """Take out what was learned, and learn from another log."""
    router = APIRouter(prefix="/v1/experiments/{name}", tags=["moving"], route_class=StrictRoute)
    busy: set[str] = set()

    @router.get("/learner", response_class=Response, responses={**_LEARNER, **refusals(404)})
    async def get_learner(access: Admin, name: Name) -> Response:
        """What the experiment has learned, with its random stream, as a saved learner: it goes on bit for bit.

        Pending decisions are not part of it: their feedback belongs to the experiment. Needs the role admin, because
        who has the stream knows the draws to come.
        """
        text = await service.experiments.learner(access.tenant, name)
        headers = {"Content-Disposition": f'attachment; filename="{name}.json"'}
        return Response(text, media_type="application/json", headers=headers)

    @router.post(
        REPLAY, response_model=Replayed, responses=refusals(400, 404, 409), openapi_extra=_BODY
    )
    async def replay(
        request: Request,
        access: Admin,
        name: Name,
        unrandomised: Annotated[
            bool,
            asked(
                "Take all propensities as 1: only if every arm was seen in every round, with a row for each, or if the "
                "policy keeps means."
            ),
        ] = False,
    ) -> Response:
        """Learn from a log: an export of this service, or of another system with the columns that evaluations read.

        It is checked as a whole first. A log without propensities is refused (422): it shows how often an arm was tried,
        not how good it is. The same log again learns nothing twice, and continues if it was interrupted.
        """
        kind = _format(request.headers.get("content-type", ""))
        if access.tenant in busy:
            raise TooMany(
                "replay: a log is being replayed for this tenant; wait until it is finished", 1
            )
        busy.add(access.tenant)
        try:
            with tempfile.TemporaryDirectory(prefix="decoupled-replay-") as folder:
                path = Path(folder) / f"log.{kind}"
                if await save_body(request, path, limits) == 0:
                    raise Invalid("body: is empty; send the log")
                found = await service.replaying.replay(
                    access.tenant, name, path, kind, unrandomised=unrandomised
                )
        finally:
            busy.discard(access.tenant)
        return JSONResponse(asdict(found))

    return router


def _format(content_type: str) -> LogFormat:
    kind = FORMATS.get(content_type.split(";")[0].strip().lower())
    if kind is None:
        rule = f"must be one of {', '.join(FORMATS)}"
        raise UnsupportedMedia(f"Content-Type = {shown(content_type)}: {rule}; say what the log is")
    return kind


KINDS = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}
COUNTED_EVERY = 2_000  # decisions of an export, after which its size is counted
SegmentFields = Annotated[
    list[str],
    asked(
        "The fields of the context that tell segments apart, texts or booleans; by default those that the policy has "
        "segments of, or all.",
        ["subject"],
        default_factory=list,
        max_length=MOST_FIELDS,
    ),
]
StateContext = Annotated[
    str | None,
    asked(
        "The context of a decision, as a JSON object by field, to see the probabilities with which a contextual "
        "policy would draw the arms in it.",
        '{"subject": "law"}',
    ),
]
# What the parameters of a gate are.
_AGAINST = "The arm to compare it with; by default the incumbent, or else every other arm."
_MARGIN = "How much higher its mean loss may be; below 0: how much lower it must be."
_WHEN = "The state in which the gate is open: failed for a hook that rolls back."
_CLOSED = (
    "The status while it is not open; 200 for programs that read the JSON, such as Argo Rollouts."
)
_LOG: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "One row for each decision, in the order of the log.",
        "content": {kind: _SCHEMAS[kind] for kind in ("text/csv", KINDS["parquet"])},
    }
}


class Turns:
    """Limits how many logs are read for a tenant at once, because reading a whole log takes long."""

    def __init__(self) -> None:
        self._taken: Counter[str] = Counter()

    @contextmanager
    def one(self, tenant: str) -> Iterator[None]:
        """Take a turn for the length of a block, or refuse."""
        if self._taken[tenant] >= MOST_AT_ONCE:
            rule = f"logs: {MOST_AT_ONCE} are being read for this tenant"
            raise TooMany(f"{rule}; wait until one is finished", 1)
        self._taken[tenant] += 1
        try:
            yield
        finally:
            self._taken[tenant] -= 1


class Spool:
    """The exports on disk, from when they are written until they are sent, of at most so many bytes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: dict[str, tuple[str, int]] = {}  # by folder: whose it is, and its size
        self.free = self._held.pop

    def hold(self, tenant: str, folder: str) -> None:
        """Count what is in a folder, or refuse it if its tenant then had more than is left for others."""
        size = sum(each.stat().st_size for each in Path(folder).iterdir())
        held = {**self._held, folder: (tenant, size)}.values()
        mine = sum(each for whose, each in held if whose == tenant)
        if mine > self._most - sum(each for _, each in held):
            rule = f"the exports of this tenant that are not sent yet take {mine:,} bytes, too much of {self._most:,}"
            remedy = "read them to the end, or ask for less with tags or as Parquet"
            raise TooMany(f"logs: {rule}; {remedy}", 10)
        self._held[folder] = tenant, size


class SentFile(FileResponse):
    """A file as a response that must be read within some seconds. Then, or when the client is gone, `ended` is called."""

    def __init__(self, path: Path, kind: str, seconds: float, ended: Callable[[], object]) -> None:
        super().__init__(path, media_type=kind, filename=path.name)
        self._seconds, self._ended = seconds, ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        try:
            async with asyncio.timeout(self._seconds):
                await super().__call__(scope, receive, send)
        except TimeoutError:
            raise TooSlow(
                f"log: must be read within {self._seconds:g} s; read it at once"
            ) from None
        finally:
            self._ended()


def _read_context(text: str | None) -> dict[str, Any] | None:
    """The context in a query; an error does not show it, because it may be about a user."""
    try:
        found = None if text is None else parsed(text.encode())
    except BadRequest:  # it is about the body
        found = text
    if found is not None and not isinstance(found, dict):
        raise Invalid('context: must be a JSON object by field; for example {"subject": "law"}')
    return found


def log_routes(service: DecisionService, limits: Limits) -> APIRouter:
    """Look at an experiment, and drop the old part of its log."""
    router = APIRouter(prefix="/v1/experiments/{name}", tags=["looking"], route_class=StrictRoute)
    turns, spool, logs = Turns(), Spool(limits.spool), service.logs

    @router.get("/state", response_model=StateOut, responses=refusals(404))
    async def get_state(access: Reader, name: Name, context: StateContext = None) -> Response:
        """Exact probabilities, estimates, plays, pending decisions, and the regret with its interval."""
        state = await service.experiments.state(access.tenant, name, _read_context(context))
        return JSONResponse(state_out(state))

    @router.get("/evaluation", response_model=EvaluationOut, responses=refusals(404))
    async def get_evaluation(access: Reader, name: Name, tag: TagFilter) -> Response:
        """The mean loss of every arm, and of the exploited arms, from the log alone, with their intervals.

        With tags, only decisions that have all of them count. The intervals hold for each choice of tags by itself.
        """
        wanted = tag_filter(tag)
        with turns.one(access.tenant):
            found = await logs.evaluate(access.tenant, name, wanted)
        return JSONResponse(json_of(found, EvaluationOut))

    @router.get("/verdict", response_model=VerdictOut, responses=refusals(404))
    async def get_verdict(access: Reader, name: Name) -> Response:
        """Is it decided? Which arm is best, in a sentence, with the mean loss of each arm and the regret in numbers.

        All of it holds at every moment at once: look as often as you like, and stop when you like.
        """
        return JSONResponse(verdict_out(await service.verdicts.get(access.tenant, name)))

    @router.get("/segments", response_model=SegmentsOut, responses=refusals(404))
    async def get_segments(
        access: Reader,
        name: Name,
        by: SegmentFields,
        limit: Annotated[int, asked("How many segments at most.", ge=1, le=MOST_LISTED)] = 100,
    ) -> Response:
        """A verdict for each segment: for which requests which arm is best. They hold all together, at every moment.

        The log is read once, and later requests read only what is new. They hold for each choice of `by` by itself.
        """
        with turns.one(access.tenant):
            found = await logs.segments(access.tenant, name, by)
        return JSONResponse(segments_out(found, limit))

    async def gate(
        access: Reader,
        name: Name,
        arm: Annotated[str, asked("The arm, by its name.", "next", max_length=200)],
        against: Annotated[str | None, asked(_AGAINST, "current", max_length=200)] = None,
        margin: Annotated[float, asked(_MARGIN, allow_inf_nan=False)] = 0.0,
        when: Annotated[Literal["passed", "failed"], asked(_WHEN)] = "passed",
        closed: Annotated[Literal["409", "200"], asked(_CLOSED)] = "409",
    ) -> Response:
        """May this arm be promoted? 200 if the losses seen show that it is no worse by more than `margin`, 409 if not yet.

        The probability that a gate is ever wrong, as of the moment at which it is asked, is at most the experiment's `risk`.
        """
        found = gate_out(
            await service.verdicts.gate(access.tenant, name, arm, against, margin), when
        )
        return JSONResponse(found, 200 if found["open"] else int(closed))

    not_open = {"description": "The gate is not open.", "model": GateOut}
    for_hooks = (
        "Answer a hook that asks whether an arm may be promoted, as GET does. Its body is ignored."
    )
    for method, description in ((router.get, None), (router.post, for_hooks)):
        responses = {**refusals(404), 409: not_open}
        method("/gate", response_model=GateOut, responses=responses, description=description)(gate)

    @router.get("/history", response_model=HistoryOut, responses=refusals(404))
    async def get_history(
        access: Reader, name: Name, points: Annotated[int, Query(ge=1, le=MOST_POINTS)] = 200
    ) -> Response:
        """Counts and mean losses, with their intervals, at up to `points` points of the log, the last of which is now.

        The log is read once, and later requests read only what is new. It works for archived experiments too.
        """
        return JSONResponse(history_out(await logs.history(access.tenant, name, points)))

    @router.get("/log", response_class=Response, responses={**_LOG, **refusals(404)})
    async def get_log(
        access: Reader,
        name: Name,
        tag: TagFilter,
        format: Annotated[Literal["csv", "parquet"], Query()] = "csv",  # noqa: A002
    ) -> Response:
        """The log, one row for each decision, with the exact probability with which `explore` was drawn.

        Times are UTC, as everywhere in this API. `loss` is that of the explored arm. With tags, only decisions that
        have all of them are written.
        """
        wanted = tag_filter(tag)
        folder = tempfile.TemporaryDirectory(prefix="decoupled-log-")
        path = Path(folder.name) / f"{name}.{format}"

        def remove() -> None:
            folder.cleanup()
            spool.free(folder.name, None)

        def counted(decision: LoggedDecision, numbers: Iterator[int] = count()) -> LoggedDecision:  # noqa: B008
            if next(numbers) % COUNTED_EVERY == 0:
                spool.hold(access.tenant, folder.name)
            return decision

        try:
            with turns.one(access.tenant):
                await logs.export(access.tenant, name, path, format, wanted, counted)
            spool.hold(access.tenant, folder.name)
            # The file is complete before the first byte is sent, so a failure is an error and never half a file.
            return SentFile(path, KINDS[format], limits.export_seconds, remove)
        except BaseException:
            remove()
            raise

    @router.post("/retention", response_model=RetentionOut, responses=refusals(400, 404))
    async def drop_old(access: Admin, name: Name, body: RetentionIn) -> Response:
        """Drop the log before a moment. Pending decisions are kept, and so is what was learned."""
        with turns.one(access.tenant):
            dropped = await logs.retention(access.tenant, name, body.before.timestamp())
        return JSONResponse({"dropped": dropped})

    return router
