"""A compiler for tests that compiles only when it is released."""

import threading
from collections.abc import Hashable, Iterator

from decoupled.policies import FTPL, FollowTheLeader, Policy, warming
from decoupled.service.compiler import Compiler


class Held(Compiler):
    """A compiler that has compiled nothing at first, and compiles FTPL only after `let_go`."""

    def __init__(self, error: Exception | None = None) -> None:
        self.known: set[Hashable] = set()
        self.order: list[str] = []
        self.begun, self.released = threading.Event(), threading.Event()
        self.error = error
        super().__init__(self.held_steps, self.known.__contains__)

    def held_steps(self, policy: Policy, arms: int) -> Iterator[None]:
        self.order.append(type(policy).__name__)
        yield
        if isinstance(policy, FTPL):
            self.begun.set()
            assert self.released.wait(60)
            if self.error is not None:
                raise self.error
        if isinstance(policy, FTPL | FollowTheLeader):  # no other policy decides in these tests
            warming.warm(policy, arms)
        self.known.add(warming.form(policy, arms))

    def let_go(self) -> None:
        self.released.set()
