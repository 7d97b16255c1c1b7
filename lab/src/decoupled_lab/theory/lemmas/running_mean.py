"""Lemma L8 of the ladder: the running mean of the losses seen."""

from collections.abc import Iterator

import numpy as np

from decoupled.base import Floats

from ..inequality import OURS, Inequality, Sides

MEAN = Inequality(
    "sum (loss - B)^2 <= sum (loss - m)^2 / (1 - lam) + 1 / (4 lam (1 - lam))", "ladder, L8", OURS
)


def running_means(losses: Floats, lam: float) -> Floats:
    """B before each loss: it starts at 1/2, and B += lam (loss - B).

    >>> import numpy as np
    >>> from decoupled_lab.theory.lemmas.running_mean import running_means
    >>> running_means(np.array([1.0, 1.0, 0.0]), lam=0.5).tolist()
    [0.5, 0.75, 0.875]
    """
    means, mean = np.empty(len(losses)), 0.5
    for t, loss in enumerate(losses):
        means[t] = mean
        mean += lam * (loss - mean)
    return means


def sides(losses: Floats, lam: float) -> Iterator[Sides]:
    """L8 for the constant m that makes it hardest, the mean of the losses."""
    left = float(((losses - running_means(losses, lam)) ** 2).sum())
    variation = float(((losses - losses.mean()) ** 2).sum())
    yield Sides(MEAN, left, variation / (1.0 - lam) + 0.25 / (lam * (1.0 - lam)))
