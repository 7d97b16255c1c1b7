"""Observations, added to the sums in their order.

How many are added at once makes no difference, to the last bit: what an observation adds, and what it settles, depends on
those before it alone.
"""

from collections.abc import Sequence

import numpy as np

from ..base.arrays import Floats
from ..kernels.betting import OTHER_ROUNDS, ArmTotals, Observed, add_observations
from .comparisons import difference_now, look
from .sums import Observation, Sums

_MOST_NUMBERS = 1_000_000  # in the laws that are held at once


def add_all(sums: Sums, seen: Sequence[Observation], before: int) -> None:
    """Add observations; there were so many before them."""
    at_once = max(1, _MOST_NUMBERS // len(sums.batch))
    looks = not sums.drift or bool(sums.apart)  # pairs that are not followed
    start = 0
    while start < len(seen):
        end = min(start + at_once, len(seen))
        if looks:
            end = min(end, max(sums.next_look - before, start + 1))
        _add(sums, seen[start:end])
        start = end
        if looks and before + end >= sums.next_look:
            # A look costs more than an observation, so looks become rarer.
            sums.next_look = before + end + max(25, (before + end) // 10)
            look(sums)


def _add(sums: Sums, seen: Sequence[Observation]) -> None:
    observed = _packed(sums, seen)
    arms = ArmTotals(sums.moments, sums.counts, sums.rounds, sums.flow)
    pairs, start = sums.pairs.totals(), 0
    while start < len(seen):
        start = add_observations(observed, arms, pairs, start)
        for worse, better in sums.pairs.reached():
            sums.settle(worse, better, difference_now(sums, worse, better, drift=True))


def _packed(sums: Sums, seen: Sequence[Observation]) -> Observed:
    """The observations as compiled code takes them."""
    live, followed, coupled = set(sums.live), len(sums.pairs.owners) > 0, int(sums.coupled)
    rows: list[int] = []
    numbers: list[float] = []
    laws: list[Floats] = []
    for explore, weight, loss, exploit, available, law in seen:
        row, share, served = -1, 0.0, exploit is not None
        if weight == 1.0:  # no other arm had a chance
            available = (explore,)
        whole = weight is not None and (
            available is None or len(available) >= len(sums.batch) or live.issubset(available)
        )
        part = weight is not None and not whole
        if weight is None:
            served = served and sums.coupled  # what was exploited is what was seen
        elif part and available is not None:
            some = np.array(sorted(available), np.int64)
            sums.counts[some, OTHER_ROUNDS] += 1
            served = exploit in available  # else the exploited arm had no chance to be explored
        if followed and law is not None:
            row = len(laws)
            laws.append(law)
        elif followed and whole:
            share = 1.0 / sums.contenders
        elif followed and part and len(some) > 1:
            row, share = len(laws), 1.0 / len(some)
            laws.append(np.bincount(some, minlength=len(sums.batch)).astype(np.float64))
        rows += (
            *(explore, -1 if exploit is None else exploit, row),
            *(weight is not None, whole, served, coupled),
        )  # fmt: skip
        numbers += (0.0 if weight is None else weight, loss, share)
    return Observed(
        np.array(rows, np.int64).reshape(len(seen), -1), np.array(numbers).reshape(len(seen), -1),
        np.array(laws) if laws else np.empty((0, len(sums.batch))),
    )  # fmt: skip
