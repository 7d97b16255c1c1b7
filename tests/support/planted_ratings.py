"""Small ratings with a known truth behind them, for the tests of MovieLens."""

from typing import NamedTuple

import numpy as np

from decoupled.base.arrays import Floats
from decoupled_lab.movielens import Ratings


class Planted(NamedTuple):
    ratings: Ratings
    stars: Floats  # the truth, users x movies


def planted(
    users: int = 60, movies: int = 50, rank: int = 2, noise: float = 0.1, share: float = 0.5, seed: int = 0
) -> Planted:
    rng = np.random.default_rng(seed)
    stars = 3.0 + rng.normal(0.0, 0.4, (users, 1)) + rng.normal(0.0, 0.4, (1, movies))
    if rank:
        stars += rng.normal(0.0, 0.6, (users, rank)) @ rng.normal(0.0, 0.6, (rank, movies))
    stars = np.clip(stars, 1.0, 5.0)
    rows, columns = np.nonzero(rng.random((users, movies)) < share)
    order = rng.permutation(len(rows))
    rows, columns = rows[order], columns[order]
    seen = stars[rows, columns] + rng.normal(0.0, noise, len(rows))
    times = rng.integers(0, 50, len(rows))  # few, so that many are equal
    return Planted(Ratings(rows, columns, seen, times, (users, movies), "0" * 64), stars)


def as_file(ratings: Ratings) -> bytes:
    """The ratings in the format of `u.data`, with stars rounded to whole ones."""
    columns = (
        ratings.users + 1,
        ratings.movies + 1,
        np.clip(np.round(ratings.stars), 1, 5).astype(int),
        ratings.times,
    )
    lines = zip(*(column.tolist() for column in columns), strict=True)
    return "".join("\t".join(map(str, line)) + "\n" for line in lines).encode()
