"""Static figures: every format, the same bytes each time, and the data behind them."""

import csv
import io
from pathlib import Path

import numpy as np
import pytest

from decoupled.plots import Panel, Picture, Series, draw, save_static

X = np.array([1.0, 10.0, 100.0])


def picture(panels: int = 1, **options: bool) -> Picture:
    series = (
        Series("FTPL", X, X / 2, X / 10, 0),
        Series("points", X, X + 1.0, np.ones(3), 1, "points"),
        Series("points", X, X + 1.0, None, 1, "fit"),
    )
    panel = Panel("title", series, "round", "regret", **options)
    return Picture("example", "An example", "With a caption.", (panel,) * panels, columns=2)


def test_every_format_is_written_and_the_same_each_time(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        save_static(picture(3), tmp_path / folder)
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == ["example.csv", "example.pdf", "example.png", "example.svg"]
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


def test_the_numbers_behind_a_picture() -> None:
    lines = list(csv.DictReader(io.StringIO(picture().to_csv())))
    assert len(lines) == 9
    assert [float(line["y"]) for line in lines[:3]] == [0.5, 5.0, 50.0]
    assert [float(line["low"]) for line in lines[:3]] == pytest.approx([0.4, 4.0, 40.0])
    assert [float(line["high"]) for line in lines[:3]] == pytest.approx([0.6, 6.0, 60.0])
    assert [line["high"] for line in lines[6:]] == ["", "", ""]


def test_a_band_may_reach_further_on_one_side() -> None:
    lopsided = Series("FTPL", X, X, np.stack([X / 2, 3 * X]))
    lines = csv.DictReader(io.StringIO(Picture("a", "", "", (Panel("", (lopsided,)),)).to_csv()))
    assert [(float(line["low"]), float(line["high"])) for line in lines] == [(0.5, 4.0), (5, 40), (50, 400)]
    (band,) = draw(Picture("a", "", "", (Panel("", (lopsided,)),))).axes[0].collections
    drawn = np.asarray(band.get_paths()[0].vertices)[:, 1]
    assert (drawn.min(), drawn.max()) == (0.5, 400.0)


@pytest.mark.parametrize("options", [{}, {"log_x": True}, {"log_y": True}, {"log_x": True, "log_y": True}])
def test_axes_follow_the_panel(options: dict[str, bool]) -> None:
    axes = draw(picture(**options)).axes[0]
    assert axes.get_xscale() == ("log" if options.get("log_x") else "linear")
    assert axes.get_yscale() == ("log" if options.get("log_y") else "linear")


def test_a_fit_is_not_named_twice() -> None:
    _, labels = draw(picture()).axes[0].get_legend_handles_labels()
    assert labels == ["FTPL", "points"]


def test_negative_regret_is_shown() -> None:
    series = Series("FTPL", X, -X, np.ones(3))
    axes = draw(Picture("example", "", "", (Panel("", (series,)),))).axes[0]
    assert axes.get_ylim()[0] < -100.0
