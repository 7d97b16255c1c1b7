"""Fixtures made once for all processes of a test run."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of this test run, the same for all its processes."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


def fits_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A user's cache folder, for XDG_CACHE_HOME, in which fits to MovieLens are kept: each takes seconds."""
    return str(shared_folder(tmp_path_factory) / "fits")


def made_once(
    tmp_path_factory: pytest.TempPathFactory, name: str, make: Callable[[Path], str]
) -> tuple[Path, str]:
    """The folder `name`, which one process fills with `make` while the others wait, and the result of `make`."""
    shared = shared_folder(tmp_path_factory)
    folder, said = shared / name, shared / f"{name}.txt"
    with open(shared / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not said.exists():
            said.write_text(make(folder))
    return folder, said.read_text()
