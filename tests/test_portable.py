"""Without what only POSIX has, everything can be imported and the main paths work: so far Windows can be shown elsewhere."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from decoupled.native.load import why_not
from decoupled_serve.weights.targets import HaProxy, NotTaken
from portable import MODULES, NAMES

SCRIPT = Path(__file__).with_name("portable.py")


@pytest.mark.skipif(why_not() is not None, reason=f"no shipped machine code: {why_not()}")
def test_the_main_paths_need_nothing_that_windows_lacks(tmp_path: Path) -> None:
    # What Windows prints in, if output goes to a file.
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"}
    command = [sys.executable, "-X", "warn_default_encoding", str(SCRIPT), "--without-posix"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, env=environment)
    assert done.returncode == 0, done.stderr.decode("cp1252")
    assert len(re.findall(rb"^done: ", done.stdout, re.MULTILINE)) == 6


@pytest.mark.skipif(sys.platform != "linux", reason="lists what Linux has")
def test_what_is_taken_away_is_there_otherwise() -> None:
    assert [each for each in MODULES if find_spec(each) is None] == []
    assert [name for home, names in NAMES.items() for name in names if not hasattr(home, name)] == []


def test_where_there_are_no_unix_sockets_haproxy_needs_a_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("socket.AF_UNIX")
    with pytest.raises(NotTaken, match="this system has no such sockets; use HOST:PORT"):
        HaProxy("/run/haproxy.sock", "chat").current()
