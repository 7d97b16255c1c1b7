"""`decoupled client verdict --wait`."""

from contextlib import nullcontext
from typing import Any

import pytest
from typer.testing import CliRunner

from decoupled.cli import client, verdict
from decoupled.cli.main import app


class Deciding:
    """A service whose experiment is decided at the fourth look."""

    def __init__(self) -> None:
        self.states = ["open", "open", "narrowed", "decided"]

    def verdict(self, name: str) -> dict[str, Any]:
        state = self.states.pop(0)
        return {"state": state, "text": f"{name} is {state}"}


def test_it_waits_until_it_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdict, "LOOK_EVERY", 0.0)
    monkeypatch.setattr(client, "connected", lambda url, key_file: nullcontext(Deciding()))
    said = CliRunner().invoke(app, ["client", "verdict", "models", "--wait", "--json"])
    assert said.exit_code == 0
    assert '"models is decided"' in said.stdout
    assert said.stderr == "models is open\nmodels is narrowed\n"
