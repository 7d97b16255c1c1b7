"""The oracle of MovieLens, compared with slow, obvious twins and with planted truths."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from decoupled.base.arrays import Floats, Ints
from decoupled_lab.movielens import Oracle, Ratings, fit_oracle, fitted, oracle
from decoupled_lab.movielens.oracle import (
    CHANGE,
    Factors,
    choose,
    factorise,
    incomplete,
    leading,
    mean_biases,
    ridge_biases,
    split,
)
from support.planted_ratings import as_file, planted

SMALL = planted(users=30, movies=20, noise=0.5, share=0.3)


# --- biases


@pytest.mark.parametrize("penalty", [0.5, 3.0, 20.0])
def test_biases_solve_the_normal_equations(penalty: float) -> None:
    ratings = SMALL.ratings
    users, movies = ratings.shape
    size = 1 + users + movies
    left, right = np.diag([0.0] + [penalty] * (users + movies)), np.zeros(size)
    for user, movie, stars in zip(ratings.users, ratings.movies, ratings.stars, strict=True):
        row = np.zeros(size)
        row[[0, 1 + user, 1 + users + movie]] = 1.0
        left += np.outer(row, row)
        right += stars * row
    solution = np.linalg.solve(left, right)
    ours = ridge_biases(ratings, penalty)
    assert ours.level == pytest.approx(solution[0], abs=1e-9)
    np.testing.assert_allclose(ours.users, solution[1 : 1 + users], atol=1e-9)
    np.testing.assert_allclose(ours.movies, solution[1 + users :], atol=1e-9)


def at(ratings: Ratings) -> tuple[Ints, Ints]:
    return ratings.users, ratings.movies


def test_means_are_those_of_users_and_movies() -> None:
    # User 2 and movie 1 have no rating, so they get the overall mean.
    users, movies = np.array([0, 0, 1]), np.array([0, 2, 0])
    ratings = Ratings(users, movies, np.array([5.0, 3.0, 1.0]), np.zeros(3, np.int64), (3, 3), "")
    means = mean_biases(ratings)
    assert means.level == 3.0
    assert (means.level + means.users).tolist() == [4.0, 1.0, 3.0]
    assert (means.level + means.movies).tolist() == [3.0, 3.0, 3.0]


# --- factors


def slow_factorise(ratings: Ratings, values: Floats, movies: Floats, penalty: float) -> Factors:
    """From the definition: ridge regressions one by one, as least squares with rows added."""

    def regress(index: Ints, other: Ints, factors: Floats, count: int) -> Floats:
        solved = np.zeros((count, factors.shape[1]))
        for one in range(count):
            mine = index == one
            rows = np.vstack([factors[other[mine]], np.sqrt(penalty) * np.eye(factors.shape[1])])
            goal = np.append(values[mine], np.zeros(factors.shape[1]))
            solved[one] = np.linalg.lstsq(rows, goal, rcond=None)[0]
        return solved

    before = np.inf
    while True:
        users = regress(ratings.users, ratings.movies, movies, ratings.shape[0])
        movies = regress(ratings.movies, ratings.users, users, ratings.shape[1])
        left = values - (users @ movies.T)[ratings.users, ratings.movies]
        objective = (left**2).sum() + penalty * ((users**2).sum() + (movies**2).sum())
        if before - objective < CHANGE * objective:
            return Factors(users, movies)
        before = objective


@pytest.mark.parametrize("penalty", [0.3, 2.0])
def test_factors_equal_those_of_the_slow_twin(penalty: float) -> None:
    ratings = SMALL.ratings
    values = ratings.stars - ridge_biases(ratings, 2.0).predict(ratings)
    start = np.random.default_rng(3).normal(size=(20, 3))
    ours = factorise(incomplete(ratings, values), start, penalty)
    twin = slow_factorise(ratings, values, start, penalty)
    assert np.abs(twin.users).max() > 0.3  # something was learned
    np.testing.assert_allclose(ours.users, twin.users, atol=1e-8)
    np.testing.assert_allclose(ours.movies, twin.movies, atol=1e-8)
    np.testing.assert_allclose(ours.predict(ratings), (twin.users @ twin.movies.T)[at(ratings)], atol=1e-8)


def test_the_start_is_the_leading_part_of_the_table() -> None:
    ratings = SMALL.ratings
    table = incomplete(ratings, ratings.stars)
    dense = np.zeros(ratings.shape)
    dense[at(ratings)] = ratings.stars
    _, values, vectors = np.linalg.svd(dense)
    start = leading(table, 3)
    np.testing.assert_allclose(start @ start.T, (vectors[:3].T * values[:3]) @ vectors[:3], atol=1e-8)
    # More vectors begin with the same ones, up to signs, which are arbitrary.
    np.testing.assert_allclose(np.abs(leading(table, 5)[:, :3]), np.abs(start), atol=1e-8)


# --- choosing


def test_the_split_is_a_tenth_and_a_partition() -> None:
    ratings = planted().ratings
    known, kept_back = split(ratings)
    assert len(kept_back) == len(ratings) // 10
    cells = [
        set(zip(part.users.tolist(), part.movies.tolist(), strict=True)) for part in (known, kept_back)
    ]
    assert not cells[0] & cells[1]
    assert len(cells[0] | cells[1]) == len(ratings)


def test_the_choice_beats_the_models_without_factors() -> None:
    choice = choose(planted(users=100, movies=80, rank=2, noise=0.1).ratings)
    assert choice.dimension >= 2
    # Noise of 0.1 is the best that can be done; a part of standard deviation 0.5 is what biases miss.
    assert 0.1 < choice.rmse < 0.2
    assert choice.rmse < 0.5 * choice.rmse_biases
    assert choice.rmse < 0.5 * choice.rmse_means


def test_the_errors_told_are_those_on_ratings_kept_back() -> None:
    ratings = SMALL.ratings
    choice = choose(ratings)
    known, kept_back = split(ratings)
    for told, biases in [
        (choice.rmse_means, mean_biases(known)),
        (choice.rmse_biases, ridge_biases(known, choice.bias_penalty)),
    ]:
        predicted = np.clip(biases.predict(kept_back), 1.0, 5.0)
        assert told == pytest.approx(np.sqrt(((predicted - kept_back.stars) ** 2).mean()), rel=1e-9)


def test_no_factors_where_there_is_nothing_to_find() -> None:
    # Fitting noise can help by chance, but not always.
    choices = [choose(planted(rank=0, noise=1.0, seed=seed).ratings) for seed in range(8)]
    assert any(choice.dimension == 0 for choice in choices)
    for choice in choices:
        assert choice.rmse <= choice.rmse_biases
        assert (choice.rmse == choice.rmse_biases) == (choice.dimension == 0)


# --- the oracle


def test_the_oracle_recovers_what_was_planted() -> None:
    truth = planted(users=100, movies=80, rank=2, noise=0.1)
    oracle = fit_oracle(truth.ratings)
    rewards = (truth.stars[:, oracle.movies - 1] - 1.0) / 4.0
    error = np.sqrt(((oracle.rewards - rewards) ** 2).mean())
    assert error < 0.025  # a tenth of a star; the rewards themselves spread by 0.2
    assert rewards.std() > 0.15


def test_rewards_come_from_a_fit_to_all_ratings() -> None:
    ratings = planted(noise=0.3).ratings
    oracle = fit_oracle(ratings)
    choice = oracle.choice
    assert choice.dimension > 0
    biases = ridge_biases(ratings, choice.bias_penalty)
    table = incomplete(ratings, ratings.stars - biases.predict(ratings))
    users, movies = factorise(table, leading(table, choice.dimension), choice.penalty)
    for place, movie in enumerate(oracle.movies - 1):
        stars = biases.level + biases.users + biases.movies[movie] + users @ movies[movie]
        expected = (np.minimum(np.maximum(stars, 1.0), 5.0) - 1.0) / 4.0
        np.testing.assert_allclose(oracle.rewards[:, place], expected, atol=1e-9)


def test_rewards_without_factors() -> None:
    ratings = next(
        each.ratings
        for each in (planted(rank=0, noise=1.0, seed=seed) for seed in range(8))
        if choose(each.ratings).dimension == 0
    )
    oracle = fit_oracle(ratings)
    biases = ridge_biases(ratings, oracle.choice.bias_penalty)
    stars = biases.level + biases.users[3] + biases.movies[oracle.movies[5] - 1]
    assert oracle.rewards[3, 5] == pytest.approx((np.clip(stars, 1.0, 5.0) - 1.0) / 4.0)


def test_movies_by_ratings_and_users_by_time() -> None:
    ratings = planted(users=20, movies=30, share=0.3).ratings
    oracle = fit_oracle(ratings)
    counts = [int((ratings.movies == movie).sum()) for movie in range(30)]
    assert len(set(counts)) < 30  # there are ties
    assert oracle.movies.tolist() == [m + 1 for m in sorted(range(30), key=lambda m: (-counts[m], m))]
    events = sorted(range(len(ratings)), key=lambda event: (ratings.times[event], event))
    assert oracle.sequence.tolist() == [int(ratings.users[event]) for event in events]


def test_fitting_twice_gives_the_same_bits() -> None:
    one, two = fit_oracle(SMALL.ratings), fit_oracle(SMALL.ratings)
    assert one.rewards.tobytes() == two.rewards.tobytes()
    assert one.choice == two.choice
    with pytest.raises(ValueError, match="read-only"):
        one.rewards[0, 0] = 0.5


# --- kept on disk


class Counter:
    """Counts the fits, and makes each of them slow."""

    def __init__(self) -> None:
        self.fits = 0

    def __call__(self, ratings: Ratings) -> Oracle:
        self.fits += 1
        return fit_oracle(ratings)


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Counter:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = Counter()
    monkeypatch.setattr(oracle, "fit_oracle", found)
    return found


CONTENT = as_file(SMALL.ratings)


def same(one: Oracle, two: Oracle) -> bool:
    arrays = all(
        getattr(one, name).tobytes() == getattr(two, name).tobytes()
        and getattr(one, name).dtype == getattr(two, name).dtype
        for name in oracle.ARRAYS
    )
    return arrays and one.choice == two.choice and one.digest == two.digest


def test_a_fit_is_kept(counter: Counter, tmp_path: Path) -> None:
    first, second = fitted(CONTENT), fitted(CONTENT)
    assert counter.fits == 1
    assert same(first, second)
    assert second.digest == hashlib.sha256(CONTENT).hexdigest()
    assert isinstance(second.choice.dimension, int)
    with pytest.raises(ValueError, match="read-only"):
        second.rewards[0, 0] = 0.5
    fitted(as_file(planted(users=9, movies=9, share=0.9).ratings))
    assert counter.fits == 2


@pytest.mark.parametrize("damage", ["flipped", "cut", "empty", "of other ratings", "of other code"])
def test_a_damaged_or_foreign_fit_is_made_anew(
    damage: str, counter: Counter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = fitted(CONTENT)
    (kept,) = tmp_path.rglob("fit-*.npz")
    body = bytearray(kept.read_bytes())
    if damage == "flipped":
        body[len(body) // 2] ^= 1
    elif damage == "cut":
        del body[-100:]
    elif damage == "empty":
        body.clear()
    elif damage == "of other ratings":
        other = CONTENT[CONTENT.index(10) + 1 :]
        fitted(other)
        name = f"fit-{hashlib.sha256(other).hexdigest()[:16]}.npz"
        body = bytearray((kept.parent / name).read_bytes())
    kept.write_bytes(body)
    if damage == "of other code":
        monkeypatch.setattr(oracle, "_version", lambda: "another")
    counter.fits = 0
    assert same(fitted(CONTENT), first)
    assert same(fitted(CONTENT), first)
    assert counter.fits == 1  # fitted again once, and cached


def test_where_nothing_can_be_kept_it_is_fitted_again(
    counter: Counter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert same(fitted(CONTENT), fitted(CONTENT))
    assert counter.fits == 2
