"""The picture of an entry: what it draws, and that it can be read."""

from pathlib import Path
from typing import Any

import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from decoupled_lab.benchmark import picture, statistics
from decoupled_lab.benchmark.suite import GROUPS
from decoupled_lab.cli.bench import write_shown
from support.made_entries import made_up

pytestmark = pytest.mark.pages


@pytest.fixture(scope="module")
def entry() -> dict[str, Any]:
    return made_up()


@pytest.fixture(scope="module")
def figure(entry: dict[str, Any]) -> Figure:
    return picture.figure(entry)


def drawn(figure: Any) -> list[tuple[list[float], list[float], str]]:
    """Every line and every set of points in the axes: x, y and colour."""
    return [
        (list(line.get_xdata()), list(line.get_ydata()), to_hex(line.get_color()))
        for line in figure.axes[0].get_lines()
        if line.get_transform() == figure.axes[0].transData
    ]


def test_each_group_has_its_interval_in_its_verdicts_colour(entry: dict[str, Any], figure: Figure) -> None:
    (axes,) = figure.axes
    for row, group in enumerate(entry["groups"]):
        found = statistics.of_group(group)
        colour = to_hex(picture.VERDICTS[found.verdict])
        assert ([found.ratio], [row], colour) in drawn(figure)
        assert ([found.low, found.high], [row, row], colour) in drawn(figure)
    labels = [label.get_text().replace("\n", " ") for label in axes.get_yticklabels()]
    assert labels == list(GROUPS.values())
    assert axes.get_xscale() == "log"


@pytest.mark.parametrize("levels", [(1.0,), (0.03,), (0.3, 40.0)])
def test_everything_lies_on_the_axis_and_so_does_one(levels: tuple[float, ...]) -> None:
    figure = picture.figure(made_up(levels=levels * (10 // len(levels))))
    low, high = figure.axes[0].get_xlim()
    places = [x for xs, _, _ in drawn(figure) for x in xs]
    assert low < min(1.0, *places)
    assert high > max(1.0, *places)
    assert len(figure.axes[0].get_xticks()) <= 7


@pytest.mark.parametrize("kind", ["png", "pdf"])
def test_the_same_entry_gives_the_same_bytes(entry: dict[str, Any], tmp_path: Path, kind: str) -> None:
    for name in ("one", "other"):
        picture.draw(entry, tmp_path / f"{name}.{kind}")
    assert (tmp_path / f"one.{kind}").read_bytes() == (tmp_path / f"other.{kind}").read_bytes()


def test_the_command_writes_tables_and_pictures(entry: dict[str, Any], tmp_path: Path) -> None:
    written = list(write_shown(entry, tmp_path, latex=True))
    assert written == ["table.md", "table.tex", "picture.png", "picture.pdf"]
    assert {file.name for file in tmp_path.iterdir()} == set(written)
