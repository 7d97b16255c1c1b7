"""Chooses the number of dimensions and the penalties that best predict held-out ratings."""

from typing import NamedTuple

import numpy as np

from decoupled.base import Floats

from .biases import Biases, mean_biases, ridge_biases
from .factors import factorise, incomplete, leading
from .ratings import STARS, Ratings

BIAS_PENALTIES = (1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0)
DIMENSIONS = (2, 4, 6, 8, 10, 12, 16, 24)
PENALTIES: tuple[float, ...] = (24.0, 20.0, 17.0, 14.0, 12.0, 10.0, 8.0, 6.0, 4.0, 3.0, 2.0, 1.0)
RISE = 1.001  # once the error is larger by this factor, it has passed its minimum
HELD_OUT, SPLIT_SEED = 0.1, 0


class Choice(NamedTuple):
    """The choice, and its root mean square error in stars on the held-out ratings.

    These ratings determined the choice, so its error is too small: by up to 0.001, as other splits show.

    Attributes:
        bias_penalty: the penalty of users' and movies' biases.
        dimension: the number of factors; 0 if biases alone predict best.
        penalty: the penalty of the factors.
        rmse: the error of the choice.
        rmse_biases: the error without factors.
        rmse_means: the error of the model to beat: user's mean + movie's mean - overall mean.
    """

    bias_penalty: float
    dimension: int
    penalty: float
    rmse: float
    rmse_biases: float
    rmse_means: float


def choose(ratings: Ratings) -> Choice:
    """Fit to nine tenths of the ratings and compare on the rest.

    The dimension grows until it no longer helps. For the first dimension the penalty falls until the error rises. For
    the others it is one of the three around the last best, which changes little. This avoids most of the slow fits,
    those with many dimensions and small penalties.
    """
    known, kept_back = split(ratings)
    fits = {each: ridge_biases(known, each) for each in BIAS_PENALTIES}
    errors = {each: _rmse(fit.predict(kept_back), kept_back) for each, fit in fits.items()}
    bias_penalty = min(errors, key=lambda each: errors[each])
    biases, without = fits[bias_penalty], errors[bias_penalty]
    means = _rmse(mean_biases(known).predict(kept_back), kept_back)
    dimension, penalty, rmse = _factor_search(known, kept_back, biases, without)
    return Choice(bias_penalty, dimension, penalty, rmse, without, means)


def split(ratings: Ratings, seed: int = SPLIT_SEED) -> tuple[Ratings, Ratings]:
    """Split into ratings to fit to and held-out ratings."""
    held_out = np.zeros(len(ratings), np.bool_)
    order = np.random.default_rng(seed).permutation(len(ratings))
    held_out[order[: int(HELD_OUT * len(ratings))]] = True
    return ratings.where(~held_out), ratings.where(held_out)


def _factor_search(
    known: Ratings, kept_back: Ratings, biases: Biases, without: float
) -> tuple[int, float, float]:
    table = incomplete(known, known.stars - biases.predict(known))
    base = biases.predict(kept_back)
    dimensions = [each for each in DIMENSIONS if each < min(known.shape)]
    start = leading(table, max(dimensions, default=1))
    best, penalties = (0, 0.0, without), PENALTIES
    for dimension in dimensions:
        before, lowest = best, np.inf
        for penalty in penalties:
            factors = factorise(table, start[:, :dimension], penalty)
            rmse = _rmse(base + factors.predict(kept_back), kept_back)
            best = min(best, (dimension, penalty, rmse), key=lambda tried: tried[2])
            lowest = min(lowest, rmse)
            if rmse > RISE * lowest:
                break
        if best == before:
            break
        place = PENALTIES.index(best[1])
        penalties = PENALTIES[max(place - 1, 0) : place + 2]
    return best


def _rmse(predicted: Floats, ratings: Ratings) -> float:
    return float(np.sqrt(np.mean((clipped(predicted) - ratings.stars) ** 2)))


def clipped(stars: Floats) -> Floats:
    """Predictions clipped to the scale."""
    within: Floats = np.clip(stars, 1.0, STARS)
    return within
