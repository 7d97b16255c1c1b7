"""Movies as arms and users as rounds: losses from real ratings."""

import math
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Self

import numpy as np

from decoupled.base import one_of, set_number, set_whole
from decoupled.environments import Environment
from decoupled.errors import ParameterError
from decoupled.extend import NOISE_KINDS, Table

from . import Oracle, find, fitted, read_titles, stand_in
from .files import TITLE_FILE
from .ratings import MOVIES

_one_at_a_time = Lock()


@dataclass(frozen=True)
class MovieLens(Environment):
    """MovieLens 100K: the most rated movies are the arms, and each round is a user with their own tastes.

    An oracle fitted to the ratings predicts the stars that each user would give each movie. A reward is (stars - 1) / 4
    and a loss is 1 - reward. The users come in the order of the ratings' timestamps, which is far from random: a user
    rates many movies within an hour, and 113 users gave the first 10,000 ratings. Regret is against the best fixed
    movie in hindsight. The experiment is the paper's (appendix E). The paper says little about its oracle;
    `decoupled_lab.movielens.Oracle` describes ours.

    The data comes from the folder in the environment variable DECOUPLED_DATA (with `u.data` or `ml-100k/u.data`), else
    from the user's cache folder, else from its publisher, unless DECOUPLED_OFFLINE is set. It is read for the first
    table, and fitting then takes a few seconds, once.

    Args:
        arms: how many movies, from 2 to 1682; the paper has 32, 64, 128 and 256.
        order: "timestamp", the users by the time of their ratings, starting again after 100,000 rounds; or "iid", users
            drawn independently, in proportion to their number of ratings.
        noise: "none" (the loss is the oracle's, as in the paper), "bernoulli" or "beta".
        concentration: for "beta": a loss is Beta(mean * concentration, (1 - mean) * concentration).
        seed: for "iid": determines the users, which are the same in all runs.
        data: "ml-100k", or "stand-in" for generated ratings of the same shape.

    >>> import decoupled as dc
    >>> import decoupled_lab as lab
    >>> films = lab.MovieLens(arms=32, data="stand-in")
    >>> films.table(horizon=5).rows.shape
    (943, 32)
    """

    arms: int
    order: str = "timestamp"
    noise: str = "none"
    concentration: float = 10.0
    seed: int = 0
    data: str = "ml-100k"

    def __post_init__(self) -> None:
        remedy = "the paper has 32, 64, 128 and 256"
        arms = set_whole(self, "arms", 2, remedy)
        if arms > MOVIES:
            rule = f"must not exceed {MOVIES}, the number of movies"
            raise ParameterError.of("arms", arms, rule, remedy)
        one_of("order", self.order, ("timestamp", "iid"))
        one_of("noise", self.noise, NOISE_KINDS)
        set_number(self, "concentration", 0.0, math.inf, "the default is 10")
        set_whole(self, "seed", 0, "the default is 0")
        one_of("data", self.data, ("ml-100k", "stand-in"))

    def oracle(self) -> Oracle:
        """The fitted oracle: rewards, movies, the sequence of users, and its prediction error."""
        with _one_at_a_time:  # several threads may ask at once, and one fit is enough
            return fitted_oracle(self.data)

    def titles(self) -> tuple[str, ...]:
        """The title of each arm, or a name such as "movie 50" if `u.item` is not beside the ratings."""
        folder = find()[1].folder if self.data == "ml-100k" else None
        known = read_titles(folder / TITLE_FILE) if folder else {}
        movies = self.oracle().movies[: self.arms].tolist()
        return tuple(known.get(movie, f"movie {movie}") for movie in movies)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(32, order="iid", noise="beta", concentration=4.0, seed=3, data="stand-in"),)

    def table(self, horizon: int) -> Table:
        oracle = self.oracle()
        if self.order == "timestamp":
            row_at = np.resize(oracle.sequence, horizon)
        else:
            events = np.random.default_rng(self.seed).integers(len(oracle.sequence), size=horizon)
            row_at = oracle.sequence[events]
        rows = 1.0 - oracle.rewards[:, : self.arms]
        return Table(rows, row_at, NOISE_KINDS.index(self.noise), self.concentration)


@cache
def fitted_oracle(data: str) -> Oracle:
    """The oracle of these data, fitted once in a process."""
    return fitted(stand_in() if data == "stand-in" else find()[0])
