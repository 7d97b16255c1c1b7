"""How users and movies interact beyond their biases: a low-rank term."""

from typing import Any, NamedTuple

import numpy as np

from decoupled.base import Floats

from .ratings import Ratings

CHANGE = 1e-5  # stop after a sweep that lowers the objective by a smaller fraction
SWEEPS = 100


class Factors(NamedTuple):
    """The term for user u and movie i is the inner product of users[u] and movies[i]."""

    users: Floats
    movies: Floats

    def predict(self, ratings: Ratings) -> Floats:
        """The term for each rating."""
        predicted: Floats = (self.users[ratings.users] * self.movies[ratings.movies]).sum(axis=1)
        return predicted


class Incomplete(NamedTuple):
    """An incomplete table, by users and by movies: its values, and 1 for each cell that has one."""

    by_user: Any
    by_movie: Any
    seen_by_user: Any
    seen_by_movie: Any


def incomplete(ratings: Ratings, values: Floats) -> Incomplete:
    """Arrange a value for each rating as a table of users x movies."""
    from scipy.sparse import csr_array

    places = (ratings.users, ratings.movies)
    table = csr_array((values, places), shape=ratings.shape)
    seen = csr_array((np.ones(len(values)), places), shape=ratings.shape)
    return Incomplete(table, table.T.tocsr(), seen, seen.T.tocsr())


def leading(table: Incomplete, dimension: int) -> Floats:
    """Initial factors of the movies: the leading singular vectors of the table, with 0 for missing cells."""
    from scipy.sparse.linalg import svds

    # Without a given vector ARPACK starts from a random one.
    _, values, vectors = svds(table.by_user, k=dimension, v0=np.ones(min(table.by_user.shape)))
    order = np.argsort(-values, kind="stable")
    start: Floats = vectors[order].T * np.sqrt(values[order])
    return start


def factorise(table: Incomplete, movies: Floats, penalty: float) -> Factors:
    """Find a local minimum of sum (value - <user, movie>)^2 + penalty * (|users|^2 + |movies|^2).

    Alternating least squares: given the movies' factors, each user's factors are a ridge regression, and vice versa.
    The objective is not convex, so the result depends on the start.
    """
    squares = float((table.by_user.data**2).sum())
    before = np.inf
    for _ in range(SWEEPS):
        users, _explained = _regressions(table.seen_by_user, table.by_user, movies, penalty)
        movies, explained = _regressions(table.seen_by_movie, table.by_movie, users, penalty)
        objective = squares - explained + penalty * float((users**2).sum())
        if before - objective < CHANGE * objective:
            break
        before = objective
    return Factors(users, movies)


def _regressions(seen: Any, table: Any, others: Floats, penalty: float) -> tuple[Floats, float]:
    """Solve a ridge regression for each row. Return the solutions and by how much they lower the objective."""
    dimension = others.shape[1]
    row, column = np.triu_indices(dimension)
    half = seen @ (others[:, row] * others[:, column])
    products = np.empty((len(half), dimension, dimension))
    products[:, row, column] = half
    products[:, column, row] = half
    products[:, np.arange(dimension), np.arange(dimension)] += penalty
    right = table @ others
    solved: Floats = np.linalg.solve(products, right[:, :, None])[:, :, 0]
    # At the minimum |y - X b|^2 + penalty |b|^2 = |y|^2 - <X'y, b>, which saves a pass over all ratings.
    return solved, float((right * solved).sum())
