"""What a process that was killed while it wrote leaves behind is removed by the next one that writes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import decoupled as dc
from decoupled.base.files import ABANDONED, remove_abandoned, write_atomically

KILLED = """
import os, signal, sys
import decoupled as dc
os.fsync = lambda file: os.kill(os.getpid(), signal.SIGKILL)
dc.FTPL().start(["a", "b"], seed=7).save(sys.argv[1])
"""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def age(path: Path, seconds: float = 2.0 * ABANDONED) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_a_save_removes_what_a_killed_save_left(tmp_path: Path) -> None:
    path = tmp_path / "learner.json"
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)])
    assert killed.returncode == -signal.SIGKILL
    [left] = names(tmp_path)
    learner = dc.FTPL().start(["a", "b"], seed=7)
    learner.save(path)
    assert names(tmp_path) == [left, "learner.json"], "it may be of a process that is still writing"
    age(tmp_path / left)
    learner.save(path)
    assert names(tmp_path) == ["learner.json"]


def test_only_unfinished_files_are_removed(tmp_path: Path) -> None:
    ours = ".learner.json.0123456789abcdef"
    others = [
        ".learner.json.swp",
        ".other.json.0123456789abcdef",
        "learner.json.0123456789abcdef",
        ".learner.json",
    ]
    for name in (ours, *others):
        (tmp_path / name).write_text("")
        age(tmp_path / name)
    write_atomically(tmp_path / "learner.json", "{}", tidy=False)
    assert ours in names(tmp_path)
    write_atomically(tmp_path / "learner.json", "{}")
    assert names(tmp_path) == sorted([*others, "learner.json"])
    remove_abandoned(tmp_path)
    assert ".other.json.0123456789abcdef" not in names(tmp_path)
    assert len(names(tmp_path)) == len(others)
    remove_abandoned(tmp_path / "nowhere")
