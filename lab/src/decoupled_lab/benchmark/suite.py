"""The suite `decoupled-1`: groups and tasks, at two sizes. It never changes; a change is another suite."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from decoupled.base import one_of
from decoupled.environments import AdaptiveAlternating, Drifting, Environment, PunishLast
from decoupled.policies import FTPL, Ladder, Policy, TopTwo, TsallisINF
from decoupled.simulation import DIRECT, Traffic

from . import worlds
from .task import REGRET, SEGMENTS, SWITCHING, TRACKING, Task

GROUPS = {
    "paper": "The paper's instances",
    "held-out": "Held-out instances",
    "adversaries": "Adaptive adversaries",
    "late": "Late or lost feedback",
    "drift": "Drift",
    "counterexample": "An arm that becomes good late",
    "switches": "A price for switches",
    "contexts": "Contexts",
    "recorded": "Recorded tables",
    "mmlu": "Two models on MMLU",
}
NEED_DATA = ("recorded", "mmlu")
REFERENCES = {f"{each.label}()": each for each in (FTPL(), TsallisINF(), Ladder(), TopTwo())}


class Size(NamedTuple):
    """How much of the suite is played: the runs of a task, and its rounds as one part of `part`.

    In the counterexample a fifth of the runs has almost all of the regret, so it takes more of them.
    """

    name: str
    runs: int
    part: int
    counterexample: int = 0  # runs there, if they are more


SIZES = {size.name: size for size in (Size("standard", 16, 1, 64), Size("quick", 5, 4))}


class Suite(NamedTuple):
    """A frozen set of tasks, with its groups and what everyone is compared with there."""

    name: str
    seed: int
    groups: Mapping[str, str]
    references: Mapping[str, Policy]
    make: Callable[[Size, Path | None], Iterator[Task]]

    def tasks(self, size: str | Size, data: Path | None = None) -> tuple[Task, ...]:
        """All tasks of a size, in the order of the groups; those of the data only where the folder `data` has it.

        >>> tasks = SUITE.tasks("quick")
        >>> len(tasks), tasks[0].name, tasks[0].rounds, tasks[0].runs
        (30, 'stochastic-easy-5', 2500, 5)
        """
        if isinstance(size, str):
            size = SIZES[one_of("size", size, tuple(SIZES))]
        return tuple(self.make(size, data))

    def digest(self) -> str:
        """A name for the definition of every task that needs no data, at every size."""
        tasks = [task.to_dict() for size in SIZES for task in self.tasks(size)]
        text = json.dumps([[self.name, self.seed], tasks], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def _tasks(size: Size, data: Path | None) -> Iterator[Task]:
    def task(
        name: str,
        group: str,
        world: Environment,
        rounds: int,
        unit: str = REGRET,
        *,
        traffic: Traffic = DIRECT,
        data: str | None = None,
        keys: int = 0,
    ) -> Task:
        runs = max(size.runs, size.counterexample) if group == "counterexample" else size.runs
        return Task(
            name=name,
            group=group,
            environment=world,
            rounds=rounds,
            runs=runs,
            unit=unit,
            traffic=traffic,
            data=data,
            keys=keys,
        )

    def part(rounds: int) -> int:
        return -(-rounds // size.part)

    yield task("stochastic-easy-5", "paper", worlds.EASY, part(10_000))
    yield task("stochastic-hard-5", "paper", worlds.HARD, part(10_000))
    yield task("alternating-8", "paper", worlds.ALTERNATING, part(10_000))
    for name, world in worlds.held_out():
        yield task(name, "held-out", world, part(4_000))
    for name, world in (
        ("punish-last-8", PunishLast(arms=8)),
        ("punish-most-32", PunishLast(arms=32, window=20, gap=0.1)),
        ("adaptive-alternating-8", AdaptiveAlternating(arms=8, gap=0.125)),
    ):
        yield task(name, "adversaries", world, part(6_000))
    for name, world, traffic in (
        ("late-stochastic-5", worlds.EASY, Traffic(delay=200)),
        ("late-alternating-8", worlds.ALTERNATING, Traffic(delay=("geometric", 100.0))),
        ("lost-alternating-8", worlds.ALTERNATING, Traffic(missing=0.7)),
    ):
        yield task(name, "late", world, part(5_000), traffic=traffic)
    for arms, gap, phases in ((4, 0.25, 4), (8, 0.4, 8)):
        world = Drifting(arms, gap, -(-part(8_000) // phases))
        yield task(f"drift-{arms}", "drift", world, part(8_000), TRACKING)
    for name, third in (("late-bloomer-3", 0.5), ("late-bloomer-apart-3", 0.501)):
        world = worlds.late_bloomer(part(14_000), third)
        yield task(name, "counterexample", world, part(14_000), TRACKING)
    for name, world in (
        ("alternating", worlds.ALTERNATING),
        ("redrawn", worlds.redrawn(part(4_000))),
    ):
        name = f"switches-{name}-{world.arms}"
        yield task(name, "switches", world, part(4_000), SWITCHING, keys=1)
    for kind in ("segments", "numbers", "noise"):
        yield task(f"contexts-{kind}-3", "contexts", worlds.requests(kind), part(6_000), SEGMENTS)
    if data is not None:
        for name, world, rounds in worlds.recorded(data):
            yield task(f"recorded-{name}", "recorded", world, part(rounds), data=name)
        if (questions := worlds.mmlu(data)) is not None:
            yield task("mmlu-2", "mmlu", questions, part(6_000), SEGMENTS, data="mmlu")


SUITE = Suite("decoupled-1", 0, GROUPS, REFERENCES, _tasks)
