"""Add observations to the sums of confidence sequences, in their order.

How many are added at once makes no difference, to the last bit: what an observation adds, and what
it settles, depends on those before it alone.
"""

import math
from collections.abc import Sequence

import numpy as np

from ..base.arrays import Floats
from ..kernels.betting import OTHER_ROUNDS, ArmTotals, add_observations
from ..kernels.observed import Observed, ObservedNumbers, ObservedRow, Standing
from .comparisons import difference_now, look, looks_apart, note_best
from .sums import Observation, Sums

_MOST_NUMBERS = 1_000_000  # in the laws that are held at once


def add_all(sums: Sums, observations: Sequence[Observation], before: int) -> None:
    """Add observations; there were so many before them."""
    at_once = max(1, _MOST_NUMBERS // len(sums.batch))
    if sums.by_law is None and len(observations) > 0:
        sums.by_law = observations[0].law is not None
    has_looks = looks_apart(sums)
    start = 0
    while start < len(observations):
        end = min(start + at_once, len(observations))
        if has_looks:
            end = min(end, max(sums.next_look - before, start + 1))
        _add(sums, observations[start:end])
        start = end
        if has_looks and before + end >= sums.next_look:
            # A look costs more than an observation, so looks become rarer.
            sums.next_look = before + end + max(25, (before + end) // 10)
            look(sums)


def _add(sums: Sums, observations: Sequence[Observation]) -> None:
    """Add observations, and settle the pairs whose bets have won enough on the way."""
    packed = pack_observations(sums, observations)
    arms = ArmTotals(sums.moments, sums.counts, sums.rounds, sums.flow)
    count = len(sums.batch)
    standing = empty_standing(count)
    pairs = sums.pairs.totals()
    live = (~sums.retired).astype(np.int64)
    # Without drift and without laws, arms are judged by the losses seen, at looks.
    goal = sums.goal_of_outs if sums.drift or sums.by_law else 0.0
    outs = sums.outs.totals(live, goal, closed=not sums.drift)
    singles = sums.singles.totals(live)
    start = 0
    while start < len(observations):
        start = add_observations(packed, arms, pairs, outs, singles, standing, start)
        for arm in sums.outs.reached():
            sums.out_at[arm] = sums.observed
        for worse, better in sums.pairs.reached():
            if (worse, better) not in sums.settled:
                sums.settle(worse, better, difference_now(sums, worse, better, drift=True))
            note_best(sums, better)


def empty_standing(arms: int) -> Standing:
    """Room for how so many arms stand."""
    return Standing(
        means=np.zeros(arms),
        counts=np.zeros(arms, np.int64),
        chances=np.zeros(arms),
        levels=np.zeros(arms),
        as_worse=np.zeros(arms),
        as_better=np.zeros(arms),
    )


def pack_observations(sums: Sums, observations: Sequence[Observation]) -> Observed:
    """The observations as compiled code takes them."""
    rows: list[ObservedRow] = []
    numbers: list[ObservedNumbers] = []
    laws: list[Floats] = []
    live = set(sums.live)
    for observation in observations:
        row, row_of_numbers = _pack(sums, observation, live, laws)
        rows.append(row)
        numbers.append(row_of_numbers)
    return Observed(
        rows=np.array(rows, np.int64),
        numbers=np.array(numbers),
        laws=np.array(laws) if laws else np.empty((0, len(sums.batch))),
    )


def _pack(
    sums: Sums, observation: Observation, live: set[int], laws: list[Floats]
) -> tuple[ObservedRow, ObservedNumbers]:
    """A row of `Observed.rows` and one of `Observed.numbers`.

    This puts the law that the observation needs into `laws`, and counts its round for the arms that
    were available if not all were.
    """
    arms = len(sums.batch)
    has_weight = observation.weight is not None
    available = observation.available
    if observation.weight == 1.0:  # no other arm had a chance
        available = (observation.explore,)
    serves = observation.exploit is not None
    is_whole = available is None or len(available) >= arms or live.issubset(available)
    places: list[int] = []
    if not has_weight:
        serves = serves and sums.coupled  # what was exploited is what was seen
    elif not is_whole and available is not None:
        places = sorted(available)
        sums.counts[places, OTHER_ROUNDS] += 1
        # Otherwise the exploited arm had no chance to be explored.
        serves = observation.exploit in places
    law_row = -1
    share = 0.0
    if observation.law is not None:
        law_row = len(laws)
        laws.append(observation.law)
    elif has_weight and is_whole:
        share = 1.0 / sums.contenders
    elif has_weight and len(places) > 1:
        law_row = len(laws)
        share = 1.0 / len(places)
        laws.append(np.bincount(places, minlength=arms).astype(np.float64))
    row = ObservedRow(
        explore=observation.explore,
        exploit=-1 if observation.exploit is None else observation.exploit,
        law=law_row,
        is_weighted=has_weight,
        is_whole=has_weight and is_whole,
        serves=serves,
        is_coupled=sums.coupled,
    )
    expected, label = expected_and_label(sums.width, observation)
    numbers = ObservedNumbers(
        weight=0.0 if observation.weight is None else observation.weight,
        loss=observation.loss,
        share=share,
        width=sums.width,
        expected=expected,
        label=label,
        rho=observation.rho,
    )
    return row, numbers


def expected_and_label(width: float, observation: Observation) -> tuple[float, float]:
    """The loss that was expected of an answer, and its label or NaN; without labels, both are the
    loss.

    The loss that is fed is expected + (label - expected) / rho, and expected without a label.
    """
    rho = observation.rho
    if width == 1.0 and rho == 1.0:
        return observation.loss, observation.loss
    estimate = 0.5 + width * (observation.loss - 0.5)
    if rho == 1.0:
        return estimate, estimate
    if observation.label is None:
        return estimate, math.nan
    expected = (estimate - observation.label / rho) / (1.0 - 1.0 / rho)
    return expected, observation.label
