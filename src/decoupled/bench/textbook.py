"""What a reader of the paper would write in NumPy: one run, one round at a time."""

import numpy as np

from ..kernels.drive import Table


def textbook_ftpl(table: Table, rounds: int, seed: int, alpha: float = 3.0, c: float = 2.0) -> float:
    """FTPL on Bernoulli losses; returns what was suffered."""
    rng = np.random.default_rng(seed)
    arms = table.rows.shape[1]
    estimates = np.zeros(arms)
    suffered = 0.0
    for t in range(1, rounds + 1):
        eta = c * arms ** (1 / alpha - 0.5) / np.sqrt(t)
        gaps = estimates - estimates.min()
        perturbations = (1.0 - rng.random(arms)) ** (-1 / alpha)
        exploit = np.argmin(gaps - perturbations / eta)
        ranks = np.empty(arms)
        ranks[np.argsort(estimates)] = np.arange(1, arms + 1)
        q = np.minimum(1.0 / (1.0 + eta * gaps), ranks ** (-1 / alpha)) ** ((alpha + 1) / 2)
        p = q / q.sum()
        explore = np.searchsorted(np.cumsum(p), rng.random())
        explore = min(explore, arms - 1)
        means = table.rows[table.row_at[t - 1]]
        estimates[explore] += (rng.random() < means[explore]) / p[explore]
        suffered += means[exploit]
    return suffered
