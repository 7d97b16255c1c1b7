"""The service as the first process of a sandbox: read-only root, no home folder, one writable folder."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from decoupled.client import Client
from decoupled.native.load import unavailable_reason as why_no_machine_code
from decoupled_serve.service.http.admission import new_key
from support.sandbox import Process, Sandbox, serving_in, this_python, why_not


def decide_once(port: int, key: str) -> str:
    """Create an experiment and decide once; the id of the decision."""
    with Client(f"http://127.0.0.1:{port}", key) as client:
        client.create("first", arms=["a", "b"])
        return client.decide("first").id


pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"no sandbox: {why_not()}")
SERVE = (sys.executable, "-m", "decoupled", "serve", "--port", "0")
# Loading one of these takes long, or writes a cache to the home folder.
NOT_LOADED = ("numba", "llvmlite", "matplotlib", "pandas", "scipy", "pyarrow")


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    for name in ("data", "tmp"):
        (tmp_path / name).mkdir()
    return Sandbox(tmp_path / "data", tmp_path / "tmp", this_python()[0])


def environment(**more: str) -> dict[str, str]:
    return {**this_python()[1], **more}


def children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def end(process: Process) -> int:
    os.kill(process.pid, signal.SIGTERM)
    return process.wait()


def test_a_fresh_container_decides_ends_in_order_and_continues(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    key = new_key()
    (sandbox.data / "admin-key").write_text(f"{key}\n")
    variables = environment(DECOUPLED_HOST="0.0.0.0", DECOUPLED_ADMIN_KEY_FILE="/data/admin-key")
    with serving_in(sandbox, SERVE, variables, log) as process:
        status = Path(f"/proc/{process.pid}/status").read_text()
        assert re.search(r"^NSpid:\s+\d+\s+1$", status, re.MULTILINE), "the first process"
        assert re.search(r"^CapEff:\s+0+$", status, re.MULTILINE), "without privileges"
        decision = decide_once(process.port, key)
        mapped = Path(f"/proc/{process.pid}/maps").read_text()
        if why_no_machine_code() is None:
            assert not [name for name in NOT_LOADED if f"/{name}/" in mapped]
        assert not children(process.pid), "no process is left over"
        healthy = subprocess.run(
            [*SERVE[:3], "health", "--ready", "--port", str(process.port)], env=environment()
        )
        assert healthy.returncode == 0
        assert end(process) == 0
    # What was acknowledged is there after a restart, and nothing else was written.
    with serving_in(sandbox, SERVE, variables, log) as process:
        with Client(f"http://127.0.0.1:{process.port}", key) as client:
            found = client.feedback(decision, loss=0.5)
            assert found is not None
            assert found.status == "applied"
        assert end(process) == 0
    assert log.read_text().count("added from /data/admin-key") == 1
    assert not re.search("ERROR|Traceback", log.read_text())
    assert sorted(each.name for each in sandbox.data.iterdir()) == ["admin-key", "decoupled.db"]
    if why_no_machine_code() is None:
        # Folders are where the sandbox shows what lies in the real /tmp, such as a checkout.
        assert not [each for each in sandbox.tmp.rglob("*") if not each.is_dir()]


def test_a_container_that_is_stopped_while_it_starts_ends_at_once(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    # The first process of a container ignores signals without a handler, so one that comes early must have one.
    gate = sandbox.data / "gate"
    os.mkfifo(gate)
    # Reading the key blocks until somebody writes it: by then the command has started, and nothing is served.
    variables = environment(DECOUPLED_ADMIN_KEY_FILE="/data/gate")
    reading, writing = os.pipe()
    whole = sandbox.command(SERVE, variables)
    whole[1:1] = ["--info-fd", str(writing)]
    process = subprocess.Popen(
        whole, pass_fds=(writing,), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.close(writing)
    try:
        with os.fdopen(reading) as information:
            pid = json.loads(information.read())["child-pid"]
        opened = None
        while opened is None:  # until the service opens it
            assert process.poll() is None
            time.sleep(0.01)
            with suppress(OSError):
                opened = os.open(gate, os.O_WRONLY | os.O_NONBLOCK)
        # Python looks at signals between two of its own steps. One that comes after the last look and before the system
        # call would wait for what the call waits for, so see that it has begun.
        state = Path(f"/proc/{pid}/stat")
        asleep = 0
        while asleep < 20:
            asleep = asleep + 1 if state.read_text().rpartition(")")[2].split()[0] == "S" else 0
            time.sleep(0.01)
        os.kill(pid, signal.SIGTERM)
        assert process.wait(60) == 0
        os.close(opened)
    finally:
        process.kill()
        process.wait()


def test_a_container_without_a_key_says_what_it_needs(sandbox: Sandbox) -> None:
    command = sandbox.command(SERVE, environment(DECOUPLED_HOST="0.0.0.0"))
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "give --admin-key-file" in done.stderr
