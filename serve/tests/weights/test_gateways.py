"""`decoupled weights` and gates with the real nginx and HAProxy, configured as deploy/ has it."""

import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from decoupled_serve.weights.shares import Nginx, all_to
from decoupled_serve.weights.targets import FileTarget, HaProxy
from support.command_line import run
from support.http_service import Service, served
from support.mirrors.running import UpstreamProcess, upstreams, write_config
from support.pages import ROOT
from support.waiting import free_port, wait_for

# Debian's folder for daemons may not be on the path.
PLACES = "/usr/local/sbin:/usr/sbin:/sbin"


def program(name: str, package: str) -> str:
    """The path of a program; skips where there is none."""
    found = shutil.which(name) or shutil.which(name, path=PLACES)
    if found is None:
        pytest.skip(
            f"{name} is not installed here, so it was NOT tested with: apt install {package}"
        )
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


Rules = Callable[..., None]


@pytest.fixture(scope="module")
def arms() -> Iterator[dict[str, UpstreamProcess]]:
    with upstreams("current", "next", "sink") as found:
        yield found


@pytest.fixture(scope="module")
def urls(arms: dict[str, UpstreamProcess]) -> dict[str, str]:
    return {name: each.url for name, each in arms.items()}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with served(tmp_path_factory.mktemp("gateways"), open_to_all=False) as running:
        running.http.headers.update(running.key("admin"))
        running.create("checkout", arms=["current", "next"])
        yield running


@pytest.fixture
def rules(service: Service) -> Rules:
    def change(**rules: Any) -> None:
        given = {"pinned": None, "floors": {}, "down": []} | rules
        answer = service.http.patch("/v1/experiments/checkout/guardrails", json=given)
        assert answer.status_code == 200, answer.text

    return change


@pytest.fixture(scope="module")
def edge(service: Service, urls: dict[str, str]) -> Iterator[tuple[Gateway, int]]:
    key = service.key("read")["Authorization"].removeprefix("Bearer ")
    with nginx(urls, gate=service.url, key=key) as found:
        yield found


def write(service: Service, *words: str) -> Any:
    key = str(service.http.headers["Authorization"]).removeprefix("Bearer ")
    return run("weights", "checkout", "--url", service.url, *words, env={"DECOUPLED_KEY": key})


def to_nginx(service: Service, gateway: Gateway, *words: str) -> Any:
    out = str(gateway.folder / "checkout.conf")
    return write(
        service, "--to", "nginx", "--out", out, "--reload", shlex.join(gateway.reload), *words
    )


def test_nginx_serves_by_the_weights(
    service: Service, edge: tuple[Gateway, int], rules: Rules
) -> None:
    gateway, _ = edge
    assert set(gateway.arms(5)) == {"current"}
    rules(pinned="next")
    said = to_nginx(service, gateway)
    assert (said.exit_code, said.stdout) == (0, "checkout: current 0.00%, next 100.00%\n"), (
        said.stderr
    )
    wait_for(lambda: set(gateway.arms(10)) == {"next"}, "the new weights")
    rules(floors={"current": 0.5})
    assert to_nginx(service, gateway).exit_code == 0
    # Old processes of nginx may answer for a while.
    wait_for(lambda: gateway.arms(30).count("current") > 15, "the new weights")
    # 150 of 200 are expected, with a standard deviation of 6.1: out of these bounds once in a million times.
    assert 120 <= gateway.arms(200).count("current") <= 180


def test_nginx_keeps_clients_on_a_side(
    service: Service, edge: tuple[Gateway, int], rules: Rules
) -> None:
    gateway, _ = edge
    rules()
    assert to_nginx(service, gateway, "--by", "$arg_session").exit_code == 0

    def sides() -> list[set[str]]:
        return [set(gateway.arms(3, f"/ok?session={session}")) for session in range(12)]

    wait_for(lambda: {len(side) for side in sides()} == {1}, "the new weights")
    assert set.union(*sides()) == {"current", "next"}


def test_what_nginx_refuses_is_undone(
    service: Service, edge: tuple[Gateway, int], rules: Rules
) -> None:
    gateway, _ = edge
    rules(pinned="next")
    to_nginx(service, gateway)
    wait_for(lambda: set(gateway.arms(10)) == {"next"}, "the new weights")
    before = (gateway.folder / "checkout.conf").read_text()
    rules(pinned="current")
    said = to_nginx(service, gateway, "--by", "$no_such_variable")
    assert said.exit_code == 1
    assert 'unknown "no_such_variable" variable' in said.stderr
    assert (gateway.folder / "checkout.conf").read_text() == before
    assert set(gateway.arms(5)) == {"next"}


def test_copies_have_no_credentials_and_answers_do_not_wait_for_them(
    edge: tuple[Gateway, int], arms: dict[str, UpstreamProcess]
) -> None:
    url = f"http://127.0.0.1:{edge[0].port}/echo?sink=hang&copied"
    answer = httpx.post(
        url, content=b"body", headers={"Authorization": "Bearer x", "Cookie": "id=7"}
    )
    got = {name.lower(): value for name, value in answer.json()["headers"]}
    assert (got["authorization"], got["cookie"]) == ("Bearer x", "id=7")
    [copy] = wait_for(lambda: [each for each in arms["sink"].seen() if "copied" in each["target"]])
    assert (copy["method"], copy["target"], copy["body"]) == (
        "POST",
        "/echo?sink=hang&copied",
        "Ym9keQ==",
    )
    assert not {"authorization", "cookie"} & {name for name, _ in copy["headers"]}


def test_nginx_adds_the_key_for_hooks_that_cannot(
    service: Service, edge: tuple[Gateway, int]
) -> None:
    url = f"http://127.0.0.1:{edge[1]}/v1/experiments/checkout"
    answers = [
        httpx.post(f"{url}/gate?arm=next", json={"name": "checkout"}),
        httpx.get(f"{url}/state"),
    ]
    assert [each.status_code for each in answers] == [409, 404]
    assert answers[0].json()["state"] == "waiting"


def test_haproxy_serves_weights_and_restarts(
    service: Service, urls: dict[str, str], rules: Rules
) -> None:
    for _ in range(2):
        with haproxy(urls) as gateway:
            socket = str(gateway.folder / "admin.sock")
            assert set(gateway.arms(5)) == {"current"}, "by its own configuration"
            rules(pinned="next")
            said = write(service, "--to", "haproxy", "--socket", socket)
            assert (said.exit_code, said.stdout) == (
                0,
                "checkout: current 0.00%, next 100.00%\n",
            ), said
            assert set(gateway.arms(5)) == {"next"}
            assert write(service, "--to", "haproxy", "--socket", socket).stdout == "", (
                "nothing has moved"
            )
    with haproxy(urls) as gateway:
        rules(floors={"current": 0.5})
        socket = str(gateway.folder / "admin.sock")
        assert write(service, "--to", "haproxy", "--socket", socket).exit_code == 0
        assert gateway.arms(40).count("current") in (29, 30, 31), "in turn, 3 of 4"
        rules(pinned="next")
        assert write(service, "--to", "haproxy", "--socket", socket).exit_code == 0
        assert HaProxy(socket, "checkout")._ask("disable server checkout/next").strip() == ""
        assert set(gateway.arms(3)) == {"current"}, "the backup server"
        said = write(service, "--to", "haproxy", "--socket", socket, "--backend", "chekout")
        assert "--backend = 'chekout': is not known to HAProxy" in said.stderr
        said = write(service, "--to", "haproxy", "--socket", socket, "--upstream", "next=v2")
        assert "has no server v2" in said.stderr


@pytest.mark.parametrize("kind", ["nginx", "haproxy"])
def test_a_watched_gateway_outlives_changed_arms(
    kind: str, urls: dict[str, str], tmp_path: Path
) -> None:
    said = tmp_path / "said"
    with ExitStack() as stack:
        service = stack.enter_context(served(tmp_path))
        service.create("checkout", arms=["old", "new"], seed=7)
        if kind == "nginx":
            gateway, _ = stack.enter_context(nginx(urls))
            place = [
                "--out",
                str(gateway.folder / "checkout.conf"),
                "--reload",
                shlex.join(gateway.reload),
            ]
        else:
            gateway = stack.enter_context(haproxy(urls))
            place = ["--socket", str(gateway.folder / "admin.sock")]
        watch = ["--watch", "--every", "0.2", "--url", service.url]
        command = ["weights", "checkout", "--to", kind, *place, *watch]
        names = ["--upstream", "old=current", "--upstream", "new=next"]

        def change(what: str, **arms: list[str]) -> None:
            answer = service.http.post(f"/v1/experiments/checkout/arms{what}", json=arms)
            assert answer.status_code == 200, answer.text

        def serves(*expected: str) -> bool:
            try:
                return set(gateway.arms(20)) == set(expected)
            except (
                KeyError,
                httpx.HTTPError,
            ):  # an answer of the gateway itself, on a busy machine
                return False

        follower = stack.enter_context(decoupled(*command, *names, output=said))
        wait_for(lambda: serves("current", "next"), "both arms")
        change("", arms=["no upstream;"])  # which is to get a third
        wait_for(lambda: "arm 'no upstream;' is left out" in said.read_text(), "a warning")
        change("/retire", arms=["old"])
        wait_for(lambda: serves("next"), "that nothing goes to the retired arm")
        assert "arm 'old' is retired, and current gets nothing" in said.read_text()
        change("", arms=["current"])
        wait_for(lambda: serves("current", "next"), "a new arm that has an upstream")
        if kind == "haproxy":  # nginx does not say that it has no such upstream
            change("", arms=["nowhere"])
            wait_for(lambda: "nowhere left out: --backend" in said.read_text(), "a warning")
            change("/retire", arms=["current"])
            wait_for(lambda: serves("next"), "that the rest is followed")
        assert follower.poll() is None, said.read_text()
        # A start after the arm was retired.
        again = stack.enter_context(decoupled(*command, *names, output=tmp_path / "again"))
        wait_for(lambda: "checkout: " in (tmp_path / "again").read_text(), "the first weights")
        assert again.poll() is None


def test_the_better_upstream_wins_off_the_path(
    arms: dict[str, UpstreamProcess], tmp_path: Path
) -> None:
    """Traffic through nginx, its copies to a sink, the weights back; and nobody notices when both are gone."""
    listen, console = [free_port() for _ in range(2)]
    served = {name: arms[name] for name in ("current", "next")}
    rules = '[experiment]\nname = "checkout"\nseed = 7\n[guardrails]\nincumbent = "current"\n'
    file = write_config(tmp_path, served, rules)
    urls = {name: each.url for name, each in served.items()} | {
        "sink": f"http://127.0.0.1:{listen}"
    }
    traffic = "/x?current=status:500&next=ok"
    with nginx(urls) as (gateway, _), ExitStack() as stack:
        sockets = ["--listen", f"127.0.0.1:{listen}", "--console", f"127.0.0.1:{console}"]
        sink = stack.enter_context(decoupled("mirror", str(file), "--sink", *sockets))
        out, said = str(gateway.folder / "checkout.conf"), tmp_path / "said"
        place = ["--out", out, "--reload", shlex.join(gateway.reload)]
        command = ["weights", "checkout", "--to", "nginx", *place]
        watch = ["--watch", "--every", "0.2", "--url", f"http://127.0.0.1:{console}"]
        follower = stack.enter_context(decoupled(*command, *watch, output=said))
        first = "checkout: current 100.00%, next 0.00%\n"
        wait_for(lambda: first in said.read_text(), "the first weights")
        assert set(gateway.arms(5, traffic)) == {"current"}, "the incumbent"
        # The last 20 of a batch: what was served before is part of the traffic that is learned from.
        wait_for(
            lambda: (
                gateway.arms(40, traffic)[20:].count("next") > 18 and weights_of(out)["next"] > 0.97
            ),
            "the change to the better upstream",
        )
        sink.kill()
        wait_for(lambda: "; the gateway keeps what it has\n" in said.read_text(), "a warning")
        assert weights_of(out)["next"] > 0.97
        assert gateway.arms(20, traffic).count("next") > 12, "fewer: a probability below 1e-7"
        follower.terminate()
        assert follower.wait(60) == 0


def weights_of(file: str) -> dict[str, float]:
    return Nginx("$request_id").read(Path(file).read_text())


@contextmanager
def decoupled(*words: str, output: Path = Path("/dev/null")) -> Iterator["subprocess.Popen[bytes]"]:
    with output.open("wb") as file:
        command = [sys.executable, "-u", "-m", "decoupled", *words]
        process = subprocess.Popen(command, stdout=file, stderr=file)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
