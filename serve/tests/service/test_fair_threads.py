"""Threads that take turns: short work is done while long work goes on, one at a time, and in order."""

import threading
import time
from functools import partial

import pytest

from decoupled_serve.fair_threads import FairThreads, pause, resting

LONG = 60.0  # seconds after which something waits for ever


def until(event: threading.Event) -> None:
    end = time.monotonic() + LONG
    while not event.is_set():
        assert time.monotonic() < end
        pause()


@pytest.mark.parametrize("lanes", [1, 7, 15])
def test_short_work_is_done_while_long_work_goes_on(lanes: int) -> None:
    threads, done, ended = FairThreads("test"), threading.Event(), list[int]()

    def long(lane: int) -> None:
        until(done)
        ended.append(lane)

    for lane in range(lanes):
        threads.start(partial(long, lane), lane)
    for _ in range(3):  # and nobody gets in twice
        threads.start(lambda: until(done), 0)
    threads.start(done.set, "short")
    assert done.wait(LONG)
    threads.close()
    assert sorted(ended) == list(range(lanes))


def test_one_works_at_a_time_and_a_lane_is_in_order() -> None:
    threads, inside, order = FairThreads("test"), list[int](), list[tuple[int, int]]()

    def work(lane: int, number: int) -> None:
        for _ in range(50):
            inside.append(lane)
            time.sleep(0.0001)
            assert inside.pop() == lane
            assert not inside
            pause()
        order.append((lane, number))

    for number in range(3):
        for lane in range(20):  # more than there are threads
            threads.start(partial(work, lane, number), lane)
    threads.close()
    assert len(order) == 60, "what was started is finished"
    for lane in range(20):
        assert [number for each, number in order if each == lane] == [0, 1, 2]
    with pytest.raises(RuntimeError):
        threads.start(lambda: None, "late")


def test_work_that_waits_or_fails_holds_up_nobody() -> None:
    threads, done, again = FairThreads("test"), threading.Event(), threading.Event()

    def waits() -> None:
        with resting():
            assert done.wait(LONG)
        again.set()

    def fails() -> None:
        raise ValueError("as it may")

    threads.start(waits, "one")
    threads.start(fails, "two")
    threads.start(done.set, "two")
    assert again.wait(LONG)
    threads.close()


def test_elsewhere_a_pause_does_nothing() -> None:
    pause()
    with resting():
        pause()
