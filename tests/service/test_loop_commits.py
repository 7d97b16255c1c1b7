"""Commands of an event loop: they are committed together, and nothing holds up the loop."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import apsw
import pytest

from decoupled.service.commits.replies import Reply
from decoupled.service.errors import NotFound, ServiceError, StoreError
from decoupled.service.experiment.records import DecisionRecord, Settings
from decoupled.service.memory.session import Reference, Session
from decoupled.service.service import DecisionService
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


def test_what_arrives_during_a_commit_is_one_transaction(
    address: str, transactions: Callable[[DecisionService], list[str]]
) -> None:
    service = made(address)
    committed = transactions(service)
    begun, go_on = threading.Event(), threading.Event()

    def slow(session: Session) -> None:
        begun.set()
        go_on.wait(60)

    async def main() -> None:
        decisions = service.decisions
        held = service._commits.submit(slow, ABOUT)
        assert begun.wait(60)
        replies: list[Reply[Any]] = [decisions.decide("me", "one") for _ in range(20)]
        go_on.set()
        found = await asyncio.gather(*map(value, replies))
        await held
        assert len({each.id for [each] in found}) == 20
        assert len(committed) == 2
        with pytest.raises(NotFound):
            await decisions.decide("me", "two")

    run(service, main)


def test_a_store_that_is_locked_does_not_hold_up_the_loop(file: str) -> None:
    service = made(file)
    other = apsw.Connection(file)
    too_late = threading.Event()

    def release() -> None:
        too_late.set()
        other.execute("ROLLBACK")

    async def main() -> None:
        await service.decisions.decide("me", "one")
        other.execute("BEGIN IMMEDIATE")
        rescue = threading.Timer(5.0, release)  # in case that the loop is held up
        rescue.start()
        reply = service.decisions.decide("me", "one")
        for _ in range(100):  # the loop goes on
            await asyncio.sleep(0)
        assert not too_late.is_set()
        assert not reply.done()
        rescue.cancel()
        other.execute("ROLLBACK")
        assert len(await reply) == 1

    run(service, main)
    other.close()


def test_a_commit_that_fails_acknowledges_nothing(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    service = made(file)

    async def main() -> None:
        decisions = service.decisions
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
        await service.decisions.decide("me", "one")
        replies: list[Reply[Any]] = [
            service.decisions.decide("me", "one"),
            service._commits.submit(poison, ABOUT),
            service.decisions.decide("me", "one"),
        ]
        one, bad, two = await asyncio.gather(*map(outcome, replies))
        assert type(bad) is ServiceError
        assert "ZeroDivisionError" in str(bad)
        assert [each.id.partition("-")[2] for [each] in (one, two)] == ["2", "3"]

    run(service, main)


def test_closing_finishes_the_commit_under_way(file: str) -> None:
    service = made(file)

    async def main() -> Reply[list[DecisionRecord]]:
        await service.decisions.decide("me", "one")
        return service.decisions.decide("me", "one")  # and the loop is closed meanwhile

    reply = asyncio.run(main())
    service.close()
    assert len(reply.result(0.0)) == 1
    again = quick_service(file)
    assert again.experiments.state("me", "one").result().decisions == 2
    again.close()


def test_a_service_that_is_closed_says_so(file: str) -> None:
    service = made(file)

    async def main() -> None:
        await service.decisions.decide("me", "one")
        waiting = service.decisions.decide("me", "one")
        service.close()
        assert len(await waiting) == 1, "what was submitted before is done"
        with pytest.raises(StoreError, match="closed"):
            service.decisions.decide("me", "one")

    asyncio.run(main())


def test_a_file_that_was_moved_is_an_error_and_nothing_hangs(file: str, tmp_path: Path) -> None:
    service = made(file)

    async def main() -> None:
        await service.decisions.decide("me", "one")
        Path(file).rename(tmp_path / "elsewhere.db")
        with pytest.raises(StoreError, match="moved"):
            await service.decisions.decide("me", "one")
        (tmp_path / "elsewhere.db").rename(file)
        assert len(await service.decisions.decide("me", "one")) == 1

    run(service, main)
