"""Takes copies from a proxy that does its own mirroring, such as nginx or Envoy, and serves nobody."""

import asyncio
from typing import Any

from starlette.types import Receive, Send

from ..service.http.transport.connection import GONE
from .backend import Traits
from .bodies import ClientDisconnected, Upload, UploadTimeout
from .front import Arrived, Front, refuse

# Seconds that a copy waits for its decision. Nobody waits for the copy.
_PATIENCE = 30.0


class Sink(Front):
    """Answers 202 as soon as a copy is here, and then asks the arm to explore. What was served it does not see."""

    async def _respond(self, request: Arrived, receive: Receive, send: Send) -> None:
        self._counts.received += 1
        reason = self._not_mirrored(request)
        if reason is not None:
            self._counts.not_mirrored[reason] += 1
            await _accept(send)
            return
        try:
            body = await self._body(request, receive)
            await _accept(send)
            if body is None:
                self._copies.give_up("too_large")
                return
            fields, content = self._read(body)
            if body and self._sets_json and fields is None:
                self._leave("not_json")
            else:
                await self._explore(request, body, content)
        except ClientDisconnected:
            self._copies.give_up("client_gone")
        except UploadTimeout:
            self._copies.give_up("client_gone")
            await refuse(send, request.headers, 408, "the body did not come in time", close=True)
        except asyncio.CancelledError as error:
            self._copies.give_up("client_gone" if error.args == (GONE,) else "shutdown")
        except Exception:  # of the decision: its place must not be lost
            self._leave("no_decision")
            raise

    async def _body(self, request: Arrived, receive: Receive) -> bytes | None:
        """The body of a copy; None if it is too large."""
        if not request.has_body:
            return b""
        upload = Upload(receive, self._body_limit, self._client_seconds)
        body = await upload.read_ahead()
        if upload.failure is not None:
            raise upload.failure
        return body

    async def _explore(self, request: Arrived, body: bytes, content: Any) -> None:
        """Hand the copy on to the arm that is explored, or count why not."""
        about = Traits(context=await self._known(request, body, content))
        decision = await self._prefetch.draw_for(about, "explore", _PATIENCE)
        if decision is None or decision.explore is None:
            self._leave("no_decision" if decision is None else "budget")
        else:
            self._copies.start(self._copy(request, body, decision, decision.explore, None))

    def _leave(self, reason: str) -> None:
        self._copies.release()
        self._counts.not_mirrored[reason] += 1


async def _accept(send: Send) -> None:
    await send(
        {"type": "http.response.start", "status": 202, "headers": [(b"content-length", b"0")]}
    )
    await send({"type": "http.response.body", "body": b""})
