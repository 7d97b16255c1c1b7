"""The programs in examples/, shortened; the test of the shadow router is among those of the service."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import decoupled as dc
from support.pages import ROOT


def test_a_radio_that_forgets_keeps_up_with_the_band() -> None:
    example = runpy.run_path(str(ROOT / "examples" / "channel_sensing.py"))
    forgetting = example["lost"](dc.Forgetting(dc.FTPL(), discount=0.998), 6_000, seed=1)
    remembering = example["lost"](dc.FTPL(), 6_000, seed=1)
    # With 100 other seeds, the first lost 13 to 20 % of its packets and the second 27 to 48 %. With 20 seeds, a
    # radio that forgets and reports the channel that it *sent* on, not the one it sensed, lost 34 to 51 %.
    assert forgetting < 0.235 < remembering


def test_the_slice_finds_a_good_film_for_the_front_page() -> None:
    example = runpy.run_path(str(ROOT / "examples" / "movielens_slice.py"))
    films = dc.environments.MovieLens(arms=8, data="stand-in")
    evening = example["recommend"](films, visits=8_000, share=0.1)
    # With 40 other seeds, the shortfall of the front page from the best film was at most 23 % of that of guessing.
    assert evening.any < evening.slice < evening.served < evening.best
    assert evening.best - evening.served < 0.35 * (evening.best - evening.any)


@pytest.mark.parametrize("folder", ["", "not-there"])
def test_the_slice_names_the_missing_data(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("DECOUPLED_DATA", folder)
    command = [sys.executable, str(ROOT / "examples" / "movielens_slice.py")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "MovieLens 100K is not here" in done.stderr
    assert "DECOUPLED_DATA" in done.stderr
