"""`decoupled migrate`, and replicas that start at the same time on an empty or an old database."""

import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from typer.testing import CliRunner

from decoupled.cli.main import app
from decoupled_serve.service.store import postgres as postgres_store
from decoupled_serve.service.store import schema
from decoupled_serve.service.store import store as tables
from decoupled_serve.service.store.open import migrated, open_store
from decoupled_serve.service.store.schema import MIGRATIONS
from support.stores import both_stores

run = CliRunner().invoke
LAST = len(MIGRATIONS)
WAITING_LONG = """SELECT count(*) FROM pg_stat_activity
    WHERE wait_event = 'advisory' AND clock_timestamp() - query_start > interval '500 ms'"""


@both_stores
def test_it_creates_updates_and_does_nothing(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DECOUPLED_STORE", address)
    assert run(app, ["migrate"]).stdout.endswith(f": version {LAST}, created\n")
    assert run(app, ["migrate"]).stdout.endswith(f": version {LAST}, nothing to do\n")


@both_stores
def test_it_updates_an_earlier_release(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert migrated(address)[1:] == (0, LAST)
    for module in (schema, tables):
        monkeypatch.setattr(module, "MIGRATIONS", (*MIGRATIONS, ("CREATE TABLE t (x {integer})",)))
    assert migrated(address)[1:] == (LAST, LAST + 1)
    store = open_store(address)
    assert store.run("SELECT * FROM t") == []
    store.close()


def test_a_password_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DECOUPLED_STORE", "postgresql://shop:secret@127.0.0.1:1/shop?connect_timeout=1")
    done = run(app, ["migrate"])
    assert done.exit_code == 1
    assert "secret" not in done.output


def test_one_replica_migrates_and_the_others_wait(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # The wait for a row ends long before this migration does, but the wait for a migration does not.
    monkeypatch.setattr(postgres_store, "PATIENCE", "200ms")
    with psycopg.connect(postgres) as migrating, ThreadPoolExecutor(4) as pool:
        migrating.execute("SELECT pg_advisory_xact_lock(%s)", (postgres_store._MIGRATING,))
        waiting = [pool.submit(migrated, postgres) for _ in range(4)]
        with psycopg.connect(postgres, autocommit=True) as watching:
            tick = threading.Event()
            while watching.execute(WAITING_LONG).fetchone() != (4,):
                assert not any(each.done() for each in waiting)
                tick.wait(0.01)
        migrating.rollback()
        found = sorted(each.result(30)[1:] for each in waiting)
    assert {after for _, after in found} == {LAST}
    with psycopg.connect(postgres) as connection:
        rows = connection.execute("SELECT version FROM schema_migrations ORDER BY version").fetchall()
    assert rows == [(version,) for version in range(1, LAST + 1)], "each ran once"
    store = open_store(postgres)
    try:
        store.begin()
        store.lock_schema()
        assert store.run("SHOW lock_timeout") == [("200ms",)], "rows are waited for as before"
        store.rollback()
    finally:
        store.close()
