"""The first experiment on a machine for which no machine code ships."""

import json
import re
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from decoupled.cli.main import app
from decoupled.client import Client
from support.reliability.serving import serving
from support.reliability.sizes import SIZES


@pytest.mark.skipif(not SIZES.long, reason="compiles for most of a minute: make reliability")
def test_the_first_experiment_on_a_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("DECOUPLED_NATIVE", "off")
    log = tmp_path / "service.log"
    with serving(tmp_path / "store.db", log) as server:
        url = f"http://127.0.0.1:{server.port}"
        with Client(url) as client:
            client.create("other", policy={"name": "FollowTheLeader"}, arms=["red", "blue"])
            created = threading.Event()
            meanwhile: list[str] = []

            def ask() -> None:
                while not created.wait(0.05):
                    meanwhile.append(client.decide("other").id)

            thread = threading.Thread(target=ask)
            thread.start()
            command = ["client", "create", "first", "red", "blue", "--url", url]
            result = CliRunner().invoke(app, command)
            created.set()
            thread.join(20)
            assert result.exit_code == 0, result.output
            assert json.loads(result.stdout)["status"] == "ready"
            assert "compiling Ladder" in result.stderr
            assert len(meanwhile) > 10, "others went on"
            assert client.decide("first").explore in ("red", "blue")
        text = log.read_text()
        assert "compiling Ladder" in text
        assert re.search(r"Ladder.*is ready, compiled in \d+ s", text)
        assert server.end() == 0, "as it compiles what is on offer"
