"""nginx and HAProxy as Debian has them, with the configurations of deploy/ on free ports."""

import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from decoupled_serve.weights.shares import Nginx, all_to
from decoupled_serve.weights.targets import FileTarget
from support.pages import ROOT
from support.waiting import free_port, wait_for

# Debian's folder for daemons may not be on the path.
PLACES = "/usr/local/sbin:/usr/sbin:/sbin"


def program(name: str, package: str) -> str:
    """The path of a program; skips where there is none."""
    found = shutil.which(name) or shutil.which(name, path=PLACES)
    if found is None:
        pytest.skip(f"{name} is not installed here, so it was NOT tested with: apt install {package}")
    return found


def replaced(text: str, by: dict[str, str]) -> str:
    """A text with parts of it replaced, all of which it must have."""
    for part, other in by.items():
        assert part in text, part
        text = text.replace(part, other)
    return text


@dataclass
class Gateway:
    """A gateway that runs: where it listens, its folder, and what makes it read its configuration again."""

    port: int
    folder: Path
    reload: list[str]

    def arms(self, requests: int, path: str = "/ok") -> list[str]:
        """The arms that answer so many requests."""
        # A connection of its own for each: after a reload, old processes still answer on old ones.
        with httpx.Client(verify=False, headers={"Connection": "close"}, timeout=60.0) as http:
            url = f"http://127.0.0.1:{self.port}{path}"
            return [http.get(url).headers["X-Arm"] for _ in range(requests)]


@contextmanager
def _running(command: list[str], port: int, folder: Path) -> Iterator[None]:
    with (folder / "output").open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        wait_for(lambda: _listens(port) or process.poll() is not None, "a gateway")
        assert process.poll() is None, (folder / "output").read_text()
        yield
    finally:
        process.terminate()
        process.wait(60)


def _listens(port: int) -> bool:
    with closing(socket.socket()) as trial:
        return trial.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def nginx(urls: dict[str, str], *, gate: str = "", key: str = "") -> Iterator[tuple[Gateway, int]]:
    """nginx with the files of deploy/: upstreams `current` and `next`, the sink, and the gate with a key on a second port."""
    binary = program("nginx", "nginx-light")
    port, gate_port = [free_port() for _ in range(2)]
    with tempfile.TemporaryDirectory(prefix="nginx") as name:
        folder = Path(name)
        weights = folder / "checkout.conf"
        FileTarget(weights, Nginx("$request_id")).apply(all_to("checkout", "current"))
        deployed = replaced(
            (ROOT / "deploy" / "nginx" / "decoupled.conf").read_text(),
            {
                "/etc/nginx/decoupled/checkout.conf": str(weights),
                "127.0.0.1:9001": _address(urls["current"]),
                "127.0.0.1:9002": _address(urls["next"]),
                "127.0.0.1:9003": _address(urls["sink"]),
                "listen 8080": f"listen 127.0.0.1:{port}",
            },
        )
        (folder / "key").write_text(f'proxy_set_header Authorization "Bearer {key}";\n')
        gated = replaced(
            (ROOT / "deploy" / "gates" / "key.conf").read_text(),
            {
                "/etc/nginx/decoupled/key": str(folder / "key"),
                "decoupled:8000": _address(gate or urls["sink"]),
                "listen 80": f"listen 127.0.0.1:{gate_port}",
            },
        )
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        paths = "\n".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
        (folder / "nginx.conf").write_text(
            f"daemon off;\nworker_processes 1;\npid {folder}/pid;\nerror_log {folder}/error.log;\n"
            f"events {{}}\nhttp {{\naccess_log off;\n{paths}\n{deployed}\n{gated}\n}}\n"
        )
        command = [binary, "-p", name, "-e", f"{folder}/error.log", "-c", f"{folder}/nginx.conf"]
        with _running(command, port, folder):
            yield Gateway(port, folder, [*command, "-s", "reload"]), gate_port


@contextmanager
def haproxy(urls: dict[str, str]) -> Iterator[Gateway]:
    """HAProxy with the file of deploy/: servers `current` and `next`."""
    binary = program("haproxy", "haproxy")
    [port] = [free_port() for _ in range(1)]
    with tempfile.TemporaryDirectory(prefix="haproxy") as name:
        folder = Path(name)
        text = replaced(
            (ROOT / "deploy" / "haproxy" / "decoupled.cfg").read_text(),
            {
                "stats socket /run/haproxy/admin.sock": f"stats socket {folder}/admin.sock",
                "127.0.0.1:9001": _address(urls["current"]),
                "127.0.0.1:9002": _address(urls["next"]),
                "bind :8080": f"bind 127.0.0.1:{port}",
            },
        )
        (folder / "haproxy.cfg").write_text(text)
        with _running([binary, "-db", "-f", f"{folder}/haproxy.cfg"], port, folder):
            yield Gateway(port, folder, [])


def _address(url: str) -> str:
    [found] = re.findall(r"^http://([^/]+)$", url)
    return str(found)
