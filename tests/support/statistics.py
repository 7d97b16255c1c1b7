"""The statistical guards that tests share."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom, chi2, norm

from support.twins import Floats


def chi_square_p(counts: ArrayLike, law: ArrayLike, least: float = 10.0) -> float:
    """The p-value of Pearson's test that `counts` were drawn from `law`.

    Cells that expect fewer than `least` draws are pooled, into the smallest other cell if they are still
    too few together. A draw from a cell of probability zero is refused outright.
    """
    observed = np.asarray(counts, np.float64).ravel()
    chances = np.asarray(law, np.float64).ravel()
    if observed[chances == 0].any():
        return 0.0
    expected = chances / chances.sum() * observed.sum()
    by_size = np.argsort(-expected)
    observed, expected = observed[by_size], expected[by_size]
    enough = int((expected >= least).sum())
    if expected[enough:].sum() < least:
        enough -= 1
    observed = np.append(observed[:enough], observed[enough:].sum())
    expected = np.append(expected[:enough], expected[enough:].sum())
    observed, expected = observed[expected > 0], expected[expected > 0]
    if len(expected) < 2:
        return 1.0
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1))


def means_agree(mean: Floats, expected: Floats, error: Floats, level: float) -> bool:
    """Whether every mean lies where a normal one would, but for a chance of `level` each."""
    return bool((np.abs(mean - expected) <= norm.isf(level / 2) * error + 1e-12).all())


def most_false(runs: int, risk: float, false_alarm: float = 1e-3) -> int:
    """The least number that a binomial of this risk exceeds with a probability of at most
    `false_alarm`.
    """
    return int(binom.isf(false_alarm, runs, risk))
