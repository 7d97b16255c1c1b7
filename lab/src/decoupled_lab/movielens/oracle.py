"""The oracle: the stars that every user would give every movie, fitted to the ratings."""

import hashlib
import io
import json
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from decoupled.base import Floats, Ints, read_with_checksum, with_checksum, write_atomically

from .files import cache_root
from .ratings import STARS, Ratings, parse_ratings

PRECISION = 1e-12  # of the solution, relative


class Biases(NamedTuple):
    """The prediction of user u and movie i is level + users[u] + movies[i]."""

    level: float
    users: Floats
    movies: Floats

    def predict(self, ratings: Ratings) -> Floats:
        """The prediction for each rating."""
        return self.level + self.users[ratings.users] + self.movies[ratings.movies]


def ridge_biases(ratings: Ratings, penalty: float) -> Biases:
    """Minimise sum (stars - prediction)^2 + penalty * (|users|^2 + |movies|^2).

    Centring by users and movies in turn (double centring of an incomplete table) converges to the same point, but takes
    up to a thousand turns. Conjugate gradients on the normal equations take less than a hundred steps.
    """
    from scipy.sparse import csr_array, diags_array
    from scipy.sparse.linalg import cg

    users, movies = ratings.shape
    count = len(ratings)
    # A row for each rating, with ones for the level, the user and the movie.
    columns = np.stack(
        [np.zeros(count, np.int64), 1 + ratings.users, 1 + users + ratings.movies], axis=1
    )
    entries = np.ones(3 * count), columns.ravel(), np.arange(0, 3 * count + 1, 3)
    design: Any = csr_array(entries, shape=(count, 1 + users + movies))
    penalties = np.full(1 + users + movies, penalty)
    penalties[0] = 0.0
    normal = design.T @ design + diags_array(penalties)
    scaled = diags_array(1.0 / normal.diagonal())
    solution, _ = cg(normal, design.T @ ratings.stars, rtol=PRECISION, atol=0.0, M=scaled)
    return Biases(float(solution[0]), solution[1 : 1 + users], solution[1 + users :])


def mean_biases(ratings: Ratings) -> Biases:
    """The model to beat: the user's mean plus the movie's mean minus the overall mean."""
    level = float(ratings.stars.mean())
    places = zip((ratings.users, ratings.movies), ratings.shape, strict=True)
    users, movies = (_mean(index, ratings.stars - level, count) for index, count in places)
    return Biases(level, users, movies)


def _mean(index: Ints, values: Floats, count: int) -> Floats:
    """The mean of the values at each index; 0 if it has no values."""
    return np.bincount(index, values, count) / np.maximum(np.bincount(index, minlength=count), 1)


CHANGE = 1e-5  # stop after a sweep that lowers the objective by a smaller fraction
SWEEPS = 100


class Factors(NamedTuple):
    """The term for user u and movie i is the inner product of users[u] and movies[i]."""

    users: Floats
    movies: Floats

    def predict(self, ratings: Ratings) -> Floats:
        """The term for each rating."""
        return np.asarray((self.users[ratings.users] * self.movies[ratings.movies]).sum(axis=1))


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
    table, seen = (
        csr_array((each, places), shape=ratings.shape) for each in (values, np.ones(len(values)))
    )
    return Incomplete(table, table.T.tocsr(), seen, seen.T.tocsr())


def leading(table: Incomplete, dimension: int) -> Floats:
    """Initial factors of the movies: the leading singular vectors of the table, with 0 for missing cells."""
    from scipy.sparse.linalg import svds

    # Without a given vector ARPACK starts from a random one.
    _, values, vectors = svds(table.by_user, k=dimension, v0=np.ones(min(table.by_user.shape)))
    order = np.argsort(-values, kind="stable")
    return vectors[order].T * np.sqrt(values[order])


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


BIAS_PENALTIES = (1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0)
DIMENSIONS = (2, 4, 6, 8, 10, 12, 16, 24)
PENALTIES: tuple[float, ...] = (24.0, 20.0, 17.0, 14.0, 12.0, 10.0, 8.0, 6.0, 4.0, 3.0, 2.0, 1.0)
RISE = 1.001  # once the error is larger by this factor, it has passed its minimum
HELD_OUT, SPLIT_SEED = 0.1, 0


class Choice(NamedTuple):
    """The parameters chosen, and their root mean square error in stars on held-out ratings.

    The choice was made on these ratings, so its error is too small: by up to 0.001, as other splits show.

    Attributes:
        bias_penalty: the penalty of users' and movies' biases.
        dimension: the number of factors; 0 if biases alone predict best.
        penalty: the penalty of the factors.
        rmse: the error of these parameters.
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
    return np.clip(stars, 1.0, STARS)


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


ARRAYS = ("rewards", "movies", "sequence")


def fitted(content: bytes) -> Oracle:
    """The oracle of a file of ratings, from the user's cache folder or fitted now and stored there.

    A cached oracle is used only if it is intact and was made from the same ratings by the same code.
    """
    digest = hashlib.sha256(content).hexdigest()
    path = cache_root() / "movielens" / f"fit-{digest[:16]}.npz"
    if (kept := _load(path, digest)) is not None:
        return kept
    oracle = fit_oracle(parse_ratings(content))
    with suppress(OSError):  # if it cannot be cached, it is fitted again next time
        path.parent.mkdir(parents=True, exist_ok=True)
        _save(path, oracle)
    return oracle


@cache
def _version() -> str:
    """A digest of the sources that make an oracle, so that no version number can be forgotten."""
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def _save(path: Path, oracle: Oracle) -> None:
    header = {"version": _version(), "digest": oracle.digest, "choice": oracle.choice._asdict()}
    buffer = io.BytesIO()
    np.savez(buffer, header=json.dumps(header), **{name: getattr(oracle, name) for name in ARRAYS})
    write_atomically(path, with_checksum(buffer.getvalue()))


def _load(path: Path, digest: str) -> Oracle | None:
    body = read_with_checksum(path)
    if body is None:
        return None
    with np.load(io.BytesIO(body)) as held:
        if "header" not in held:  # written by other code
            return None
        header = json.loads(str(held["header"]))
        if (header["version"], header["digest"]) != (_version(), digest):
            return None
        rewards, movies, sequence = (held[name] for name in ARRAYS)
        return Oracle(rewards, movies, sequence, Choice(**header["choice"]), digest)
