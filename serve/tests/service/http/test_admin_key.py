"""The admin key in a file: a fresh store gets it, and rotation leaves the others alone."""

import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from decoupled.errors import ParameterError
from decoupled_serve.service.http.admission import LABEL, digest_of, new_key, register_admin_key
from decoupled_serve.service.service import DecisionService
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


def test_a_revoked_key_stays_revoked(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
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
    assert "is the key of tenant shop with the role decide" in caplog.text, "it is not raised to admin"
    assert service.keys.find(digest_of(other)).result().role == "decide"  # type: ignore[union-attr]


def test_what_is_no_key_is_refused_and_not_shown(tmp_path: Path) -> None:
    file, service = tmp_path / "key", quick_service(str(tmp_path / "store.db"))
    for content in ("", "short", "two\nlines" * 20, "a b" * 20):
        file.write_text(content)
        with pytest.raises(ParameterError) as caught:
            register_admin_key(service.keys, file)
        assert not content or content not in str(caught.value).replace(str(file), "")
    assert not service.keys.list().result()


def test_replicas_that_start_together_add_it_once(tmp_path: Path, postgres: str) -> None:
    file = tmp_path / "key"
    file.write_text(new_key())
    with ThreadPoolExecutor(4) as pool:  # on an empty database: they also create the tables
        services = list(pool.map(lambda _: quick_service(postgres), range(4)))
        list(pool.map(lambda service: register_admin_key(service.keys, file), services))
    assert len(services[0].keys.list().result()) == 1
