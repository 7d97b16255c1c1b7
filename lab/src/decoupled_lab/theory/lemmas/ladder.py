"""Lemmas L9 to L14: what theorem T2 needs of `Ladder()`, in one round and along a path."""

import math
from collections.abc import Iterator

import numpy as np

from decoupled.base import Floats

from ..bounds.constants import curvature_constant
from ..bounds.ladder import FALL, RECORD, ladder_numbers
from ..inequality import Sides, ours
from ..rounds import LadderRound
from ..trajectory import LadderPath
from . import centred, path

SHARE = ours("q <= S' p", "ladder, T2 (I4)")
GATE = ours("eta (b - a) / p <= (1 + eta u) / 2", "ladder, T2 (I5)")
BELOW = ours("w of rung 1 <= q, with ties that share", "ladder, L12")
LOWS = ours("sum of losses below all seen <= K / share E[fall of the least]", "ladder, L9")
HIGHS = ours("sum w (loss - B - r) <= S' E[growth of r]", "ladder, L9")
STABILITY = ours(
    "stability of a ladder's round <= jumps + drift + what was not seen", "ladder, L10"
)
DRIFT = ours("4 r sum d q^2 <= K^(2/3) delta", "ladder, L11")
MASS = ours("delta <= C_delta r^4 / n", "ladder, L11")
STEP = ours("4 s^2 + delta without records <= 4 N r^2", "ladder, L11")
CHANCE = ours("E chance^2 <= min(2 / (rank (rank + 1)), (1 + eta u)^-6)", "ladder, L13")
CHANCES = ours("sum E chance^2 / q <= Z_W", "ladder, L13")
SQUARE = ours("E sum pi A^2 <= V_A", "ladder, L13")
MEANS = ours("sum of pi / p of the m leaders <= 2 m / ((1 - gamma) tau)", "ladder, L13")
RANGE = ours("|A| <= max(S' K^(2/3), 1 / p_leader)", "ladder, L13")
SMALL = ours("E sum pi (A - that of the best arm)^2 <= C_A (1 - w_best)", "ladder, L13")
ANY = ours(
    "stability of a ladder's round <= eta r^2 sqrt(K) {A0} + what was not seen", "ladder, L14"
)
LATE = ours(
    "on D_t, late: stability of a ladder's round <= eta r^2 Y {A1} + what was not seen",
    "ladder, L14",
)

_LEAST = (
    1e-9  # a divergence is a difference of numbers around 1, so smaller ones have too few digits
)


def ladder_sides(played: LadderRound) -> Iterator[Sides]:
    """All inequalities about one round of a ladder, with the losses given."""
    of, moment, arms = played.numbers, played.moment, np.arange(played.moment.arms)
    law = moment.moments.law
    yield Sides(SHARE, played.q, of.whole * played.p, arms)
    yield Sides(BELOW, law, played.q, arms)
    if played.unit > 0.0:
        falls = moment.eta * (played.b - played.least) / played.p
        yield Sides(GATE, falls, 0.5 * (1.0 + moment.shifts), arms)
    # L9: both expectations are over the explored arm.
    if played.lows.any():
        yield Sides(LOWS, float(played.lows.sum()), of.low_cost * float(played.p @ played.lows))
    growth = float(played.p @ np.maximum(played.surprises - played.unit, 0.0))
    if played.highs.any():
        yield Sides(HIGHS, float(law @ played.highs), of.whole * growth)
    yield from _stability(played)
    yield from _drift(played)
    if len(played.weights) > 1:
        yield from _judge(played)


def _stability(played: LadderRound) -> Iterator[Sides]:
    """L10, and what L14 makes of it."""
    of, moment, curvature = played.numbers, played.moment, curvature_constant()
    eta, unit = moment.eta, played.unit
    jumps = 0.5 * eta * curvature * of.growth * FALL
    jumps *= float((played.q**2 / played.p) @ played.plain**2)
    drift = 4.0 * unit * curvature * of.growth * eta * float(played.d @ played.q**2)
    left, beyond = played.stability, played.unseen
    if eta * (jumps + drift + beyond) > _LEAST:
        yield Sides(STABILITY, left, jumps + drift + beyond)
    if unit == 0.0 or eta * unit < _LEAST:
        return
    yield Sides(ANY, left, eta * unit**2 * of.any_state() + beyond)
    if moment.on_event and eta * unit * (RECORD * of.whole + 1.0) <= moment.zeta:
        tails = float(((1.0 + moment.shifts[moment.others]) ** -2.0).sum())
        yield Sides(LATE, left, eta * unit**2 * tails * of.on_event(moment.zeta) + beyond)


def _drift(played: LadderRound) -> Iterator[Sides]:
    """L11, for one round."""
    of, unit = played.numbers, played.unit
    if unit == 0.0:
        return
    mass = 4.0 * unit * float(played.d @ played.q**2)
    yield Sides(DRIFT, mass, of.arms ** (2.0 / 3.0) * played.drift)
    n = (of.h / played.moment.eta) ** 2  # what the rates fall with
    yield Sides(MASS, played.drift, of.drift_rate * unit**4 / n)
    most = float(played.plain.max())
    yield Sides(STEP, 4.0 * most**2 + played.drift, 4.0 * of.step * unit**2)


def _judge(played: LadderRound) -> Iterator[Sides]:
    """L13: the mean squares of the judge's estimates, exactly, whatever draws the rungs share."""
    of, moment, arms = played.numbers, played.moment, np.arange(played.moment.arms)
    ranks = moment.ranks.astype(np.float64)
    limit = np.minimum(2.0 / (ranks * (ranks + 1.0)), (1.0 + moment.shifts) ** -6.0)
    for chances in played.chances:
        yield Sides(CHANCE, chances, limit * (1.0 + 1e-9), arms)
        yield Sides(CHANCES, float((chances / played.q).sum()), of.chances)
    leads = np.array([arms == leader for leader in played.leaders], np.float64).reshape(
        -1, moment.arms
    )
    largest = np.where(moment.shifts > 0.0, (1.0 + moment.shifts) ** -3.0, 1.0)
    largest = np.maximum(largest, leads.max(axis=0, initial=0.0)) / played.p
    yield Sides(RANGE, float(largest.max()), of.jump, int(np.argmax(largest)))
    squares = (played.losses - played.b) ** 2 / played.p
    weights: Floats = played.weights
    if played.leaders:
        shared = float((weights[len(played.rungs) :] @ leads / played.p).sum())
        most = 2.0 * len(leads) / ((1.0 - of.policy.uniform_share) * of.policy.top_two_share)
        yield Sides(MEANS, shared, most)
    # The mean squares of A, of its distance to 1[j = best], and the laws: one row for each rung.
    near = played.chances.copy()
    near[:, moment.best] += 1.0 - 2.0 * played.rung_laws[:, moment.best]
    about, laws = np.vstack((played.chances, leads)), np.vstack((played.rung_laws, leads))
    centred = np.vstack((near, np.abs(leads - (arms == moment.best))))
    yield Sides(SQUARE, float(weights @ about @ squares), of.variance)
    lost = 1.0 - laws[:, moment.best]
    # L13 (3) centres at the best arm's loss, or at 0 if that arm neither leads by a mean nor has q of 1/2.
    inner = moment.best in played.leaders or played.q[moment.best] >= 0.5
    mean_square = float(weights @ (centred if inner else about) @ squares)
    yield Sides(SMALL, mean_square, of.small_variance * float(weights @ lost))


LAW = ours("|Ladder's p - p of T2| <= 1e-12", "ladder, T2")
BASELINE = ours("|Ladder's b - b of T2| <= 1e-12", "ladder, T2")
LEVEL = ours("B - a <= r", "ladder, T2 (I1)")
COUNT = ours("n + 4 s^2 + delta <= n of the next round", "ladder, T2 (I2)")
RATE = ours("eta (B - a) <= h / 2", "ladder, T2 (I3)")
RECORDS = ours("sum of records <= kappa / (kappa - 1) r", "ladder, L11")
TELESCOPED = ours("sum (4 s^2 + delta) / sqrt(n) <= 2 sqrt(n) + 4 N r", "ladder, L11")
MASSES = ours("sum delta <= sqrt(2 C_delta T) + 8 Z_K K^(-2/3)", "ladder, L11")
LARGEST = ours("n <= 4 (1 + theta) T + sqrt(2 C_delta T) + 4 + 8 Z_K K^(-2/3)", "ladder, T2a")

_SLACK = 1e-12  # for sums of many rounds


def whole_ladder(found: LadderPath) -> Iterator[tuple[int, Sides]]:
    """Every inequality about the whole path, with the round that it belongs to."""
    yield from _path_hypotheses(found)
    yield from _sums(found)
    rates = np.array([each.moment.eta for each in found.rounds])
    yield from path.divergences(np.array(found.estimates), rates, 3.0)
    if found.policy.rung_count > 1:
        judged = centred.Hedge(
            np.array([each.weights for each in found.rounds]),
            np.diff(found.regrets),
            np.diff(np.array(found.rung_losses), axis=0),
            found.rounds[0].numbers.priors,
            found.policy.hedge_rate,
        )
        for sides in centred.hedge_sides(judged):
            yield len(found.rounds), sides


def _path_hypotheses(found: LadderPath) -> Iterator[tuple[int, Sides]]:
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
        yield (
            t + 2,
            Sides(LARGEST, count, 4.0 * (1.0 + policy.least_spread) * played + largest + 4.0),
        )
