"""Serves each request from one arm, and hands a copy on for another."""

import asyncio
import json
import logging
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from starlette.types import Message, Receive, Scope, Send

from .arm_health import ArmHealth
from .arrived import Arrived, Refused, arrived
from .backend import UNKNOWN, Mode, Routing, Traits
from .bodies import ClientDisconnected, Content, Recording, Upload, UploadTimeout
from .clients import ClientConnection
from .config import MirrorConfig
from .context import ContextFinder
from .copies import Copies, Copy
from .counts import MirrorCounts
from .disconnect import CancelOnDisconnect
from .exchange import Answer, Request
from .headers import as_text, for_client
from .prefetch import Prefetch
from .sticky import KeyFinder
from .upstream import ArmUnreachable, BrokenOff, NoAnswer, Opened, Upstream

_TITLES = {
    400: "Bad request",
    408: "Request timeout",
    431: "Request header fields too large",
    501: "Not implemented",
    502: "Bad gateway",
    503: "Service unavailable",
    504: "Gateway timeout",
    505: "HTTP version not supported",
}
_GONE = "the client went away"
_log = logging.getLogger("decoupled.mirror")


@dataclass(slots=True)
class InFlight:
    """One request on its way: which arm serves it, and what the copy needs to know."""

    decision: str | None  # None if it is not mirrored
    exploit: str
    explore: str | None
    body: Content | Upload
    recording: Recording | None
    begun: bool = False  # whether the client has the head of its answer
    whole: bool = False  # whether it has all of it
    served: Answer | None = None


class Proxy:
    """Serves and mirrors. What concerns the copy happens after the client has its answer."""

    def __init__(
        self,
        arms: Sequence[Upstream],
        config: MirrorConfig,
        prefetch: Prefetch,
        health: ArmHealth,
        copies: Copies,
        counts: MirrorCounts,
        *,
        takes_served: bool,
    ) -> None:
        self._arms: Mapping[str, Upstream] = {arm.name: arm for arm in arms}
        self._prefetch, self._health, self._copies, self._counts = prefetch, health, copies, counts
        self._clients, self._client_seconds = config.clients, config.client_timeout
        self._share, self._body_limit = config.mirror.share, config.mirror.body_limit
        self._rules, self._chance = config.mirror.rules(), random.Random(config.experiment.seed)
        self._credentials = frozenset(name.encode() for name in config.mirror.all_credentials())
        self._served_limit = 0 if config.loss.judge is None else config.mirror.answer_limit
        self._takes_served = takes_served
        self._keys = None if config.sticky is None else KeyFinder(config.sticky)
        self._context = ContextFinder(config.context)
        self._reads_body = self._context.in_body or (self._keys is not None and self._keys.in_body)
        self._warned: set[tuple[str, bytes]] = set()
        self.in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        connection: ClientConnection = scope["state"]["connection"]
        connection.begin()
        self.in_flight += 1
        try:
            request = arrived(scope)
            if self.in_flight > self._clients:
                raise Refused("busy", 503, "too many requests at a time; ask again later")
            await self._respond(request, connection, receive, send)
        except Refused as refused:
            self._counts.refused[refused.reason] += 1
            await _refuse(send, refused.status, str(refused), close=True)
        except Exception:
            _log.exception("an error of the mirror itself")
            raise
        finally:
            self.in_flight -= 1
            connection.end()

    async def _respond(
        self, request: Arrived, connection: ClientConnection, receive: Receive, send: Send
    ) -> None:
        ahead: Upload | None = None
        body: bytes | None = None
        if self._reads_body and request.has_body:
            ahead = Upload(receive, self._body_limit, self._client_seconds)
            body = await ahead.read_ahead()
        serving = await self._chosen(request, self._traits(request, body))
        if ahead is not None:
            serving.body = ahead
        elif request.has_body:
            limit = None if serving.decision is None else self._body_limit
            serving.body = Upload(receive, limit, self._client_seconds)
        watcher = CancelOnDisconnect(receive, serving.body)
        why, status = "", 0
        try:
            await self._serve(request, serving, send, watcher)
        except ClientDisconnected:
            why = "client gone"
        except UploadTimeout:
            why, status = "client too slow", 408
        except asyncio.CancelledError:
            why, status = ("client gone", 0) if watcher.gone else ("shutdown", 503)
        finally:
            watcher.stop()
            if serving.decision is not None:
                self._mirror(request, serving, serving.decision, why)
        if why:
            self._counts.served[serving.exploit, why] += 1
        if status and not serving.begun:
            problem = (
                "the mirror is ending; ask again" if status == 503 else "the body did not come in time"
            )
            await _refuse(send, status, problem, close=True)
        elif request.old and serving.begun and not serving.whole:
            connection.abort()  # an HTTP/1.0 client takes the end of the connection for that of the answer

    # Choosing

    def _traits(self, request: Arrived, body: bytes | None) -> Traits:
        """What is known of a request that its decision depends on."""
        key = None if self._keys is None else self._keys.find(request.headers, body)
        context = self._context.find(request.method, request.path, request.headers, body)
        return Traits(key, context or None)

    async def _chosen(self, request: Arrived, about: Traits) -> InFlight:
        """The arms for a request, and whether it is mirrored."""
        reason = self._not_mirrored(request)
        if reason is None:
            try:
                decision = await self._decision("both", about)
            except asyncio.CancelledError:
                self._copies.release()
                raise
            if decision is not None and decision.explore is not None:
                recording = Recording(self._served_limit)
                return InFlight(decision.id, decision.exploit, decision.explore, Content(), recording)
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

    def _not_mirrored(self, request: Arrived) -> str | None:
        """Why a request is not mirrored; None if it is, and then a place for its copy is reserved."""
        if self._share < 1.0 and self._chance.random() >= self._share:
            return "share"
        if not self._rules.allows(request.method, request.path, request.headers):
            return "not_repeatable"
        if request.length > self._body_limit:
            return "too_large"
        return None if self._copies.reserve() else "queue_full"

    # Serving

    async def _serve(
        self, request: Arrived, serving: InFlight, send: Send, watcher: CancelOnDisconnect
    ) -> None:
        try:
            arm, response = await self._opened(request, serving)
        except NoAnswer as error:
            self._counts.failed[serving.exploit] += 1
            self._counts.served[serving.exploit, str(error.status)] += 1
            _log.warning("%s", error)
            serving.served = Answer(serving.exploit, None, problem=error.problem)
            serving.begun = serving.whole = True
            await _refuse(send, error.status, str(error))
            return
        first, problem = time.perf_counter(), None
        recording = serving.recording
        try:
            start = {
                "type": "http.response.start",
                "status": response.status,
                "headers": for_client(response.headers),
            }
            serving.begun = True
            await _sent(send, start)
            async for part in response.parts():
                if recording is not None:
                    recording.add(part)
                await _sent(send, {"type": "http.response.body", "body": part, "more_body": True})
            watcher.stop()
            await _sent(send, {"type": "http.response.body", "body": b"", "more_body": False})
            serving.whole = True
            self._counts.served[arm.name, str(response.status)] += 1
        except (BrokenOff, TimeoutError) as error:
            # The answer has begun, so it can only be cut off: the client sees that it is not whole.
            problem = f"the answer broke off ({error or type(error).__name__})"
            self._counts.failed[arm.name] += 1
            self._counts.served[arm.name, "broken off"] += 1
            _log.warning("arm %r: %s", arm.name, problem)
        except BaseException:
            problem = _GONE
            raise
        finally:
            if recording is not None:
                serving.served = arm.answer(response, recording, serving.body.sent, first, problem)
            response.close()

    async def _opened(self, request: Arrived, serving: InFlight) -> tuple[Upstream, Opened]:
        """The answer of the arm to exploit; of another arm if that one cannot be connected to."""
        failure: NoAnswer | None = None
        others = [name for name in self._arms if name != serving.exploit and self._health.up(name)]
        for name in (serving.exploit, *others):
            arm = self._arms[name]
            passed = arm.headers(request.headers, request.client, request.scheme)
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

    def _warn_of_withheld(self, arm: Upstream, request: Arrived) -> None:
        for name, _ in request.headers:
            if name in arm.withheld and (arm.name, name) not in self._warned:
                self._warned.add((arm.name, name))
                _log.warning(
                    "arm %r: %s of clients is not passed on; if it is meant for this arm, add it to its pass_credentials",
                    arm.name, name.decode("latin-1"),
                )  # fmt: skip

    # Mirroring

    def _mirror(self, request: Arrived, serving: InFlight, decision: str, why: str) -> None:
        """Hand the copy on, or count why not."""
        body, served = serving.body.kept, serving.served
        if why == "shutdown":
            self._copies.give_up("shutdown")
            return
        if body is None or served is None or serving.explore is None:
            whole = isinstance(serving.body, Upload) and serving.body.complete
            self._copies.give_up("too_large" if whole else "client_gone")
            return
        arm = self._arms[serving.explore]
        passed = arm.headers(request.headers, request.client, request.scheme, copy=True)
        target = request.target.decode("latin-1")
        sent = Request(request.method, target, as_text(passed), body)
        shown = Request(request.method, target, as_text(passed, self._credentials), body)
        copy = Copy(decision, arm.name, sent, shown, served)
        if served.arm == arm.name and self._takes_served and served.problem != _GONE:
            copy.mirrored = served
            self._counts.reused[arm.name] += 1
        self._copies.start(copy)


async def _sent(send: Send, message: Message) -> None:
    """Send; `ClientDisconnected` if the connection was closed and the server has not noticed yet."""
    try:
        await send(message)
    except RuntimeError as error:
        if "closed" not in str(error):
            raise
        raise ClientDisconnected from None


async def _refuse(send: Send, status: int, problem: str, *, close: bool = False) -> None:
    title = _TITLES[status]
    kind = f"urn:decoupled:{title.lower().replace(' ', '-')}"
    content = json.dumps({"type": kind, "title": title, "status": status, "detail": problem}).encode()
    headers = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(content)).encode()),
    ]
    if close:  # a body may follow that nobody reads
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
