"""The map of c and alpha: its file, its figures, and its description in the documentation."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import decoupled as dc
from decoupled.cli.main import app
from decoupled.errors import ParameterError
from decoupled.simulation.plan import Plan
from decoupled_lab.paper import tuned_map
from decoupled_lab.paper.base import Scale
from decoupled_lab.paper.runner import fit_for_devices
from decoupled_lab.report.page import Section, build_page
from decoupled_lab.report.pictures import Heat, numbers_of

DATA = Path(__file__).parents[3] / "docs/data/tuned-map.csv"


def test_the_documented_map_is_whole_and_survives_its_file(tmp_path: Path) -> None:
    points = tuned_map.read(DATA)
    planned = tuned_map.plans(Scale(device="cuda"))
    assert {(p.policy, p.alpha, p.arms, p.gap) for p in points} == set(planned)
    assert len(points) == sum(len(plan.policies) for plan in planned.values())
    assert all(p.runs == tuned_map.RUNS for p in points)
    copy = tmp_path / "map.csv"
    copy.write_text(tuned_map.formatted(points))
    assert copy.read_text() == DATA.read_text()


def test_maps_are_reported() -> None:
    points = tuned_map.read(DATA)
    pictures = tuned_map.maps(points)
    assert [len(picture.panels) for picture in pictures] == [16, 16]
    first = pictures[0].panels[0]
    assert isinstance(first, Heat)
    assert first.values.shape == (8, 12)
    assert first.values.min() == 1.0
    assert len(numbers_of(pictures[0]).splitlines()) == 1 + sum(p.policy == "FTPL" for p in points)
    page = build_page("title", "", {}, [Section("", (), pictures, (tuned_map.winners(points),))])
    data = json.loads(re.search(r'id="pictures">(.*?)</script>', page).group(1))  # type: ignore[union-attr]
    panel = data["pictures"][1]["panels"][0]
    assert panel["rows"] == ["2", "3", "5", "EXP3"]
    assert panel["heat"]


def test_points_that_are_known_are_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = tuned_map.read(DATA)
    gone = [p for p in points if p[:4] == (4, 0.25, "EXP3", tuned_map.INFINITE)][3:5]
    (tmp_path / tuned_map.MAP_FILE).write_text(
        tuned_map.formatted([p for p in points if p not in gone])
    )
    ran: list[str] = []

    def few(plan: Plan, **how: Any) -> Any:
        ran.extend(policy.label for policy in plan.policies)
        return dc.simulate(plan.policies, plan.environment, 50, 10, plan.seed)

    monkeypatch.setattr(tuned_map, "run_plan", few)
    done: list[int] = []
    scale = Scale(device="cuda")
    tuned_map.measure(scale, tmp_path, done.append)
    assert ran == [dc.Exp3(c=p.c).label for p in gone]
    assert len(tuned_map.read(tmp_path / tuned_map.MAP_FILE)) == len(points)
    assert sum(done) == tuned_map.units(scale) - len(gone) * tuned_map.RUNS * 10_000


def test_what_a_gpu_cannot_reproduce_is_refused_or_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert fit_for_devices(["grid", "runtime", "tuned"], asked=False) == ["grid", "tuned"]
    assert "runtime" in capsys.readouterr().out
    with pytest.raises(ParameterError, match=r"'many-arms'.*--device cpu"):
        fit_for_devices(["grid", "many-arms"], asked=True)


@pytest.mark.parametrize("command", [["reproduce", "runtime"], ["simulate", "nowhere.toml"]])
def test_an_unknown_device_is_refused(command: list[str], tmp_path: Path) -> None:
    spec = tmp_path / "nowhere.toml"
    spec.write_text(
        'horizon = 10\nruns = 2\n[[policy]]\nname = "FTPL"\n[[environment]]\nname = "Alternating"\narms = 4\ngap = 0.2\n'
    )
    named = [str(spec) if part == "nowhere.toml" else part for part in command]
    result = CliRunner().invoke(app, [*named, "--device", "gpu", "--out", str(tmp_path / "out")])
    assert result.exit_code == 2, result.output
    assert "cuda" in result.output
