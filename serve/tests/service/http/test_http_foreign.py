"""Whatever a caller sends, the answer is ours: no page or message of the server or the framework below us."""

from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from decoupled_serve.service.http.admission import Limits
from support.http_service import Service

HOST = b"Host: localhost\r\n"
JSON = b"Content-Type: application/json\r\n"
NOT_HTTP = [
    b"FOO /v1 HTTP/1.1\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET /healthz HTTP/9.9\r\n\r\n",
    b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
    b"GET /\xff HTTP/1.1\r\n" + HOST + b"\r\n",
    b"CONNECT a:80 HTTP/1.1\r\n" + HOST + b"\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00",  # TLS
    b"POST /v1/feedback HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n\r\n",
    b"POST /v1/feedback HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
    b"POST /v1/feedback HTTP/1.1\r\n"
    + HOST
    + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"POST /v1/feedback HTTP/1.1\r\n" + HOST + JSON + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n",
]


SERVED = {"limits": Limits(headers=8_000, headers_seconds=0.2, body=1_000)}


def check(status: int, headers: Mapping[str, str], body: bytes) -> str:
    """The detail of a problem of ours."""
    assert headers["content-type"] == "application/problem+json", body
    assert (headers["cache-control"], headers["x-content-type-options"]) == ("no-store", "nosniff")
    problem = httpx.Response(status, content=body).json()
    always = {"type", "title", "status", "detail", "request_id"}
    assert always <= set(problem) <= always | {"errors"}
    assert problem["request_id"] == headers["x-request-id"]
    assert problem["type"].startswith("urn:decoupled:")
    assert problem["status"] == status
    assert "errors" in problem or "; " in problem["detail"], "a field or a remedy"
    detail: str = problem["detail"]
    return detail


BROKEN = [
    *((sent, 400, "is not well-formed HTTP/1.1") for sent in NOT_HTTP),
    (b"GET /healthz HTTP/0.9\r\n" + HOST + b"\r\n", 400, "HTTP"),
    (b"GET /healthz HTTP/2.0\r\n" + HOST + b"\r\n", 400, "HTTP"),
    (b"GET /healthz HTTP/1.1\r\n\r\n", 400, "Host"),
    (b"GET /healthz HTTP/1.1\r\n" + HOST * 2 + b"\r\n", 400, "Host: is given 2 times"),
    (b"GET /healthz HTTP/1.1\r\nHost: loc", 408, "must arrive within 0.2 s"),
    (b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 9_000, 431, "must not exceed 8,000 bytes"),
]


@pytest.mark.parametrize(("sent", "status", "words"), BROKEN, ids=range(len(BROKEN)))
def test_garbage_is_refused_in_our_words(
    service: Service, sent: bytes, status: int, words: str
) -> None:
    head, _, body = service.heard(sent).partition(b"\r\n\r\n")
    first, *rest = head.decode().split("\r\n")
    headers = dict(each.lower().split(": ", 1) for each in rest)
    assert int(first.split()[1]) == status
    assert words in check(status, headers, body)
    assert int(headers["content-length"]) == len(body)


@pytest.mark.parametrize(
    ("method", "path", "status", "allow"),
    [
        ("GET", "/nothing", 404, None),
        ("POST", "/v2/experiments", 404, None),
        ("GET", "/v1/experiments/", 404, None),
        ("GET", "/redoc", 404, None),
        ("POST", "/v1/experiments/a%2Fb/decisions", 404, None),
        ("POST", "/v1/decisions/%00/feedback", 405, "PUT"),
        ("OPTIONS", "/v1/experiments", 405, "GET"),
        ("DELETE", "/v1/experiments/x/decisions", 405, "GET, POST"),
        ("TRACE", "/v1/decisions/x-1/feedback", 405, "PUT"),
        ("GET", "/ofrep/v1/evaluate/flags", 405, "POST"),
        ("PUT", "/", 405, "GET, HEAD"),
        ("POST", "/docs", 405, "GET, HEAD"),
        ("POST", "/v1/openapi.json", 405, "GET, HEAD"),
        ("POST", "/console/main.js", 405, "GET, HEAD"),
    ],
)
def test_unknown_routes(
    service: Service, method: str, path: str, status: int, allow: str | None
) -> None:
    answer = service.http.request(method, path)
    assert answer.status_code == status
    assert answer.headers.get("Allow") == allow
    check(status, answer.headers, answer.content)
    head = service.http.head("/nothing")
    assert (head.status_code, head.content) == (404, b"")


@pytest.mark.parametrize(
    ("kind", "content", "status"),
    [
        ("application/json", b"{", 400),
        ("application/json", b"\xff", 400),
        ("application/json", b"NaN", 400),
        ("application/json", b"[" * 900, 400),
        ("application/json", b'{"arm": "a", "arm": "b"}', 400),
        ("application/json", b'{"arm": "\\ud800"}', 400),
        ("application/json", b" " * 2_000, 413),
        ("text/plain", b"{}", 415),
        ("application/x-www-form-urlencoded", b"a=b", 415),
        ("multipart/form-data; boundary=x", b"--x--", 415),
        ("", b"{}", 415),
        ("application/json; charset=utf-8", b"null", 422),
        ("application/json", b'"text"', 422),
        ("APPLICATION/JSON", b"{}", 422),
    ],
)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/v1/experiments/x"),  # by the framework
        ("PUT", "/v1/decisions/none-1/feedback"),  # without it
    ],
)
def test_bodies_of_every_wrong_kind(
    service: Service, method: str, path: str, kind: str, content: bytes, status: int
) -> None:
    headers = {"Content-Type": kind} if kind else {}
    answer = service.http.request(method, path, content=content, headers=headers)
    assert answer.status_code == status, answer.text
    check(status, answer.headers, answer.content)


def test_parameters_of_every_wrong_kind(service: Service) -> None:
    asked: list[tuple[str, str, dict[str, str], int]] = [
        *(("GET", f"/v1/experiments{path}", {}, 422) for path in (
            "?limit=x", "?limit=1&limit=2", "?%FF=1", "?after=%00", "/%20", "/%F0%9F%92%A9", "/x/history?points=0",
            "/x/log?format=xls",
        )),
        ("POST", "/v1/experiments/x/decisions", {"Idempotency-Key": "a b"}, 400),
        ("POST", "/v1/experiments/x/decisions?mode=both", {}, 422),
    ]  # fmt: skip
    for method, path, headers, status in asked:
        answer = service.http.request(method, path, headers=headers)
        assert answer.status_code == status, path
        check(status, answer.headers, answer.content)


@pytest.mark.parametrize(
    ("method", "path", "body", "fields"),
    [
        ("PUT", "x", {"arms": ["shh", None]}, ["arms.1"]),
        ("PUT", "x", {"arms": ["a", "b"], "lossrange": "shh"}, ["lossrange"]),
        (
            "PUT",
            "x",
            {"arms": ["a", "b"], "deadline_seconds": 0, "seed": "shh"},
            ["deadline_seconds", "seed"],
        ),
        ("PUT", "x", {"arms": ["a", "b"], "budget": {"rate": [5, "shh"]}}, ["budget.rate.1"]),
        (
            "POST",
            "x/decisions",
            {"key": ["shh"], "tags": {"a b": "shh\n"}},
            ["key", "tags.a b.[key]", "tags.a b"],
        ),
    ],
)
def test_an_error_names_every_place_and_no_value(
    service: Service, method: str, path: str, body: dict[str, Any], fields: list[str]
) -> None:
    answer = service.http.request(method, f"/v1/experiments/{path}", json=body)
    assert answer.status_code == 422
    assert [each["field"] for each in answer.json()["errors"]] == fields
    assert "shh" not in answer.text
    check(422, answer.headers, answer.content)


def test_many_errors_are_listed_and_no_id_is_cut(service: Service) -> None:
    items = [{"decision": "none-1", "loss": 0.5, "x" * 19: 1} for _ in range(15)]
    problem = service.http.post("/v1/feedback", json={"items": items}).json()
    assert len(problem["errors"]) == 15
    assert problem["errors"][14]["field"] == f"items.14.{'x' * 19}"
