"""The MovieLens experiments: with the data, without it, with a damaged file, and with noise."""

import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from decoupled.cli.main import app
from decoupled_lab.paper import movielens
from decoupled_lab.paper.base import Scale
from decoupled_lab.paper.setup import RIVALS
from support.once import fits_folder
from support.quick_run import Quick

reproduce = partial(CliRunner().invoke, app)
COMMAND = ["reproduce", "movielens", "--quick", "--runs", "4", "--out"]


@pytest.fixture
def _here(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Run it in this process, which has the machine code, with the fewest movies."""
    monkeypatch.setenv("DECOUPLED_OFFLINE", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", fits_folder(tmp_path_factory))
    monkeypatch.setenv(
        "DECOUPLED_DATA", os.environ.get("DECOUPLED_DATA", "")
    )  # the command may set it
    monkeypatch.setattr("decoupled_lab.paper.runner.compile_all", lambda code: None)
    monkeypatch.setattr(movielens, "ARMS", movielens.ARMS[:1])
    movielens.source.cache_clear()
    yield
    movielens.source.cache_clear()


def test_without_the_data_the_report_says_in_red_that_the_claim_was_not_judged(
    quick: Quick,
) -> None:
    assert "not judged" in quick.output
    assert "DECOUPLED_DATA" in quick.output  # the remedy
    assert "urlopen" not in quick.output
    assert "data='stand-in'" not in quick.output
    page = (quick.folder / "report.html").read_text()
    # At the top, and in its section.
    assert page.count('<p class="alarm">MovieLens 100K was not available') == 2
    claims = {each["id"]: each for each in json.loads((quick.folder / "claims.json").read_text())}
    assert claims["movielens-lowest"]["verdict"] == "not judged: MovieLens was not available"
    # Measurements on generated ratings are in the data, but never next to the claim.
    row = page.split('<tr id="claim-movielens-lowest">')[1].split("</tr>")[0]
    assert row.endswith("<td>&ndash;</td>")


@pytest.mark.skipif(
    not os.environ.get("DECOUPLED_DATA"), reason="DECOUPLED_DATA does not name MovieLens 100K"
)
@pytest.mark.usefixtures("_here")
def test_with_the_data_the_claim_is_judged(tmp_path: Path) -> None:
    done = reproduce([*COMMAND, str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "not judged" not in done.stdout
    assert (
        "alarm"
        not in (tmp_path / "report.html").read_text().split("</style>")[1].split("<script")[0]
    )


@pytest.fixture
def _generated(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", fits_folder(tmp_path_factory))
    monkeypatch.setattr(movielens, "source", lambda: {"data": "stand-in"})


@pytest.mark.usefixtures("_generated")
def test_a_small_run_is_drawn_and_generated_ratings_are_not_judged(tmp_path: Path) -> None:
    experiment = movielens.NoisyMovies()
    experiment.measure(Scale(runs=3, quick=True), tmp_path, lambda done: None)
    section = experiment.section(tmp_path)
    assert [claim.verdict for claim in section.claims] == [
        "not judged: MovieLens was not available"
    ] * 2
    assert all(len(claim.parts) == 2 * len(RIVALS) for claim in section.claims)
    assert len(section.tables[0].rows) == 2 * len(movielens.NOISY_POLICIES)
    assert section.warnings
