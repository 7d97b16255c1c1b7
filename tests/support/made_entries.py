"""Made-up entries of the benchmark: the suite's tasks, without playing them."""

from functools import cache
from typing import Any

import numpy as np

from decoupled.environments import Alternating
from decoupled_lab.benchmark import entry as entries
from decoupled_lab.benchmark.statistics import task_line
from decoupled_lab.benchmark.suite import GROUPS, SIZES, SUITE
from decoupled_lab.benchmark.task import REGRET, SEGMENTS, Played, Task

# Regret as a multiple of FTPL()'s, by group.
LEVELS = {
    "FTPL()": (1.0,) * 10,
    "TsallisINF()": (1.6, 1.4, 0.5, 1.2, 1.1, 1.0, 1.3, 1.0, 1.5, 1.0),
    "Ladder()": (0.2, 0.4, 0.4, 0.7, 0.8, 0.9, 0.5, 0.95, 0.4, 0.8),
    "TopTwo()": (0.9, 0.6, 3.8, 2.2, 2.5, 4.0, 0.3, 1.2, 0.5, 1.1),
}
DATA_TASKS = (
    (("recorded-chicago-forecast", "recorded", 13, 5_298, 16, REGRET), "chicago-forecast"),
    (("mmlu-2", "mmlu", 2, 6_000, 16, SEGMENTS), "mmlu"),
)
EPSILON_GREEDY = (0.5, 0.7, 3.0, 0.9, 1.3, 2.0, 0.4, 1.02, 0.8, 1.1)


def made_up(
    name: str = "EpsilonGreedy(epsilon=0.1)",
    levels: tuple[float, ...] = EPSILON_GREEDY,
    *,
    size: str = "standard",
    data: bool = True,
    noise: float = 1.0,
    file: str | None = None,
    sha256: str | None = None,
) -> dict[str, Any]:
    """An entry of a policy whose regret is these multiples of FTPL()'s, one for each group, and some noise."""
    tasks = list(_tasks(size))
    if data:  # which no test has: other worlds of the same size, under their names
        for (title, group, arms, rounds, runs, unit), of in DATA_TASKS:
            world = Alternating(arms, 0.125)
            tasks.append(Task(title, group, world, rounds, min(runs, tasks[0].runs), unit, data=of))
    draw, places = np.random.default_rng(0), list(GROUPS)
    lines = [_line(task, draw, levels[places.index(task.group)], noise) for task in tasks]
    policy = {"name": name, "kind": "python", "file": file, "sha256": sha256}
    return entries.assembled(SIZES[size], policy, lines, 300.0)


@cache
def _tasks(size: str) -> tuple[Task, ...]:
    return SUITE.tasks(size)


def _line(task: Task, draw: np.random.Generator, level: float, noise: float) -> dict[str, Any]:
    scale = 0.2 * np.sqrt(task.environment.arms * task.rounds)
    base = scale * (1.0 + 0.1 * draw.standard_normal(task.runs))
    tilt = draw.uniform(-0.3, 0.4) + 0.05 * draw.standard_normal(task.runs)
    own = Played(level * (1.0 + noise * tilt) * base, None)
    place = list(GROUPS).index(task.group)
    return task_line(task, own, {name: base * each[place] for name, each in LEVELS.items()})
