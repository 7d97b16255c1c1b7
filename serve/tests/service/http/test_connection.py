"""Connections and the requests on them: what a client must keep to, and what it may rely on, however its bytes arrive."""

import asyncio
import json
import os
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import StringIO
from typing import Any
from urllib.parse import quote

import pytest
import uvloop

from decoupled.base.names import is_name
from decoupled.client.errors import Invalid
from decoupled.errors import ParameterError
from decoupled_serve.mirror import server as mirror_server
from decoupled_serve.mirror.server import server_settings
from decoupled_serve.options.kinds import experiment_name
from decoupled_serve.service.experiment.records import Settings
from decoupled_serve.service.http.admission import Limits, digest_of, new_key
from decoupled_serve.service.http.server import Serving, configuration
from decoupled_serve.service.service import DecisionService
from support.plain_python import ran
from support.stores import quick_service
from support.wire import Wire, Wired, on_loop, request, wired

DECIDE = "/v1/experiments/mine/decisions"
CHUNKED = "Transfer-Encoding: chunked"


@pytest.fixture
def service(file: str) -> DecisionService:
    service = quick_service(file)
    service.experiments.put(
        "local", "mine", Settings({"name": "FTPL"}, ("red", "green", "blue")), seed=7
    ).result()
    return service


def objects(lines: StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines.getvalue().splitlines()]


@asynccontextmanager
async def opened(service: DecisionService, **options: Any) -> AsyncIterator[tuple[Wired, Wire]]:
    """The service behind HTTP, and a connection that has asked before: so all that it remembers of its callers is there."""
    async with wired(service, **options) as http:
        wire = http.connect()
        wire.send(request("POST", DECIDE))
        await wire.answer()
        yield http, wire


def chunked(path: str, *trailers: str, headers: tuple[str, ...] = ()) -> bytes:
    """A request with an empty object in one chunk, and trailers after it."""
    head = request("POST", path, b"", CHUNKED, *headers).replace(b"Content-Length: 0\r\n", b"")
    return (
        head + b"2\r\n{}\r\n0\r\n" + "".join(f"{each}\r\n" for each in trailers).encode() + b"\r\n"
    )


@on_loop
async def test_trailers_never_become_headers(service: DecisionService) -> None:
    key = new_key()
    service.keys.add("local", "decide", digest_of(key), "").result()
    async with wired(service, open_to_all=False) as http:
        for way in (DECIDE, "/v1/feedback", "/v1/experiments"):
            wire = http.connect()
            wire.send(chunked(way, f"Authorization: Bearer {key}"))
            assert (await wire.answer()).status == 401, way
        wire = http.connect()
        allowed = (f"Authorization: Bearer {key}", "X-Request-Id: mine")
        trailers = ("Origin: http://example.com", "Idempotency-Key: a b", "X-Request-Id: another")
        wire.send(chunked(DECIDE, *trailers, headers=allowed))
        answer = await wire.answer()
        assert answer.status == 201
        assert b"x-request-id: mine" in answer.head
        wire.send(request("POST", DECIDE, b"", allowed[0]))
        assert (await wire.answer()).status == 201, "the connection goes on"


@on_loop
async def test_headers_and_trailers_are_limited_however_they_arrive(
    service: DecisionService,
) -> None:
    large = f"X-Large: {'x' * 3_000}"
    async with opened(service, limits=Limits(headers=2_000)) as (http, _):
        too_large = {
            "at once": [request("POST", DECIDE, b"", large)],
            "in parts": [request("POST", DECIDE, b"", large)[:1_500], b"x" * 1_000],
            "many": [request("POST", DECIDE, b"", *[f"X-{k}: 1" for k in range(300)])],
            "address": [request("GET", f"/v1/experiments?after={'x' * 3_000}")],
        }
        for name, parts in too_large.items():
            wire = http.connect()
            for part in parts:
                wire.send(part)
            assert (await wire.answer()).status == 431, name
            assert wire.closed, name
        wire = http.connect()
        wire.send(request("POST", DECIDE, b"", f"X-Large: {'x' * 1_500}"))
        assert (await wire.answer()).status == 201, "and what fits is taken"
        head, _, _ = chunked(DECIDE).rpartition(b"\r\n")
        wire.send(head, b"X-Endless: ", *[b"x" * 500] * 5)
        assert (await wire.answer()).status == 431, "a trailer that does not end"


@pytest.mark.parametrize("path", [DECIDE, "/v1/experiments"])
@on_loop
async def test_a_client_that_closes_its_half_gets_its_answer(
    service: DecisionService, path: str
) -> None:
    async with opened(service) as (http, _):
        wire = http.connect()
        wire.send(request("POST" if path == DECIDE else "GET", path))
        wire.half_close()
        answer = await wire.answer()
        assert answer.status in (200, 201)
        assert b"connection: close" in answer.head
        assert wire.closed
        for unfinished in (b"", request("POST", DECIDE, b"{}")[:-1]):
            wire = http.connect()
            wire.send(unfinished)
            wire.half_close()
            assert wire.closed, "nothing was asked"


@on_loop
async def test_errors_of_a_connection_are_no_keys(
    service: DecisionService, lines: StringIO
) -> None:
    key = new_key()
    service.keys.add("local", "decide", digest_of(key), "till").result()
    async with wired(service, open_to_all=False, limits=Limits(headers_seconds=0.01)) as http:
        wire = http.connect()
        for _ in range(3):
            wire.send(request("POST", DECIDE, b"{}", f"Authorization: Bearer {key}"))
            assert (await wire.answer()).status == 201
        wire.send(request("POST", DECIDE, b"{", f"Authorization: Bearer {key}"))
        assert (await wire.answer()).status == 400
        stranger = http.connect()
        stranger.send(b"NONSENSE\r\n\r\n")
        assert (await stranger.answer()).status == 400
        slow = http.connect()
        slow.send(b"GET / HTTP")
        assert (await slow.answer()).status == 408
    theirs = [each for each in objects(lines) if each.get("key_label") == "till"]
    assert len(theirs) == 4
    assert {each["route"] for each in theirs} == {"/v1/experiments/{name}/decisions"}
    others = [each for each in objects(lines) if each not in theirs]
    assert [each["message"].split(":")[0] for each in others].count("a connection was closed") == 2
    assert {each.get("caller", "-") for each in others} == {"-"}
    assert all(each["request_id"] for each in others if each["logger"] == "decoupled.access")


@pytest.mark.parametrize("path", [f"{DECIDE}?limit=100", "/v1/experiments/mine/log"])
@on_loop
async def test_a_client_that_resets_is_no_error_of_the_service(
    service: DecisionService, lines: StringIO, path: str
) -> None:
    async with opened(service) as (http, _):
        wire = http.connect()
        wire.send(request("GET", path) * 3)
        wire.vanish()
        await asyncio.gather(*http.state.tasks)
    assert [each for each in objects(lines) if each["level"] != "info"] == []
    assert [each["status"] for each in objects(lines) if each["method"] == "GET"] == [200]


@on_loop
async def test_what_is_refused_early_counts_for_its_route(service: DecisionService) -> None:
    service.keys.add("local", "decide", digest_of(new_key()), "").result()
    async with wired(service, open_to_all=False) as http:
        wire = http.connect()
        for method, path in (
            ("POST", DECIDE),
            ("GET", "/v1/experiments/mine/verdict"),
            ("GET", "/no"),
        ):
            wire.send(request(method, path))
            assert (await wire.answer()).status == 401
        counts = http.gateway._metrics.text().decode()
    for method, route, status in (
        ("POST", "/v1/experiments/{name}/decisions", 401),
        ("GET", "/v1/experiments/{name}/verdict", 401),
        ("GET", "other", 401),
    ):
        labels = f'method="{method}",route="{route}",status="{status}"'
        assert f"decoupled_http_requests_total{{{labels}}} 1.0" in counts


@on_loop
async def test_a_first_key_opens_other_names_at_once(service: DecisionService) -> None:
    """A service without keys takes loopback names only; with a key it takes every name, without a restart."""
    key = new_key()
    elsewhere = request("POST", DECIDE).replace(b"localhost", b"bandits.example.com")
    keyed = elsewhere.replace(b"\r\n\r\n", f"\r\nAuthorization: Bearer {key}\r\n\r\n".encode(), 1)
    async with opened(service) as (http, _):
        wire = http.connect()
        wire.send(elsewhere)
        refused = await wire.answer()
        assert refused.status == 403
        assert "add a key" in refused.json["detail"]
        await service.keys.add("local", "decide", digest_of(key), "")
        for _ in range(2):
            wire.send(keyed)
            assert (await wire.answer()).status == 201
        wire.send(elsewhere)
        assert (await wire.answer()).status in (401, 403), "but not without the key"
        wire.send(request("POST", DECIDE))
        assert (await wire.answer()).status == 401


# The routes that carry the traffic bypass the framework, and keep every promise of the others


def feedback(decision: str, loss: float = 0.25, *headers: str) -> bytes:
    body = json.dumps({"loss": loss}).encode()
    return request("PUT", f"/v1/decisions/{decision}/feedback", body, *headers)


@on_loop
async def test_a_request_may_be_split_at_every_byte(service: DecisionService) -> None:
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


@on_loop
async def test_pipelined_requests_are_answered_in_order(service: DecisionService) -> None:
    async with opened(service) as (_, wire):
        ids = []
        for _ in range(3):
            wire.send(request("POST", DECIDE))
            ids.append((await wire.answer()).json["id"])
        parts = [feedback(ids[0], 0.1), request("GET", "/healthz"), feedback(ids[1], 0.2)]
        parts += [
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


@on_loop
async def test_a_client_that_leaves_in_the_middle_leaves_nothing_behind(
    service: DecisionService,
) -> None:
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


@on_loop
async def test_what_was_asked_is_done_when_the_client_is_gone(service: DecisionService) -> None:
    async with opened(service) as (http, wire):
        before = service.counters()["decisions"]
        wire.send(request("POST", DECIDE))
        wire.vanish()
        await asyncio.gather(*http.state.tasks)
        assert service.counters()["decisions"] == before + 1
        assert wire.sent == b""


@on_loop
async def test_a_shutdown_answers_what_waits_for_its_commit(service: DecisionService) -> None:
    async with opened(service) as (http, wire):
        idle = http.connect()
        idle.send(request("POST", DECIDE))
        await idle.answer()
        wire.send(request("POST", DECIDE))
        assert wire.sent == b""
        wire.protocol.shutdown()
        idle.protocol.shutdown()
        assert idle.closed
        assert not wire.closed
        answer = await wire.answer()
        assert answer.status == 201
        assert b"connection: close" in answer.head
        assert wire.closed


@on_loop
async def test_a_connection_is_closed_when_it_was_idle_for_long(service: DecisionService) -> None:
    async with wired(service, limits=Limits(headers_seconds=3600.0)) as http:
        http.settings.timeout_keep_alive = 0.05
        idle, begun = http.connect(), http.connect()
        for wire in (idle, begun):
            wire.send(request("POST", DECIDE))
            assert (await wire.answer()).status == 201
        begun.send(b"POST /v1/exp")
        while not idle.closed:
            await asyncio.sleep(0.001)
        assert not begun.closed, "a request has begun, and has a limit of its own"
        begun.send(request("POST", DECIDE)[12:])
        assert (await begun.answer()).status == 201


@on_loop
async def test_a_client_that_does_not_read_is_not_sent_more(service: DecisionService) -> None:
    async with opened(service) as (_, wire):
        wire.protocol.pause_writing()
        wire.send(request("POST", DECIDE))
        while service.counters()["decisions"] < 2:
            await asyncio.sleep(0.001)
        assert wire.sent == b""
        wire.protocol.resume_writing()
        assert (await wire.answer()).status == 201


NAMES = ("a", "7", "a.b", "1.0", "v1..2", "a.", "A-._z", "-".join("x" * 50) + "y")
OTHERS = (".", "..", ".a", "-a", "_a", "a:b", "a b", "a%b", "ä", "x" * 101)
SETTINGS = {"policy": {"name": "FTPL"}, "arms": ["red", "blue"]}


def _accepts(check: object, *arguments: object) -> bool:
    try:
        check(*arguments)  # type: ignore[operator]
    except (ParameterError, Invalid):
        return False
    return True


@pytest.mark.parametrize("name", [*NAMES, *OTHERS, "a/b", "", "a\n"])
def test_one_rule(name: str) -> None:
    assert is_name(name) is (name in NAMES)
    assert _accepts(experiment_name, "name", name) is (name in NAMES), "of a mirror and of tenants"


@on_loop
async def test_what_can_be_created_can_be_used_in_every_way(file: str) -> None:
    async with wired(quick_service(file)) as http:

        async def status(method: str, path: str, content: object = None) -> int:
            wire = http.connect()
            wire.send(
                request(method, path, b"" if content is None else json.dumps(content).encode())
            )
            return (await wire.answer()).status

        for name in (*NAMES, *OTHERS):
            good, there = name in NAMES, quote(name)
            path = f"/v1/experiments/{there}"
            assert await status("PUT", path, SETTINGS) == (201 if good else 422), name
            assert await status("GET", path) == (200 if good else 422), name
            for _ in range(2):  # the second finds what the first has put into memory
                assert await status("POST", f"{path}/decisions") == (201 if good else 404), name
            flag = await status("POST", f"/ofrep/v1/evaluate/flags/{there}", {"context": {}})
            assert flag == (200 if good else 404), name


WITHOUT_UVLOOP = """
import sys
sys.modules["uvloop"] = None
import decoupled_serve.cli.service, decoupled_serve.cli.mirror, decoupled_serve.mirror.server
from decoupled_serve.service.http.server import Serving, configuration
print(configuration(None, Serving(store="")).get_loop_factory()().__module__)
"""


def test_it_is_uvloop_where_it_is_installed_and_nothing_needs_it() -> None:
    for settings in (
        configuration(None, Serving(store="")),
        server_settings(None, drain=30, seconds=60.0),
    ):
        factory = settings.get_loop_factory()
        assert factory is not None
        loop = factory()
        loop.close()
        assert type(loop) is uvloop.Loop
    # What runs on the loop of Python is tested by every test of a connection.
    assert ran("-c", WITHOUT_UVLOOP).startswith("asyncio")


def test_a_mirror_ends_on_a_signal_without_handlers_of_the_loop() -> None:
    class LikeOnWindows(asyncio.SelectorEventLoop):
        def add_signal_handler(self, *_: object) -> None:
            raise NotImplementedError

    async def until_signal() -> None:
        ending = asyncio.Event()
        mirror_server._on_signals(ending)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(ending.wait(), 30)

    assert threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        with asyncio.Runner(loop_factory=LikeOnWindows) as runner:
            runner.run(until_signal())
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
