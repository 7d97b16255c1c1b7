"""Lemma L5 of the ladder, one round of the centred estimator, and what theorems C and E conclude from it."""

from collections.abc import Iterator

import numpy as np

from decoupled.base import Floats

from ..bounds.constants import curvature_constant, rank_sum, ratio_sum
from ..bounds.gates import jump_factor
from ..centred_round import CentredRound
from ..inequality import OURS, Inequality, Sides
from ..potential import divergence, potential

STABILITY = Inequality("stability of a centred round <= jumps + drift", "ladder, L5", OURS)
SHORT = Inequality(
    "stability of a centred round <= eta / 2 C1 Rbar Q^2 E[(1 + eta d)^(alpha + 1) (loss - b)^2] + drift",
    "ladder, L5",
    OURS,
)
BEST = Inequality("on D_t, late: stability of the centred best arm <= main term", "ladder, L6", OURS)
CONSTRAINED = Inequality(
    "on D_t, late: stability of a centred round <= eta S_K Y {A1}", "ladder, theorem C", OURS
)
BELOW = Inequality("w of every rung <= q at the exploration rate", "ladder, theorem E", OURS)
VARIANCE = Inequality("E Var of the rungs' losses <= (S_K Z2 + B^2) / 2", "ladder, theorem E", OURS)
SMALL_VARIANCE = Inequality(
    "E Var of the rungs' losses <= (8 Q + 2 B^2) (1 - w_best)", "ladder, theorem E3", OURS
)

_LEAST = 1e-9  # a divergence is a difference of numbers around 1, so smaller ones have too few digits


def sides(played: CentredRound) -> Iterator[Sides]:
    """All inequalities about one centred round, with the losses given."""
    left = played.stability
    jumps, short, drift = _right_sides(played)
    if played.moment.eta * (jumps + drift) > _LEAST:
        yield Sides(STABILITY, left, jumps + drift)
        yield Sides(SHORT, left, short + drift)
    if played.moment.on_event and played.late:
        yield from _late(played, left)
    yield from _rungs(played)


def _right_sides(played: CentredRound) -> tuple[float, float, float]:
    """The jumps of L5, its short form, and the drift."""
    moment, eta, alpha = played.moment, played.moment.eta, played.moment.alpha
    curvature, q, p, b, d = curvature_constant(alpha), played.q, played.p, played.b, played.d
    growth = (1.0 + eta * d) ** (alpha + 1.0)
    excess = played.losses - b
    factors = np.array(
        [
            jump_factor(x, float(y), alpha) if x > 0.0 else 1.0
            for x, y in zip(eta * b / p, moment.shifts, strict=True)
        ]
    )
    squares = np.where(excess > 0.0, 1.0, factors) * excess**2
    jumps = 0.5 * eta * curvature * float((q**2 / p * growth * squares).sum())
    mean = float((p * growth * excess**2).sum())
    short = 0.5 * eta * curvature * played.gate.fall_factor(alpha) * played.explored_sum**2 * mean
    drift = min(3.0, 3.0 * eta * curvature * float((growth * d * q**2).sum()))
    return jumps, short, drift


def _late(played: CentredRound, left: float) -> Iterator[Sides]:
    """L6 for the best arm, and the conclusion of theorem C on D_t."""
    moment, zeta = played.moment, played.moment.zeta
    alpha, eta, best = moment.alpha, moment.eta, moment.best
    tails = float(((1.0 + moment.shifts[moment.others]) ** (-0.5 * (alpha + 1.0))).sum())
    squares = float(((1.0 + moment.shifts[moment.others]) ** -(alpha + 1.0)).sum())
    best_factor = 0.5 * alpha * (1.0 - zeta) ** -(alpha + 1.0)
    drifted = potential(moment.shifts - eta * played.d, alpha)
    jumped = played.jump(best, drifted.losses)
    own = float(played.p[best]) * divergence(jumped, drifted) / eta
    bound = eta * played.explored_sum * best_factor * squares
    if eta * bound > _LEAST:
        yield Sides(BEST, own, bound, best)
    total, curvature = rank_sum(moment.arms, alpha), curvature_constant(alpha)
    late = (1.0 + zeta) ** (alpha + 1.0)
    others = late * curvature * (0.5 * played.gate.fall_factor(alpha) + 3.0 / total)
    yield Sides(CONSTRAINED, left, eta * total * tails * (others + best_factor))


def _rungs(played: CentredRound) -> Iterator[Sides]:
    """The steps of theorem E for the rungs of the round."""
    if not len(played.rungs):
        return
    moment, alpha = played.moment, played.moment.alpha
    laws, prior = played.rung_laws, np.full(len(played.rungs), 1.0 / len(played.rungs))
    yield Sides(BELOW, laws.max(axis=0), played.explored, np.arange(moment.arms))
    estimates: Floats = laws * ((played.losses - played.b) / played.p) - (laws @ played.d)[:, None]
    centred = estimates - prior @ estimates
    variance = float(((prior @ centred**2) * played.p).sum())
    bound = 0.5 * (rank_sum(moment.arms, alpha) * ratio_sum(alpha) + played.mean**2)
    yield Sides(VARIANCE, variance, bound)
    lost = float((prior @ laws)[moment.others].sum())
    yield Sides(SMALL_VARIANCE, variance, (8.0 * played.explored_sum + 2.0 * played.mean**2) * lost)
