"""MovieLens: finding and reading the data, the oracle beside slow twins and planted truths, and the environment."""

import hashlib
import io
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from email.message import Message
from http.client import IncompleteRead
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import numpy as np
import pytest
import scipy.stats

import decoupled as dc
from decoupled.base import Floats, Ints
from decoupled_lab import movielens
from decoupled_lab.movielens import Oracle, Ratings, environment, files, fit_oracle, oracle
from decoupled_lab.movielens.environment import MovieLens
from decoupled_lab.movielens.files import Publication
from decoupled_lab.movielens.oracle import (
    Factors,
    choose,
    factorise,
    fitted,
    incomplete,
    ridge_biases,
)
from support.once import fits_folder

FALSE_ALARM = 1e-5


def planted(
    users: int = 60,
    movies: int = 50,
    rank: int = 2,
    noise: float = 0.1,
    share: float = 0.5,
    seed: int = 0,
) -> tuple[Ratings, Floats]:
    """Small ratings, and the stars behind them, users x movies."""
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
    return Ratings(rows, columns, seen, times, (users, movies), "0" * 64), stars


def as_file(ratings: Ratings) -> bytes:
    """The ratings in the format of `u.data`, with stars rounded to whole ones."""
    stars = np.clip(np.round(ratings.stars), 1, 5).astype(int)
    lines = zip(ratings.users + 1, ratings.movies + 1, stars, ratings.times, strict=True)
    return "".join("\t".join(map(str, line)) + "\n" for line in lines).encode()


SMALL = planted(users=30, movies=20, noise=0.5, share=0.3)[0]
GOOD = as_file(planted(users=12, movies=9)[0])
CHECKSUM = hashlib.sha256(GOOD).hexdigest()
TITLES = "1|Caf\u00e9 (1995)|01-Jan-1995||\n2|Heat (1995)|||\n".encode("latin-1")


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """No data, no network, and a separate cache; the folder of the data in it."""
    monkeypatch.delenv("DECOUPLED_DATA", raising=False)
    monkeypatch.setenv("DECOUPLED_OFFLINE", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    environment.fitted_oracle.cache_clear()
    yield tmp_path / "cache" / "decoupled" / "ml-100k"
    environment.fitted_oracle.cache_clear()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"1\t2\t3", "columns = 3: must have user, movie, rating and timestamp"),
        (b"x\t2\t3\t880000000", "user = 'x': must be a whole number from 1 to 943"),
        (b"1\t1683\t3\t880000000", "movie = '1683': must be a whole number from 1 to 1682"),
        (b"1\t2\t3.5\t880000000", "rating = '3.5'"),
        (b"1\t2\t3\t880000000\r", r"timestamp = '880000000\\r'"),
    ],
)
def test_a_damaged_line_is_named(line: bytes, said: str, tmp_path: Path) -> None:
    lines = GOOD.split(b"\n")
    lines[6] = line
    (tmp_path / "u.data").write_bytes(b"\n".join(lines))
    with pytest.raises(
        dc.ParameterError, match=rf"u\.data, line 7: {said}.*; download the file again$"
    ):
        movielens.find(tmp_path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (GOOD[:-1], rf"line {GOOD.count(10)}: is cut short"),
        (b"", "has no whole line"),
        (
            GOOD + GOOD[: GOOD.index(10) + 1],
            rf"line {GOOD.count(10) + 1}: user .* before, on line 1;",
        ),
        (GOOD, r"is not MovieLens 100K's u.data \(its SHA-256 is " + CHECKSUM),
    ],
)
def test_another_file_is_refused(content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "u.data").write_bytes(content)
    with pytest.raises(dc.ParameterError, match=rf"u\.data.*{said}.*download"):
        movielens.find(tmp_path)


def test_titles_are_read(tmp_path: Path) -> None:
    (tmp_path / "u.item").write_bytes(TITLES)
    assert movielens.read_titles(tmp_path / "u.item") == {1: "Caf\u00e9 (1995)", 2: "Heat (1995)"}
    (tmp_path / "u.item").write_bytes(TITLES + b"Heat (1995)\n")
    with pytest.raises(dc.ParameterError, match=r"u\.item, line 3: movie = 'Heat"):
        movielens.read_titles(tmp_path / "u.item")


def archive(**held: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, body in (held or {"u.data": GOOD, "u.item": TITLES, "README": b"hello"}).items():
            packed.writestr(f"ml-100k/{name}", body)
    return buffer.getvalue()


class Publisher:
    """Stands for the network: gives a body, or raises an error, and counts how often it was asked."""

    publication = Publication("https://publisher.example/ml-100k.zip", CHECKSUM)

    def __init__(self) -> None:
        self.body, self.asked = archive(), 0
        self.error: Exception | None = None

    def __call__(self, url: str, timeout: float) -> io.BytesIO:
        assert (url, timeout) == (self.publication.url, files.SILENCE)
        self.asked += 1
        if self.error is not None:
            raise self.error
        return io.BytesIO(self.body)


@pytest.fixture
def publisher(monkeypatch: pytest.MonkeyPatch) -> Publisher:
    found = Publisher()
    monkeypatch.setattr("urllib.request.urlopen", found)
    return found


@pytest.mark.parametrize("below", [".", "ml-100k"])
def test_a_folder_by_name_or_variable(
    below: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data"
    (folder / below).mkdir(parents=True)
    for given in (folder, None):
        with pytest.raises(
            dc.ParameterError, match=r"= .* holds neither u\.data nor ml-100k/u\.data"
        ):
            movielens.find(folder if given else tmp_path)  # never a reason to use something else
        (folder / below / "u.data").write_bytes(GOOD)
        monkeypatch.setenv("DECOUPLED_DATA", "nowhere" if given else str(folder))
        found = movielens.find(given, publication=Publication("", CHECKSUM))
        assert found == (GOOD, movielens.Source("local folder", folder / below))
        (folder / below / "u.data").unlink()


def test_a_download_is_kept_and_a_damaged_copy_is_fetched_again(
    publisher: Publisher, alone: Path
) -> None:
    for kind in ("download", "cache"):
        found = movielens.find(fetch=True, publication=publisher.publication)
        assert found == (GOOD, movielens.Source(kind, alone))
    assert publisher.asked == 1
    assert movielens.read_titles(alone / "u.item")[2] == "Heat (1995)"
    (alone / "u.data").write_bytes(GOOD[:-20])
    assert movielens.find(fetch=True, publication=publisher.publication)[1].kind == "download"
    assert (alone / "u.data").read_bytes() == GOOD


def test_the_network_is_asked_if_allowed(
    publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(dc.StorageError, match=r"no download is allowed.*set DECOUPLED_DATA"):
        movielens.find(publication=publisher.publication)
    assert publisher.asked == 0
    monkeypatch.setenv("DECOUPLED_OFFLINE", "0")
    assert movielens.find(publication=publisher.publication)[1].kind == "download"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            {"error": HTTPError("", 404, "Not Found", Message(), None)},
            "cannot be fetched: HTTP Error 404",
        ),
        (
            {"body": archive(**{"u.data": GOOD[:-9]})},
            f"u.data has SHA-256 [0-9a-f]+, not {CHECKSUM}",
        ),
        ({"body": archive()[:-50]}, "is not a readable archive"),
        ({"body": archive(README=b"hello")}, "holds no ml-100k/u.data"),
        ({"error": TimeoutError("timed out")}, "cannot be fetched: timed out"),
        ({"error": IncompleteRead(b"PK")}, "cannot be fetched: IncompleteRead"),
        ({"body": bytes(2_000_000)}, "too slow or too large"),
    ],
)
def test_a_failed_download_says_why_and_leaves_nothing_behind(
    answer: dict[str, object],
    said: str,
    publisher: Publisher,
    alone: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(files, "LARGEST", 1_000_000)
    vars(publisher).update(answer)
    with pytest.raises(dc.StorageError, match=f"data = 'ml-100k': is not available .*{said}"):
        movielens.find(fetch=True, publication=publisher.publication)
    assert not alone.exists()


def test_the_stand_in_has_the_shape_of_the_data() -> None:
    ratings = movielens.parse_ratings(movielens.stand_in())
    assert (len(ratings), ratings.shape) == (100_000, (943, 1682))
    of_users, of_movies = np.bincount(ratings.users), np.bincount(ratings.movies)
    assert of_users.min() >= 20  # as in the data, where the median is 65, and 737 the most
    assert 50 < np.median(of_users) < 80
    assert of_movies.min() >= 1  # in the data the median is 27, and 583 the most
    assert 20 < np.median(of_movies) < 40
    assert max(np.ptp(ratings.times[ratings.users == user]) for user in range(20)) <= 3_600


@pytest.mark.parametrize("penalty", [0.5, 20.0])
def test_biases_solve_the_normal_equations(penalty: float) -> None:
    users, movies = SMALL.shape
    size = 1 + users + movies
    left, right = np.diag([0.0] + [penalty] * (users + movies)), np.zeros(size)
    for user, movie, stars in zip(SMALL.users, SMALL.movies, SMALL.stars, strict=True):
        row = np.zeros(size)
        row[[0, 1 + user, 1 + users + movie]] = 1.0
        left += np.outer(row, row)
        right += stars * row
    ours = ridge_biases(SMALL, penalty)
    both = np.concatenate(([ours.level], ours.users, ours.movies))
    np.testing.assert_allclose(both, np.linalg.solve(left, right), atol=1e-9)


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
        if before - objective < oracle.CHANGE * objective:
            return Factors(users, movies)
        before = objective


@pytest.mark.parametrize("penalty", [0.3, 2.0])
def test_factors_equal_those_of_the_slow_twin(penalty: float) -> None:
    values = SMALL.stars - ridge_biases(SMALL, 2.0).predict(SMALL)
    start = np.random.default_rng(3).normal(size=(20, 3))
    ours = factorise(incomplete(SMALL, values), start, penalty)
    twin = slow_factorise(SMALL, values, start, penalty)
    assert np.abs(twin.users).max() > 0.3  # something was learned
    np.testing.assert_allclose(ours.users, twin.users, atol=1e-8)
    np.testing.assert_allclose(ours.movies, twin.movies, atol=1e-8)


def test_the_choice_beats_the_models_without_factors_on_ratings_kept_back() -> None:
    ratings = planted(users=100, movies=80, rank=2, noise=0.1)[0]
    choice, (known, kept_back) = choose(ratings), oracle.split(ratings)
    assert choice.dimension >= 2
    # Noise of 0.1 is the best that can be done; a part of standard deviation 0.5 is what biases miss.
    assert 0.1 < choice.rmse < 0.5 * min(choice.rmse_biases, choice.rmse_means)
    assert len(kept_back) == len(ratings) // 10 == len(ratings) - len(known)
    models = (oracle.mean_biases(known), ridge_biases(known, choice.bias_penalty))
    for told, biases in zip((choice.rmse_means, choice.rmse_biases), models, strict=True):
        predicted = np.clip(biases.predict(kept_back), 1.0, 5.0)
        assert told == pytest.approx(np.sqrt(((predicted - kept_back.stars) ** 2).mean()), rel=1e-9)
    # Fitting noise can help by chance, but not always.
    assert any(choose(planted(rank=0, noise=1.0, seed=seed)[0]).dimension == 0 for seed in range(8))


def test_the_oracle_recovers_what_was_planted_by_a_fit_to_all_ratings() -> None:
    ratings, truth = planted(users=100, movies=80, rank=2, noise=0.1)
    found = fit_oracle(ratings)
    rewards = (truth[:, found.movies - 1] - 1.0) / 4.0
    assert np.sqrt(((found.rewards - rewards) ** 2).mean()) < 0.025 < 0.15 < rewards.std()
    biases = ridge_biases(ratings, found.choice.bias_penalty)
    table = incomplete(ratings, ratings.stars - biases.predict(ratings))
    users, movies = factorise(
        table, oracle.leading(table, found.choice.dimension), found.choice.penalty
    )
    for place, movie in enumerate(found.movies - 1):
        stars = biases.level + biases.users + biases.movies[movie] + users @ movies[movie]
        expected = (np.clip(stars, 1.0, 5.0) - 1.0) / 4.0
        np.testing.assert_allclose(found.rewards[:, place], expected, atol=1e-9)
    assert fit_oracle(ratings).rewards.tobytes() == found.rewards.tobytes()
    counts = np.bincount(ratings.movies, minlength=80)
    assert found.movies.tolist() == [
        m + 1 for m in sorted(range(80), key=lambda m: (-counts[m], m))
    ]
    events = sorted(range(len(ratings)), key=lambda event: (ratings.times[event], event))
    assert found.sequence.tolist() == ratings.users[events].tolist()


@pytest.mark.parametrize("damage", ["none", "flipped", "cut", "of other ratings", "of other code"])
def test_only_a_sound_fit_is_kept(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits: list[Ratings] = []

    def counted(ratings: Ratings) -> Oracle:
        fits.append(ratings)
        return fit_oracle(ratings)

    monkeypatch.setattr(oracle, "fit_oracle", counted)
    content = as_file(SMALL)
    first = fitted(content)
    (kept,) = tmp_path.rglob("fit-*.npz")
    body = bytearray(kept.read_bytes())
    if damage == "flipped":
        body[len(body) // 2] ^= 1
    elif damage == "cut":
        del body[-100:]
    elif damage == "of other ratings":
        other = content[content.index(10) + 1 :]
        fitted(other)
        body = bytearray(
            (kept.parent / f"fit-{hashlib.sha256(other).hexdigest()[:16]}.npz").read_bytes()
        )
    kept.write_bytes(body)
    if damage == "of other code":
        monkeypatch.setattr(oracle, "_version", lambda: "another")
    fits.clear()
    for again in (fitted(content), fitted(content)):
        assert (again.choice, again.digest) == (first.choice, first.digest)
        assert all(
            getattr(again, n).tobytes() == getattr(first, n).tobytes() for n in oracle.ARRAYS
        )
    assert len(fits) == (damage != "none")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Oracle:
    """Small ratings instead of the data."""
    content = as_file(planted(users=20, movies=30, share=0.4)[0])
    (tmp_path / "u.item").write_text("1|First (1990)|\n2|Second (1991)|\n", encoding="latin-1")
    monkeypatch.setattr(
        environment, "find", lambda: (content, movielens.Source("local folder", tmp_path))
    )
    return fit_oracle(movielens.parse_ratings(content))


def test_losses_of_the_most_rated_movies_and_users_by_time(small: Oracle) -> None:
    np.testing.assert_array_equal(MovieLens(arms=7).table(10).rows, 1.0 - small.rewards[:, :7])
    events = small.sequence.tolist()
    assert MovieLens(arms=2).table(2 * len(events) + 5).row_at.tolist() == events * 2 + events[:5]
    titles, ids = MovieLens(arms=30).titles(), small.movies.tolist()
    assert [titles[ids.index(movie)] for movie in (1, 17)] == ["First (1990)", "movie 17"]
    same = dc.environments.LossTable(1.0 - small.rewards[:, :6], small.sequence, noise="none")
    ours, plain = (dc.simulate(dc.FTPL(), world, 300, 3, seed=0) for world in (MovieLens(6), same))
    assert ours.final_regret("FTPL").tolist() == plain.final_regret("FTPL").tolist()


def test_independent_users_come_as_often_as_they_rate(small: Oracle) -> None:
    draws = MovieLens(arms=2, order="iid").table(50_000).row_at
    counts = np.bincount(draws, minlength=20)
    share = np.bincount(small.sequence, minlength=20) / len(small.sequence)
    assert scipy.stats.chisquare(counts, 50_000 * share).pvalue > FALSE_ALARM
    assert scipy.stats.chisquare(counts).pvalue < FALSE_ALARM  # users are not equally likely
    pairs = np.bincount(20 * draws[:-1:2] + draws[1::2], minlength=400)
    law = 25_000 * np.outer(share, share).ravel()
    assert scipy.stats.chisquare(pairs, law).pvalue > FALSE_ALARM  # and draws are independent
    assert (draws != MovieLens(arms=2, order="iid", seed=1).table(50_000).row_at).any()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"arms": 1}, "arms = 1"),
        ({"arms": 1_683}, "arms = 1683: must not exceed 1682"),
        ({"order": "time"}, "order = 'time'.*did you mean 'timestamp'"),
        ({"data": "ml-1m"}, "data = 'ml-1m'"),
    ],
)
def test_bad_parameters(values: dict[str, Any], said: str) -> None:
    with pytest.raises(dc.ParameterError, match=said):
        MovieLens(**{"arms": 8, **values})


def test_the_stand_in_never_goes_by_the_name_of_the_data() -> None:
    real, made = MovieLens(32), MovieLens(32, data="stand-in")
    assert (real.label, made.label) == ("MovieLens(arms=32)", "MovieLens(arms=32, data='stand-in')")
    with pytest.raises(
        dc.StorageError, match=r"data = 'ml-100k': is not available .*data='stand-in'"
    ):
        real.table(10)


def learned(world: MovieLens) -> float:
    """The regret of FTPL, as a part of that of a uniformly drawn movie."""
    table = world.table(10_000)
    costs = table.rows[table.row_at].sum(axis=0)
    results = dc.simulate(dc.FTPL(), world, 10_000, 5, seed=0)
    return float(results.final_regret("FTPL").mean() / (costs.mean() - costs.min()))


def test_the_stand_in_is_a_world_to_learn_in(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", fits_folder(tmp_path_factory))
    world = MovieLens(32, data="stand-in")
    choice = world.oracle().choice
    assert choice.rmse < choice.rmse_biases < choice.rmse_means
    assert learned(world) < 0.5


def test_nothing_is_read_or_loaded_before_it_is_needed() -> None:
    code = "import sys, decoupled_lab; decoupled_lab.MovieLens(32); assert 'urllib.request' not in sys.modules"
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "DECOUPLED_DATA": "/no"}
    )


DATA = os.environ.get("DECOUPLED_DATA", "")


@pytest.mark.skipif(
    not DATA, reason="DECOUPLED_DATA names no folder with MovieLens 100K: NOT checked"
)
def test_the_data_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DECOUPLED_DATA", DATA)
    found = MovieLens(256).oracle()
    # 0.895 stars with factors, 0.922 with biases alone, 0.948 for the model of means.
    assert found.choice.rmse == pytest.approx(0.8947, abs=0.003)
    assert found.choice.rmse_biases == pytest.approx(0.9224, abs=0.001)
    assert found.choice.rmse_means == pytest.approx(0.9479, abs=0.001)
    assert found.movies[:5].tolist() == [50, 258, 100, 181, 294]
    assert len(set(found.sequence[:10_000].tolist())) == 113
    assert learned(MovieLens(32)) < 0.5
