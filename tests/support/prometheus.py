"""A Prometheus server for tests, configured as the example in deploy/prometheus says."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from support.pages import ROOT
from support.waiting import free_port, wait_for

RULES = ROOT / "deploy" / "prometheus"


def promtool(*arguments: str) -> str:
    """Run promtool in the folder of the rules, and return what it says."""
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed here: the alert rules were NOT checked")
    done = subprocess.run(
        ["promtool", *arguments], cwd=RULES, text=True, capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextmanager
def prometheus(folder: Path, target: str, key: str) -> Iterator[Callable[..., Any]]:
    """Prometheus, scraping a service every second; yields a function that asks its API."""
    if shutil.which("prometheus") is None:
        pytest.skip(
            "Prometheus is not installed here: rules and dashboard were NOT tried on a real scrape"
        )
    config = yaml.safe_load((RULES / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(RULES / name) for name in config["rule_files"]]
    [scraped] = config["scrape_configs"]
    scraped["static_configs"] = [{"targets": [target]}]
    (folder / scraped["authorization"]["credentials_file"]).write_text(key)
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    address = f"127.0.0.1:{free_port()}"
    command = [
        "prometheus", f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}", "--log.level=warn",
    ]  # fmt: skip
    with (folder / "prometheus.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        with httpx.Client(base_url=f"http://{address}", timeout=10.0, verify=False) as http:

            def ask(path: str, **params: Any) -> Any:
                content = http.get(f"/api/v1/{path}", params=params).json()
                assert content["status"] == "success", content
                return content["data"]

            wait_for(lambda: _is_ready(http), "Prometheus to start", folder / "prometheus.log")
            yield ask
    finally:
        process.kill()
        process.wait(10)


def _is_ready(http: httpx.Client) -> bool:
    try:
        return http.get("/-/ready").status_code == 200
    except httpx.TransportError:
        return False
