"""The oracle: the stars that every user would give every movie."""

from dataclasses import dataclass

import numpy as np

from decoupled.base import Floats, Ints

from .biases import ridge_biases
from .factors import factorise, incomplete, leading
from .model_selection import Choice, choose, clipped
from .ratings import STARS, Ratings


@dataclass(frozen=True, eq=False)
class Oracle:
    """Rewards in [0, 1] for every user and movie, and the users in the order of their ratings.

    The paper describes its oracle only as "a matrix factorization-based approach" with "a double-centering
    preprocessing step prior to factorization" (appendix E). Our reading: stars are level + user + movie + <user's
    factors, movie's factors>, fitted by ridge regression, and rewards are (stars - 1) / 4 with clipped stars.

    Attributes:
        rewards: the reward of each movie for each user, users x movies, the most rated movie first.
        movies: the movies' ids in that order; if two are rated equally often, the smaller id comes first.
        sequence: the user of each rating by time; ratings at the same time are in file order.
        choice: dimension and penalties, and their error on held-out ratings.
        digest: SHA-256 of the file of ratings.
    """

    rewards: Floats
    movies: Ints
    sequence: Ints
    choice: Choice
    digest: str

    def __post_init__(self) -> None:
        for array in (self.rewards, self.movies, self.sequence):
            array.setflags(write=False)


def fit_oracle(ratings: Ratings) -> Oracle:
    """Choose dimension and penalties on held-out ratings, then fit to all. The result is deterministic."""
    choice = choose(ratings)
    biases = ridge_biases(ratings, choice.bias_penalty)
    stars = biases.level + biases.users[:, None] + biases.movies[None, :]
    if choice.dimension:
        table = incomplete(ratings, ratings.stars - biases.predict(ratings))
        factors = factorise(table, leading(table, choice.dimension), choice.penalty)
        stars += factors.users @ factors.movies.T
    popular = np.argsort(-np.bincount(ratings.movies, minlength=ratings.shape[1]), kind="stable")
    rewards = (clipped(stars[:, popular]) - 1.0) / (STARS - 1.0)
    sequence = ratings.users[np.argsort(ratings.times, kind="stable")]
    return Oracle(rewards, popular + 1, sequence, choice, ratings.digest)
