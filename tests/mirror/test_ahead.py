"""Decisions drawn ahead: as many as the traffic needs, and none for arms that are down."""

import asyncio
from collections.abc import Sequence

from decoupled.mirror.ahead import FEWEST, MOST, Ahead
from decoupled.mirror.deciding import Decided, Mode
from support.mirrors.running import Fixed


class Gated(Fixed):
    """A decider that answers when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.open = asyncio.Event()
        self.open.set()

    async def decide(self, mode: Mode, count: int, available: Sequence[str] | None) -> list[Decided]:
        found = await super().decide(mode, count, available)
        await self.open.wait()
        return found


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_what_is_held_follows_the_traffic_and_taking_never_waits() -> None:
    async def scenario() -> None:
        decider = Gated()
        ahead = Ahead(decider)
        await ahead.start()
        assert decider.drawn == sum(FEWEST.values())
        decider.open.clear()
        burst = [ahead.take("exploit") for _ in range(60)]
        assert [each is not None for each in burst] == [True] * FEWEST["exploit"] + [False] * (
            60 - FEWEST["exploit"]
        )
        await settled()
        decider.open.set()
        await settled()
        for _ in range(40):  # the same burst now finds enough
            assert ahead.take("exploit") is not None
        before = decider.drawn
        for _ in range(3_000):  # slow traffic needs few, so what is held shrinks again
            assert ahead.take("exploit") is not None
            await settled()
        assert decider.drawn - before <= 3_000 + 60
        unused = ahead.unused
        await ahead.stop()
        assert FEWEST["exploit"] // 2 <= ahead.unused - unused <= 2 * sum(FEWEST.values())

    asyncio.run(scenario())


def test_no_more_than_a_bounded_number_is_held() -> None:
    async def scenario() -> None:
        decider = Fixed()
        ahead = Ahead(decider)
        await ahead.start()
        for _ in range(10):
            for _ in range(5_000):
                ahead.take("both")
            await settled()
        await ahead.stop()
        assert ahead.unused <= MOST + FEWEST["exploit"]

    asyncio.run(scenario())


def test_decisions_for_arms_that_went_down_are_not_used() -> None:
    async def scenario() -> None:
        decider = Gated()
        ahead = Ahead(decider)
        await ahead.start()
        decider.open.clear()
        for _ in range(6):
            ahead.take("exploit")
        await settled()  # a draw among all arms is under way
        decider.exploit = "next"
        ahead.restrict(["next"])
        assert ahead.take("exploit") is None
        assert ahead.last == "next"
        decider.open.set()
        await settled()
        taken = [ahead.take("exploit") for _ in range(FEWEST["exploit"])]
        assert {each.exploit for each in taken if each is not None} == {"next"}
        assert decider.available == ["next"]
        await ahead.stop()

    asyncio.run(scenario())
