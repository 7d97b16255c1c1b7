"""API keys: the first one from a file, and revoked ones, which stop at once."""

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from decoupled.errors import ParameterError
from decoupled_serve.service.http.admission import LABEL, digest_of, new_key, register_admin_key
from decoupled_serve.service.service import DecisionService, open_service
from support.command_line import said
from support.http_service import Service, served
from support.stores import both_stores, quick_service


def active(service: DecisionService) -> set[str]:
    return {key.digest for key in service.keys.list().result() if key.revoked_at is None}


@both_stores
def test_a_store_gets_the_key_once_and_keeps_earlier_ones(tmp_path: Path, address: str) -> None:
    file, first, second = tmp_path / "key", new_key(), new_key()
    service = quick_service(address)
    for key in (first, first, second, second):
        file.write_text(f"{key}\n")
        register_admin_key(service.keys, file)
    keys = service.keys.list().result()
    assert [(key.tenant, key.role, key.label) for key in keys] == [("local", "admin", LABEL)] * 2
    assert active(service) == {digest_of(first), digest_of(second)}, "a rolling restart uses both"
    assert first not in repr(keys)


def test_revoked_keys_and_no_keys_are_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file, key = tmp_path / "key", new_key()
    file.write_text(key)
    service = quick_service(str(tmp_path / "store.db"))
    register_admin_key(service.keys, file)
    service.keys.revoke(digest_of(key)).result()
    with caplog.at_level(logging.WARNING):
        register_admin_key(service.keys, file)
    assert not active(service)
    assert "was revoked; put another key there" in caplog.text
    assert key not in caplog.text
    other = new_key()
    service.keys.add("shop", "decide", digest_of(other)).result()
    file.write_text(other)
    register_admin_key(service.keys, file)
    assert "is the key of tenant shop with the role decide" in caplog.text, (
        "it is not raised to admin"
    )
    assert service.keys.find(digest_of(other)).result().role == "decide"  # type: ignore[union-attr]
    before = service.keys.list().result()
    for content in ("", "short", "two\nlines" * 20, "a b" * 20):
        file.write_text(content)
        with pytest.raises(ParameterError) as caught:
            register_admin_key(service.keys, file)
        assert not content or content not in str(caught.value).replace(str(file), "")
    assert service.keys.list().result() == before


def test_replicas_that_start_together_add_it_once(tmp_path: Path, postgres: str) -> None:
    file = tmp_path / "key"
    file.write_text(new_key())
    with ThreadPoolExecutor(4) as pool:  # on an empty database: they also create the tables
        services = list(pool.map(lambda _: quick_service(postgres), range(4)))
        list(pool.map(lambda service: register_admin_key(service.keys, file), services))
    assert len(services[0].keys.list().result()) == 1


ROUNDS = 3  # with a new key each, so that luck with the moment of a commit would show


@pytest.fixture
def replicas(address: str) -> Iterator[list[Service]]:
    with ExitStack() as stack:
        yield [stack.enter_context(served(address, open_to_all=True)) for _ in range(2)]


def by_service(service: DecisionService, address: str, digest: str) -> None:
    service.keys.revoke(digest).result()


def by_command(service: DecisionService, address: str, digest: str) -> None:
    """As `decoupled keys revoke`, which has a connection of its own and shares nothing with the services."""
    said("keys", "revoke", digest[:12], "--store", address)


def asked(service: Service, header: dict[str, str], decision: str) -> dict[str, int]:
    """The status of a request to each kind of route."""
    http = service.http
    return {
        "decide": http.post("/v1/experiments/one/decisions", json={}, headers=header).status_code,
        "feedback": http.put(
            f"/v1/decisions/{decision}/feedback", json={"loss": 0.5}, headers=header
        ).status_code,
        "list": http.get("/v1/experiments", headers=header).status_code,
        "log": http.get("/v1/experiments/one/log", headers=header).status_code,
        "metrics": http.get("/metrics", headers=header).status_code,
    }


@both_stores
@pytest.mark.parametrize("revoke", [by_service, by_command])
def test_a_revoked_key_stops_at_once(
    replicas: list[Service], address: str, revoke: Callable[[DecisionService, str, str], None]
) -> None:
    first = replicas[0]
    keeper = first.key("admin")
    first.create("one", keeper)
    for _ in range(ROUNDS):
        header = first.key("admin")
        decision = first.http.post("/v1/experiments/one/decisions", json={}, headers=header).json()[
            "id"
        ]
        for each in replicas:  # both know the key
            assert set(asked(each, header, decision).values()) == {200, 201}
        revoke(first.direct, address, digest_of(header["Authorization"].removeprefix("Bearer ")))
        for each in replicas[::-1]:
            assert set(asked(each, header, decision).values()) == {401}
        assert set(asked(first, keeper, decision).values()) == {200, 201}, "other keys go on"


def test_a_service_without_keys_needs_one_from_the_first_on(replicas: list[Service]) -> None:
    first, second = replicas
    first.create("one")
    decision = first.decide("one")["id"]
    for each in replicas:
        assert set(asked(each, {}, decision).values()) == {200, 201}
    first.key("read")
    assert set(asked(second, {}, decision).values()) == {401}
    assert set(asked(first, {}, decision).values()) == {401}


def test_keys_are_not_looked_up_for_each_decision(replicas: list[Service]) -> None:
    """The hot routes read one number in a transaction. The keys themselves are read once."""
    service = replicas[0]
    header = service.key("admin")
    service.create("one", header)
    store, read = service.direct._session.store, list[str]()
    run = store.run

    def noted(sql: str, values: object = ()) -> list[object]:
        read.append(sql)
        return run(sql, values)  # type: ignore[arg-type]

    store.run = noted  # type: ignore[method-assign]
    for _ in range(20):
        assert service.http.post("/v1/experiments/one/decisions", headers=header).status_code == 201
    assert sum("key_changes" in sql for sql in read) >= 20
    assert sum("api_keys" in sql for sql in read) <= 1


def test_a_command_that_waits_is_checked_when_it_runs(address: str) -> None:
    """The permit is that of the moment at which a command runs, also if it was queued with a valid one."""
    service = open_service(address)
    service.keys.add("local", "admin", "d" * 64).result()
    permits = service._session.keys

    def check() -> None:
        service._commits.submit(lambda session: None, permit="d" * 64).result()

    check()
    other = open_service(address)
    other.keys.revoke("d" * 64).result()
    other.close()
    with pytest.raises(Exception, match="revoked"):
        check()
    assert permits._valid == {"d" * 64: False}
    service.close()
