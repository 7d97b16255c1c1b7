"""A compiler for tests that compiles only when it is released."""

import threading
from collections.abc import Callable, Hashable, Iterator

from decoupled.policies import FTPL, FollowTheLeader, Ladder, Policy, warmup
from decoupled_serve.service.memory.compiler import Compiler, Job


class Held(Compiler):
    """A compiler that has compiled nothing at first, and compiles FTPL and the ladder only after `let_go`."""

    def __init__(self, error: Exception | None = None) -> None:
        self.known: set[Hashable] = set()
        self.order: list[str] = []
        self.begun, self.released = threading.Event(), threading.Event()
        self.error = error
        super().__init__(self.held_steps, self.known.__contains__)

    def held_steps(self, policy: Policy, arms: int) -> Iterator[None]:
        self.order.append(type(policy).__name__)
        yield
        if isinstance(policy, FTPL | Ladder):
            self.begun.set()
            assert self.released.wait(60)
            if self.error is not None:
                raise self.error
        if isinstance(
            policy, FTPL | Ladder | FollowTheLeader
        ):  # no other policy decides in these tests
            warmup.warm(policy, arms)
        self.known.add(warmup.form(policy, arms))

    def wait(
        self,
        job: Job,
        then: Callable[[], None],
        give_up: Callable[[], None],
        patience: float | None,
    ) -> None:
        super().wait(job, then, give_up, patience)
        if (
            patience == 0.0
        ):  # a service looks only once a second for those that have waited long enough
            timer = threading.Timer(0.1, self.dismiss)
            timer.daemon = True
            timer.start()

    def let_go(self) -> None:
        self.released.set()
