"""What an entry says of the runs: means, differences paired by run, and ratios of regrets."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from decoupled.base import Floats

from .suite import NEED_DATA, SUITE
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
        "differences": {
            name: difference(entry.values - values) for name, values in references.items()
        },
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
    return round(float(stdtrit(runs - 1, 0.5 + LEVEL / 2.0)), 6)


def group_lines(tasks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The groups that the lines of tasks belong to, with the entry's regret over that of each reference."""
    lines = []
    for name, title in SUITE.groups.items():
        own = [task for task in tasks if task["group"] == name]
        if own:
            ratios = {reference: group_ratio(own, reference) for reference in SUITE.references}
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
    return {
        "ratio": math.exp(middle),
        "low": math.exp(middle - half),
        "high": math.exp(middle + half),
    }


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


YARDSTICK = "FTPL()"  # the reference that the picture and the leaderboard compare with


class Ratio(NamedTuple):
    """A ratio of regrets with its 95 % interval.

    >>> Ratio(0.5, 0.4, 0.6).verdict, Ratio(1.2, 0.9, 1.6).verdict
    ('better', 'even')
    """

    ratio: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """Whether the policy is "better" or "worse" than the reference, or "even" if the interval includes 1."""
        return "better" if self.high < 1.0 else "worse" if self.low > 1.0 else "even"


def of_group(group: Mapping[str, Any], reference: str = YARDSTICK) -> Ratio:
    """The ratio of a group of an entry.

    >>> of_group({"ratios": {"FTPL()": {"ratio": 0.5, "low": 0.4, "high": 0.6}}})
    Ratio(ratio=0.5, low=0.4, high=0.6)
    """
    return Ratio(**group["ratios"][reference])


def of_reference(group: Mapping[str, Any], reference: str) -> float:
    """The ratio of another reference to the yardstick in a group.

    >>> group = {"FTPL()": {"ratio": 0.5, "low": 0.4, "high": 0.6}, "Ladder()": {"ratio": 2.0, "low": 1.8, "high": 2.2}}
    >>> of_reference({"ratios": group}, "Ladder()")
    0.25
    """
    return of_group(group).ratio / of_group(group, reference).ratio


def of_task(task: Mapping[str, Any]) -> float:
    """The ratio of a single task to the yardstick."""
    return math.exp(log_ratio(task, YARDSTICK)[0])


def tasks_of(entry: Mapping[str, Any], group: str) -> list[Mapping[str, Any]]:
    """The tasks of a group, in their order."""
    return [task for task in entry["tasks"] if task["group"] == group]


def overall(entry: Mapping[str, Any]) -> Ratio:
    """The geometric mean over the groups that need no data, each of which counts once.

    The runs of two groups have different seeds, so their errors are independent.

    >>> group = {"name": "paper", "ratios": {"FTPL()": {"ratio": 0.5, "low": 0.25, "high": 1.0}}}
    >>> other = {"name": "drift", "ratios": {"FTPL()": {"ratio": 2.0, "low": 1.0, "high": 4.0}}}
    >>> found = overall({"groups": [group, other]})
    >>> found.ratio, round(found.low, 3), round(found.high, 3)    # half as wide as the sum of two squares
    (1.0, 0.613, 1.633)
    """
    found = [of_group(each) for each in entry["groups"] if each["name"] not in NEED_DATA]
    middle = math.fsum(math.log(each.ratio) for each in found) / len(found)
    half = math.hypot(*(math.log(each.high / each.low) / 2.0 for each in found)) / len(found)
    return Ratio(math.exp(middle), math.exp(middle - half), math.exp(middle + half))


def paired(tasks: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]) -> Ratio:
    """The ratio of one policy to another in tasks that both have played, run by run."""
    lines = []
    for task, other in zip(tasks, others, strict=True):
        mine, theirs = (np.array(each["regret"]["runs"]) for each in (task, other))
        apart = {YARDSTICK: difference(mine - theirs)}
        lines.append({**task, "references": {YARDSTICK: other["regret"]}, "differences": apart})
    return Ratio(**group_ratio(lines, YARDSTICK))
