"""Stores for the service's tests: a SQLite file, and a PostgreSQL server."""

import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias
from unittest.mock import patch

import pytest

from decoupled.client import StoreError
from decoupled_serve.service.analysis.doctor import examine
from decoupled_serve.service.experiment.records import Settings
from decoupled_serve.service.memory.session import Reference, Session
from decoupled_serve.service.service import DecisionService
from decoupled_serve.service.store.open import open_store
from decoupled_serve.service.store.sqlite import SqliteStore
from support.waiting import Clock

FTPL = Settings({"name": "FTPL"}, ("a", "b", "c"))
Opened: TypeAlias = Callable[..., DecisionService]  # what the fixture `opened` is


def _binaries() -> Path | None:
    found = shutil.which("initdb")
    places = [Path(found).parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "initdb").exists()), None)


def _as_a_user(folder: Path) -> list[str]:
    """PostgreSQL does not run as root, so run it as its own user."""
    if os.getuid() != 0:
        return []
    shutil.chown(folder, "postgres")
    return ["runuser", "-u", "postgres", "--"]


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The address of a PostgreSQL server for these tests only."""
    binaries = _binaries()
    if binaries is None:
        pytest.skip("PostgreSQL is not installed here: its store was NOT tested")
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    run = _as_a_user(folder)
    data = folder / "data"
    options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c max_connections=50 -c fsync=off -c autovacuum=off"
    initdb = [
        *run,
        str(binaries / "initdb"),
        "-D",
        str(data),
        "-U",
        "tester",
        "-A",
        "trust",
        "--no-sync",
    ]
    subprocess.run(initdb, check=True, capture_output=True, cwd=folder)
    control = [*run, str(binaries / "pg_ctl"), "-D", str(data)]
    subprocess.run(
        [*control, "-w", "-l", str(data / "log"), "-o", options, "start"],
        check=True,
        capture_output=True,
        cwd=folder,
    )
    yield f"postgresql://tester@/postgres?host={folder}"
    subprocess.run(
        [*control, "-m", "immediate", "-W", "stop"], check=True, capture_output=True, cwd=folder
    )
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres(server: str) -> str:
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    return server


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


@pytest.fixture
def address(request: pytest.FixtureRequest, file: str) -> str:
    """An empty store: a file, or what `both_stores` asks for."""
    kind = getattr(request, "param", "sqlite")
    return file if kind == "sqlite" else str(request.getfixturevalue(kind))


# For tests of what the databases do differently. The model of the service runs on both, so most others need not.
both_stores = pytest.mark.parametrize("address", ["sqlite", "postgres"], indirect=True)


_open: list[DecisionService] = []


def quick_service(address: str, **options: Any) -> DecisionService:
    """A service whose commits do not wait for the disk: most tests are about something else. It ends with the test."""
    store = (
        open_store(address)
        if address.startswith("postgresql")
        else SqliteStore(address, synchronous="OFF")
    )
    _open.append(DecisionService(store, **options))
    return _open[-1]


def started(
    address: str, settings: Settings = FTPL, name: str = "one", tenant: str = "me", **options: Any
) -> DecisionService:
    service = quick_service(address, **options)
    service.experiments.put(tenant, name, settings, seed=7).result()
    return service


def killed(service: DecisionService) -> None:
    """End a service as a crash would: no snapshot is written."""
    service._commits.close()
    service._session.store.close()


def faults(address: str | Path, now: Callable[[], float] = time.time) -> list[str]:
    """What the doctor finds wrong with a store, besides what stores for tests are."""
    about_tests = ("disk", "durability", "clock")
    return [
        str(each)
        for each in examine(address, now=now)
        if not each.good and each.name not in about_tests
    ]


@contextmanager
def held(service: DecisionService) -> Iterator[None]:
    """Holds up the thread that runs commands for the length of a block: what is asked in it shares transactions."""
    begun, go_on = threading.Event(), threading.Event()

    def hold(session: Session) -> None:
        begun.set()
        assert go_on.wait(60)

    service._commits.submit(hold)
    assert begun.wait(60)
    try:
        yield
    finally:
        go_on.set()


@contextmanager
def full_disk(service: DecisionService) -> Iterator[None]:
    """No transaction can be committed during a block."""

    def fail() -> None:
        raise StoreError("store: the disk is full")

    with patch.object(service._session.store, "end", fail):
        yield


@pytest.fixture(autouse=True)
def _services_end() -> Iterator[None]:
    yield
    while _open:
        service = _open.pop()
        if not service._commits._queue.closed:
            service.close()


@pytest.fixture
def transactions(monkeypatch: pytest.MonkeyPatch) -> Callable[[DecisionService], list[str]]:
    """Counts the commits that a service makes for its callers, without those of its housekeeping."""

    def count(service: DecisionService) -> list[str]:
        session, committed, asked = service._session, list[str](), [False]
        enter, end = session.enter, session.store.end

        def entered(about: Iterable[Reference]) -> None:
            about = list(about)
            asked[0] = bool(about)  # housekeeping and API keys are about no experiment
            enter(about)

        def ended() -> None:
            end()
            if asked[0]:
                committed.append("commit")

        monkeypatch.setattr(session, "enter", entered)
        monkeypatch.setattr(session.store, "end", ended)
        return committed

    return count


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def opened(address: str, clock: Clock) -> Opened:
    """Opens services on the store, with a clock that is set by hand."""
    return partial(quick_service, address, clock=clock)
