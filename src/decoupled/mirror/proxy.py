"""The proxy: an ASGI application that serves each request from one arm and hands a copy on for another."""

import asyncio
import json
import logging
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import httpcore
from starlette.types import Message, Receive, Scope, Send

from .ahead import Ahead
from .bodies import ClientGone, Content, Recording, Upload
from .config import CopyConfig
from .copies import Copies, Copy
from .counts import Tally
from .exchange import Answer, Request
from .headers import as_text, for_client
from .health import Health
from .upstream import NoAnswer, Unreachable, Upstream
from .watch import Watch

_TITLES = {400: "Bad request", 501: "Not implemented", 502: "Bad gateway", 504: "Gateway timeout"}
_log = logging.getLogger("decoupled.mirror")


@dataclass(slots=True)
class Serving:
    """One request on its way: which arm serves it, and what the copy needs to know."""

    decision: str | None  # None if it is not mirrored
    exploit: str
    explore: str | None
    body: Content | Upload
    recording: Recording | None
    served: Answer | None = None


class Proxy:
    """Serves and mirrors. What concerns the copy happens after the client has its answer."""

    def __init__(
        self,
        arms: Sequence[Upstream],
        config: CopyConfig,
        ahead: Ahead,
        health: Health,
        copies: Copies,
        tally: Tally,
        *,
        keep_served: bool,
        takes_served: bool,
        seed: int | None = None,
    ) -> None:
        self._arms: Mapping[str, Upstream] = {arm.name: arm for arm in arms}
        self._ahead, self._health, self._copies, self._tally = ahead, health, copies, tally
        self._share, self._body_limit = config.share, config.body_limit
        self._rules, self._chance = config.rules(), random.Random(seed)
        self._credentials = frozenset(name.encode() for name in config.all_credentials())
        self._served_limit = config.answer_limit if keep_served else 0
        self._takes_served = takes_served
        self._warned: set[tuple[str, bytes]] = set()
        self.in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        headers = scope["headers"]
        if any(name == b"upgrade" and b"websocket" in value.lower() for name, value in headers):
            self._tally.refused_upgrades += 1
            problem = "websockets are not mirrored; let clients connect to an upstream directly"
            await _refuse(send, 501, problem)
            return
        self.in_flight += 1
        try:
            await self._respond(scope, headers, receive, send)
        except Exception:
            _log.exception("an error of the mirror itself")
            raise
        finally:
            self.in_flight -= 1

    async def _respond(
        self, scope: Scope, headers: list[tuple[bytes, bytes]], receive: Receive, send: Send
    ) -> None:
        length, chunked = _length(headers)
        serving = self._chosen(scope, headers, length)
        if length or chunked:
            serving.body = Upload(receive, None if serving.decision is None else self._body_limit)
        watch = Watch(receive, serving.body)
        try:
            await self._serve(scope, headers, serving, send, watch)
        except ClientGone:
            self._tally.served[serving.exploit, "client gone"] += 1
        except asyncio.CancelledError:
            if not watch.gone:
                raise  # the server is ending
            self._tally.served[serving.exploit, "client gone"] += 1
        finally:
            watch.stop()
            if serving.decision is not None:
                self._mirror(scope, headers, serving, serving.decision)

    # Choosing

    def _chosen(self, scope: Scope, headers: list[tuple[bytes, bytes]], length: int) -> Serving:
        """The arms for a request, and whether it is mirrored."""
        reason = self._not_mirrored(scope, headers, length)
        if reason is None:
            decision = self._ahead.take("both")
            if decision is not None and decision.explore is not None:
                recording = Recording(self._served_limit)
                return Serving(decision.id, decision.exploit, decision.explore, Content(), recording)
            self._copies.release()
            reason = "no_decision" if decision is None else "budget"
        else:
            decision = None
        self._tally.not_mirrored[reason] += 1
        decision = decision or self._ahead.take("exploit")
        if decision is not None:
            return Serving(None, decision.exploit, None, Content(), None)
        self._tally.repeated += 1
        return Serving(None, self._ahead.last or next(iter(self._arms)), None, Content(), None)

    def _not_mirrored(self, scope: Scope, headers: list[tuple[bytes, bytes]], length: int) -> str | None:
        """Why a request is not mirrored; None if it is, and then a place for its copy is reserved."""
        if self._share < 1.0 and self._chance.random() >= self._share:
            return "share"
        if not self._rules.allows(scope["method"], scope["raw_path"], headers):
            return "not_repeatable"
        if length > self._body_limit:
            return "too_large"
        return None if self._copies.reserve() else "queue_full"

    # Serving

    async def _serve(
        self,
        scope: Scope,
        headers: list[tuple[bytes, bytes]],
        serving: Serving,
        send: Send,
        watch: Watch,
    ) -> None:
        try:
            arm, response = await self._opened(scope, headers, serving)
        except NoAnswer as error:
            self._tally.failed[serving.exploit] += 1
            self._tally.served[serving.exploit, str(error.status)] += 1
            _log.warning("%s", error)
            serving.served = Answer(serving.exploit, None, problem=error.problem)
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
            await _sent(send, start)
            async for part in response.aiter_stream():
                if recording is not None:
                    recording.add(part)
                await _sent(send, {"type": "http.response.body", "body": part, "more_body": True})
            watch.stop()
            await _sent(send, {"type": "http.response.body", "body": b"", "more_body": False})
            self._tally.served[arm.name, str(response.status)] += 1
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as error:
            # The answer has begun, so it can only be cut off: the client sees that it is not whole.
            problem = f"the answer broke off ({type(error).__name__})"
            self._tally.failed[arm.name] += 1
            self._tally.served[arm.name, "broken off"] += 1
            _log.warning("arm %r: %s", arm.name, problem)
        except BaseException:
            problem = "the client went away"
            raise
        finally:
            if recording is not None:
                serving.served = arm.answer(response, recording, serving.body.sent, first, problem)
            await response.aclose()

    async def _opened(
        self, scope: Scope, headers: list[tuple[bytes, bytes]], serving: Serving
    ) -> tuple[Upstream, httpcore.Response]:
        """The answer of the arm to exploit; of another arm if that one cannot be connected to."""
        client = scope.get("client")
        query, target = scope["query_string"], scope["raw_path"]
        target = target + b"?" + query if query else target
        failure: NoAnswer | None = None
        others = [name for name in self._arms if name != serving.exploit and self._health.up(name)]
        for name in (serving.exploit, *others):
            arm = self._arms[name]
            passed = arm.headers(headers, client[0] if client else None, scope["scheme"])
            self._warn_of_withheld(arm, headers)
            try:
                return arm, await arm.serve(scope["method"], target, passed, serving.body)
            except Unreachable as error:
                self._health.failed(name)
                if serving.body.started:
                    raise
                failure = failure or error
                self._tally.failed_over[name] += 1
        assert failure is not None
        raise failure

    def _warn_of_withheld(self, arm: Upstream, headers: list[tuple[bytes, bytes]]) -> None:
        for name, _ in headers:
            if name in arm.withheld and (arm.name, name) not in self._warned:
                self._warned.add((arm.name, name))
                _log.warning(
                    "arm %r: %s of clients is not passed on; if it is meant for this arm, add it to its pass_credentials",
                    arm.name, name.decode("latin-1"),
                )  # fmt: skip

    # Mirroring

    def _mirror(
        self, scope: Scope, headers: list[tuple[bytes, bytes]], serving: Serving, decision: str
    ) -> None:
        """Hand the copy on, or count why not."""
        body, served = serving.body.kept, serving.served
        if body is None or served is None or serving.explore is None:
            whole = isinstance(serving.body, Upload) and serving.body.complete
            self._copies.give_up("too_large" if whole else "client_gone")
            return
        arm, client, query = self._arms[serving.explore], scope.get("client"), scope["query_string"]
        passed = arm.headers(headers, client[0] if client else None, scope["scheme"], copy=True)
        target = (scope["raw_path"] + b"?" + query if query else scope["raw_path"]).decode("latin-1")
        request = Request(scope["method"], target, as_text(passed), body)
        shown = Request(scope["method"], target, as_text(passed, self._credentials), body)
        copy = Copy(decision, arm.name, request, shown, served)
        if served.arm == arm.name and self._takes_served and served.problem != "the client went away":
            copy.mirrored = served
            self._tally.reused[arm.name] += 1
        self._copies.start(copy)


def _length(headers: list[tuple[bytes, bytes]]) -> tuple[int, bool]:
    """The length of the body as declared, and whether it comes in chunks instead."""
    length, chunked = 0, False
    for name, value in headers:
        if name == b"content-length" and value.isdigit():
            length = int(value)
        elif name == b"transfer-encoding":
            chunked = True
    return length, chunked


async def _sent(send: Send, message: Message) -> None:
    """Send; `ClientGone` if the connection was closed and the server has not noticed yet."""
    try:
        await send(message)
    except RuntimeError as error:
        if "closed" not in str(error):
            raise
        raise ClientGone from None


async def _refuse(send: Send, status: int, problem: str) -> None:
    title = _TITLES[status]
    kind = f"urn:decoupled:{title.lower().replace(' ', '-')}"
    content = json.dumps({"type": kind, "title": title, "status": status, "detail": problem}).encode()
    headers = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(content)).encode()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
