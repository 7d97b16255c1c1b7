"""The queue of the commit loop: its thread is woken once, for as many commands as it waits for."""

import threading
from typing import NamedTuple

from decoupled_serve.service.commits.queue import CommandQueue


class Item(NamedTuple):
    number: int
    alone: bool = False
    weight: int = 1
    lane: str = "one"


def waiting(queue: CommandQueue[Item], number: int) -> threading.Thread:
    """A thread that waits for so many items."""
    thread = threading.Thread(target=queue.wait, args=(number, 60.0))
    thread.start()
    while queue._awaited != number:  # it is about to wait
        pass
    return thread


def test_a_wait_ends_with_the_item_that_completes_it() -> None:
    queue: CommandQueue[Item] = CommandQueue(32)
    thread = waiting(queue, 3)
    for number in range(2):
        assert queue.put(Item(number))
        assert queue._awaited == 3
        assert thread.is_alive()
    queue.put(Item(2))
    thread.join(60)
    assert not thread.is_alive()
    assert [each.number for each in queue.take(10)] == [0, 1, 2]


def test_a_wait_ends_with_the_time_or_with_the_queue() -> None:
    queue: CommandQueue[Item] = CommandQueue(32)
    queue.wait(1, 0.001)
    queue.put(Item(0))
    queue.wait(1, 60.0)
    queue.wait(2, -1.0)
    thread = waiting(queue, 2)
    queue.close()
    thread.join(60)
    assert not thread.is_alive()
    assert not queue.put(Item(1))
    assert queue.closed
    queue.wait(2, 60.0)
    assert len(queue.take(10)) == 1, "what was put before is still taken"


def test_many_threads_put_and_none_is_lost_or_taken_twice() -> None:
    queue: CommandQueue[Item] = CommandQueue(32)
    putting = [
        threading.Thread(target=lambda k=k: [queue.put(Item(k * 1000 + i)) for i in range(1000)])
        for k in range(4)
    ]
    for thread in putting:
        thread.start()
    taken: list[int] = []
    while len(taken) < 4000:
        queue.wait(50, 0.0002)
        taken += [each.number for each in queue.take(100)]
    assert sorted(taken) == list(range(4000))
    for k in range(4):
        mine = [each for each in taken if each // 1000 == k]
        assert mine == sorted(mine), "the items of one thread stay in order"
    queue.wait(1, 0.001)
    assert queue._enough.locked(), "no call is left over"


def test_an_item_that_must_be_alone_is_taken_alone() -> None:
    queue: CommandQueue[Item] = CommandQueue(32)
    for number, alone in enumerate((False, False, True, True, False)):
        queue.put(Item(number, alone))
    assert [[each.number for each in queue.take(10)] for _ in range(4)] == [[0, 1], [2], [3], [4]]


def numbers(taken: list[Item]) -> list[int]:
    return [each.number for each in taken]


def test_lanes_with_as_much_take_turns_and_none_is_left_out() -> None:
    queue: CommandQueue[Item] = CommandQueue(32)
    for number in range(300):
        queue.put(Item(number, weight=10, lane=str(number % 100)))
    taken = [numbers(queue.take(100)) for _ in range(30)]
    for k in range(0, 30, 10):
        assert sorted(number % 100 for each in taken[k : k + 10] for number in each) == list(range(100))
    assert queue.take(100) == []


def test_the_rest_of_an_item_comes_before_the_others_of_its_lane() -> None:
    queue: CommandQueue[Item] = CommandQueue(32)
    for number in range(3):
        queue.put(Item(number))
    [first] = queue.take(1)
    queue.close()
    queue.put_back(first)
    assert len(queue) == 3
    assert numbers(queue.take(10)) == [0, 1, 2]


def test_an_item_that_must_be_alone_does_not_hold_up_others_for_ever() -> None:
    queue: CommandQueue[Item] = CommandQueue(32)
    queue.put(Item(0, lane="a"))
    queue.put(Item(1, alone=True, lane="b"))
    queue.put(Item(2, lane="c"))
    assert [numbers(queue.take(10)) for _ in range(3)] == [[0], [1], [2]]


def test_an_item_that_comes_as_the_time_ends_leaves_no_call_over() -> None:
    queue: CommandQueue[Item] = CommandQueue(32)
    lock = queue._enough

    class Late:
        """A lock whose wait ends in vain, just before it is released."""

        release = lock.release

        def acquire(self, timeout: float = -1.0) -> bool:
            if timeout < 0.0:
                return lock.acquire()
            queue.put(Item(0))
            return False

    queue._enough = Late()  # type: ignore[assignment]
    queue.wait(1, 0.001)
    assert lock.locked()
