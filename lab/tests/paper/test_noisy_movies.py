"""Movies with noise and in random order: what is run, and that generated ratings are not judged."""

from pathlib import Path

import pytest

from decoupled_lab.paper import movielens
from decoupled_lab.paper.base import Scale
from decoupled_lab.paper.setup import RIVALS
from support.once import fits_folder


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", fits_folder(tmp_path_factory))
    monkeypatch.setattr(movielens, "source", lambda: {"data": "stand-in"})


def test_noise_has_every_number_of_movies() -> None:
    worlds = movielens.noisy_worlds(quick=False)
    noisy = [world for world in worlds.values() if world.noise == "bernoulli"]
    assert [world.arms for world in noisy] == [32, 64, 128, 256]
    assert {world.order for world in noisy} == {"timestamp"}
    shuffled = [world for world in worlds.values() if world.order == "iid"]
    assert {(world.arms, world.noise) for world in shuffled} == {(32, "none"), (256, "none")}
    assert all(world.data == "stand-in" for world in worlds.values())


def test_a_small_run_is_drawn_and_generated_ratings_are_not_judged(tmp_path: Path) -> None:
    experiment = movielens.NoisyMovies()
    experiment.measure(Scale(runs=3, quick=True), tmp_path, lambda done: None)
    section = experiment.section(tmp_path)
    assert [claim.verdict for claim in section.claims] == ["not judged: MovieLens was not available"] * 2
    assert all(len(claim.parts) == 2 * len(RIVALS) for claim in section.claims)
    assert len(section.tables[0].rows) == 2 * len(movielens.NOISY_POLICIES)
    assert section.warnings
