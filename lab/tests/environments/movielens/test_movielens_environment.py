"""MovieLens as an environment: the order of users, its laws, where the data comes from, and real regret."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

import decoupled as dc
from decoupled.kernels.random.sampling import BETA, NONE
from decoupled_lab import movielens
from decoupled_lab.movielens import environment as module
from decoupled_lab.movielens.environment import MovieLens
from support.once import fits_folder
from support.planted_ratings import as_file, planted

FALSE_ALARM = 1e-5


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No network, and a cache that has fits and no data."""
    monkeypatch.setenv("DECOUPLED_OFFLINE", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", fits_folder(tmp_path_factory))
    module._oracle.cache_clear()
    yield
    module._oracle.cache_clear()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> movielens.Oracle:
    """Small ratings instead of the data."""
    content = as_file(planted(users=20, movies=30, share=0.4).ratings)
    (tmp_path / "u.item").write_text("1|First (1990)|\n2|Second (1991)|\n", encoding="latin-1")
    monkeypatch.setattr(module, "find", lambda: (content, movielens.Source("local folder", tmp_path)))
    return movielens.fit_oracle(movielens.parse_ratings(content))


def test_losses_are_of_the_most_rated_movies(small: movielens.Oracle) -> None:
    table = MovieLens(arms=7).table(10)
    np.testing.assert_array_equal(table.rows, 1.0 - small.rewards[:, :7])
    assert (table.noise, table.rows.shape) == (NONE, (20, 7))
    assert MovieLens(arms=7, noise="beta", concentration=4.0).table(10)[2:] == (BETA, 4.0)


def test_users_come_by_time_and_from_the_first_again(small: movielens.Oracle) -> None:
    events = small.sequence.tolist()
    assert MovieLens(arms=2).table(13).row_at.tolist() == events[:13]
    assert MovieLens(arms=2).table(2 * len(events) + 5).row_at.tolist() == events * 2 + events[:5]


def test_independent_users_come_as_often_as_they_rate(small: movielens.Oracle) -> None:
    draws = MovieLens(arms=2, order="iid").table(50_000).row_at
    counts = np.bincount(draws, minlength=20)
    share = np.bincount(small.sequence, minlength=20) / len(small.sequence)
    assert scipy.stats.chisquare(counts, 50_000 * share).pvalue > FALSE_ALARM
    assert (
        scipy.stats.chisquare(counts, np.full(20, 2_500.0)).pvalue < FALSE_ALARM
    )  # users are not equally likely
    pairs = np.bincount(20 * draws[:-1:2] + draws[1::2], minlength=400)
    law = 25_000 * np.outer(share, share).ravel()
    assert scipy.stats.chisquare(pairs, law).pvalue > FALSE_ALARM  # and draws are independent
    again = MovieLens(arms=2, order="iid").table(50_000).row_at
    assert (draws == again).all()
    assert (draws != MovieLens(arms=2, order="iid", seed=1).table(50_000).row_at).any()
    assert (draws[:100] == MovieLens(arms=2, order="iid").table(100).row_at).all()


def test_titles(small: movielens.Oracle) -> None:
    titles = MovieLens(arms=30).titles()
    ids = small.movies.tolist()
    assert titles[ids.index(1)] == "First (1990)"
    assert titles[ids.index(2)] == "Second (1991)"
    assert titles[ids.index(17)] == "movie 17"


def test_threads_share_one_fit(small: movielens.Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    fits: list[bytes] = []

    def slow(content: bytes) -> movielens.Oracle:
        fits.append(content)
        time.sleep(0.1)
        return small

    monkeypatch.setattr(module, "fitted", slow)
    with ThreadPoolExecutor(4) as threads:
        tables = list(threads.map(lambda arms: MovieLens(arms).table(5), [2, 3, 4, 5]))
    assert [table.rows.shape[1] for table in tables] == [2, 3, 4, 5]
    assert len(fits) == 1


def test_regret_is_that_of_the_same_losses_in_a_table(small: movielens.Oracle) -> None:
    environment = MovieLens(arms=6)
    table = dc.environments.LossTable(1.0 - small.rewards[:, :6], small.sequence, noise="none")
    ours, theirs = (dc.simulate(dc.FTPL(), world, 300, 3, seed=0) for world in (environment, table))
    assert ours.final_regret("FTPL").tolist() == theirs.final_regret("FTPL").tolist()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: MovieLens(1), "arms = 1"),
        (lambda: MovieLens(1_683), "arms = 1683: must not exceed 1682"),
        (lambda: MovieLens(8, order="time"), "order = 'time'.*did you mean 'timestamp'"),
        (lambda: MovieLens(8, noise="gauss"), "noise = 'gauss'"),
        (lambda: MovieLens(8, noise="beta", concentration=0), "concentration = 0"),
        (lambda: MovieLens(8, order="iid", seed=-1), "seed = -1"),
        (lambda: MovieLens(8, data="ml-1m"), "data = 'ml-1m'"),
    ],
)
def test_bad_parameters(make: Callable[[], object], said: str) -> None:
    with pytest.raises(dc.ParameterError, match=said):
        make()


def test_the_stand_in_never_goes_by_the_name_of_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DECOUPLED_DATA", raising=False)
    real, made = MovieLens(32), MovieLens(32, data="stand-in")
    assert real != made
    assert (real.label, made.label) == ("MovieLens(arms=32)", "MovieLens(arms=32, data='stand-in')")
    assert real.to_dict()["data"] == "ml-100k"
    with pytest.raises(dc.StorageError, match=r"data = 'ml-100k': is not available .*data='stand-in'"):
        real.table(10)
    monkeypatch.setenv("DECOUPLED_DATA", "/nowhere")
    with pytest.raises(dc.ParameterError, match="DECOUPLED_DATA = '/nowhere'"):
        real.table(10)


def test_the_stand_in_is_a_world_to_learn_in() -> None:
    environment = MovieLens(32, data="stand-in")
    choice = environment.oracle().choice
    assert choice.rmse < choice.rmse_biases < choice.rmse_means
    assert environment.titles()[0].startswith("movie ")
    results = dc.simulate([dc.FTPL()], environment, horizon=10_000, runs=5, seed=0)
    assert regret_of_guessing(environment, 10_000) > 2 * results.final_regret("FTPL").mean()


def regret_of_guessing(environment: MovieLens, horizon: int) -> float:
    """The regret of a uniformly drawn movie."""
    table = environment.table(horizon)
    costs = table.rows[table.row_at].sum(axis=0)
    return float(costs.mean() - costs.min())


def test_nothing_is_read_or_loaded_before_it_is_needed() -> None:
    code = (
        "import sys, decoupled_lab as e; e.MovieLens(32);"
        "assert 'urllib.request' not in sys.modules and 'scipy.sparse.linalg' not in sys.modules"
    )
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "DECOUPLED_DATA": "/nowhere"}
    )


# --- the data itself, where it is at hand


needs_data = pytest.mark.skipif(
    not os.environ.get("DECOUPLED_DATA"),
    reason="DECOUPLED_DATA names no folder with MovieLens 100K, so its numbers were not checked",
)


@needs_data
def test_the_oracle_of_the_data() -> None:
    environment = MovieLens(256)
    oracle = environment.oracle()
    choice = oracle.choice
    # 0.895 stars with factors, 0.922 with biases alone, 0.948 for the model of means.
    assert choice.rmse == pytest.approx(0.8947, abs=0.003)
    assert choice.rmse_biases == pytest.approx(0.9224, abs=0.001)
    assert choice.rmse_means == pytest.approx(0.9479, abs=0.001)
    assert 6 <= choice.dimension <= 12
    assert oracle.rewards.shape == (943, 1682)
    assert oracle.movies[:5].tolist() == [50, 258, 100, 181, 294]
    assert len(oracle.sequence) == 100_000
    assert len(set(oracle.sequence[:10_000].tolist())) == 113
    assert environment.titles()[0] in ("Star Wars (1977)", "movie 50")  # u.item may be missing


@needs_data
def test_policies_learn_from_the_data() -> None:
    environment = MovieLens(32)
    results = dc.simulate([dc.FTPL(), dc.TsallisINF(), dc.Exp3()], environment, 10_000, 5, seed=0)
    guessing = regret_of_guessing(environment, 10_000)
    for label in results.labels:
        assert results.final_regret(label).mean() < 0.5 * guessing
