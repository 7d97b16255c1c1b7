"""The queue of the commit loop: fair to experiments, and its thread is woken once for all the commands that it waits for.

Every time that a thread is woken it competes for the interpreter with the one that is reading requests.
"""

from collections import Counter, deque
from collections.abc import Callable, Hashable
from heapq import heappop, heappush
from threading import Lock
from typing import Any, NamedTuple

from ..experiment.request_context import Origin
from ..memory.session import Reference, Session
from .replies import Reply


class Command(NamedTuple):
    """A function to run inside a transaction, and the reply for its result.

    `about` names the experiments that it touches, which are locked first. `alone` asks for a transaction of its own.
    `otherwise` runs instead if a policy is still being compiled when the caller's patience ends; without it the
    caller gets the error. `origin` is where the call comes from. `permit` names the key of the caller, which must still be
    valid in the transaction. `weight` says how many decisions or losses it is, up to a slice, and `lane` whose turn it is.
    """

    run: Callable[[Session], Any]
    about: tuple[Reference, ...]
    reply: Reply[Any]
    alone: bool = False
    otherwise: Callable[[Session], Any] | None = None
    origin: Origin = Origin()
    permit: str | None = None
    weight: int = 1
    lane: Hashable = None


class CommandQueue:
    """Commands, put by any thread and taken by one. Lanes take turns by the work that was done for each.

    The lane for which least was done is next, and one that was empty begins where the others are. So a command that comes
    alone is taken before those of a lane that has many or large ones (start-time fair queueing). `slice` is the weight of a
    batch, of which no more is done while lighter commands of other lanes wait.

    >>> from types import SimpleNamespace
    >>> def command(lane, weight=1, alone=False):
    ...     return SimpleNamespace(lane=lane, weight=weight, alone=alone)
    >>> queue = CommandQueue(50)
    >>> for each in (command("busy", 50), command("busy", 50), command("calm"), command("calm", alone=True)):
    ...     _ = queue.put(each)
    >>> [[each.lane for each in queue.take(60)] for _ in range(3)]
    [['busy', 'calm'], ['calm'], ['busy']]
    >>> queue.close()
    >>> queue.put(command("late"))
    False
    """

    def __init__(self, slice: int) -> None:  # noqa: A002
        self._slice = slice
        self._lanes: dict[Hashable, deque[Command]] = {}
        self._light: Counter[Hashable] = Counter()  # commands of each lane that are no batches
        # The work done for each lane, and its place among equals.
        self._turns: list[tuple[int, int, Hashable]] = []
        self._work = self._entered = self._size = 0
        self._closed = False
        self._lock = Lock()  # for the fields above and below
        self._awaited = 0  # how many commands the other thread waits for; 0 while it does not wait
        self._enough = Lock()  # held; released to end the wait
        self._enough.acquire()

    def __len__(self) -> int:
        return self._size

    @property
    def closed(self) -> bool:
        """Whether nothing more can be put."""
        return self._closed

    def lighter_than(self, lane: Hashable) -> bool:
        """Whether another lane has a command that is no batch."""
        return len(self._light) > (lane in self._light)

    def put(self, command: Command) -> bool:
        """Add a command; False if the queue is closed."""
        with self._lock:
            if self._closed:
                return False
            self._lane(command).append(command)
            if not 0 < self._awaited <= self._size:
                return True
            self._awaited = 0
        self._enough.release()
        return True

    def put_back(self, command: Command) -> None:
        """Put the rest of a command before the others of its lane, by the thread that took it. A closed queue takes it, too."""
        with self._lock:
            self._lane(command).appendleft(command)

    def _lane(self, command: Command) -> deque[Command]:
        """The lane of a command that is added."""
        self._size += 1
        lane = command.lane
        if command.weight < self._slice:
            self._light[lane] += 1
        found = self._lanes.get(lane)
        if found is None:
            found = self._lanes[lane] = deque()
            self._enter(lane, self._work)
        return found

    def _enter(self, lane: Hashable, work: int) -> None:
        self._entered += 1
        heappush(self._turns, (work, self._entered, lane))

    def close(self) -> None:
        """Take no more commands, and end the wait."""
        with self._lock:
            self._closed = True
            waited, self._awaited = self._awaited, 0
        if waited:
            self._enough.release()

    def wait(self, number: int, seconds: float) -> None:
        """Wait until there are so many commands, for at most so long, or until the queue is closed."""
        with self._lock:
            if self._size >= number or self._closed or seconds <= 0.0:
                return
            self._awaited = number
        if not self._enough.acquire(timeout=seconds):
            with self._lock:
                ended, self._awaited = self._awaited == 0, 0
            if ended:  # at the same moment
                self._enough.acquire()

    def take(self, most: int) -> list[Command]:
        """The commands for one transaction: so much work, or all that are waiting, up to one that must be alone."""
        taken: list[Command] = []
        with self._lock:
            while self._turns and most > 0:
                work, _, lane = self._turns[0]
                waiting = self._lanes[lane]
                if waiting[0].alone and taken:
                    break
                heappop(self._turns)
                command = waiting.popleft()
                self._size -= 1
                if command.weight < self._slice:
                    self._light[lane] -= 1
                    if not self._light[lane]:
                        del self._light[lane]
                self._work = work
                if waiting:
                    self._enter(lane, work + command.weight)
                else:
                    del self._lanes[lane]
                taken.append(command)
                most -= command.weight
                if command.alone:
                    break
        return taken
