"""Errors for adversaries whose losses leave [0, 1]."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..base.arrays import Floats, Ints
from ..environments import Environment
from ..errors import ParameterError

POINTS = 100  # rounds looked at in each replay


class Outside(NamedTuple):
    """A loss outside [0, 1]: its round, counted from 0 as an adversary counts, its arm and its value."""

    t: int
    arm: int
    loss: float


def find_outside(replay: Callable[[Ints], Floats], rounds: Ints, sums: Floats) -> Outside:
    """Find a loss that takes the sum of an arm out of range.

    `sums` (rounds x arms) are the losses of each arm up to these rounds, and some of them are out of range. `replay`
    plays the same run again and returns the sums at other rounds, which come closer and closer.
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
    # Written so that NaN is out of range.
    return ~((sums >= 0.0) & (sums <= rounds[:, None]))


def outside_range(environment: Environment, found: Outside | None = None) -> ParameterError:
    """Error for an adversary whose losses leave [0, 1]; a GPU does not know where."""
    name = type(environment).__name__
    if found is None:
        return ParameterError(
            f"{name}.losses: went outside [0, 1]; fix the adversary (device='cpu' says for which arm, and when)"
        )
    return ParameterError(
        f"{name}.losses: went outside [0, 1], with {found.loss:.12g} for arm {found.arm} at t = {found.t}; "
        "fix the adversary, such as with out[arm] = min(1.0, ...)"
    )
