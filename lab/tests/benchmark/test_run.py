"""Entries are equal to the bit, whoever plays them and however often they are killed."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import decoupled as dc
from decoupled.cli.main import app
from decoupled_lab.benchmark import suite
from decoupled_lab.benchmark.loading import Source
from decoupled_lab.benchmark.run import run
from decoupled_lab.benchmark.suite import GROUPS, NEED_DATA, REFERENCES, SUITE, Size
from support.entries import SOFT, with_line

# A whole benchmark compiles the loops of its references for most of a minute: `make test-docs`.
pytestmark = pytest.mark.pages

TINY = Size("tiny", 2, 400)
KILLED = "import sys; from decoupled_lab.benchmark.run import run, Size; run(sys.argv[1], Size('tiny', 2, 400), sys.argv[2], workers=1)"


@pytest.fixture(scope="module")
def entered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A policy's file, and its entry with one worker, made by the command."""
    folder = tmp_path_factory.mktemp("entered")
    file, out = folder / "soft.py", folder / "out"
    file.write_text(SOFT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(suite.SIZES, "quick", TINY)
        patch.delenv("DECOUPLED_DATA", raising=False)
        command = ["benchmark", str(file), "--quick", "--workers", "1", "--out", str(out)]
        done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "Soft() on decoupled-1, tiny" in done.output
    assert "Late or lost feedback" in done.output
    return file, json.loads((out / "entry.json").read_text())


def test_an_entry_has_every_task_and_group(entered: tuple[Path, dict[str, Any]]) -> None:
    _, entry = entered
    assert entry["policy"]["name"] == "Soft()"
    assert (entry["policy"]["kind"], entry["policy"]["file"]) == ("python", "soft.py")
    assert [task["name"] for task in entry["tasks"]] == [task.name for task in SUITE.tasks(TINY)]
    assert [each["name"] for each in entry["groups"]] == [
        each for each in GROUPS if each not in NEED_DATA
    ]
    for task, line in zip(SUITE.tasks(TINY), entry["tasks"], strict=True):
        assert (line["switches"] is not None) == (line["group"] == "switches")
        assert set(line["references"]) == set(line["differences"]) == set(REFERENCES)
        if line["group"] in ("paper", "contexts"):
            found = task.play(dc.Ladder()).values
            assert line["references"]["Ladder()"]["mean"] == pytest.approx(found.mean())


def test_killed_runs_go_on_and_workers_agree(
    entered: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    file, entry = entered
    out = tmp_path / "out"
    with subprocess.Popen([sys.executable, "-c", KILLED, str(file), str(out)]) as process:
        while not (kept := sorted(out.glob("blocks/entry-*/*.json"))) and process.poll() is None:
            time.sleep(0.01)
        process.kill()
    assert kept
    assert not (out / "entry.json").exists()
    before = {block: block.stat().st_mtime_ns for block in kept}
    kept[0].write_bytes(kept[0].read_bytes()[:-9])  # as after a crash of the machine
    again = run(file, TINY, out, workers=2)
    assert again["digest"] == entry["digest"]
    assert again["groups"] == entry["groups"]
    assert [block.stat().st_mtime_ns for block in kept[1:]] == [before[block] for block in kept[1:]]


def test_a_changed_file_starts_anew(entered: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    file, entry = entered
    out, changed = file.parent / "out", tmp_path / "soft.py"
    changed.write_text(with_line("assert known.arms != 40, 'too many'"))  # the trial has fewer
    before = sorted(out.glob("blocks/*/*.json"))
    message = (
        r"^soft\.py, in the task held-out-alternating-40: raised AssertionError: too many \(decide"
    )
    with pytest.raises(dc.ContractError, match=message):
        run(changed, TINY, out, workers=1)
    after = sorted(out.glob("blocks/*/*.json"))
    new = {block.parent.name for block in set(after) - set(before)}
    assert len(new) == 1  # what the changed policy finished
    assert min(new).startswith("entry-")
    assert json.loads((out / "entry.json").read_text()) == entry


def test_a_policy_object_is_its_call() -> None:
    for policy in (
        dc.Forgetting(dc.FTPL(c=1), period=50),
        dc.ContextualLadder(segments=("segment",)),
    ):
        assert Source(repr(policy)).load() == policy
    assert Source("FTPL(c=1)").described(dc.FTPL(c=1)) == {
        "name": "FTPL(c=1)", "kind": "compiled", "file": None, "sha256": None,
    }  # fmt: skip
