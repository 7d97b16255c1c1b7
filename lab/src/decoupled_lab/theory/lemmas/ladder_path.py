"""What theorem T2 assumes of `Ladder`, and its lemma L11, along a path of the policy's own compiled functions."""

import math
from collections.abc import Iterator

import numpy as np

from ..bounds.ladder import RECORD, ladder_numbers
from ..inequality import OURS, Inequality, Sides
from ..ladder_path import LadderPath
from . import hedge, path

LAW = Inequality("|Ladder's p - p of T2| <= 1e-12", "ladder, T2", OURS)
BASELINE = Inequality("|Ladder's b - b of T2| <= 1e-12", "ladder, T2", OURS)
LEVEL = Inequality("B - a <= r", "ladder, T2 (I1)", OURS)
COUNT = Inequality("n + 4 s^2 + delta <= n of the next round", "ladder, T2 (I2)", OURS)
RATE = Inequality("eta (B - a) <= h / 2", "ladder, T2 (I3)", OURS)
RECORDS = Inequality("sum of records <= kappa / (kappa - 1) r", "ladder, L11", OURS)
TELESCOPED = Inequality("sum (4 s^2 + delta) / sqrt(n) <= 2 sqrt(n) + 4 N r", "ladder, L11", OURS)
MASSES = Inequality("sum delta <= sqrt(2 C_delta T) + 8 Z_K K^(-2/3)", "ladder, L11", OURS)
LARGEST = Inequality("n <= 4 (1 + theta) T + sqrt(2 C_delta T) + 4 + 8 Z_K K^(-2/3)", "ladder, T2a", OURS)

_SLACK = 1e-12  # for sums of many rounds


def whole(found: LadderPath) -> Iterator[tuple[int, Sides]]:
    """Every inequality about the whole path, with the round that it belongs to."""
    yield from _hypotheses(found)
    yield from _sums(found)
    rates = np.array([each.moment.eta for each in found.rounds])
    yield from path.divergences(np.array(found.estimates), rates, 3.0)
    if found.policy.rung_count > 1:
        priors = np.array(found.policy.prior or (1.0,) * found.policy.rung_count)
        judged = hedge.Hedge(
            np.array([each.weights for each in found.rounds]),
            np.diff(found.regrets),
            np.diff(np.array(found.rung_losses), axis=0),
            priors / priors.sum(),
            found.policy.hedge_rate,
        )
        for sides in hedge.sides(judged):
            yield len(found.rounds), sides


def _hypotheses(found: LadderPath) -> Iterator[tuple[int, Sides]]:
    """(I1) to (I3), and that p and b are those of the proof."""
    for t, each in enumerate(found.rounds):
        yield t + 2, Sides(LAW, float(np.abs(found.laws[t] - each.p).max()), 1e-12)
        yield t + 2, Sides(BASELINE, float(np.abs(found.baselines[t] - each.b).max()), 1e-12)
        yield t + 2, Sides(LEVEL, each.range, each.unit * (1.0 + 1e-9) + _SLACK)
        yield t + 2, Sides(RATE, each.moment.eta * each.range, 0.5 * each.numbers.h * (1.0 + 1e-9))
        s = float(each.surprises[found.explored[t]])
        grown = found.counts[t] + 4.0 * s**2 + each.drift
        yield t + 2, Sides(COUNT, grown, found.counts[t + 1] * (1.0 + 1e-9))


def _sums(found: LadderPath) -> Iterator[tuple[int, Sides]]:
    """L11 at every horizon."""
    of, policy = ladder_numbers(found.rounds[0].moment.arms, found.policy), found.policy
    records = telescoped = drift = 0.0
    for t, each in enumerate(found.rounds):
        arm = found.explored[t]
        records += float(each.records[arm])
        telescoped += (4.0 * float(each.plain[arm]) ** 2 + each.drift) / math.sqrt(found.counts[t])
        drift += each.drift
        unit, count, played = found.units[t + 1], found.counts[t + 1], t + 1.0
        if unit == 0.0:
            continue
        yield t + 2, Sides(RECORDS, records, RECORD / (RECORD - 1.0) * unit)
        yield t + 2, Sides(TELESCOPED, telescoped, 2.0 * math.sqrt(count) + 4.0 * of.step * unit)
        largest = math.sqrt(2.0 * of.drift_rate * played) + 4.0 * of.drift_share
        yield t + 2, Sides(MASSES, drift, largest)
        yield t + 2, Sides(LARGEST, count, 4.0 * (1.0 + policy.least_spread) * played + largest + 4.0)
