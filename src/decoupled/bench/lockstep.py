"""FTPL in NumPy, with many runs in lock step: the fastest form that uses only arrays."""

import numpy as np

from ..base.arrays import Floats
from ..kernels.rounds import Table


def lockstep_ftpl(
    table: Table, rounds: int, runs: int, seed: int, alpha: float = 3.0, c: float = 2.0
) -> Floats:
    """Play FTPL on Bernoulli losses; return the loss that each run suffered."""
    rng = np.random.default_rng(seed)
    arms = table.rows.shape[1]
    estimates = np.zeros((runs, arms))
    suffered = np.zeros(runs)
    every = np.arange(runs)
    limit = np.arange(1, arms + 1) ** (-(alpha + 1) / (2 * alpha))
    for t in range(1, rounds + 1):
        eta = c * arms ** (1 / alpha - 0.5) / np.sqrt(t)
        gaps = eta * (estimates - estimates.min(axis=1, keepdims=True))
        perturbations = (1.0 - rng.random((runs, arms))) ** (-1 / alpha)
        exploit = np.argmax(perturbations - gaps, axis=1)
        order = np.argsort(estimates, axis=1)
        q = np.minimum((1.0 + np.take_along_axis(gaps, order, 1)) ** (-(alpha + 1) / 2), limit)
        sums = np.cumsum(q, axis=1)
        targets = rng.random(runs) * sums[:, -1]
        rank = np.minimum((sums < targets[:, None]).sum(axis=1), arms - 1)
        explore = order[every, rank]
        means = table.rows[table.row_at[t - 1]]
        losses = rng.random(runs) < means[explore]
        estimates[every, explore] += losses * sums[:, -1] / q[every, rank]
        suffered += means[exploit]
    return suffered
