"""What a simulation would take, before anything is made: sizes that no machine has are refused by name."""

from collections.abc import Iterable, Sized
from typing import Any

from ..base.memory import as_memory, whole_memory
from ..base.validation import MOST_ROUNDS, whole_number
from ..environments import Environment
from ..environments.base import Adversary
from ..errors import ParameterError

A_ROUND = 16  # bytes: the number of its row in the table of losses, and a copy while that is checked
A_RUN = 24  # bytes: its regret, for every policy, while results are put together
A_CHECKPOINT = 100  # bytes: a number of Python's, its place in arrays, and its text in the plan


def checked_sizes(
    policies: int, environment: Environment, horizon: object, runs: object, checkpoints: object
) -> tuple[int, int]:
    """The horizon and the number of runs; an error if these or the checkpoints need more memory than there is."""
    rounds = _bounded("horizon", horizon, "the paper has 10,000")
    count = _bounded("runs", runs, "the paper has 1,000")
    if not isinstance(environment, Adversary):  # which has no table
        _check("horizon", rounds, A_ROUND * rounds, "choose a shorter horizon")
    _check("runs", count, A_RUN * policies * count, "choose fewer runs")
    points = _points(checkpoints, rounds)
    if points is not None:
        _check("checkpoints", checkpoints, A_CHECKPOINT * points, "choose fewer checkpoints")
    return rounds, count


def check_curves(policies: int, runs: int, checkpoints: int) -> None:
    """Raise an error if the curves of all runs need more memory than there is."""
    size = 8 * policies * runs * checkpoints
    _check("curves", "runs", size, "use curves='moments', or choose fewer checkpoints")


def _bounded(name: str, value: object, remedy: str) -> int:
    number = whole_number(name, value, 1, remedy)
    if number > MOST_ROUNDS:
        raise ParameterError.of(name, value, f"must not exceed {MOST_ROUNDS:,}", remedy)
    return number


def _points(checkpoints: Any, horizon: int) -> int | None:
    """How many checkpoints are asked for; None if the value is of no known kind, which is said elsewhere."""
    if isinstance(checkpoints, dict):
        checkpoints = checkpoints.get("count")
    if isinstance(checkpoints, str):
        return horizon if checkpoints == "all" else None
    if isinstance(checkpoints, Iterable):
        return len(checkpoints) if isinstance(checkpoints, Sized) else None
    return checkpoints if isinstance(checkpoints, int) else None


def _check(name: str, value: object, needed: int, remedy: str) -> None:
    if needed > whole_memory():
        rule = f"needs {as_memory(needed)} of memory, and there are {as_memory(whole_memory())}"
        raise ParameterError.of(name, value, rule, remedy)
