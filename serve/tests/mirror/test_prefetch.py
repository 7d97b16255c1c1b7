"""Decisions drawn ahead: as many as the traffic needs, and none for arms that are down."""

import asyncio
from collections.abc import Sequence

from decoupled.decision import Mode
from decoupled_serve.mirror.backend import UNKNOWN, Routing, Traits
from decoupled_serve.mirror.prefetch import FEWEST, MOST, Prefetch
from support.mirrors.running import Fixed
from support.wire import on_loop


class Gated(Fixed):
    def __init__(self) -> None:
        super().__init__()
        self.open = asyncio.Event()
        self.open.set()

    async def decide(
        self, mode: Mode, count: int, available: Sequence[str] | None, about: Traits = UNKNOWN
    ) -> list[Routing]:
        found = await super().decide(mode, count, available)
        await self.open.wait()
        return found


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@on_loop
async def test_what_is_held_follows_the_traffic_and_taking_never_waits() -> None:
    backend = Gated()
    prefetch = Prefetch(backend)
    await prefetch.start()
    assert backend.drawn == sum(FEWEST.values())
    backend.open.clear()
    burst = [prefetch.take("exploit") for _ in range(60)]
    ready = FEWEST["exploit"]
    assert [each is not None for each in burst] == [True] * ready + [False] * (60 - ready)
    await settled()
    backend.open.set()
    await settled()
    for _ in range(40):  # the same burst now finds enough
        assert prefetch.take("exploit") is not None
    before = backend.drawn
    for _ in range(3_000):  # slow traffic needs few, so what is held shrinks again
        assert prefetch.take("exploit") is not None
        await settled()
    assert backend.drawn - before <= 3_000 + 60
    unused = prefetch.unused
    await prefetch.stop()
    assert FEWEST["exploit"] // 2 <= prefetch.unused - unused <= 2 * sum(FEWEST.values())


@on_loop
async def test_no_more_than_a_bounded_number_is_held() -> None:
    backend = Fixed()
    prefetch = Prefetch(backend)
    await prefetch.start()
    for _ in range(10):
        for _ in range(5_000):
            prefetch.take("both")
        await settled()
    await prefetch.stop()
    assert prefetch.unused <= MOST + FEWEST["exploit"]


@on_loop
async def test_decisions_for_arms_that_went_down_are_not_used() -> None:
    backend = Gated()
    prefetch = Prefetch(backend)
    await prefetch.start()
    backend.open.clear()
    for _ in range(6):
        prefetch.take("exploit")
    await settled()  # a draw among all arms is under way
    backend.exploit = "next"
    prefetch.restrict(["next"])
    assert prefetch.take("exploit") is None
    assert prefetch.last == "next"
    backend.open.set()
    await settled()
    taken = [prefetch.take("exploit") for _ in range(FEWEST["exploit"])]
    assert {each.exploit for each in taken if each is not None} == {"next"}
    assert backend.available == ["next"]
    await prefetch.stop()
    # Nothing waits for the losses of those to mirror: of all arms, and of those that are up.
    first = [f"d-{FEWEST['exploit'] + number}" for number in range(FEWEST["both"])]
    assert backend.forgotten[: FEWEST["both"]] == first
    assert len(backend.forgotten) == 2 * FEWEST["both"]


@on_loop
async def test_decisions_that_nobody_uses_do_not_keep_verdicts_waiting() -> None:
    """Requests with a key or a context have decisions of their own, made after those that are ready."""
    backend = Fixed()
    prefetch = Prefetch(backend)
    await prefetch.start()
    ready = [f"d-{FEWEST['exploit'] + number}" for number in range(FEWEST["both"])]
    assert await prefetch.draw_for(Traits(key="s1"), "both") is not None
    assert backend.forgotten == ready
    assert prefetch.take("both") is None
    await settled()
    assert prefetch.take("both") is not None, "for those without"
    assert await prefetch.draw_for(Traits(key="s2"), "both") is not None
    assert backend.forgotten == ready, "there are such requests"
    await prefetch.stop()
