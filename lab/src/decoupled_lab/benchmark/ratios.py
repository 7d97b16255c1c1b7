"""Ratios of regrets: what the table, the picture and the leaderboard show of an entry."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import statistics
from .suite import NEED_DATA

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
    return math.exp(statistics.log_ratio(task, YARDSTICK)[0])


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
        difference = {YARDSTICK: statistics.difference(mine - theirs)}
        lines.append({**task, "references": {YARDSTICK: other["regret"]}, "differences": difference})
    return Ratio(**statistics.group_ratio(lines, YARDSTICK))
