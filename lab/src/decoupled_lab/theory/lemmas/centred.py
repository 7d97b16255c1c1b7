"""Lemmas L5, L7 and L8 of the ladder: one round of the centred estimator, AdaHedge with a prior, and the running mean."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from decoupled.base import Floats

from ..bounds.constants import curvature_constant, jump_factor, rank_sum, ratio_sum
from ..inequality import Sides, ours
from ..moment import divergence, potential
from ..rounds import CentredRound

STABILITY = ours("stability of a centred round <= jumps + drift", "ladder, L5")
SHORT = ours(
    "stability of a centred round <= eta / 2 C1 Rbar Q^2 E[(1 + eta d)^(alpha + 1) (loss - b)^2] + drift",
    "ladder, L5",
)
BEST = ours("on D_t, late: stability of the centred best arm <= main term", "ladder, L6")
CONSTRAINED = ours(
    "on D_t, late: stability of a centred round <= eta S_K Y {A1}", "ladder, theorem C"
)
BELOW = ours("w of every rung <= q at the exploration rate", "ladder, theorem E")
VARIANCE = ours("E Var of the rungs' losses <= (S_K Z2 + B^2) / 2", "ladder, theorem E")
SMALL_VARIANCE = ours(
    "E Var of the rungs' losses <= (8 Q + 2 B^2) (1 - w_best)", "ladder, theorem E3"
)

_LEAST = (
    1e-9  # a divergence is a difference of numbers around 1, so smaller ones have too few digits
)


def centred_sides(played: CentredRound) -> Iterator[Sides]:
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
    falls = zip(eta * b / p, moment.shifts, strict=True)
    factors = np.array([jump_factor(x, float(y), alpha) if x > 0.0 else 1.0 for x, y in falls])
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


GAP = ours("mixability gap of a round <= range of its losses", "ladder, L7")
REGRET = ours("regret to expert m <= (1 + ln(1 / prior_m) / L0) Delta", "ladder, L7")
DELTA = ours("Delta <= sqrt(L0 sum Var) + (2 L0 / 3 + 1) largest range", "ladder, L7")


class Hedge(NamedTuple):
    """A run of AdaHedge: row t belongs to round t."""

    weights: Floats
    gaps: Floats  # the mixability gaps
    losses: Floats
    prior: Floats
    l0: float


def adahedge(losses: Floats, prior: Floats, l0: float = 3.0) -> Hedge:
    """AdaHedge of de Rooij, van Erven, Grunwald and Koolen (2014) with a prior, for losses of any range.

    Its rate is L0 / Delta, where Delta is the sum of the mixability gaps so far.

    >>> import numpy as np
    >>> from decoupled_lab.theory.lemmas.centred import adahedge
    >>> run = adahedge(np.array([[0.0, 1.0], [0.0, 1.0]]), np.array([0.5, 0.5]))
    >>> run.weights.round(3).tolist()
    [[0.5, 0.5], [0.998, 0.002]]
    """
    summed, delta = np.zeros(losses.shape[1]), 0.0
    weights, gaps = np.empty_like(losses), np.empty(len(losses))
    for t, given in enumerate(losses):
        ahead = summed - summed.min()
        if delta > 0.0:
            # In logarithms, because the weight of an expert that will matter may underflow.
            logs = np.log(prior) - l0 / delta * ahead
            whole = np.logaddexp.reduce(logs)
            weights[t] = np.exp(logs - whole)
            mix = float(whole - np.logaddexp.reduce(logs - l0 / delta * given)) * delta / l0
        else:
            share = prior * (ahead == 0.0)
            weights[t] = share / share.sum()
            mix = float((summed + given).min() - summed.min())
        gaps[t] = float(weights[t] @ given) - mix
        delta += max(gaps[t], 0.0)
        summed = summed + given
    return Hedge(weights, gaps, losses, prior, l0)


def prior_cost(prior: Floats) -> Floats:
    """What an expert pays for its prior weight, ln(1 / prior)."""
    return -np.log(prior)


def hedge_sides(run: Hedge) -> Iterator[Sides]:
    """All steps of L7 for one run, at its end."""
    spans = np.ptp(run.losses, axis=1)
    scale = 1e-12 * max(1.0, float(np.abs(run.losses).max()))
    yield Sides(GAP, run.gaps, spans + scale)
    means = (run.weights * run.losses).sum(axis=1)
    variance = (run.weights * (run.losses - means[:, None]) ** 2).sum()
    delta = float(np.maximum(run.gaps, 0.0).sum())
    regret = means.sum() - run.losses.sum(axis=0)
    factor = 1.0 + prior_cost(run.prior) / run.l0
    yield Sides(REGRET, regret, factor * delta + scale, np.arange(len(run.prior)))
    bound = math.sqrt(run.l0 * float(variance)) + (2.0 * run.l0 / 3.0 + 1.0) * float(spans.max())
    yield Sides(DELTA, delta, bound)


MEAN = ours(
    "sum (loss - B)^2 <= sum (loss - m)^2 / (1 - lam) + 1 / (4 lam (1 - lam))", "ladder, L8"
)


def running_means(losses: Floats, lam: float) -> Floats:
    """B before each loss: it starts at 1/2, and B += lam (loss - B).

    >>> import numpy as np
    >>> from decoupled_lab.theory.lemmas.centred import running_means
    >>> running_means(np.array([1.0, 1.0, 0.0]), lam=0.5).tolist()
    [0.5, 0.75, 0.875]
    """
    means, mean = np.empty(len(losses)), 0.5
    for t, loss in enumerate(losses):
        means[t] = mean
        mean += lam * (loss - mean)
    return means


def mean_sides(losses: Floats, lam: float) -> Iterator[Sides]:
    """L8 for the constant m that makes it hardest, the mean of the losses."""
    left = float(((losses - running_means(losses, lam)) ** 2).sum())
    variation = float(((losses - losses.mean()) ** 2).sum())
    yield Sides(MEAN, left, variation / (1.0 - lam) + 0.25 / (lam * (1.0 - lam)))
