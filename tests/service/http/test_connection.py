"""What a connection must keep to before an application sees its request."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from decoupled.service.experiment.records import Settings
from decoupled.service.http.admission.auth import digest_of, new_key
from decoupled.service.http.admission.limits import Limits
from decoupled.service.http.observe.log_format import JsonFormatter
from decoupled.service.service import DecisionService
from support.stores import quick_service
from support.wire import Wired, request, wired

DECIDE = "/v1/experiments/mine/decisions"
CHUNKED = "Transfer-Encoding: chunked"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[DecisionService]:
    service = quick_service(str(tmp_path / "store.db"))
    service.experiments.put("local", "mine", Settings({"name": "FTPL"}, ("red", "blue")), seed=7).result()
    yield service
    service.close()


@pytest.fixture
def lines() -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """What is logged, as the service writes it."""
    text = StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(JsonFormatter())
    root, access = logging.getLogger(), logging.getLogger("decoupled.access")
    levels = root.level, access.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    access.setLevel(logging.INFO)
    yield lambda: [json.loads(line) for line in text.getvalue().splitlines()]
    root.removeHandler(handler)
    root.setLevel(levels[0])
    access.setLevel(levels[1])


@asynccontextmanager
async def opened(service: DecisionService, **options: Any) -> AsyncIterator[Wired]:
    """The service behind HTTP, which has answered before: so all that it remembers of its callers is there."""
    async with wired(service, **options) as http:
        wire = http.connect()
        wire.send(request("POST", DECIDE))
        await wire.answer()
        yield http


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(main())


def chunked(path: str, *trailers: str, headers: tuple[str, ...] = ()) -> bytes:
    """A request with an empty object in one chunk, and trailers after it."""
    head = request("POST", path, b"", CHUNKED, *headers).replace(b"Content-Length: 0\r\n", b"")
    return head + b"2\r\n{}\r\n0\r\n" + "".join(f"{each}\r\n" for each in trailers).encode() + b"\r\n"


def test_trailers_never_become_headers(service: DecisionService) -> None:
    key = new_key()

    async def main() -> None:
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

    run(main)


def test_headers_and_trailers_are_limited_however_they_arrive(service: DecisionService) -> None:
    large = f"X-Large: {'x' * 3_000}"

    async def main() -> None:
        async with opened(service, limits=Limits(headers=2_000)) as http:
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

    run(main)


@pytest.mark.parametrize(
    "sent",
    [
        request("POST", DECIDE, b"", "Host: localhost"),
        request("POST", DECIDE).replace(b"Host: localhost\r\n", b""),
        request("POST", DECIDE).replace(b"HTTP/1.1", b"HTTP/2.0"),
        request("GET", "/healthz").replace(b"HTTP/1.1", b"HTTP/0.9"),
    ],
    ids=["two hosts", "no host", "HTTP/2.0", "HTTP/0.9"],
)
def test_one_host_and_a_version_that_is_spoken(service: DecisionService, sent: bytes) -> None:
    async def main() -> None:
        async with opened(service) as http:
            wire = http.connect()
            wire.send(sent)
            assert (await wire.answer()).status == 400
            assert wire.closed
            wire = http.connect()
            wire.send(request("GET", "/healthz").replace(b"HTTP/1.1", b"HTTP/1.0"))
            assert (await wire.answer()).status == 200

    run(main)


@pytest.mark.parametrize("path", [DECIDE, "/v1/experiments"])
def test_a_client_that_closes_its_half_gets_its_answer(service: DecisionService, path: str) -> None:
    async def main() -> None:
        async with opened(service) as http:
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

    run(main)


def test_what_cannot_be_parsed_is_no_answer_to_what_came_before(service: DecisionService) -> None:
    async def main() -> None:
        async with opened(service) as http:
            for first in (request("POST", DECIDE), request("GET", "/v1/experiments")):
                wire = http.connect()
                wire.send(first + b"NONSENSE\r\n\r\n")
                assert (await wire.answer()).status in (200, 201)
                assert wire.closed
                assert wire.sent == b""

    run(main)


def test_errors_of_one_connection_are_not_those_of_a_key(
    service: DecisionService, lines: Callable[[], list[dict[str, Any]]]
) -> None:
    key = new_key()

    async def main() -> None:
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

    run(main)
    theirs = [each for each in lines() if each.get("key_label") == "till"]
    assert len(theirs) == 4
    assert {each["route"] for each in theirs} == {"/v1/experiments/{name}/decisions"}
    others = [each for each in lines() if each not in theirs]
    assert [each["message"].split(":")[0] for each in others].count("a connection was closed") == 2
    assert {each.get("caller", "-") for each in others} == {"-"}
    assert all(each["request_id"] for each in others if each["logger"] == "decoupled.access")


@pytest.mark.parametrize("path", [f"{DECIDE}?limit=100", "/v1/experiments/mine/log"])
def test_a_client_that_resets_is_no_error_of_the_service(
    service: DecisionService, lines: Callable[[], list[dict[str, Any]]], path: str
) -> None:
    async def main() -> None:
        async with opened(service) as http:
            wire = http.connect()
            wire.send(request("GET", path) * 3)
            wire.vanish()
            await asyncio.gather(*http.state.tasks)

    run(main)
    assert [each for each in lines() if each["level"] != "info"] == []
    assert [each["status"] for each in lines() if each["method"] == "GET"] == [200], (
        "the first was under way"
    )


def test_what_is_refused_early_counts_for_its_route(service: DecisionService) -> None:
    async def main() -> None:
        service.keys.add("local", "decide", digest_of(new_key()), "").result()
        async with wired(service, open_to_all=False) as http:
            wire = http.connect()
            for method, path in (("POST", DECIDE), ("GET", "/v1/experiments/mine/verdict"), ("GET", "/no")):
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

    run(main)


def test_who_leaves_counts_for_the_route_that_was_asked(service: DecisionService) -> None:
    async def main() -> None:
        async with opened(service) as http:
            wire = http.connect()
            wire.send(request("PUT", "/v1/experiments/mine", b"{}")[:-1])
            await asyncio.sleep(0)
            wire.vanish()
            await asyncio.gather(*http.state.tasks)
            labels = 'method="PUT",route="/v1/experiments/{name}",status="499"'
            assert f"decoupled_http_requests_total{{{labels}}} 1.0" in http.gateway._metrics.text().decode()

    run(main)


def test_a_first_key_opens_other_names_at_once(service: DecisionService) -> None:
    """A service without keys takes loopback names only; with a key it takes every name, without a restart."""
    key = new_key()
    elsewhere = request("POST", DECIDE).replace(b"localhost", b"bandits.example.com")
    keyed = elsewhere.replace(b"\r\n\r\n", f"\r\nAuthorization: Bearer {key}\r\n\r\n".encode(), 1)

    async def main() -> None:
        async with opened(service) as http:
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

    run(main)
