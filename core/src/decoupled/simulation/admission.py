"""What a simulation refuses: sizes that no machine has, and losses outside [0, 1].

Sizes are checked before anything is made.
"""

import os
from collections.abc import Callable, Iterable, Sized
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..base.arrays import Floats, Ints
from ..base.validation import MOST_ROUNDS, whole_number
from ..environments import Environment
from ..environments.base import Adversary
from ..errors import ParameterError

# Bytes of a round: the number of its row in the table of losses, and a copy while that is checked.
A_ROUND = 16
# Bytes of a run: its regret, for every policy, while results are put together.
A_RUN = 24
# Bytes of a checkpoint: a number of Python's, its place in arrays, and its text in the plan.
A_CHECKPOINT = 100


def checked_sizes(
    policies: int, environment: Environment, horizon: object, runs: object, checkpoints: object
) -> tuple[int, int]:
    """Check the horizon and the number of runs, and return them.

    Raise an error if these or the checkpoints need more memory than there is.
    """
    rounds = whole_number("horizon", horizon, 1, "the paper has 10,000", MOST_ROUNDS)
    count = whole_number("runs", runs, 1, "the paper has 1,000", MOST_ROUNDS)
    if not isinstance(environment, Adversary):  # which has no table
        check_memory("horizon", rounds, A_ROUND * rounds, "choose a shorter horizon")
    check_memory("runs", count, A_RUN * policies * count, "choose fewer runs")
    points = _points(checkpoints, rounds)
    if points is not None:
        check_memory("checkpoints", checkpoints, A_CHECKPOINT * points, "choose fewer checkpoints")
    return rounds, count


def _points(checkpoints: Any, horizon: int) -> int | None:
    """How many checkpoints there are to be, or None if the value is of no known kind.

    Another check reports that.
    """
    if isinstance(checkpoints, dict):
        checkpoints = checkpoints.get("count")
    if isinstance(checkpoints, str):
        return horizon if checkpoints == "all" else None
    if isinstance(checkpoints, Iterable):
        return len(checkpoints) if isinstance(checkpoints, Sized) else None
    return checkpoints if isinstance(checkpoints, int) else None


def check_memory(name: str, value: object, needed: int, remedy: str) -> None:
    """Raise an error if an argument needs more memory than there is."""
    if needed > whole_memory():
        rule = f"needs {as_memory(needed)} of memory, and there are {as_memory(whole_memory())}"
        raise ParameterError.of(name, value, rule, remedy)


CONTAINER = Path("/sys/fs/cgroup/memory.max")  # "max", or the bytes that a container may use
UNKNOWN = 2**40  # bytes; more than machines have on which it cannot be asked


@cache
def whole_memory() -> int:
    """The memory of this machine, or of the container that this runs in, in bytes."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # Windows does not have it
        memory = UNKNOWN
    try:
        return min(memory, int(CONTAINER.read_text("utf-8")))
    except (OSError, ValueError):
        return memory


def as_memory(size: float) -> str:
    """A number of bytes, as people write it: 1.5 GB."""
    for unit in ("bytes", "kB", "MB", "GB", "TB", "PB"):
        if size < 1000.0 or unit == "PB":
            break
        size /= 1000.0
    return f"{size:,.3g} {unit}" if size < 1000.0 else f"{size:,.0f} {unit}"


POINTS = 100  # rounds looked at in each replay


class Outside(NamedTuple):
    """A loss outside [0, 1], with its round, its arm and its value.

    Rounds count from 0, as for an adversary.
    """

    t: int
    arm: int
    loss: float


def find_outside(replay: Callable[[Ints], Floats], rounds: Ints, sums: Floats) -> Outside:
    """Find a loss that takes the sum of an arm out of range.

    `sums` (rounds x arms) are the losses of each arm up to these rounds, and some of them are out
    of range. `replay` plays the same run again and returns the sums at other rounds, which come
    closer and closer.
    """
    while True:
        place = int(np.argmax(_out_of_range(rounds, sums).any(axis=1)))
        before = int(rounds[place - 1]) if place else 0
        if rounds[place] == before + 1:
            break
        rounds = np.unique(np.linspace(max(before, 1), rounds[place], POINTS).astype(np.int64))
        sums = replay(rounds)
    arm = int(np.argmax(_out_of_range(rounds, sums)[place]))
    return Outside(before, arm, float(sums[place, arm] - (sums[place - 1, arm] if place else 0.0)))


def _out_of_range(rounds: Ints, sums: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Whether the sum of each arm's losses is impossible after so many rounds.

    NaN is impossible, too.
    """
    return ~((sums >= 0.0) & (sums <= rounds[:, None]))


def outside_range(environment: Environment, outside: Outside | None = None) -> ParameterError:
    """Error for an adversary whose losses leave [0, 1]; a GPU does not know where."""
    name = type(environment).__name__
    if outside is None:
        remedy = "fix the adversary (device='cpu' says for which arm, and when)"
        return ParameterError(f"{name}.losses: went outside [0, 1]; {remedy}")
    where = f"with {outside.loss:.12g} for arm {outside.arm} at t = {outside.t}"
    remedy = "fix the adversary, such as with out[arm] = min(1.0, ...)"
    return ParameterError(f"{name}.losses: went outside [0, 1], {where}; {remedy}")
