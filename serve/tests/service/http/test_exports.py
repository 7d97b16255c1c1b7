"""Exports that clients do not read: they end after a while, and take no more of the disk than the limit."""

import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from decoupled_serve.service.analysis import export
from decoupled_serve.service.http.admission import Limits
from support.http_service import Service, served
from support.waiting import wait_for

SIZE = 32_000_000  # more than sockets take for a client that does not read


def spool_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    spool = folder / "spool"
    spool.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spool))
    return spool


@pytest.fixture
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of exports, each of which is large."""

    def write(decisions: Any, path: Path, kind: str) -> int:
        path.write_bytes(bytes(SIZE))
        return 1

    monkeypatch.setattr(export, "write", write)
    return spool_in(tmp_path, monkeypatch)


@contextmanager
def asking(service: Service, key: dict[str, str]) -> Iterator[socket.socket]:
    """A client that asks for a log and reads the start of it."""
    lines = [
        "GET /v1/experiments/one/log HTTP/1.1",
        "Host: localhost",
        f"Authorization: {key['Authorization']}",
    ]
    with service.line() as client:
        # With a much smaller one, what the system still has would trickle for minutes.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        client.sendall("\r\n".join([*lines, "", ""]).encode())
        assert client.recv(16).startswith(b"HTTP/1.1 200")
        yield client


def status(service: Service, key: dict[str, str]) -> int:
    with service.http.stream("GET", "/v1/experiments/one/log", headers=key) as answer:
        read = sum(map(len, answer.iter_raw()))
        assert answer.status_code != 200 or read == SIZE
        return answer.status_code


def keys(service: Service, *tenants: str) -> list[dict[str, str]]:
    found = [service.key("admin", tenant) for tenant in tenants]
    for key in found:
        service.create("one", key)
    return found


def test_a_client_that_does_not_read_holds_its_share_of_the_disk(tmp_path: Path, spool: Path) -> None:
    with served(tmp_path, open_to_all=False, limits=Limits(spool=3 * SIZE + 1)) as service:
        one, two = keys(service, "shop", "bank")
        with asking(service, one):
            assert len(list(spool.iterdir())) == 1
            assert status(service, one) == 429, "it would have more than is left for others"
            assert status(service, two) == 200
            wait_for(lambda: len(list(spool.iterdir())) == 1)
        wait_for(lambda: not list(spool.iterdir()))  # the client is gone
        assert status(service, one) == 200


def test_a_client_that_does_not_read_is_cut_off_after_a_while(tmp_path: Path, spool: Path) -> None:
    limits = Limits(spool=2 * SIZE, export_seconds=0.3)
    with served(tmp_path, open_to_all=False, limits=limits) as service:
        [one] = keys(service, "shop")
        with asking(service, one) as client:
            wait_for(lambda: not list(spool.iterdir()))
            read = 0
            while part := client.recv(1 << 20):
                read += len(part)
            assert read < SIZE, "and knows that it has not read all"
        with asking(service, one):
            pass
        wait_for(lambda: not list(spool.iterdir()))


def test_an_export_ends_when_it_becomes_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = spool_in(tmp_path, monkeypatch)
    sizes, logged = list[int](), export.logged

    def noted(*arguments: Any, **options: Any) -> Iterator[Any]:
        for each in logged(*arguments, **options):
            sizes.append(sum(file.stat().st_size for file in spool.rglob("*") if file.is_file()))
            yield each

    monkeypatch.setattr(export, "logged", noted)
    monkeypatch.setattr(export, "_AT_ONCE", 50)
    monkeypatch.setattr("decoupled_serve.service.http.routes.logs.COUNTED_EVERY", 50)
    with served(tmp_path, limits=Limits(spool=60_000)) as service:
        service.create("one")
        service.decide("one", count=1000)
        for format in ("csv", "parquet"):  # noqa: A001
            sizes.clear()
            answer = service.http.get("/v1/experiments/one/log", params={"format": format})
            assert (answer.status_code, answer.headers["retry-after"]) == (429, "10")
            assert 10_000 < sizes[-1] < 60_000
            assert len(sizes) < 1000, "it was ended early"
        assert list(spool.iterdir()) == []
        service.create("small")
        service.decide("small", count=10)
        assert service.http.get("/v1/experiments/small/log").status_code == 200
