"""`decoupled health`, the health check of a container."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from decoupled.cli.main import app
from support.http_service import served

run = CliRunner().invoke


def test_it_exits_with_0_only_if_the_service_is_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(tmp_path, open_to_all=False) as service:
        port = service.url.rpartition(":")[2]
        monkeypatch.setenv("DECOUPLED_PORT", port)
        monkeypatch.setenv("DECOUPLED_HOST", "0.0.0.0")
        assert run(app, ["health"]).stdout == f"{service.url}/healthz: 200\n"
        assert (
            run(app, ["health", "--ready", "--url", f"{service.url}/"]).stdout
            == f"{service.url}/readyz: 200\n"
        )
        monkeypatch.setattr(service.direct, "ready", lambda: False)
        unready = run(app, ["health", "--ready"])
        assert unready.exit_code == 1
        assert "503" in unready.stderr
        assert "store: cannot be read or written" in unready.stderr
        assert run(app, ["health"]).exit_code == 0
    gone = run(app, ["health"])
    assert gone.exit_code == 1
    assert "no answer" in gone.stderr
    assert run(app, ["health", "--url", "nonsense"]).exit_code == 1
