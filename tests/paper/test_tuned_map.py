"""The map of c and alpha: its file, its pictures, and what the documentation says of it."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from decoupled.cli import app
from decoupled.errors import ParameterError
from decoupled.paper import tuned_map
from decoupled.paper.experiment import Scale
from decoupled.paper.reproduce import fit_for_devices
from decoupled.plots import Heat, draw
from decoupled.report.page import build_page
from decoupled.report.section import Section

DATA = Path(__file__).parents[2] / "docs/data/tuned-map.csv"


def test_the_documented_map_is_whole_and_survives_its_file(tmp_path: Path) -> None:
    points = tuned_map.read(DATA)
    planned = tuned_map.plans(Scale(device="cuda"))
    assert {(p.policy, p.alpha, p.arms, p.gap) for p in points} == set(planned)
    assert len(points) == sum(len(plan.policies) for plan in planned.values())
    assert all(p.runs == tuned_map.RUNS for p in points)
    copy = tmp_path / "map.csv"
    copy.write_text(tuned_map.told(points))
    assert copy.read_text() == DATA.read_text()


def test_what_the_documentation_says_of_the_winners() -> None:
    points = tuned_map.read(DATA)
    best = [
        min((p for p in points if (p.arms, p.gap) == place), key=lambda p: p.mean)
        for place in {(p.arms, p.gap) for p in points}
    ]
    assert sorted(p.policy for p in best).count("FTPL") == 13
    ftpl = [p for p in points if p.policy == "FTPL"]
    for place in {(p.arms, p.gap) for p in points}:
        least = min((p for p in ftpl if (p.arms, p.gap) == place), key=lambda p: p.mean)
        assert least.alpha == 5.0
    assert max(p.standard_error / p.mean for p in points) < 0.0042


def test_maps_are_drawn_and_reported() -> None:
    points = tuned_map.read(DATA)
    pictures = tuned_map.maps(points)
    assert [len(picture.panels) for picture in pictures] == [16, 16]
    first = pictures[0].panels[0]
    assert isinstance(first, Heat)
    assert first.values.shape == (4, 6)
    assert first.values.min() == 1.0
    assert len(pictures[0].to_csv().splitlines()) == 1 + 16 * 24
    assert len(draw(pictures[1]).axes) == 16
    table = tuned_map.winners(points)
    section = Section("tuned", "Tuned", "", (), pictures, (table,))
    page = build_page("title", "", {}, [section])
    data = json.loads(re.search(r'id="pictures">(.*?)</script>', page).group(1))  # type: ignore[union-attr]
    panel = data["pictures"][1]["panels"][0]
    assert panel["rows"] == ["2", "3", "EXP3"]
    assert panel["heat"]


def test_what_a_gpu_cannot_reproduce_is_refused_or_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert fit_for_devices(["grid", "runtime", "tuned"], asked=False) == ["grid", "tuned"]
    assert "runtime" in capsys.readouterr().out
    with pytest.raises(ParameterError, match=r"'many-arms'.*--device cpu"):
        fit_for_devices(["grid", "many-arms"], asked=True)


@pytest.mark.parametrize("command", [["reproduce", "runtime"], ["simulate", "nowhere.toml"]])
def test_a_device_that_is_none_is_refused(command: list[str], tmp_path: Path) -> None:
    spec = tmp_path / "nowhere.toml"
    spec.write_text(
        'horizon = 10\nruns = 2\n[[policy]]\nname = "FTPL"\n[[environment]]\nname = "Alternating"\narms = 4\ngap = 0.2\n'
    )
    named = [str(spec) if part == "nowhere.toml" else part for part in command]
    result = CliRunner().invoke(app, [*named, "--device", "gpu", "--out", str(tmp_path / "out")])
    assert result.exit_code == 2, result.output
    assert "cuda" in result.output
