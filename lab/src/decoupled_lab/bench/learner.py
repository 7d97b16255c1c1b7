"""The cost of one decision and its feedback, compared with river's Exp3."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle
from typing import Any

from decoupled.errors import UnsupportedError
from decoupled.policies import (
    FTPL,
    ContextualLadder,
    Exp3,
    FollowTheLeader,
    Ladder,
    Policy,
    TsallisINF,
)

from . import options
from .timing import Ratio, race

POLICIES: tuple[Policy, ...] = (
    FTPL(),
    Ladder(),
    FTPL(ranking="sorting"),
    TsallisINF(),
    Exp3(),
    FollowTheLeader(),
)
ARMS = (8, 256)
WATCHED = (3, 8, 50)
CONTEXTUAL = (
    ContextualLadder(segments=("segment",)),
    ContextualLadder(numbers=tuple(f"x{place}" for place in range(20))),
)


def pair(
    policy: Policy,
    arms: int,
    *,
    watched: bool = False,
    contexts: Sequence[Mapping[str, Any]] = (),
) -> Callable[[], None]:
    """A call that decides and observes once, on random losses with one good arm; each request has the next context."""
    learner, luck = policy.start(arms, seed=0), random.Random(0)
    if watched:
        learner.watch()
    coming: Iterator[Mapping[str, Any] | None] = cycle(contexts or (None,))

    def step() -> None:
        decision = learner.decide(context=next(coming))
        learner.observe(
            decision, loss=float(luck.random() < (0.3 if decision.explore == 0 else 0.5))
        )

    return step


def requests(policy: ContextualLadder, segments: int) -> list[dict[str, Any]]:
    """Contexts for a policy: one of so many segments, and the numbers that it looks at."""
    luck = random.Random(0)
    return [
        {"segment": str(luck.randrange(segments))}
        | {name: luck.gauss(0.0, 1.0) for name in policy.all_numbers}
        for _ in range(1_000)
    ]


def river_pair(arms: int) -> Callable[[], None]:
    """A call that pulls and updates river's Exp3 once, on the same losses as rewards."""
    try:
        from river import bandit
    except ImportError:
        reason = "river: is not installed; it is a development dependency, so run make install"
        raise UnsupportedError(reason) from None

    make: Any = bandit.Exp3
    policy, ids = make(gamma=0.1, seed=0), list(range(arms))
    luck, pulls = random.Random(0), 0

    def step() -> None:
        nonlocal policy, pulls
        pulls += 1
        if pulls % 2_000 == 0:  # its weights grow without bound and overflow
            policy = make(gamma=0.1, seed=0)
        arm = policy.pull(ids)
        policy.update(arm, 1.0 - float(luck.random() < (0.3 if arm == 0 else 0.5)))

    return step


def measure(repetitions: int = 15) -> Iterator[Ratio]:
    """One line per policy and number of arms, and what each option costs as a multiple of the same without it."""
    for name, ours, rival, theirs in cases():
        yield race(name, ours, rival, theirs, calls=1_024, repetitions=repetitions)
    yield from options.measure(repetitions)


def cases() -> Iterator[tuple[str, Callable[[], None], str, Callable[[], None]]]:
    """What is timed, each with its rival."""
    for arms in ARMS:
        for policy in POLICIES:
            name = f"{policy.label} decide + observe, K = {arms}"
            yield name, pair(policy, arms), "river Exp3 pull + update", river_pair(arms)
    for contextual in CONTEXTUAL:
        name = f"{contextual.label}: decide + observe, 57 segments, K = 2"
        in_context = pair(contextual, 2, contexts=requests(contextual, 57))
        yield name, in_context, "Ladder, without a context", pair(Ladder(), 2)
    for arms in WATCHED:
        name = f"Ladder decide + observe, watched, K = {arms}"
        yield name, pair(Ladder(), arms, watched=True), "not watched", pair(Ladder(), arms)
