"""Inequalities about a whole trajectory: the regret decomposition, and unbiased estimates."""

import math
from collections.abc import Iterator

import numpy as np

from decoupled.base import Floats
from decoupled.extend import winner_law

from ..inequality import Inequality, Sides, ours
from ..moment import divergence, potential
from ..probabilities import winner_moments
from ..trajectory import Trajectory
from . import switches

DECOMPOSITION = Inequality("regret on estimates <= stability + penalty", "lemma 3.4")
DIVERGENCES = ours("regret on estimates <= divergences + penalty", "ladder, L1")
LAW = Inequality("|policy's p - q / sum q| <= 1e-12", "equation (7)")
WEIGHT = Inequality("|weight * p - 1| <= 1e-12", "section 2.1, unbiased estimates")
COUNTS = Inequality(
    "|sum_t (1[explored] / p - 1)| <= deviation of probability 1e-9",
    "section 2.1, unbiased estimates",
)


def whole(trajectory: Trajectory, zeta: float) -> Iterator[tuple[int, Sides]]:
    """Every inequality about the whole trajectory, with the round that it belongs to."""
    yield from decomposition(trajectory)
    yield from divergences(trajectory.estimates, trajectory.rates[:-1], trajectory.alpha)
    yield from unbiasedness(trajectory, zeta)
    yield from switches.keyed(trajectory)


def decomposition(trajectory: Trajectory) -> Iterator[tuple[int, Sides]]:
    """Lemma 3.4 at every horizon up to the last round, for the comparator that makes it hardest.

    The proof holds on every path: sum_t <w_t - e_k, hat_l_t> is at most the sum of
    <hat_l_t, phi(eta_t hat_L_t) - phi(eta_t hat_L_{t+1})> and of (1/eta_t - 1/eta_{t-1}) E[r_winner - r_k].
    """
    alpha, rates = trajectory.alpha, trajectory.rates
    suffered = stability = penalty = before = 0.0
    for place in range(trajectory.horizon + 1):
        estimates, eta = trajectory.estimates[place], rates[place]
        moments = winner_moments(eta * (estimates - estimates.min()), alpha, False)
        penalty += (1.0 / eta - before) * (float(moments.prizes.sum()) - alpha / (alpha - 1.0))
        before = 1.0 / eta
        if place:
            # The estimated loss of the comparator is its estimate; the smallest one maximises the left side.
            yield place, Sides(DECOMPOSITION, suffered - estimates.min(), stability + penalty)
        if place == trajectory.horizon:
            return
        arm = int(trajectory.explored[place])
        estimate = trajectory.weights[place] * trajectory.losses[place]
        after = trajectory.estimates[place + 1]
        moved = winner_law(eta * (after - after.min()), alpha, False)
        suffered += estimate * moments.law[arm]
        stability += estimate * (moments.law[arm] - moved[arm])


def divergences(estimates: Floats, rates: Floats, alpha: float) -> Iterator[tuple[int, Sides]]:
    """Lemma L1 at every horizon, for the comparator that makes it hardest, whatever the sign of the estimates.

    Row t - 1 of `estimates` is hat_L_t; there is one more row than rates. The sum of <w_t - e_k, hat_l_t> is at most
    the sum of D_t / eta_t, where D_t is the Bregman divergence of the potential from hat_L_t to hat_L_{t+1} at the
    rate eta_t, and of (1/eta_t - 1/eta_{t-1}) E[r_winner - r_k]. Lemma 3.4 has D_t twice, from both ends.
    """
    suffered = bound = before = 0.0
    for place, eta in enumerate(rates):
        here = potential(eta * estimates[place], alpha)
        there = potential(eta * estimates[place + 1], alpha)
        surplus = float(here.moments.prizes.sum()) - alpha / (alpha - 1.0)
        bound += (1.0 / eta - before) * surplus + divergence(there, here) / eta
        before = 1.0 / eta
        suffered += float(here.moments.law @ (estimates[place + 1] - estimates[place]))
        yield place + 1, Sides(DIVERGENCES, suffered - estimates[place + 1].min(), bound)


def unbiasedness(trajectory: Trajectory, zeta: float) -> Iterator[tuple[int, Sides]]:
    """E[hat_l] = loss: the policy's p is the paper's, its weight is 1/p, and its draws follow p.

    The draws are checked with a martingale for each arm, sum_t (1[j_t = i] / p - 1). Freedman's inequality,
    at the realised variance, bounds all arms together.
    """
    horizon, arms = trajectory.policy_law.shape
    rounds = np.arange(horizon)
    laws = np.array([trajectory.moment(t + 1, zeta).exploration for t in range(horizon)])
    away = np.abs(trajectory.policy_law - laws).max(axis=1)
    worst = int(np.argmax(away))
    yield worst + 1, Sides(LAW, away[worst], 1e-12)
    drawn = laws[rounds, trajectory.explored]
    away = np.abs(trajectory.weights * drawn - 1.0)
    worst = int(np.argmax(away))
    yield worst + 1, Sides(WEIGHT, away[worst], 1e-12, int(trajectory.explored[worst]))
    explored = trajectory.explored[:, None] == np.arange(arms)
    sums = (explored / laws - 1.0).sum(axis=0)
    variance, step = (1.0 / laws - 1.0).sum(axis=0), 1.0 / laws.min(axis=0)
    log = math.log(2.0 * arms / switches.FALSE_ALARM)
    # Freedman: exceeding x has probability at most exp(-x^2 / (2 (variance + step x / 3))).
    limit = step * log / 3.0 + np.sqrt((step * log / 3.0) ** 2 + 2.0 * variance * log)
    yield horizon, Sides(COUNTS, np.abs(sums), limit, np.arange(arms))
