"""Measured numbers: records say how they were made, one page shows all of them, and scripts make them again."""

import json
import platform
import re
import sys
from pathlib import Path

import pytest

import decoupled as dc
from decoupled_lab.bench import engine
from decoupled_lab.bench.timing import Ratio
from support.pages import ROOT, tool

measure, measurements, regrets = map(tool, ("measure", "measurements", "regrets"))
KNOWN = measurements.records()
CONTENT = json.loads(measurements.FILE.read_text())


def test_records_say_what_how_where_and_of_which_version_and_the_page_shows_them() -> None:
    for record in KNOWN.values():
        assert all((record.what, record.how, record.version)), record.name
        for script in re.findall(r"(?:docs|tests|serve)/[\w/]+\.py", record.how):
            assert (ROOT / script).exists(), script
        assert (record.low is None) == (record.high is None), record.name
        assert record.value is not None or record.low is not None, record.name
        ordered = [each for each in (record.low, record.value, record.high) if each is not None]
        assert ordered == sorted(ordered), record.name
    assert {record.machine for record in KNOWN.values()} == set(CONTENT["machines"])
    for name, group in CONTENT["groups"].items():
        assert all(record.startswith(f"{name}.") for record in group["records"]), name
        assert (f"measure.py {name}" in group["how"]) == (name in measure.GROUPS), name
    assert set(measure.GROUPS) <= set(CONTENT["groups"])
    page = measurements.tables()
    rows = [line for line in page.splitlines() if line.startswith("| ") and "| measured |" not in line]
    assert len(rows) == len(KNOWN)
    assert all(f"| {each.what} | {measurements.text_of(each)} |" in page for each in KNOWN.values())


@pytest.mark.parametrize(("instance", "policy"), [("easy", "leader"), ("alternating", "ftpl")])
def test_regrets_are_those_of_the_code(instance: str, policy: str) -> None:
    played = regrets.CONTENDERS[policy]
    for name, fields in regrets.of_policy(instance, policy, played, regrets.finals(instance, played)):
        record = KNOWN[name]
        if (platform.system(), platform.machine()) == ("Linux", "x86_64"):
            assert fields["value"] == record.value, name
        elif record.low is not None:  # elsewhere a digit of a logarithm may differ: four standard errors
            assert abs(fields["value"] - record.value) < record.high - record.low, name


def test_the_tool_writes_only_the_groups_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, rival = "FTPL compiled, K = 8", "NumPy, textbook step"
    monkeypatch.setattr(
        engine, "measure", lambda repetitions: [Ratio(name, 1.0, rival, 9.0, 412.3, 99.0, 512.6)]
    )
    out = tmp_path / "measurements.json"
    arguments = ["measure.py", "engine", "--machine", "newer-xeon", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", arguments)
    measure.main()
    after = measurements.records(out)
    assert {each for each in KNOWN if after[each] != KNOWN[each]} == {"engine.textbook-8"}
    changed = after["engine.textbook-8"]
    assert (changed.value, changed.low, changed.high) == (412.0, 99.0, 513.0)
    assert (changed.machine, changed.version) == ("newer-xeon", dc.__version__)
    assert changed.what == KNOWN["engine.textbook-8"].what
