"""Movies as arms and their viewers as rounds: losses from real ratings."""

from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Self

import numpy as np

from ...base.validation import number_in, one_of, whole_number
from ...errors import ParameterError, invalid_value
from ...kernels.random.noise import KINDS
from ...kernels.rounds import Table
from ..base import Environment
from . import Oracle, find, fitted, read_titles, stand_in
from .download import TITLE_FILE
from .ratings import MOVIES

_one_at_a_time = Lock()


@dataclass(frozen=True)
class MovieLens(Environment):
    """MovieLens 100K: the most rated movies are the arms, and each round is a user with tastes of their own.

    An oracle fitted to the ratings says what each user would give each movie; a reward is
    (stars - 1) / 4 and a loss 1 - reward. The users come in the order in which the ratings were given,
    which nobody drew at random: a user rates many movies within the hour, and the first 10,000 ratings
    are those of 113 users. Regret is against the best fixed movie in hindsight. The experiment is the
    paper's (appendix E); of its oracle little is said, and `decoupled.environments.movielens.Oracle` tells our reading.

    The data is found through the environment variable DECOUPLED_DATA (a folder with `u.data`, or with
    `ml-100k/u.data`), else in the user's cache folder, else at its publisher, unless DECOUPLED_OFFLINE is
    set. Nothing is read before the first table is asked for, and fitting takes a few seconds, once.

    Args:
        arms: how many movies, from 2 to 1682; the paper has 32, 64, 128 and 256.
        order: "timestamp", the users by the time of their ratings, from the first again after 100,000
            rounds; or "iid", users drawn independently, each as often as they rate on average.
        noise: "none" (the loss is what the oracle says, as in the paper), "bernoulli" or "beta".
        concentration: for "beta": a loss is Beta(mean * concentration, (1 - mean) * concentration).
        seed: for "iid": the users that are drawn. All runs meet the same ones.
        data: "ml-100k", or "stand-in" for generated ratings of the same shape.

    >>> import decoupled as dc
    >>> films = dc.environments.MovieLens(arms=32, data="stand-in")
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
        arms = whole_number("arms", self.arms, 2, "the paper has 32, 64, 128 and 256")
        if arms > MOVIES:
            rule = f"must not exceed {MOVIES}, the number of movies"
            raise ParameterError(invalid_value("arms", arms, rule, "the paper has 32, 64, 128 and 256"))
        object.__setattr__(self, "arms", arms)
        one_of("order", self.order, ("timestamp", "iid"))
        one_of("noise", self.noise, KINDS)
        concentration = number_in("concentration", self.concentration, 0.0, remedy="the default is 10")
        object.__setattr__(self, "concentration", concentration)
        object.__setattr__(self, "seed", whole_number("seed", self.seed, 0, "the default is 0"))
        one_of("data", self.data, ("ml-100k", "stand-in"))

    def oracle(self) -> Oracle:
        """What was fitted: rewards, movies, the sequence of users, and how well it predicts."""
        with _one_at_a_time:  # several threads ask at once, and one fit is enough
            return _oracle(self.data)

    def titles(self) -> tuple[str, ...]:
        """The title of each arm, or "movie 50" where `u.item` is not beside the ratings."""
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
        return Table(rows, row_at, KINDS.index(self.noise), self.concentration)


@cache
def _oracle(data: str) -> Oracle:
    return fitted(stand_in() if data == "stand-in" else find()[0])
