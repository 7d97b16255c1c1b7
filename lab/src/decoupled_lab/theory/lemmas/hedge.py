"""Lemma L7 of the ladder: AdaHedge with a prior."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from decoupled.base import Floats

from ..inequality import OURS, Inequality, Sides

GAP = Inequality("mixability gap of a round <= range of its losses", "ladder, L7", OURS)
REGRET = Inequality("regret to expert m <= (1 + ln(1 / prior_m) / L0) Delta", "ladder, L7", OURS)
DELTA = Inequality("Delta <= sqrt(L0 sum Var) + (2 L0 / 3 + 1) largest range", "ladder, L7", OURS)


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
    >>> from decoupled_lab.theory.lemmas.hedge import adahedge
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
    cost: Floats = -np.log(prior)
    return cost


def sides(run: Hedge) -> Iterator[Sides]:
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
