"""What each option of a learner costs: how many times as long a decision and its feedback take as without any option."""

import random
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from time import process_time
from typing import Any

from decoupled.learner import Guardrails, Labels
from decoupled.policies import FTPL, ContextualLadder, Ladder, Policy

from .timing import Ratio, race

POLICIES: tuple[Policy, ...] = (FTPL(), Ladder())
ARMS = (8, 1_000)
MOST_PRICED = 100  # arms that `cheapest_within` compares
WARM = 1_000  # rounds before anything is timed: looks at the evidence are frequent at first
CALLS = 256
Step = Callable[[], None]


def loss_of(arm: object, luck: random.Random) -> float:
    """A random loss; the first arm is the best."""
    return float(luck.random() < (0.3 if arm == 0 else 0.5))


def played(
    policy: Policy,
    arms: int,
    *,
    rules: Guardrails | None = None,
    watched: bool = False,
    **options: Any,
) -> Step:
    """A call that decides with these options and observes."""
    learner = policy.start(arms, seed=0)
    luck = random.Random(0)
    if rules is not None:
        learner.guardrails = rules
    if watched:
        learner.watch()

    def step() -> None:
        decision = learner.decide(**options)
        learner.observe(decision, loss=loss_of(decision.explore, luck))

    return step


def with_outstanding(policy: Policy, arms: int, count: int) -> Step:
    """A call that decides, and observes the decision that was made so many decisions earlier."""
    learner = policy.start(arms, seed=0)
    luck = random.Random(0)
    outstanding = deque(learner.decide(count=count))

    def step() -> None:
        outstanding.append(learner.decide())
        decision = outstanding.popleft()
        learner.observe(decision, loss=loss_of(decision.explore, luck))

    return step


def with_labels(policy: Policy, arms: int) -> Step:
    """A call that decides, and observes what a judge says, and the label if one is wanted."""
    learner = policy.start(arms, seed=0, labels=Labels())
    luck = random.Random(0)

    def step() -> None:
        decision = learner.decide()
        loss = loss_of(decision.explore, luck)
        label = loss if decision.label else None
        learner.observe(decision, judged=loss, loss=label)

    return step


def options(policy: Policy, arms: int) -> Iterator[tuple[str, Callable[[], Step]]]:
    """Each option, and what makes a learner that uses it."""
    play = partial(played, policy, arms)
    key = "session-17"
    for count in (1, 100, 1_000):
        yield f"{count:,} outstanding", partial(with_outstanding, policy, arms, count)
    yield "key=", partial(play, key=key)
    yield "available= three arms", partial(play, available=[0, 1, 2])
    yield "available= all but one", partial(play, available=list(range(arms - 1)))
    yield "down", partial(play, rules=Guardrails(down=[1]))
    yield "pinned", partial(play, rules=Guardrails(pinned=0))
    yield "floors", partial(play, rules=Guardrails(floors={0: 0.1}))
    yield "incumbent", partial(play, rules=Guardrails(incumbent=1))
    yield "switch_margin, key=", partial(play, rules=Guardrails(switch_margin=0.1), key=key)
    if arms <= MOST_PRICED:
        prices = {arm: float(arm) for arm in range(arms)}
        rules = Guardrails(cheapest_within=0.3, prices=prices)
        yield "cheapest_within", partial(play, rules=rules)
    yield "labels", partial(with_labels, policy, arms)
    yield "watch()", partial(play, watched=True)


def compared(policy: Policy, arms: int, option: str, step: Step, repetitions: int) -> Ratio:
    """How many times as long a decision and its feedback take with an option."""
    plain = played(policy, arms)
    for _ in range(WARM):
        plain()
        step()
    name = f"{policy.label} decide + observe, K = {arms:,}"
    return race(
        name,
        plain,
        f"with {option}",
        step,
        calls=CALLS,
        repetitions=repetitions,
        clock=process_time,
    )


def measure(repetitions: int = 15) -> Iterator[Ratio]:
    """One line for each policy, number of arms and option."""
    for arms in ARMS:
        for policy in POLICIES:
            for option, make in options(policy, arms):
                yield compared(policy, arms, option, make(), repetitions)
    contextual = ContextualLadder(segments=("segment",))
    step = played(contextual, ARMS[0], context={"segment": "law"})
    yield compared(contextual, ARMS[0], "a context", step, repetitions)
