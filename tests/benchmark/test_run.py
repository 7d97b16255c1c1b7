"""Entries are equal to the bit, whoever plays them and however often they are killed."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import decoupled as dc
from decoupled.benchmark.run import run
from decoupled.benchmark.suite import GROUPS, NEED_DATA, REFERENCES, SUITE, Size
from support.entries import SOFT

TINY = Size("tiny", 2, 400)
KILLED = "import sys; from decoupled.benchmark.run import run, Size; run(sys.argv[1], Size('tiny', 2, 400), sys.argv[2], workers=1)"


@pytest.fixture(scope="module")
def entered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A policy's file, and its entry with one worker."""
    folder = tmp_path_factory.mktemp("entered")
    (folder / "soft.py").write_text(SOFT)
    return folder / "soft.py", run(folder / "soft.py", TINY, folder / "out", workers=1)


def test_an_entry_has_every_task_and_group(entered: tuple[Path, dict[str, Any]]) -> None:
    file, entry = entered
    assert json.loads((file.parent / "out" / "entry.json").read_text()) == entry
    assert entry["policy"]["name"] == "Soft()"
    assert (entry["policy"]["kind"], entry["policy"]["file"]) == ("python", "soft.py")
    assert [task["name"] for task in entry["tasks"]] == [task.name for task in SUITE.tasks(TINY)]
    assert [group["name"] for group in entry["groups"]] == [
        name for name in GROUPS if name not in NEED_DATA
    ]
    for task, line in zip(SUITE.tasks(TINY), entry["tasks"], strict=True):
        assert (line["switches"] is not None) == (line["group"] == "switches")
        assert set(line["references"]) == set(line["differences"]) == set(REFERENCES)
        if line["group"] in ("paper", "contexts"):
            found = task.play(dc.Ladder()).values
            assert line["references"]["Ladder()"]["mean"] == pytest.approx(found.mean())


def test_a_killed_run_goes_on_and_two_workers_find_what_one_found(
    entered: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    file, entry = entered
    out = tmp_path / "out"
    command = [sys.executable, "-c", KILLED, str(file), str(out)]
    with subprocess.Popen(command) as process:
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
    changed = tmp_path / "soft.py"
    changed.write_text(SOFT.replace("0.1", "0.2"))
    again = run(changed, TINY, file.parent / "out", workers=1)  # into the same folder
    assert again["digest"] != entry["digest"]
    assert again["tasks"][0]["regret"] != entry["tasks"][0]["regret"]
    assert again["tasks"][0]["references"] == entry["tasks"][0]["references"]
    assert len(list((file.parent / "out" / "blocks").glob("references-*"))) == 1


def test_a_policy_object_is_its_call(tmp_path: Path) -> None:
    policy = dc.Forgetting(dc.FTPL(c=1), period=50)
    found = [run(each, Size("tiny", 2, 1_000), tmp_path, workers=1) for each in (policy, repr(policy))]
    assert found[0]["digest"] == found[1]["digest"]
    assert found[0]["policy"] == {"name": policy.label, "kind": "compiled", "file": None, "sha256": None}
