"""Generated ratings in the shape of MovieLens 100K, for when the data is not available."""

from functools import cache

import numpy as np

from decoupled.base import Bools, Floats, Ints

from .ratings import MOVIES, STARS, USERS

RATINGS = 100_000
LEAST, MOST = 20, 737  # ratings of a user, as in the data
RANK = 8
FIRST_SECOND, SECONDS = 874_724_710, 18_561_928  # seven months from September 1997 on
SESSION = 3_600  # seconds within which a user rates


@cache
def stand_in(seed: int = 0) -> bytes:
    r"""A generated file in the format of `u.data`, with as many users, movies and ratings.

    Stars are the sum of a level, biases of users and movies, a term of rank 8 and noise, rounded to 1, ..., 5. A few
    movies are popular and most are not. A user rates within an hour.

    >>> from decoupled.environments import movielens
    >>> content = movielens.stand_in()
    >>> content.count(b"\n"), content == movielens.stand_in()
    (100000, True)
    """
    rng = np.random.default_rng(seed)
    appeal = rng.normal(0.0, 1.4, MOVIES)
    users, movies = _pairs(rng, appeal)
    stars = _stars(rng, users, movies, appeal)
    begin = rng.integers(0, SECONDS - SESSION, USERS)
    times = FIRST_SECOND + begin[users] + rng.integers(0, SESSION, RATINGS)
    order = rng.permutation(RATINGS)
    columns = np.stack([users + 1, movies + 1, stars, times], axis=1)[order].tolist()
    return "".join(f"{user}\t{movie}\t{star}\t{when}\n" for user, movie, star, when in columns).encode()


def _pairs(rng: np.random.Generator, appeal: Floats) -> tuple[Ints, Ints]:
    """Draw the movies that each user rates, without replacement, by their appeal."""
    # The largest of appeal + Gumbel noise are draws without replacement in proportion to exp(appeal).
    keys = appeal + rng.gumbel(size=(USERS, MOVIES))
    keys[np.arange(MOVIES) % USERS, np.arange(MOVIES)] = np.inf  # every movie is rated at least once
    places = np.empty((USERS, MOVIES), np.int64)
    np.put_along_axis(places, np.argsort(-keys, axis=1, kind="stable"), np.arange(MOVIES)[None, :], axis=1)
    rated: Bools = places < _counts(rng)[:, None]
    users, movies = np.nonzero(rated)
    return users, movies


def _counts(rng: np.random.Generator) -> Ints:
    """The number of ratings of each user, 100,000 in all."""
    wishes = rng.lognormal(0.0, 1.0, USERS)
    low, high = 0.0, float(RATINGS)
    for _ in range(100):  # bisection: no two wishes are equal, so the sum grows one by one
        scale = 0.5 * (low + high)
        counts = np.clip(np.round(scale * wishes), LEAST, MOST).astype(np.int64)
        low, high = (scale, high) if counts.sum() < RATINGS else (low, scale)
    return np.clip(np.round(high * wishes), LEAST, MOST).astype(np.int64)


def _stars(rng: np.random.Generator, users: Ints, movies: Ints, appeal: Floats) -> Ints:
    of_users = rng.normal(0.0, 0.4, USERS)
    of_movies = 0.2 * appeal + rng.normal(0.0, 0.4, MOVIES)
    tastes = rng.normal(0.0, 1.0, (USERS, RANK))
    traits = rng.normal(0.0, 0.17, (MOVIES, RANK))
    mean = 3.2 + of_users[users] + of_movies[movies] + (tastes[users] * traits[movies]).sum(axis=1)
    stars: Ints = np.clip(np.round(mean + rng.normal(0.0, 0.85, len(users))), 1, STARS).astype(np.int64)
    return stars
