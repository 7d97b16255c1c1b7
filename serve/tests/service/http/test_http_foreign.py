"""Whatever a caller sends, the answer is ours: no page or message of the server or the framework below us."""

import socket
from collections.abc import Iterator, Mapping

import httpx
import pytest

from decoupled_serve.service.http.admission import Limits
from support.http_service import Service, served

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
    b"POST /v1/feedback HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"POST /v1/feedback HTTP/1.1\r\n" + HOST + JSON + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n",
]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    limits = Limits(headers=8_000, headers_seconds=0.2, body=1_000)
    with served(tmp_path_factory.mktemp("foreign"), limits=limits) as running:
        yield running


def spoken(service: Service, sent: bytes) -> tuple[int, dict[str, str], bytes]:
    """The status, the headers and the body of the answer to some bytes, after which the service hangs up."""
    with socket.create_connection(("127.0.0.1", int(service.url.rsplit(":", 1)[1])), timeout=10) as line:
        line.sendall(sent)
        heard = b""
        while part := line.recv(65_536):
            heard += part
    head, _, body = heard.partition(b"\r\n\r\n")
    first, *rest = head.decode().split("\r\n")
    headers = dict(each.lower().split(": ", 1) for each in rest)
    return int(first.split()[1]), headers, body


def check(status: int, headers: Mapping[str, str], body: bytes) -> str:
    """The detail of a problem of ours."""
    assert headers["content-type"] == "application/problem+json", body
    problem = httpx.Response(status, content=body).json()
    always = {"type", "title", "status", "detail", "request_id"}
    assert always <= set(problem) <= always | {"errors"}
    assert problem["request_id"] == headers["x-request-id"]
    assert problem["type"].startswith("urn:decoupled:")
    assert problem["status"] == status
    assert "errors" in problem or "; " in problem["detail"], "a field or a remedy"
    detail: str = problem["detail"]
    return detail


@pytest.mark.parametrize("sent", NOT_HTTP, ids=range(len(NOT_HTTP)))
def test_what_is_not_http_is_refused_in_our_words(service: Service, sent: bytes) -> None:
    status, headers, body = spoken(service, sent)
    assert status == 400
    assert "is not well-formed HTTP/1.1" in check(status, headers, body)
    assert int(headers["content-length"]) == len(body)


def test_headers_that_are_late_or_large_are_refused_in_our_words(service: Service) -> None:
    status, headers, body = spoken(service, b"GET /healthz HTTP/1.1\r\nHost: loc")
    assert status == 408
    assert "must arrive within 0.2 s" in check(status, headers, body)
    status, headers, body = spoken(service, b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 9_000)
    assert status == 431
    assert "must not exceed 8,000 bytes" in check(status, headers, body)


def test_another_protocol_is_not_spoken_and_plain_http_goes_on(service: Service) -> None:
    for wish in (b"websocket", b"h2c"):
        upgrade = b"Upgrade: " + wish + b"\r\nConnection: Upgrade, close\r\n\r\n"
        status, _, body = spoken(service, b"GET /healthz HTTP/1.1\r\n" + HOST + upgrade)
        assert (status, body) == (200, b'{"status":"ok"}')


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
def test_paths_and_methods_that_there_are_not(
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
    for path in (
        "/v1/experiments?limit=x",
        "/v1/experiments?limit=1&limit=2",
        "/v1/experiments?%FF=1",
        "/v1/experiments?after=%00",
        "/v1/experiments/%20",
        "/v1/experiments/%F0%9F%92%A9",
        "/v1/experiments/x/history?points=0",
        "/v1/experiments/x/log?format=xls",
    ):
        answer = service.http.get(path)
        assert answer.status_code == 422, path
        check(422, answer.headers, answer.content)
    answer = service.http.post("/v1/experiments/x/decisions", headers={"Idempotency-Key": "a b"})
    assert answer.status_code == 400
    check(400, answer.headers, answer.content)
    answer = service.http.post("/v1/experiments/x/decisions?mode=both")
    assert answer.status_code == 422
    check(422, answer.headers, answer.content)
