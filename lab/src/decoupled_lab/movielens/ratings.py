"""Ratings in the format of `u.data`, and generated ones for when the data is not available."""

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self

import numpy as np

from decoupled.base import Bools, Floats, Ints
from decoupled.errors import ParameterError

USERS, MOVIES, STARS = 943, 1682, 5
REMEDY = "download the file again"

# The columns of a line, with the smallest and largest value of each; times are in seconds, up to the year 2100.
COLUMNS = (
    ("user", 1, USERS),
    ("movie", 1, MOVIES),
    ("rating", 1, STARS),
    ("timestamp", 0, 4_102_444_800),
)


@dataclass(frozen=True, eq=False)
class Ratings:
    r"""Ratings in the order of the file; users and movies count from 0, so movie 0 is the one with id 1.

    >>> from decoupled_lab.movielens import parse_ratings
    >>> ratings = parse_ratings(b"2\t1\t5\t880000000\n1\t3\t4\t870000000\n")
    >>> ratings.users.tolist(), ratings.movies.tolist(), ratings.stars.tolist(), ratings.shape
    ([1, 0], [0, 2], [5.0, 4.0], (2, 3))
    """

    users: Ints
    movies: Ints
    stars: Floats
    times: Ints
    shape: tuple[int, int]  # how many users and movies there are
    digest: str  # SHA-256 of the file they came from

    def __post_init__(self) -> None:
        for array in (self.users, self.movies, self.stars, self.times):
            array.setflags(write=False)

    def __len__(self) -> int:
        return len(self.stars)

    def where(self, kept: Bools) -> Self:
        """A subset of the ratings, with the same number of users and movies."""
        return type(self)(
            self.users[kept],
            self.movies[kept],
            self.stars[kept],
            self.times[kept],
            self.shape,
            self.digest,
        )


def parse_ratings(content: bytes, name: str = "u.data") -> Ratings:
    r"""Parse the ratings of a file. The error for an invalid line gives its number.

    >>> from decoupled_lab.movielens import parse_ratings
    >>> parse_ratings(b"1\t2\t3\t880000000\n1\t3\t6\t880000001\n")
    Traceback (most recent call last):
        ...
    decoupled.errors.ParameterError: u.data, line 2: rating = '6': must be a whole number from 1 to 5; download the file again
    """
    lines = content.split(b"\n")
    if len(lines) < 2:
        raise ParameterError(f"{name}: has no whole line; {REMEDY}")
    if lines.pop():
        raise ParameterError(f"{name}, line {len(lines) + 1}: is cut short; {REMEDY}")
    values = np.array(
        [_parsed(line, f"{name}, line {n}") for n, line in enumerate(lines, 1)], np.int64
    )
    users, movies = values[:, 0] - 1, values[:, 1] - 1
    _check_repeats(users * MOVIES + movies, name)
    shape = (int(users.max()) + 1, int(movies.max()) + 1)
    digest = hashlib.sha256(content).hexdigest()
    return Ratings(
        users, movies, values[:, 2].astype(np.float64), values[:, 3].copy(), shape, digest
    )


def _parsed(line: bytes, place: str) -> list[int]:
    fields = line.split(b"\t")
    if len(fields) != len(COLUMNS):
        rule = "must have user, movie, rating and timestamp with tabs between"
        raise ParameterError.of("columns", len(fields), rule, REMEDY).within(place)
    numbers = []
    for field, (column, least, largest) in zip(fields, COLUMNS, strict=True):
        # int() would also accept blanks, signs and underscores.
        number = int(field) if field.isdigit() and len(field) < 12 else -1
        if not least <= number <= largest:
            rule = f"must be a whole number from {least} to {largest}"
            raise ParameterError.of(column, field.decode("latin-1"), rule, REMEDY).within(place)
        numbers.append(number)
    return numbers


def _check_repeats(pairs: Ints, name: str) -> None:
    _, first = np.unique(pairs, return_index=True)
    if len(first) == len(pairs):
        return
    again = int(np.setdiff1d(np.arange(len(pairs)), first)[0])
    before = int(np.flatnonzero(pairs == pairs[again])[0])
    user, movie = (int(part) + 1 for part in divmod(pairs[again], MOVIES))
    raise ParameterError(
        f"{name}, line {again + 1}: user {user} rated movie {movie} before, on line {before + 1}; {REMEDY}"
    )


def read_titles(path: Path) -> dict[int, str]:
    r"""The title of each movie id from `u.item`; empty if there is no such file.

    >>> import pathlib, tempfile
    >>> from decoupled_lab.movielens import read_titles
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "u.item"
    >>> _ = path.write_text("1|Toy Story (1995)|01-Jan-1995\n", encoding="latin-1")
    >>> read_titles(path)
    {1: 'Toy Story (1995)'}
    """
    if not path.is_file():
        return {}
    titles = {}
    for number, line in enumerate(path.read_text(encoding="latin-1").split("\n"), 1):
        fields = line.split("|")
        if len(fields) > 1 and fields[0].isdecimal():
            titles[int(fields[0])] = fields[1]
        elif line:
            rule = "must begin with a movie's number, a bar and its title"
            raise ParameterError.of("movie", line, rule, REMEDY).within(f"{path}, line {number}")
    return titles


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

    >>> from decoupled_lab import movielens
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
    return "".join(
        f"{user}\t{movie}\t{star}\t{when}\n" for user, movie, star, when in columns
    ).encode()


def _pairs(rng: np.random.Generator, appeal: Floats) -> tuple[Ints, Ints]:
    """Draw the movies that each user rates, without replacement, by their appeal."""
    # The largest of appeal + Gumbel noise are draws without replacement in proportion to exp(appeal).
    keys = appeal + rng.gumbel(size=(USERS, MOVIES))
    keys[np.arange(MOVIES) % USERS, np.arange(MOVIES)] = (
        np.inf
    )  # every movie is rated at least once
    places = np.empty((USERS, MOVIES), np.int64)
    np.put_along_axis(
        places, np.argsort(-keys, axis=1, kind="stable"), np.arange(MOVIES)[None, :], axis=1
    )
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
    stars: Ints = np.clip(np.round(mean + rng.normal(0.0, 0.85, len(users))), 1, STARS).astype(
        np.int64
    )
    return stars
