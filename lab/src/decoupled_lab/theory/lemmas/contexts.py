"""The steps of theorem F, about contexts: what rungs cost each other, a shared exploration, and greedy regression."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from decoupled.base import Floats
from decoupled.policies import ContextualLadder

from ..bounds.contexts import ladder_shares, shared_numbers
from ..inequality import Sides, ours

VARIANCE = ours("E Var of the rungs' losses <= d K / gamma", "context, F1")
RANGE = ours("range of the rungs' losses <= K / gamma", "context, F1")
AGREED = ours("d <= 1 - w_best + sum of w without the best", "context, F2")
SHARED = ours("q <= S'' p, with a share of the exploration", "context, F2")
GREEDY = ours("loss of the greedy arm above the best <= sqrt(2 K e / gamma)", "context, F3")
GAPPED = ours("the same, with a gap <= 2 K e / (gamma gap)", "context, F3")
SQUARED = ours("squared regret of a forecaster <= a |theta|^2 + d ln(1 + T / (a d))", "context, F3")


class JudgedRound(NamedTuple):
    """A round of rungs that are judged by one exploration."""

    chances: Floats  # of each arm under each rung, for equally likely draws: draws x rungs x arms
    weights: Floats  # of the rungs
    explored: Floats  # the law of exploration
    losses: Floats
    level: float  # that the losses are compared with
    even: float  # gamma: no arm is explored with a probability below gamma / K


def disagreement(chances: Floats, weights: Floats) -> float:
    """d: half the mean squared distance of what two rungs, drawn at random, give the arms.

    For rungs that choose an arm each, it is the probability that two rungs drawn at random differ.

    >>> import numpy as np
    >>> from decoupled_lab.theory.lemmas.contexts import disagreement
    >>> round(disagreement(np.array([[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]]), np.array([0.5, 0.3, 0.2])), 3)
    0.32
    """
    return float(_variances(chances, weights).sum(axis=-1).mean())


def _variances(losses: Floats, weights: Floats) -> Floats:
    """The variance over the rungs, for each draw and arm."""
    means = np.einsum("rmk,m->rk", losses, weights)
    return np.asarray(np.einsum("rmk,m->rk", (losses - means[:, None, :]) ** 2, weights))


def judged_sides(played: JudgedRound) -> Iterator[Sides]:
    """F1 and F2 for one round, exact over the explored arm."""
    p, arms = played.explored, len(played.losses)
    d = disagreement(played.chances, played.weights)
    estimated = played.chances * ((played.losses - played.level) / p)
    variance = float(_variances(estimated, played.weights).mean(axis=0) @ p)
    yield Sides(VARIANCE, variance, arms / played.even * d)
    yield Sides(RANGE, np.ptp(estimated, axis=1).max(), arms / played.even)
    served = np.einsum("rmk,m->k", played.chances, played.weights) / len(played.chances)
    # With the rungs' own laws, which sum to 1, the right side is 2 (1 - w_best).
    yield Sides(
        AGREED, np.full(arms, d), 1.0 + served.sum() - 2.0 * served + 1e-12, np.arange(arms)
    )


def shared_sides(
    q: Floats, two_best: Floats, other: Floats, policy: ContextualLadder, earned: float
) -> Iterator[Sides]:
    """What T2 assumes of the exploration, for each ladder: one with surrogates q that shares it with another law."""
    shares, arms = ladder_shares(max(earned, min(1.0, 2.0 / len(q))), policy), len(q)
    even = 1.0 - sum(shares.values())
    for ladder, share in shares.items():
        of = shared_numbers(arms, policy, ladder)
        gamma, tau = of.policy.uniform_share, of.policy.top_two_share
        own = (1.0 - tau) * q / q.sum() + tau * two_best
        mixed = share * own + (1.0 - even - share) * other
        p = (1.0 - gamma) * mixed + ((1.0 - even) * gamma + even) / arms
        yield Sides(SHARED, q, of.whole * p, np.arange(arms))


def greedy_sides(
    truth: Floats, predicted: Floats, explored: Floats, even: float
) -> Iterator[Sides]:
    """F3 for one round, from the arms' means, what is predicted of them, and the law of exploration."""
    error = float(explored @ (predicted - truth) ** 2)
    lost = float(truth[np.argmin(predicted)] - truth.min())
    yield Sides(GREEDY, lost, math.sqrt(2.0 * len(truth) * error / even))
    gap = float(np.partition(truth, 1)[1] - truth.min())
    if gap > 0.0:
        yield Sides(GAPPED, lost, 2.0 * len(truth) * error / (even * gap))


def forecasts(features: Floats, losses: Floats, ridge: float = 1.0) -> Floats:
    """The Vovk-Azoury-Warmuth forecaster: ridge regression that counts the features of the round it predicts.

    >>> import numpy as np
    >>> from decoupled_lab.theory.lemmas.contexts import forecasts
    >>> forecasts(np.ones((3, 1)), np.array([1.0, 1.0, 0.0])).round(3).tolist()    # after one and after two losses
    [0.0, 0.333, 0.5]
    """
    gram, sums, found = ridge * np.eye(features.shape[1]), np.zeros(features.shape[1]), []
    for x, loss in zip(features, losses, strict=True):
        gram += np.outer(x, x)
        found.append(float(x @ np.linalg.solve(gram, sums)))
        sums += loss * x
    return np.array(found)


def forecast_sides(features: Floats, losses: Floats, ridge: float) -> Iterator[Sides]:
    """The squared regret of the forecaster to the best coefficients, on one path."""
    size = features.shape[1]
    best = np.linalg.solve(ridge * np.eye(size) + features.T @ features, features.T @ losses)
    suffered = float(((forecasts(features, losses, ridge) - losses) ** 2).sum())
    # The best coefficients have the least sum of their losses and their price, so the bound is tightest for them.
    price = float(((features @ best - losses) ** 2).sum() + ridge * best @ best)
    yield Sides(SQUARED, suffered - price, size * math.log1p(len(losses) / (ridge * size)))
