"""The files of a store: which commands create, migrate and replace them, and how errors are reported."""

import hashlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import apsw
import psycopg
import pytest

from decoupled.client.errors import Conflict, StoreError
from decoupled_serve.service.analysis.doctor import Check, examine
from decoupled_serve.service.service import DecisionService, open_service
from decoupled_serve.service.store import postgres as postgres_store
from decoupled_serve.service.store import schema
from decoupled_serve.service.store import store as tables
from decoupled_serve.service.store.backup import restore
from decoupled_serve.service.store.open import migrated, open_store
from decoupled_serve.service.store.schema import MIGRATIONS
from decoupled_serve.service.store.sqlite import SqliteStore, mismatch
from support.command_line import run
from support.stores import both_stores

KEY = "a" * 64


def store_with_a_key(path: Path, digest: str = KEY) -> DecisionService:
    service = open_service(path)
    service.keys.add("local", "admin", digest).result()
    return service


def keys_of(path: Path) -> list[str]:
    service = open_service(path, create=False)
    try:
        return [key.digest for key in service.keys.list().result()]
    finally:
        service.close()


def digest_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def failed(*arguments: str | Path) -> str:
    """The error message of a command that fails, which is one line."""
    result = run(*arguments)
    assert result.exit_code == 1, result.output
    [line] = result.output.splitlines()
    return line


def back_up(target: Path, store: Path, *force: str) -> None:
    assert run("backup", target, "--store", store, *force).exit_code == 0


@pytest.fixture
def store(tmp_path: Path) -> Path:
    store_with_a_key(tmp_path / "store.db").close()
    return tmp_path / "store.db"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "copy.db"


def finding(path: Path | str, name: str) -> Check:
    return next(check for check in examine(path) if check.name == name)


OTHERS = [("keys", "add"), ("keys", "list"), ("keys", "revoke", "abc"), ("keys", "rotate", "abc")]
OTHERS += [("backup", "copy.db")]


@pytest.mark.parametrize("command", OTHERS, ids=" ".join)
def test_a_store_is_created_by_serve_alone(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    line = failed(*command, "--store", "typo.db")
    assert str(tmp_path / "typo.db") in line
    assert "does not exist" in line
    assert "decoupled serve" in line
    assert list(tmp_path.iterdir()) == []


def test_a_store_and_its_copies_are_for_their_owner_alone(tmp_path: Path) -> None:
    def permissions() -> set[str]:
        return {f"{each.name} {each.stat().st_mode & 0o777:o}" for each in tmp_path.iterdir()}

    store, before = tmp_path / "store.db", os.umask(0o022)
    try:
        with closing(store_with_a_key(store)):
            assert permissions() == {"store.db 600", "store.db-wal 600", "store.db-shm 600"}
        back_up(tmp_path / "copy.db", store)
        restore(tmp_path / "copy.db", tmp_path / "again.db")
        store.chmod(0o640)
        store_with_a_key(store, "b" * 64).close()
        assert permissions() == {"store.db 640", "copy.db 600", "again.db 600"}, "a choice is kept"
    finally:
        os.umask(before)


@both_stores
def test_an_empty_database_gets_no_tables_either(address: str, tmp_path: Path) -> None:
    if not address.startswith("postgresql"):
        Path(address).touch()
    line = failed("backup", tmp_path / "copy.db", "--store", address)
    assert "has no tables of the service" in line
    assert "decoupled serve" in line
    result = run("doctor", "--store", address)
    assert (result.exit_code, result.output[:12]) == (1, "FAIL store: ")
    store = open_store(address)
    assert not store.has_tables()
    store.close()
    assert not (tmp_path / "copy.db").exists()


def test_another_programs_database_stays_as_it_is_and_a_copy_by_another_is_a_store(
    tmp_path: Path,
) -> None:
    other = tmp_path / "bookmarks.sqlite"
    connection = apsw.Connection(str(other))
    connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.close()
    before = digest_of(other)
    assert "has no tables" in failed("keys", "add", "--store", other)
    assert "FAIL store" in run("doctor", "--store", other).output
    assert digest_of(other) == before, "not even its journal mode"
    service = store_with_a_key(tmp_path / "store.db")
    connection = apsw.Connection(str(tmp_path / "store.db"))
    connection.execute("VACUUM INTO ?", (str(tmp_path / "copy.db"),))
    connection.close()
    service.close()
    with closing(SqliteStore(tmp_path / "copy.db")) as store, closing(store.reader()):
        pass
    assert keys_of(tmp_path / "copy.db") == [KEY]


def test_a_backup_replaces_a_file_only_if_forced(store: Path, target: Path, tmp_path: Path) -> None:
    target.write_text("a shopping list")
    line = failed("backup", target, "--store", store)
    assert str(target) in line
    assert "exists already" in line
    assert "--force" in line
    assert target.read_text() == "a shopping list"
    for _ in range(2):
        back_up(target, store, "--force")
    assert keys_of(target) == [KEY]
    assert "not a regular file" in failed("backup", tmp_path, "--store", store, "--force")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["copy.db", "store.db"]


def test_a_store_in_use_is_never_replaced(store: Path, tmp_path: Path) -> None:
    used = tmp_path / "used.db"
    service = store_with_a_key(used, "b" * 64)
    (tmp_path / "folder").mkdir()
    for name, kept in (("used", used), ("store", store)):
        (tmp_path / f"{name}-symbolic.db").symlink_to(kept)
        (tmp_path / f"{name}-hard.db").hardlink_to(kept)
    before = sorted(tmp_path.iterdir())
    for name, words in (
        *(
            (each, "in use")
            for each in ("used.db", "used-symbolic.db", "used-hard.db", "folder/../used.db")
        ),
        *(
            (each, "is the store itself")
            for each in ("store.db", "store-symbolic.db", "store-hard.db")
        ),
    ):
        for force in ((), ("--force",)):
            line = failed("backup", tmp_path / name, "--store", store, *force)
            assert words in line
            assert "--force" not in line
    assert sorted(tmp_path.iterdir()) == before
    service.keys.add("local", "read", "c" * 64).result()
    shutil.copy(used, tmp_path / "copy.db")  # without its log
    service.close()
    assert (keys_of(used), keys_of(store)) == (["b" * 64, "c" * 64], [KEY])
    with pytest.raises(StoreError, match=r"copy\.db-wal.*is lost"):
        open_service(tmp_path / "copy.db")


def test_a_backup_is_not_put_under_the_log_of_another_store(crashed: Path, tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    store_with_a_key(store, "b" * 64).close()
    assert "was not closed" in failed("backup", crashed, "--store", store, "--force")
    crashed.rename(tmp_path / "elsewhere.db")
    assert "its log does" in failed("backup", crashed, "--store", store)
    (tmp_path / "elsewhere.db").rename(crashed)
    assert keys_of(crashed) == [KEY], "it did not change"


def test_starting_amid_a_backup_is_safe(
    store: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_with_a_key(target, "b" * 64).close()
    started: list[DecisionService] = []
    compact = SqliteStore.compact

    def start_then_compact(self: SqliteStore) -> None:
        started.append(open_service(target))
        compact(self)

    monkeypatch.setattr(SqliteStore, "compact", start_then_compact)
    service = open_service(store)
    with pytest.raises(Conflict, match="in use"):
        service.logs.backup(target, force=True).result()
    service.close()
    started[0].close()
    assert keys_of(target) == ["b" * 64]


def test_of_two_backups_to_one_name_one_is_written(
    store: Path, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compact = SqliteStore.compact

    def compact_too_late(self: SqliteStore) -> None:
        compact(self)
        target.write_text("the other was faster")

    monkeypatch.setattr(SqliteStore, "compact", compact_too_late)
    assert "exists already" in failed("backup", target, "--store", store)
    assert target.read_text() == "the other was faster"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["copy.db", "store.db"]


def test_restore_takes_backups_only_and_leaves_them(
    store: Path, target: Path, tmp_path: Path
) -> None:
    new = tmp_path / "new.db"
    (tmp_path / "list.txt").write_text(
        "a shopping list, long enough to be taken for a database" * 50
    )
    (tmp_path / "empty.db").touch()
    assert "not a SQLite database" in failed("restore", tmp_path / "list.txt", "--store", new)
    assert "decoupled backup" in failed("restore", tmp_path / "empty.db", "--store", new)
    assert "does not exist" in failed("restore", tmp_path / "none.db", "--store", new)
    assert not new.exists()
    back_up(target, store)
    before = digest_of(target)
    assert "the backup itself" in failed("restore", target, "--store", target)
    for into in (new, store):  # the second has a key of its own, and no experiments
        assert run("restore", target, "--store", into).exit_code == 0
        assert keys_of(into) == [KEY]
    assert finding(target, "schema").good
    assert digest_of(target) == before


def test_a_backup_of_an_earlier_release_is_restored_and_stays_as_it_is(
    store: Path, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    back_up(target, store)
    before = digest_of(target)
    more = (*schema.MIGRATIONS, ("ALTER TABLE api_keys ADD COLUMN colour TEXT",))
    monkeypatch.setattr(tables, "MIGRATIONS", more)
    monkeypatch.setattr(schema, "MIGRATIONS", more)
    monkeypatch.setattr("decoupled_serve.service.store.backup.MIGRATIONS", more)
    restore(target, tmp_path / "new.db")
    assert keys_of(tmp_path / "new.db") == [KEY]
    assert digest_of(target) == before
    monkeypatch.undo()
    with pytest.raises(
        StoreError, match=f"has version {len(more)} and this release knows {len(more) - 1}"
    ):
        restore(tmp_path / "new.db", tmp_path / "third.db")


CRASH = """
import os, signal, sys
from decoupled_serve.service.service import open_service
service = open_service(sys.argv[1])
service.keys.add("local", "admin", "a" * 64).result()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a service that was killed: its key is only in the log."""
    folder = tmp_path_factory.mktemp("killed")
    done = subprocess.run([sys.executable, "-c", CRASH, str(folder / "crashed.db")])
    assert done.returncode == -signal.SIGKILL
    assert (folder / "crashed.db-wal").stat().st_size > 0
    return folder


@pytest.fixture
def crashed(killed: Path, tmp_path: Path) -> Path:
    """The store that it left."""
    for file in killed.iterdir():
        shutil.copy(file, tmp_path)
    return tmp_path / "crashed.db"


def overwritten(path: Path, folder: Path) -> None:
    """Put a backup in the place of a store, as a plain copy does."""
    service = open_service(folder / "other.db")
    service.logs.backup(folder / "copy.db").result()
    service.close()
    shutil.copy(folder / "copy.db", path)


def test_doctor_notices_a_store_that_was_overwritten_under_its_log(
    crashed: Path, tmp_path: Path
) -> None:
    overwritten(crashed, tmp_path)
    files = {each: digest_of(each) for each in tmp_path.glob("crashed.db*")}
    [check] = examine(crashed)
    assert (check.name, check.good) == ("store", False)
    for word in (
        str(crashed),
        "was replaced while it was in use",
        "crashed.db-wal",
        "restore a backup",
    ):
        assert word in check.finding
    assert "was replaced" in failed("keys", "list", "--store", crashed)
    assert "was replaced" in failed("serve", "--store", crashed, "--port", "0")
    assert {each: digest_of(each) for each in tmp_path.glob("crashed.db*")} == files, (
        "nothing was mixed"
    )


@pytest.mark.parametrize("left", ["empty", "missing"])
def test_a_log_without_its_store_is_not_dropped(left: str, crashed: Path, tmp_path: Path) -> None:
    log = tmp_path / "crashed.db-wal"
    before = digest_of(log)
    crashed.unlink()
    if left == "empty":
        crashed.touch()
    [check] = examine(crashed)
    assert (check.name, check.good) == ("store", False)
    assert str(log) in check.finding
    assert str(log) in failed("serve", "--store", crashed, "--port", "0")
    assert digest_of(log) == before


def test_examining_a_store_that_crashed_changes_nothing(crashed: Path, tmp_path: Path) -> None:
    before = [digest_of(tmp_path / name) for name in ("crashed.db", "crashed.db-wal")]
    assert all(check.good for check in examine(crashed) if check.name != "disk")
    assert [digest_of(tmp_path / name) for name in ("crashed.db", "crashed.db-wal")] == before
    assert keys_of(crashed) == [KEY]
    assert sorted(tmp_path.iterdir()) == [crashed]


LOSSES: dict[str, Callable[[Path], object]] = {
    "removed": Path.unlink,
    "emptied": lambda log: log.write_bytes(b""),
    "cut off": lambda log: log.write_bytes(log.read_bytes()[:11]),
    "overwritten": lambda log: log.write_bytes(bytes(log.stat().st_size)),
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("index", ["kept", "removed"])
def test_a_lost_log_is_noticed_at_the_start(
    loss: str, index: str, crashed: Path, tmp_path: Path
) -> None:
    log = tmp_path / "crashed.db-wal"
    content = log.read_bytes()
    LOSSES[loss](log)
    if index == "removed":
        (tmp_path / "crashed.db-shm").unlink()
    files = {each: digest_of(each) for each in tmp_path.iterdir()}
    [check] = examine(crashed)
    assert (check.name, check.good) == ("store", False)
    for word in (str(log), "acknowledged last", "restore a backup"):
        assert word in check.finding
    for command in (
        ("keys", "list"),
        ("serve", "--port", "0"),
        ("backup", str(tmp_path / "copy.db")),
    ):
        assert "lost or damaged" in failed(*command, "--store", crashed)
    assert {each: digest_of(each) for each in tmp_path.iterdir()} == files
    log.write_bytes(content)
    assert keys_of(crashed) == [KEY]


def test_a_lost_log_can_be_accepted(crashed: Path, tmp_path: Path) -> None:
    (tmp_path / "crashed.db-wal").unlink()
    with pytest.raises(StoreError) as refused:
        open_service(crashed)
    statement = re.search('"(PRAGMA[^"]*)"', str(refused.value))
    assert statement is not None
    connection = apsw.Connection(str(crashed))
    connection.execute(statement[1])
    connection.close()
    with closing(open_service(crashed)) as service:
        assert service.keys.list().result() == []


@pytest.mark.parametrize("ends", ["closed", "killed"])
def test_removing_a_log_in_use_is_noticed_and_loses_nothing(ends: str, tmp_path: Path) -> None:
    path, copy = tmp_path / "store.db", tmp_path / "copy.db"
    service = store_with_a_key(path)
    (tmp_path / "store.db-wal").unlink()
    with pytest.raises(StoreError, match=r"-wal, was replaced or removed while in use"):
        service.keys.list().result()
    assert not service.ready()
    if ends == "closed":
        service.close()
        assert keys_of(path) == [KEY]
        return
    shutil.copy(path, copy)  # what a kill would leave
    with pytest.raises(StoreError, match="is lost"):
        open_service(copy)
    connection = apsw.Connection(str(copy))
    connection.pragma("user_version", 0)
    connection.close()
    assert keys_of(copy) == [KEY]
    service.close()


@pytest.mark.parametrize("left", [0, 40])
def test_a_log_that_is_cut_off_while_in_use_is_noticed_and_never_merged(
    left: int, tmp_path: Path
) -> None:
    path = tmp_path / "store.db"
    service = store_with_a_key(path)
    service.keys.list().result()  # it has seen how long the log is
    os.truncate(tmp_path / "store.db-wal", left)
    with pytest.raises(StoreError, match=r"-wal, was emptied or cut off while in use"):
        service.keys.list().result()
    service.close()
    assert (tmp_path / "store.db-wal").stat().st_size == left
    if left == 0:  # one that is cut off in its middle is not noticed later
        with pytest.raises(StoreError, match="is lost"):
            open_service(path)


def test_the_last_of_several_programs_merges_the_log(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    service = store_with_a_key(path)
    other = SqliteStore(path)
    reader = other.reader()
    service.close()
    assert (tmp_path / "store.db-wal").stat().st_size > 0
    shutil.copy(path, tmp_path / "copy.db")
    with pytest.raises(StoreError, match="is lost"):
        SqliteStore(tmp_path / "copy.db")
    reader.close()
    other.close()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["copy.db", "store.db"]
    assert keys_of(path) == [KEY]


OPENING = """
import sys
from decoupled_serve.service.store.sqlite import SqliteStore
print("ready", flush=True)
while True:
    store = SqliteStore(sys.argv[1])
    store.migrate(0.0)
    store.close()
"""


def test_programs_that_open_and_close_a_store_at_once_do_not_disturb_each_other(
    tmp_path: Path,
) -> None:
    program = OPENING.replace("while True", "for _ in range(40)")
    command = [sys.executable, "-c", program, str(tmp_path / "store.db")]
    running = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(3)]
    assert [each.wait(120) for each in running] == [0, 0, 0]
    SqliteStore(tmp_path / "store.db").close()
    assert [each.name for each in tmp_path.iterdir()] == ["store.db"], "who is alone merges the log"


def test_a_kill_while_a_store_is_opened_or_closed_is_no_lost_log(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    waits = random.Random(7)
    for _ in range(8):
        process = subprocess.Popen(
            [sys.executable, "-c", OPENING, str(path)], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        time.sleep(0.05 + waits.random() * 0.1)
        process.kill()
        process.wait()
        process.stdout.close()
        assert mismatch(str(path)) is None
        SqliteStore(path).close()


def test_doctor_says_what_an_empty_store_may_mean_and_finds_rows_without_an_experiment(
    store: Path,
) -> None:
    check = finding(store, "experiments")
    assert check.good
    assert "restore a backup" in check.finding
    connection = apsw.Connection(str(store))
    connection.execute("INSERT INTO changed VALUES (7, 1, 'archived', '', 0.0)")
    connection.close()
    check = finding(store, "experiments")
    assert (check.good, "rows of 1 others" in check.finding) == (False, True)


def test_a_store_that_loses_its_name_acknowledges_nothing_more(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    service = store_with_a_key(store)
    store.rename(tmp_path / "moved.db")
    with pytest.raises(StoreError, match="replaced, moved or removed") as caught:
        service.keys.add("local", "read", "b" * 64).result()
    assert str(tmp_path) not in str(caught.value), "who asks over HTTP learns no paths"
    assert not service.ready()
    (tmp_path / "moved.db").rename(store)
    service.keys.add("local", "read", "b" * 64).result()
    service.close()
    assert keys_of(store) == [KEY, "b" * 64]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("/postgres?", "/nowhere?"), ["/nowhere'", "does not exist", "create the database"]),
        (("tester@", "stranger:secret@"), ["stranger@", "does not exist", "create the role"]),
        (("?host=", "?host=/nowhere"), ["No such file", "check that the server is running"]),
        (("?host=", "?nonsense=secret&host="), ["is not a PostgreSQL address", "USER@HOST"]),
    ],
    ids=["database", "role", "server", "address"],
)
def test_errors_hide_a_databases_password(
    change: tuple[str, str], words: list[str], server: str
) -> None:
    with pytest.raises(StoreError) as caught:
        open_store(server.replace(*change))
    text = str(caught.value)
    assert text.startswith("store = 'postgresql://")
    assert "secret" not in text
    assert "try again" not in text
    assert all(word in text for word in words), text


@pytest.mark.parametrize(
    "address", ["host=db password=secret", "postgresql://shop:pass@secret@db/shop"]
)
def test_addresses_hide_passwords(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        StoreError, match=r"store = '\(hidden\)': is .* PostgreSQL address"
    ) as caught:
        open_store(address)
    assert "secret" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_unusable_stores_say_where_why_and_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "text.db").write_text("not a database, but long enough to be taken for one" * 100)
    os.mkfifo(tmp_path / "pipe.db")
    holder = apsw.Connection(str(tmp_path / "locked.db"))
    holder.execute("CREATE TABLE t (x); BEGIN EXCLUSIVE")
    monkeypatch.setattr(SqliteStore, "busy_timeout", 1)
    for name, why, remedy in (
        ("no/such/store.db", f"the folder '{tmp_path}/no/such' does not exist", "create it"),
        (".", "is a folder", "name a file in it"),
        ("text.db", "is not a SQLite database", "correct the path"),
        ("pipe.db", "is not a regular file", "correct the path"),
        ("locked.db", "is locked by another program", "end that program"),
    ):
        with pytest.raises(StoreError) as caught:
            open_service(tmp_path / name)
        assert str(caught.value).startswith(f"store = '{os.path.normpath(tmp_path / name)}': ")
        assert why in str(caught.value)
        assert remedy in str(caught.value)
    holder.close()


LAST = len(MIGRATIONS)
WAITING_LONG = """SELECT count(*) FROM pg_stat_activity
    WHERE wait_event = 'advisory' AND clock_timestamp() - query_start > interval '500 ms'"""


@both_stores
def test_it_creates_updates_and_does_nothing(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DECOUPLED_STORE", address)
    assert run("migrate").stdout.endswith(f": version {LAST}, created\n")
    assert run("migrate").stdout.endswith(f": version {LAST}, nothing to do\n")


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
    monkeypatch.setenv(
        "DECOUPLED_STORE", "postgresql://shop:secret@127.0.0.1:1/shop?connect_timeout=1"
    )
    done = run("migrate")
    assert done.exit_code == 1
    assert "secret" not in done.output


def test_one_replica_migrates_and_the_others_wait(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        rows = connection.execute(
            "SELECT version FROM schema_migrations ORDER BY version"
        ).fetchall()
    assert rows == [(version,) for version in range(1, LAST + 1)], "each ran once"
    store = open_store(postgres)
    try:
        store.begin()
        store.lock_schema()
        assert store.run("SHOW lock_timeout") == [("200ms",)], "rows are waited for as before"
        store.rollback()
    finally:
        store.close()
