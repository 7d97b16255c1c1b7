"""The routes that carry the traffic, which bypass the framework: they keep every promise of the others."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from decoupled.service.experiment.records import Settings
from decoupled.service.http.admission.auth import digest_of, new_key
from decoupled.service.http.admission.limits import Limits
from decoupled.service.service import DecisionService
from support.stores import quick_service
from support.wire import Wire, Wired, request, wired

DECIDE = "/v1/experiments/mine/decisions"
PLAIN = Settings({"name": "FTPL"}, ("red", "green", "blue"))


@pytest.fixture
def service(tmp_path: Path) -> Iterator[DecisionService]:
    service = quick_service(str(tmp_path / "store.db"))
    service.experiments.put("local", "mine", PLAIN, seed=7).result()
    yield service
    service.close()


@asynccontextmanager
async def opened(service: DecisionService, **options: Any) -> AsyncIterator[tuple[Wired, Wire]]:
    """A connection that has asked before, so that what a key may do is known."""
    async with wired(service, **options) as http:
        wire = http.connect()
        wire.send(request("POST", DECIDE))
        await wire.answer()
        yield http, wire


def feedback(decision: str, loss: float = 0.25, *headers: str) -> bytes:
    body = json.dumps({"loss": loss}).encode()
    return request("PUT", f"/v1/decisions/{decision}/feedback", body, *headers)


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(main())


def test_a_request_may_be_split_at_every_byte(service: DecisionService) -> None:
    async def main() -> None:
        async with opened(service) as (_, wire):
            for whole in (request("POST", DECIDE, b'{"mode":"both"}'), feedback("x-1", 0.5)):
                statuses = set()
                for at in range(len(whole) + 1):
                    wire.send(whole[:at], whole[at:])
                    statuses.add((await wire.answer()).status)
                assert statuses == ({201} if b"POST" in whole else {404})
            for byte in request("POST", DECIDE, b"{}"):
                wire.send(bytes([byte]))
            assert (await wire.answer()).status == 201
            assert wire.sent == b""

    run(main)


def test_pipelined_requests_are_answered_in_order(service: DecisionService) -> None:
    async def main() -> None:
        async with opened(service) as (_, wire):
            ids = []
            for _ in range(3):
                wire.send(request("POST", DECIDE))
                ids.append((await wire.answer()).json["id"])
            parts = [
                feedback(ids[0], 0.1),
                request("GET", "/healthz"),
                feedback(ids[1], 0.2),
                feedback("nobody-1"),
                request("GET", f"/v1/decisions/{ids[0]}"),
                feedback(ids[2], 0.3),
            ]
            wire.send(b"".join(parts))
            answers = [await wire.answer() for _ in parts]
            assert [each.status for each in answers] == [200, 200, 200, 404, 200, 200]
            assert [answers[k].json["loss"] for k in (0, 2, 4, 5)] == [0.1, 0.2, 0.1, 0.3]
            wire.send(request("POST", DECIDE))
            assert (await wire.answer()).status == 201, "and then it is quick again"

    run(main)


def refusals(decision: str) -> dict[str, bytes]:
    """Requests that are refused, each for a reason of its own, and some that are not."""
    path = f"/v1/decisions/{decision}/feedback"
    return {
        "unknown experiment": request("POST", "/v1/experiments/none/decisions"),
        "not JSON": request("PUT", path, b"{loss}"),
        "twice": request("PUT", path, b'{"loss": 0.5, "loss": 0.5}'),
        "unknown field": request("PUT", path, b'{"lose": 0.5}'),
        "out of range": request("PUT", path, b'{"loss": 7.5}'),
        "no body": request("PUT", path),
        "text": request("PUT", path, b'{"loss": "0.5"}'),
        "infinite": request("PUT", path, b'{"loss": 1e999}'),
        "leading zero": request("PUT", path, b'{"loss": 00.5}'),
        "vertical tab": request("PUT", path, b'\x0b{"loss": 0.5}'),
        "mode": request("POST", DECIDE, b'{"mode": "neither"}'),
        "count": request("POST", DECIDE, b'{"count": 0}'),
        "key": request("POST", DECIDE, b"", "Idempotency-Key: a b"),
        "origin": request("POST", DECIDE, b"", "Origin: http://example.com"),
        "host": request("POST", DECIDE).replace(b"localhost", b"example.com"),
        "media": request("PUT", path, b'{"loss": 0.5}').replace(b"application/json", b"text/plain"),
        "authorization": request("POST", DECIDE, b"", "Authorization: Basic x"),
        "key unknown": request("POST", DECIDE, b"", "Authorization: Bearer dk_none"),
        "a reward": request("PUT", path, b'{"reward": 0.5}'),
        "the same again": request("PUT", path, b' {"loss" : 0.5 }\n'),
        "another loss": request("PUT", path, b'{"loss": 1}'),
    }


def test_each_refusal_has_its_status_and_what_every_answer_says(service: DecisionService) -> None:
    expected = {
        "unknown experiment": 404, "not JSON": 400, "twice": 400, "unknown field": 422, "out of range": 422,
        "no body": 422, "text": 422, "infinite": 422, "leading zero": 400, "vertical tab": 400, "mode": 422,
        "count": 422, "key": 400, "origin": 403, "host": 403, "media": 415, "authorization": 401,
        "key unknown": 401, "a reward": 200, "the same again": 200, "another loss": 409,
    }  # fmt: skip

    async def main() -> None:
        async with opened(service) as (_, wire):
            wire.send(request("POST", DECIDE))
            decision = (await wire.answer()).json["id"]
            for name, asked in refusals(decision).items():
                wire.send(asked.replace(b"\r\n\r\n", b"\r\nX-Request-Id: the-same\r\n\r\n", 1))
                answer = await wire.answer()
                assert answer.status == expected.pop(name), name
                kind = b"json" if answer.status < 400 else b"problem+json"
                for line in (
                    b"type: application/" + kind,
                    b"no-store",
                    b"nosniff",
                    b"x-request-id: the-same",
                ):
                    assert line in answer.head, name
        assert expected == {}

    run(main)


def test_keys_roles_and_rates_hold(service: DecisionService) -> None:
    key, reader, late = new_key(), new_key(), new_key()

    async def main() -> None:
        service.keys.add("local", "decide", digest_of(key), "").result()
        service.keys.add("local", "read", digest_of(reader), "").result()
        service.keys.add("other", "admin", digest_of(late), "").result()
        async with wired(service, open_to_all=False, limits=Limits(rate=1e-6, burst=5.0)) as http:
            wire = http.connect()

            async def status(secret: str) -> int:
                wire.send(request("POST", DECIDE, b"", f"Authorization: Bearer {secret}"))
                return (await wire.answer()).status

            assert await status(key) == 201, "its key was looked up"
            assert await status(key) == 201
            assert [await status(reader) for _ in range(2)] == [403, 403]
            assert [await status(late) for _ in range(2)] == [404, 404], "of another tenant"
            assert [await status(key) for _ in range(5)] == [201, 201, 201, 429, 429]
            wire.send(request("POST", DECIDE))
            assert (await wire.answer()).status == 401

    run(main)


def test_a_client_that_leaves_in_the_middle_leaves_nothing_behind(service: DecisionService) -> None:
    async def main() -> None:
        async with opened(service) as (http, _):
            whole = request("POST", DECIDE, b'{"mode":"both"}')
            for at in range(1, len(whole)):
                wire = http.connect()
                wire.send(whole[:at])
                wire.vanish()
            await asyncio.gather(*http.state.tasks)
            assert http.gateway._metrics.in_flight == 0
            assert len(http.state.connections) == 1
            wire = http.connect()
            wire.send(whole)
            assert (await wire.answer()).json["state_version"] == 0

    run(main)


def test_what_was_asked_is_done_when_the_client_is_gone(service: DecisionService) -> None:
    async def main() -> None:
        async with opened(service) as (http, wire):
            before = service.counters()["decisions"]
            wire.send(request("POST", DECIDE))
            wire.vanish()
            await asyncio.gather(*http.state.tasks)
            assert service.counters()["decisions"] == before + 1
            assert wire.sent == b""

    run(main)


def test_a_shutdown_answers_what_waits_for_its_commit(service: DecisionService) -> None:
    async def main() -> None:
        async with opened(service) as (http, wire):
            idle = http.connect()
            idle.send(request("POST", DECIDE))
            await idle.answer()
            wire.send(request("POST", DECIDE))
            assert not wire.protocol.cycle.response_complete
            wire.protocol.shutdown()
            idle.protocol.shutdown()
            assert idle.closed
            assert not wire.closed
            answer = await wire.answer()
            assert answer.status == 201
            assert b"connection: close" in answer.head
            assert wire.closed

    run(main)


def test_a_connection_is_closed_when_it_was_idle_for_long(service: DecisionService) -> None:
    async def main() -> None:
        async with opened(service) as (_, wire):
            connection = wire.protocol
            assert connection.timeout_keep_alive_task is not None
            wire.send(b"POST /v1/exp")
            assert connection.timeout_keep_alive_task is None, (
                "a request has begun, and has a limit of its own"
            )
            wire.send(request("POST", DECIDE)[12:])
            await wire.answer()
            connection.timeout_keep_alive_handler()
            assert wire.closed

    run(main)


def test_a_client_that_does_not_read_is_not_sent_more(service: DecisionService) -> None:
    async def main() -> None:
        async with opened(service) as (_, wire):
            wire.protocol.pause_writing()
            wire.send(request("POST", DECIDE))
            while service.counters()["decisions"] < 2:
                await asyncio.sleep(0.001)
            assert wire.sent == b""
            wire.protocol.resume_writing()
            assert (await wire.answer()).status == 201

    run(main)
