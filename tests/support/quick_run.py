"""One quick run of the whole reproduction, shared by its tests."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from support.once import fits_folder, made_once

RUNS = "5"  # as many as a verdict takes


class Quick(NamedTuple):
    """A finished `decoupled reproduce --quick`: its folder and its output."""

    folder: Path
    output: str


def machine_code() -> str:
    """Share machine code, and nothing else."""
    return (
        os.environ.get("NUMBA_CACHE_DIR")
        or os.environ.get("XDG_CACHE_HOME")
        or str(Path.home() / ".cache")
    )


def quick_run(tmp_path_factory: pytest.TempPathFactory) -> Quick:
    """The quick version without MovieLens 100K, wherever it may be. One process of the test run makes it."""

    def run(folder: Path) -> str:
        kept = {name: value for name, value in os.environ.items() if name != "DECOUPLED_DATA"}
        apart = {"DECOUPLED_OFFLINE": "1", "XDG_CACHE_HOME": fits_folder(tmp_path_factory)}
        options = ["--quick", "--runs", RUNS, "--out", str(folder)]
        done = subprocess.run(
            [sys.executable, "-m", "decoupled", "reproduce", *options],
            capture_output=True,
            text=True,
            env={**kept, **apart, "NUMBA_CACHE_DIR": machine_code()},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return Quick(*made_once(tmp_path_factory, "quick", run))
