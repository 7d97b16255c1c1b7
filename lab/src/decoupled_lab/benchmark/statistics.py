"""What an entry says of the runs: means, differences paired by run, and ratios of groups."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from decoupled.base import Floats
from decoupled.simulation import t_quantile

from .suite import GROUPS, REFERENCES
from .task import Played, Task

LEVEL = 0.95
SMOOTHING = 0.02


def task_line(task: Task, entry: Played, references: Mapping[str, Floats]) -> dict[str, Any]:
    """The line of a task: the entry, the references, and the entry minus each of them in the same runs."""
    return {
        "name": task.name,
        "group": task.group,
        "arms": task.environment.arms,
        "rounds": task.rounds,
        "runs": task.runs,
        "data": task.data,
        "unit": task.unit,
        "regret": {**mean(entry.values), "runs": entry.values.tolist()},
        "switches": None if entry.switches is None else mean(entry.switches),
        "references": {name: mean(values) for name, values in references.items()},
        "differences": {name: difference(entry.values - values) for name, values in references.items()},
    }


def mean(values: Floats) -> dict[str, float]:
    """A mean over runs and its standard error; the sums are exact, so no processor adds them up differently."""
    middle = math.fsum(values) / len(values)
    error = math.sqrt(math.fsum((values - middle) ** 2) / (len(values) - 1) / len(values))
    return {"mean": middle, "standard_error": error}


def difference(values: Floats) -> dict[str, float]:
    """A mean difference with its 95 % interval, by Student's t."""
    middle, error = mean(values).values()
    half = quantile(len(values)) * error
    return {"mean": middle, "low": middle - half, "high": middle + half}


def quantile(runs: int) -> float:
    """How many standard errors an interval reaches; rounded, because functions differ in their last digits.

    >>> quantile(16)
    2.13145
    """
    return round(t_quantile(0.5 + LEVEL / 2.0, runs - 1), 6)


def group_lines(tasks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The groups that the lines of tasks belong to, with the entry's regret over that of each reference."""
    lines = []
    for name, title in GROUPS.items():
        own = [task for task in tasks if task["group"] == name]
        if own:
            ratios = {reference: group_ratio(own, reference) for reference in REFERENCES}
            lines.append({"name": name, "title": title, "ratios": ratios})
    return lines


def group_ratio(tasks: Sequence[Mapping[str, Any]], reference: str) -> dict[str, float]:
    """The geometric mean over tasks of a ratio of mean regrets, with a 95 % interval by the delta method.

    A mean below 0 counts as 0, and 0.02 sqrt(arms * rounds) is added to both, so that a task with almost no regret does
    not decide. The interval is about other runs of these tasks, not about other tasks.

    >>> task = {
    ...     "arms": 4, "rounds": 2_500, "runs": 20, "regret": {"mean": 8.0, "standard_error": 0.0},
    ...     "references": {"FTPL()": {"mean": 18.0, "standard_error": 0.0}},
    ...     "differences": {"FTPL()": {"mean": -10.0, "low": -10.0, "high": -10.0}},
    ... }
    >>> group_ratio([task], "FTPL()")
    {'ratio': 0.5, 'low': 0.5, 'high': 0.5}
    """
    logs = [log_ratio(task, reference) for task in tasks]
    middle = math.fsum(log for log, _ in logs) / len(logs)
    error = math.sqrt(math.fsum(variance for _, variance in logs)) / len(logs)
    half = quantile(min(task["runs"] for task in tasks)) * error
    return {"ratio": math.exp(middle), "low": math.exp(middle - half), "high": math.exp(middle + half)}


def log_ratio(task: Mapping[str, Any], reference: str) -> tuple[float, float]:
    """The logarithm of a task's ratio of mean regrets, and its variance; both policies met the same runs."""
    little = SMOOTHING * math.sqrt(task["arms"] * task["rounds"])
    own, other = task["regret"], task["references"][reference]
    top, bottom = max(own["mean"], 0.0) + little, max(other["mean"], 0.0) + little
    ends = task["differences"][reference]
    apart = (ends["high"] - ends["low"]) / 2.0 / quantile(task["runs"])
    spread, other_spread = own["standard_error"], other["standard_error"]
    together = (spread**2 + other_spread**2 - apart**2) / 2.0  # the covariance of the two means
    variance = (spread / top) ** 2 + (other_spread / bottom) ** 2 - 2.0 * together / (top * bottom)
    return math.log(top / bottom), max(variance, 0.0)


def played(values: Sequence[float], switches: Sequence[float] | None) -> Played:
    """What a worker has counted, as arrays."""
    return Played(np.array(values), None if switches is None else np.array(switches))
