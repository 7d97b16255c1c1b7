"""Three ways to compare arms for a verdict. Each gives p-values and a look ahead.

`running` compares running means by importance weights, `paired` compares arms two by two in rounds whose law is known,
and `stationary` compares the losses seen of each arm and relies on means that do not change.
"""

from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np

from ..base.arrays import Floats, Ints
from . import shares
from .boundary import log_wealth_of_difference, lower_mean
from .evidence import paired_evidence, plain_evidence, weighted_evidence
from .sums import Sums

Basis: TypeAlias = Literal["running", "paired", "stationary"]
"""What a verdict compares arms by; see `Verdict`."""

_FARTHEST = 1e6  # times the observations so far that a look ahead reaches


def basis_of(sums: Sums, drift: bool) -> Basis:
    """How to compare arms: two by two if losses may drift and a law of exploration was known."""
    if not drift:
        return "stationary"
    return "paired" if sums.pairs is not None and sums.pairs.rounds > 0 else "running"


def chances(sums: Sums, live: Ints, basis: Basis) -> Floats:
    """For each of the arms, the smallest risk at which it is shown that another one is better."""
    return _CHANCES[basis](sums, live)


def times(sums: Sums, arms: Ints, leader: int, risk: float, basis: Basis) -> float:
    """How many times the observations it takes until these arms are out, if all sums grow in proportion."""
    return _TIMES[basis](sums, arms, leader, risk)


def _running_chances(sums: Sums, live: Ints) -> Floats:
    """The smallest risk at which weighted losses show, for each arm, that another one is better."""
    evidence = weighted_evidence(sums, live)
    chances: Floats = np.exp(-np.maximum(evidence.max(axis=1), 0.0)) / shares.of_difference(sums)
    return chances


def _paired_chances(sums: Sums, live: Ints) -> Floats:
    """The same from arms compared two by two."""
    if sums.pairs is None:
        return np.ones(len(live))
    risks = np.exp(-np.maximum(paired_evidence(sums.pairs, live), 0.0))
    shared = np.stack([shares.of_lasting_difference(sums, live, rival) for rival in live.tolist()], axis=1)
    chances: Floats = (risks / shared).min(axis=1)
    return chances


def _stationary_chances(sums: Sums, live: Ints) -> Floats:
    """The same from unweighted losses, in comparison with the arm whose upper end is the lowest."""
    moments = np.array([sums.arms[arm].plain for arm in live.tolist()])
    seen = np.array([sums.arms[arm].seen for arm in live.tolist()])
    rival = int(live[np.argmax(lower_mean(seen, moments[:, 2], moments[:, 3], 0.05))])
    evidence = np.where(live == rival, 0.0, plain_evidence(sums, live, rival))
    chances: Floats = np.exp(-np.maximum(evidence, 0.0)) / shares.of_lasting_difference(sums, live, rival)
    return chances


def _running_times(sums: Sums, arms: Ints, leader: int, risk: float) -> float:
    """How many times the observations it takes until these arms are out, if all sums grow in proportion."""
    loss, losses = np.array([sums.arms[arm].comparable[:2] for arm in arms.tolist()]).T
    gain, gains = sums.arms[leader].comparable[2:]
    total = loss + gain - sums.rounds
    squares = losses + gains + sums.rounds - 2.0 * (loss + gain)
    return _times_of_differences(total, squares, -np.log(risk * shares.of_difference(sums)))


def _paired_times(sums: Sums, arms: Ints, leader: int, risk: float) -> float:
    """The same from arms compared two by two."""
    if sums.pairs is None:
        return np.inf
    total, squares = sums.pairs.differences[arms, leader], sums.pairs.squares[arms, leader]
    goals = -np.log(risk * shares.of_lasting_difference(sums, arms, leader))
    return _times_of_differences(total, squares, goals)


def _stationary_times(sums: Sums, arms: Ints, leader: int, risk: float) -> float:
    """The same from unweighted losses."""
    seen = np.array([sums.arms[arm].seen for arm in arms.tolist()])
    if sums.arms[leader].seen == 0 or np.any(seen == 0):
        return np.inf
    goals = -np.log(risk * shares.of_lasting_difference(sums, arms, leader))
    last = np.argmin(plain_evidence(sums, arms, leader) - goals)
    slowest, goal = arms[last : last + 1], float(goals[last])
    return _times(lambda times: float(plain_evidence(sums, slowest, leader, times=times)[0]) - goal)


def _times_of_differences(total: Floats, squares: Floats, goals: float | Floats) -> float:
    if np.any(total <= 0.0):
        return np.inf
    return _times(
        lambda times: float(np.min(log_wealth_of_difference(times * total, times * squares) - goals))
    )


def _times(surplus: Callable[[float], float]) -> float:
    """The factor from 1 on at which a surplus of evidence becomes positive, to a few percent."""
    high = 1.0
    while surplus(high) < 0.0:
        high *= 4.0
        if high > _FARTHEST:
            return np.inf
    low = max(high / 4.0, 1.0)
    while high > 1.02 * low:
        middle = np.sqrt(low * high)
        low, high = (low, middle) if surplus(middle) >= 0.0 else (middle, high)
    return high


_CHANCES: dict[Basis, Callable[[Sums, Ints], Floats]] = {
    "running": _running_chances,
    "paired": _paired_chances,
    "stationary": _stationary_chances,
}
_TIMES: dict[Basis, Callable[[Sums, Ints, int, float], float]] = {
    "running": _running_times,
    "paired": _paired_times,
    "stationary": _stationary_times,
}
