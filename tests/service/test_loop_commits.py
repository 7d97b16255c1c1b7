"""Commits on an event loop: quick commands run there, and nothing holds it up."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import apsw
import pytest

from decoupled.service.decision_service import DecisionService
from decoupled.service.errors import NotFound, ServiceError, StoreError
from decoupled.service.experiment.live import Running
from decoupled.service.experiment.records import DecisionRecord, Settings
from decoupled.service.replies import Reply
from decoupled.service.session import Reference, Session
from support.stores import quick_service

PLAIN = Settings({"name": "FTPL"}, ("a", "b", "c"))
ABOUT = Reference("name", "me", "one")


def made(address: str, **options: Any) -> DecisionService:
    service = quick_service(address, **options)
    service.experiments.put("me", "one", PLAIN, seed=7).result()
    return service


def run(service: DecisionService, main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(main())
    service.close()


async def value(reply: Reply[Any]) -> Any:
    return await reply


async def outcome(reply: Reply[Any]) -> Any:
    """The value of a reply, or its error."""
    try:
        return await reply
    except ServiceError as error:
        return error


def where(session: Session) -> str:
    """The thread that a command runs in."""
    return threading.current_thread().name


def test_a_pass_of_the_loop_is_one_transaction_in_its_own_thread(
    file: str, transactions: Callable[[DecisionService], list[str]]
) -> None:
    service = made(file)
    committed = transactions(service)

    async def main() -> None:
        decisions = service.decisions_on_loop
        replies: list[Reply[Any]] = [decisions.decide("me", "one") for _ in range(20)]
        found = await asyncio.gather(*map(value, replies))
        assert len({each.id for [each] in found}) == 20
        assert len(committed) == 1
        replies = [decisions.feedback("me", each.id, loss=0.5) for [each] in found]
        assert {each.status for each in await asyncio.gather(*map(value, replies))} == {"applied"}
        assert len(committed) == 2
        assert await service._on_loop.submit(where, ABOUT) == threading.current_thread().name
        with pytest.raises(NotFound):
            await decisions.decide("me", "two")

    run(service, main)


def test_both_kinds_of_commits_make_the_same_log(file: str, tmp_path: Path) -> None:
    one, other = made(file), made(str(tmp_path / "other.db"))

    async def main() -> None:
        for n in range(50):
            [here] = await one.decisions_on_loop.decide("me", "one")
            [there] = await other.decisions.decide("me", "one")
            assert (here.exploit, here.explore, here.weight) == (there.exploit, there.explore, there.weight)
            await one.decisions_on_loop.feedback("me", here.id, loss=n / 50)
            await other.decisions.feedback("me", there.id, loss=n / 50)

    asyncio.run(main())
    assert (
        one.experiments.state("me", "one").result().estimates
        == other.experiments.state("me", "one").result().estimates
    )
    one.close()
    other.close()


def test_what_is_not_quick_runs_in_the_other_thread(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new experiment is not in memory, a snapshot takes time, and PostgreSQL is waited for."""
    made(address).close()
    service = quick_service(address, snapshot_every=10)
    save, saved_by = service._session.save, list[str]()

    def noted(running: Running) -> None:
        saved_by.append(threading.current_thread().name)
        save(running)

    monkeypatch.setattr(service._session, "save", noted)

    async def main() -> None:
        names = [await service._on_loop.submit(where, ABOUT)]
        for _ in range(12):
            await service.decisions_on_loop.decide("me", "one")
            names.append(await service._on_loop.submit(where, ABOUT))
        mine = threading.current_thread().name
        assert names[0] == "decoupled-commits"
        assert (mine in names) == (not address.startswith("postgresql"))
        assert saved_by == ["decoupled-commits"]

    run(service, main)


def test_a_store_that_is_locked_does_not_hold_up_the_loop(file: str) -> None:
    service = made(file)
    other = apsw.Connection(file)
    too_late = threading.Event()

    def release() -> None:
        too_late.set()
        other.execute("ROLLBACK")

    async def main() -> None:
        await service.decisions_on_loop.decide("me", "one")
        other.execute("BEGIN IMMEDIATE")
        rescue = threading.Timer(5.0, release)  # in case that the loop is held up
        rescue.start()
        reply = service.decisions_on_loop.decide("me", "one")
        for _ in range(100):  # the loop goes on
            await asyncio.sleep(0)
        assert not too_late.is_set()
        assert not reply.done()
        rescue.cancel()
        other.execute("ROLLBACK")
        assert len(await reply) == 1

    run(service, main)
    other.close()


def test_others_have_their_turn(file: str) -> None:
    service = made(file)
    begun, go_on = threading.Event(), threading.Event()

    def slow(session: Session) -> str:
        begun.set()
        go_on.wait(60)
        return "slow"

    async def main() -> None:
        await service.decisions_on_loop.decide("me", "one")
        first = service._commits.submit(slow, ABOUT)
        assert begun.wait(60)
        second = service.decisions_on_loop.decide("me", "one")
        for _ in range(100):
            await asyncio.sleep(0)
        assert not second.done()
        go_on.set()
        assert await first == "slow"
        assert len(await second) == 1

    run(service, main)


def test_a_commit_that_fails_acknowledges_nothing(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    service = made(file)

    async def main() -> None:
        decisions = service.decisions_on_loop
        [before] = await decisions.decide("me", "one")

        def full() -> None:
            raise StoreError("store: the disk is full")

        with monkeypatch.context() as patched:
            patched.setattr(service._session.store, "end", full)
            replies: list[Reply[Any]] = [
                decisions.decide("me", "one"),
                decisions.feedback("me", before.id, loss=0.5),
            ]
            found = await asyncio.gather(*map(value, replies), return_exceptions=True)
            assert [type(each) for each in found] == [StoreError, StoreError]
        assert not service.ready()
        assert (await decisions.feedback("me", before.id, loss=0.75)).loss == 0.75
        assert service.ready()
        assert (await service.experiments.state("me", "one")).decisions == 1

    run(service, main)


def test_an_unexpected_error_fails_only_its_own_command(file: str) -> None:
    service = made(file)

    def poison(session: Session) -> int:
        session.get(ABOUT).draw("both", None, 0.0)
        raise ZeroDivisionError("in the middle")

    async def main() -> None:
        await service.decisions_on_loop.decide("me", "one")
        replies: list[Reply[Any]] = [
            service.decisions_on_loop.decide("me", "one"),
            service._on_loop.submit(poison, ABOUT),
            service.decisions_on_loop.decide("me", "one"),
        ]
        one, bad, two = await asyncio.gather(*map(outcome, replies))
        assert type(bad) is ServiceError
        assert "ZeroDivisionError" in str(bad)
        assert [each.id.partition("-")[2] for [each] in (one, two)] == ["2", "3"]

    run(service, main)


def test_closing_finishes_the_commit_under_way(file: str) -> None:
    service = made(file)

    async def main() -> Reply[list[DecisionRecord]]:
        await service.decisions_on_loop.decide("me", "one")
        reply = service.decisions_on_loop.decide("me", "one")
        await asyncio.sleep(0)  # it has run, and waits for its commit; the loop is closed meanwhile
        assert service._on_loop._busy
        return reply

    reply = asyncio.run(main())
    service.close()
    assert len(reply.result(0.0)) == 1
    again = quick_service(file)
    assert again.experiments.state("me", "one").result().decisions == 2
    again.close()


def test_a_service_that_is_closed_says_so(file: str) -> None:
    service = made(file)

    async def main() -> None:
        await service.decisions_on_loop.decide("me", "one")
        waiting = service.decisions_on_loop.decide("me", "one")
        service.close()
        with pytest.raises(StoreError, match="closed"):
            await waiting
        with pytest.raises(StoreError, match="closed"):
            service.decisions_on_loop.decide("me", "one")

    asyncio.run(main())


def test_a_file_that_was_moved_is_an_error_and_nothing_hangs(file: str, tmp_path: Path) -> None:
    service = made(file)

    async def main() -> None:
        await service.decisions_on_loop.decide("me", "one")
        Path(file).rename(tmp_path / "elsewhere.db")
        with pytest.raises(StoreError, match="moved"):
            await service.decisions_on_loop.decide("me", "one")
        (tmp_path / "elsewhere.db").rename(file)
        assert len(await service.decisions_on_loop.decide("me", "one")) == 1

    run(service, main)


def test_another_loop_is_served_after_the_first_and_none_beside_it(file: str) -> None:
    service = made(file)

    async def ask() -> str:
        await service.decisions_on_loop.decide("me", "one")
        return str(await service._on_loop.submit(where, ABOUT))

    def elsewhere() -> None:
        found.append(asyncio.run(ask()))

    found: list[str] = []

    async def main() -> None:
        assert await ask() == threading.current_thread().name
        thread = threading.Thread(target=elsewhere)
        thread.start()
        while thread.is_alive():
            await asyncio.sleep(0.001)

    asyncio.run(main())
    assert found == ["decoupled-commits"]
    assert asyncio.run(ask()) == threading.current_thread().name
    service.close()
