"""The queue of the commit loop. Its thread is woken once for all the commands that it waits for, not for each.

Every time that a thread is woken it competes for the interpreter with the one that is reading requests.
"""

from collections import deque
from threading import Lock
from typing import Generic, Protocol, TypeVar


class Queued(Protocol):
    """What the queue needs to know of a command."""

    @property
    def alone(self) -> bool:
        """Whether it must be taken without others."""


Q = TypeVar("Q", bound=Queued)


class CommandQueue(Generic[Q]):
    """Commands in the order in which they came, put by any thread and taken by one.

    >>> from types import SimpleNamespace
    >>> queue = CommandQueue()
    >>> [queue.put(SimpleNamespace(alone=alone)) for alone in (False, False, True)]
    [True, True, True]
    >>> [len(queue.take(10)) for _ in range(3)]
    [2, 1, 0]
    >>> queue.close()
    >>> queue.put(SimpleNamespace(alone=False))
    False
    """

    def __init__(self) -> None:
        self._commands: deque[Q] = deque()
        self._closed = False
        self._lock = Lock()  # for the fields above and below
        self._awaited = 0  # how many commands the other thread waits for; 0 while it does not wait
        self._enough = Lock()  # held; released to end the wait
        self._enough.acquire()

    def __len__(self) -> int:
        return len(self._commands)

    @property
    def closed(self) -> bool:
        """Whether nothing more can be put."""
        return self._closed

    def put(self, command: Q) -> bool:
        """Add a command; False if the queue is closed."""
        with self._lock:
            if self._closed:
                return False
            self._commands.append(command)
            if not 0 < self._awaited <= len(self._commands):
                return True
            self._awaited = 0
        self._enough.release()
        return True

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
            if len(self._commands) >= number or self._closed or seconds <= 0.0:
                return
            self._awaited = number
        if not self._enough.acquire(timeout=seconds):
            with self._lock:
                ended, self._awaited = self._awaited == 0, 0
            if ended:  # at the same moment
                self._enough.acquire()

    def take(self, most: int) -> list[Q]:
        """The commands for one transaction: all that are waiting, up to one that must be alone."""
        taken: list[Q] = []
        with self._lock:
            while self._commands and len(taken) < most and not (taken and self._commands[0].alone):
                taken.append(self._commands.popleft())
                if taken[0].alone:
                    break
        return taken
