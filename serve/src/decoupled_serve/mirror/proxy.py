"""Serves each request from one arm, and hands a copy on for another."""

import asyncio
import logging
import time
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from typing import Any, TypeAlias
from urllib.parse import quote

from starlette.types import Receive, Send

from decoupled.decision import Mode

from ..service.http.transport.connection import GONE
from .backend import UNKNOWN, Routing, Traits
from .bodies import Body, ClientDisconnected, Content, Recording, Upload, UploadTimeout
from .exchange import Answer
from .finders import KeyFinder
from .front import Arrived, Front, FrontParts, refuse
from .headers import for_client
from .upstream import LENGTH, ArmHealth, ArmUnreachable, BrokenOff, NoAnswer, Opened, Upstream

_GONE = "the client went away"
_log = logging.getLogger("decoupled.mirror")
_Answered: TypeAlias = tuple[str, str] | None  # the arm and its status, if all of its answer came


@dataclass(slots=True)
class InFlight:
    """One request on its way: which arm serves it, and what the copy needs to know."""

    decision: Routing | None  # None if it is not mirrored
    exploit: str
    explore: str | None
    body: Body
    recording: Recording | None
    begun: bool = False  # whether the client has the head of its answer
    gone: bool = False  # whether it has left, and the answer is still awaited
    served: Answer | None = None
    content: bytes = b""  # of a JSON object, if an arm sets fields in it
    fields: dict[str, Any] | None = None  # the same, read


class Proxy(Front):
    """Serves and mirrors. What concerns the copy happens after the client has its answer."""

    def __init__(self, parts: FrontParts, health: ArmHealth) -> None:
        super().__init__(parts)
        self._health, config = health, parts.config
        self._takes_served = config.loss.duration is None  # else a slow client stretches it
        # An answer that stands for a copy is judged or labelled, and may state its cost.
        seen = config.loss.judge is not None or config.labels is not None
        read = seen or any(arm.prices for arm in config.arms)
        self._answer_limit, self._copy_seconds = config.mirror.answer_limit, config.mirror.timeout
        self._late = f"no whole answer within {self._copy_seconds:g} s"
        self._served_limit = self._answer_limit if read else 0
        self._keys = None if config.sticky is None else KeyFinder(config.sticky)
        self._finds_in_body |= self._keys is not None and self._keys.in_body
        self._reads_body = self._sets_json or self._finds_in_body
        self._arm_header = (config.mirror.arm_header or "").lower().encode()
        self._warned: set[tuple[str, bytes]] = set()

    async def _respond(self, request: Arrived, receive: Receive, send: Send) -> None:
        ahead: Upload | None = None
        content: bytes | None = None
        if request.has_body and self._reads_body:
            ahead = Upload(receive, self._body_limit, self._client_seconds)
            content = await ahead.read_ahead()
        fields, read = self._read(content)
        key = None if self._keys is None else self._keys.find(request.headers, read)
        about = Traits(key, await self._known(request, content, read))
        unset: str | None = None
        if self._sets_json and request.has_body:
            unset = "too_large" if content is None else "not_json" if fields is None else None
        serving = await self._chosen(request, about, unset)
        serving.content, serving.fields = content or b"", fields
        if ahead is not None:
            serving.body = ahead
        elif request.has_body:
            limit = None if serving.decision is None else self._body_limit
            serving.body = Upload(receive, limit, self._client_seconds)
        why, status = "", 0
        try:
            answering = self._serve(request, serving, send)
            if serving.decision is not None:
                answering = self._to_its_end(answering, serving)
            answered = await answering
            if answered is not None:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                self._counts.served[answered] += 1
        except ClientDisconnected:
            why = "client gone"
        except UploadTimeout:
            why, status = "client too slow", 408
        except asyncio.CancelledError as error:
            why, status = ("client gone", 0) if error.args == (GONE,) else ("shutdown", 503)
        finally:
            if serving.decision is not None:
                self._mirror(request, serving, serving.decision, why)
        if why:
            self._counts.served[serving.exploit, why] += 1
        if status and not serving.begun:
            problems = {
                503: "the mirror is ending; ask again",
                408: "the body did not come in time",
            }
            await refuse(send, request.headers, status, problems[status], close=True)

    # Choosing

    async def _chosen(self, request: Arrived, about: Traits, unset: str | None) -> InFlight:
        """The arms for a request, and whether it is mirrored; `unset` is why no arm can set its fields."""
        reason = self._not_mirrored(request, unset)
        if reason is None:
            try:
                decision = await self._decision("both", about)
            except asyncio.CancelledError:
                self._copies.release()
                raise
            if decision is not None and decision.explore is not None:
                recording = Recording(self._served_limit)
                return InFlight(decision, decision.exploit, decision.explore, Content(), recording)
            self._copies.release()
            reason = "no_decision" if decision is None else "budget"
            about = UNKNOWN  # it has a decision, or gets none of its own now
        else:
            decision = None
        self._counts.not_mirrored[reason] += 1
        decision = decision or await self._decision("exploit", about)
        if decision is not None:
            return InFlight(None, decision.exploit, None, Content(), None)
        self._counts.repeated += 1
        return InFlight(None, self._prefetch.last or next(iter(self._arms)), None, Content(), None)

    async def _decision(self, mode: Mode, about: Traits) -> Routing | None:
        """The decision of a key or a context, or one that is ready; None, without waiting for long, if there is none."""
        if about != UNKNOWN:
            decision = await self._prefetch.draw_for(about, mode)
            if decision is not None:
                return decision
            self._counts.not_sticky += about.key is not None
            self._counts.no_context += about.context is not None
        return self._prefetch.take(mode)

    # Serving

    async def _serve(self, request: Arrived, serving: InFlight, send: Send) -> _Answered:
        """Answer all but the end."""
        try:
            arm, response = await self._opened(request, serving)
        except NoAnswer as error:
            self._counts.failed[serving.exploit] += 1
            self._counts.served[serving.exploit, str(error.status)] += 1
            serving.served = Answer(serving.exploit, None, problem=error.problem)
            serving.begun = True
            await refuse(send, request.headers, error.status, str(error))
            return None
        first, last, problem = time.perf_counter(), None, None
        recording = serving.recording
        try:
            headers, serving.begun = for_client(response.headers), True
            if self._arm_header:  # an arm cannot speak for another
                headers = [each for each in headers if each[0].lower() != self._arm_header]
                headers.append((self._arm_header, quote(arm.name, safe=" /:@+").encode()))
            await send(
                {"type": "http.response.start", "status": response.status, "headers": headers}
            )
            async for part in response.parts():
                if (
                    recording is not None and recording.size <= self._answer_limit
                ):  # where a copy is cut
                    recording.add(part)
                    last = time.perf_counter()
                await send({"type": "http.response.body", "body": part, "more_body": True})
            return arm.name, str(response.status)
        except (BrokenOff, TimeoutError) as error:
            # The answer has begun, so it can only be cut off: the client sees that it is not whole.
            problem = f"the answer broke off ({error or type(error).__name__})"
            self._counts.failed[arm.name] += 1
            self._counts.served[arm.name, "broken off"] += 1
            _log.warning("arm %r: %s", arm.name, problem)
            return None
        except BaseException:
            problem = self._late if serving.gone else _GONE
            raise
        finally:
            if recording is not None:
                serving.served = arm.answer(
                    response, recording, serving.body.sent, first, problem, last
                )
            response.close()

    async def _to_its_end(
        self, answering: Coroutine[Any, Any, _Answered], serving: InFlight
    ) -> _Answered:
        """Await an answer for as long as that to a copy, also if the client leaves.

        It may stand for a copy, and else slow answers would count for the arms that are copied to, and not for this one.
        """
        task = asyncio.create_task(answering)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError as error:
            serving.gone = error.args == (GONE,)
            await asyncio.wait([task], timeout=self._copy_seconds if serving.gone else 0.0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            raise

    async def _opened(self, request: Arrived, serving: InFlight) -> tuple[Upstream, Opened]:
        """The answer of the arm to exploit; of another arm if that one cannot be connected to."""
        failure: NoAnswer | None = None
        others = [name for name in self._arms if name != serving.exploit and self._health.up(name)]
        for name in (serving.exploit, *others):
            arm = self._arms[name]
            passed = self._passed(arm, request, serving)
            self._warn_of_withheld(arm, request)
            try:
                return arm, await arm.serve(request.method, request.target, passed, serving.body)
            except ArmUnreachable as error:
                self._health.failed(name)
                if serving.body.started:
                    raise
                failure = failure or error
                self._counts.failed_over[name] += 1
        assert failure is not None
        raise failure

    def _passed(
        self, arm: Upstream, request: Arrived, serving: InFlight
    ) -> list[tuple[bytes, bytes]]:
        """The headers for an arm, whose fields are set in the body."""
        passed = arm.headers(request.headers, request.client, request.scheme)
        if serving.fields is None or not isinstance(serving.body, Upload):
            if request.has_body and arm.config.fields:
                self._counts.unchanged[arm.name] += 1
            return passed
        content = arm.body(serving.fields) if arm.config.fields else serving.content
        serving.body.replace(content)
        length = (b"content-length", str(len(content)).encode())
        return [*(each for each in passed if each[0] not in LENGTH), length]

    def _warn_of_withheld(self, arm: Upstream, request: Arrived) -> None:
        for name, _ in request.headers:
            if name in arm.withheld and (arm.name, name) not in self._warned:
                self._warned.add((arm.name, name))
                told = "arm %r: %s of clients is not passed on; if it is meant for this arm, add it to its pass_credentials"
                _log.warning(told, arm.name, name.decode("latin-1"))

    # Mirroring

    def _mirror(self, request: Arrived, serving: InFlight, decision: Routing, why: str) -> None:
        """Hand the copy on, or count why not."""
        body, served = serving.body.kept, serving.served
        if why == "shutdown":
            self._copies.give_up("shutdown", decision.id)
            return
        if served is None and why:  # of a client that did not wait, and an arm that took too long
            served = Answer(serving.exploit, None, problem=self._late)
        if body is None or served is None or serving.explore is None:
            whole = isinstance(serving.body, Upload) and serving.body.complete
            self._copies.give_up("too_large" if whole else "client_gone", decision.id)
            return
        copy = self._copy(request, body, decision, serving.explore, served)
        if served.arm == copy.arm and self._takes_served and served.problem != _GONE:
            if served.duration > self._copy_seconds:  # for which a copy would not have waited
                served = replace(served, problem=served.problem or self._late)
            copy.served = copy.mirrored = served
            self._counts.reused[copy.arm] += 1
        self._copies.start(copy)
