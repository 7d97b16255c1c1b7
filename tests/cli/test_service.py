"""`decoupled serve`, `health`, `keys` and `client`, as a user calls them."""

import json
import re
import shutil
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

import decoupled as dc
from decoupled.client import Client
from decoupled.native.load import unavailable_reason
from decoupled_serve.service.service import open_service
from support.command_line import run, said
from support.held_compiler import Held
from support.http_service import served
from support.plain_python import ran


@contextmanager
def serving(store: Path, *options: str) -> Iterator[tuple[str, "subprocess.Popen[str]", Path]]:
    """A service in a process of its own: its address, its process, and the file of its log."""
    errors = store.with_suffix(".log")
    command = [
        sys.executable,
        "-m",
        "decoupled",
        "serve",
        "--store",
        str(store),
        "--port",
        "0",
        *options,
    ]
    with errors.open("w") as file:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=file, text=True)
    assert process.stdout is not None
    try:
        found = re.search(r"https?://\S+", process.stdout.readline())
        assert found, errors.read_text()
        yield found[0], process, errors
    finally:
        process.kill()
        process.wait(10)
        process.stdout.close()


def made_key(store: Path, *options: str) -> str:
    return said("keys", "add", "--store", store, *options).strip().splitlines()[-1]


def test_without_keys_only_loopback_is_served(tmp_path: Path) -> None:
    store = str(tmp_path / "store.db")
    result = run("serve", "--store", store, "--host", "0.0.0.0", "--port", "0")
    assert result.exit_code == 1
    assert f"decoupled keys add --store {store}" in result.output
    assert made_key(Path(store)), "it was created, so that a key can be added"
    result = run("serve", "--store", store, "--tls-key", tmp_path / "none.pem")
    assert result.exit_code == 1
    assert "together" in result.output


def test_keys_are_made_rotated_and_revoked(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    open_service(store).close()
    old = made_key(store, "--role", "admin", "--tenant", "shop", "--label", "till")
    listed = run("keys", "list", "--store", store).output
    assert old not in listed
    [line] = listed.splitlines()
    assert re.search(r"shop +admin +'till' .* active$", line)
    name = line.split()[0]
    said("keys", "rotate", name, "--store", store)
    lines = run("keys", "list", "--store", store).output
    assert (lines.count("active"), lines.count("revoked")) == (1, 1)
    again = run("keys", "revoke", name, "--store", store)
    assert again.exit_code == 1
    assert "not an active key" in again.output
    for option, word in (
        ("--role=root", "must be one of read, decide, admin"),
        ("--tenant=a/b", "tenant"),
    ):
        refused = run("keys", "add", "--store", store, option)
        assert refused.exit_code == 2
        assert word in refused.output


def test_a_day_at_the_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    store = tmp_path / "store.db"
    open_service(store).close()
    key = made_key(store, "--role", "admin")
    with serving(store, "--access-log", "--log-format", "json") as (url, process, log):
        assert httpx.get(f"{url}/v1/experiments?key={key}").status_code == 401
        monkeypatch.setenv("DECOUPLED_URL", url)
        key_file = tmp_path / "key"
        key_file.write_text(key + "\n")
        with_key = ["--key-file", str(key_file)]
        assert run("client", "show").exit_code == 1
        created = said("client", "create", "colours", "red", "blue", *with_key)
        assert json.loads(created)["policy"] == json.loads(dc.Ladder().to_json())
        wrong = run("client", "create", "colours", "red", "blue", "--policy", "{", *with_key)
        assert (wrong.exit_code, "is not JSON" in wrong.output) == (2, True)
        taken = run("serve", "--store", tmp_path / "other.db", "--port", url.rsplit(":", 1)[1])
        assert (taken.exit_code, "is in use" in taken.output) == (1, True)
        decision = json.loads(run("client", "decide", "colours", *with_key).output)
        assert decision["send_back_the_loss_of"] == decision["explore"]
        other = {"red": "blue", "blue": "red"}[decision["explore"]]
        sent = ["client", "feedback", decision["id"], "--loss", "0.25", *with_key]
        refused = run(*sent, "--arm", other)
        assert (refused.exit_code, other in refused.output) == (1, True)
        assert json.loads(run(*sent, "--arm", decision["explore"]).output)["loss"] == 0.25
        assert json.loads(run("client", "show", "colours", *with_key).output)["applied"] == 1
        check_logs(tmp_path, decision["id"], with_key)
        found = json.loads(run("client", "evaluate", "colours", *with_key).output)
        assert found["observed"] == 1
        verdict = run("client", "verdict", "colours", *with_key).output
        assert verdict.startswith("too early")
        assert "at every moment at once, with a probability of 95 %" in verdict
        answer = json.loads(run("client", "verdict", "colours", "--json", *with_key).output)
        assert [each["observed"] for each in answer["arms"]] == [
            each["observed"] for each in found["arms"]
        ]
        assert run("client", "archive", "colours", *with_key).exit_code == 0
        conflict = run("client", "decide", "colours", *with_key)
        assert (conflict.exit_code, "archived" in conflict.output) == (1, True)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        text = log.read_text()
        lines = [json.loads(line) for line in text.splitlines()]  # nothing else is in the log
        posted = [each for each in lines if each.get("path", "").endswith("/decisions")]
        [decided] = [each for each in posted if each["status"] == 201]
        assert (decided["experiment"], decided["method"]) == ("colours", "POST")
        assert {"request_id", "caller", "route", "ms", "time", "level"} <= set(decided)
        assert key not in text
        assert key[3:] not in text
    if unavailable_reason() is None:
        assert "compiling" not in text
        assert not (tmp_path / "cache").exists(), "shipped machine code decides at once"
    examined = run("doctor", "--store", store).output
    assert re.search(r"^ok +replay of 'colours'", examined, re.MULTILINE), examined
    backup, restored = tmp_path / "backup.db", tmp_path / "restored.db"
    assert run("backup", backup, "--store", store).exit_code == 0
    said("restore", backup, "--store", restored)
    assert run("restore", backup, "--store", restored).exit_code == 1, "it is not empty any more"


def check_logs(folder: Path, decision: str, with_key: list[str]) -> None:
    """A log replaces no file unasked; test_clients.py has the formats."""
    log = ["client", "log", "colours"]
    file = folder / "log.csv"
    assert run(*log, file, *with_key).exit_code == 0
    written = file.read_text()
    assert decision in written
    file.write_text("mine")
    refused = run(*log, file, *with_key)
    assert (refused.exit_code, "--force" in refused.output, file.read_text()) == (1, True, "mine")
    assert run(*log, file, "--force", *with_key).exit_code == 0
    assert file.read_text() == written
    refused = run(*log, folder / "log.txt", *with_key)
    assert (refused.exit_code, ".csv, .parquet" in refused.output) == (2, True), refused.output
    assert run(*log, folder / "log.txt", "--format", "csv", *with_key).exit_code == 0
    assert (folder / "log.txt").read_text() == written


def test_the_shell_waits_for_a_policy_that_compiles(tmp_path: Path) -> None:
    # The compiler is held back here; `make reliability` really compiles.
    held = Held()
    with (
        served(tmp_path, compiler=held, patience=0.0) as service,
        Client(service.url) as client,
        ThreadPoolExecutor(1) as shell,
    ):
        client.create("other", policy={"name": "FollowTheLeader"}, arms=["red", "blue"])
        command = ["client", "create", "first", "red", "blue", "--url", service.url]
        waiting = shell.submit(run, *command)
        assert held.begun.wait(60)
        assert client.decide("other").explore in ("red", "blue"), "others go on"
        # Asked after the shell, so the shell has its answer by then, too.
        assert service.http.post("/v1/experiments/first/decisions").status_code == 503
        assert not waiting.done()
        held.let_go()
        result = waiting.result(60)
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout)["status"] == "ready"
        assert "compiling Ladder" in result.stderr
        assert client.decide("first").explore in ("red", "blue")


def test_sigterm_answers_what_was_asked_and_a_restart_goes_on(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    answered: list[str] = []
    with serving(store) as (url, process, _):
        with Client(url) as client:
            client.create("drain", policy={"name": "FTPL"}, arms=["a", "b"])
        broken: list[Exception] = []
        enough = threading.Event()

        def ask() -> None:
            with httpx.Client(base_url=url, verify=False) as plain:
                while True:
                    try:
                        answer = plain.post("/v1/experiments/drain/decisions")
                    except httpx.ConnectError:
                        return  # not listening any more: nothing was asked
                    except httpx.TransportError as error:
                        broken.append(error)
                        return
                    assert answer.status_code == 201, answer.text
                    answered.append(answer.json()["id"])
                    if len(answered) == 50:
                        enough.set()

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        assert enough.wait(60)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        for thread in threads:
            thread.join(60)
        # A request that meets the closing of an idle connection is not begun: the client's retry covers it.
        assert len(broken) <= len(threads)
    with served(tmp_path) as service, Client(service.url) as client:
        assert len(answered) <= client.state("drain")["decisions"] <= len(answered) + len(broken)
        for each in answered[:5] + answered[-5:]:
            assert client.decision(each).status == "pending"


CERTIFICATE = (
    "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
)  # fmt: skip
needs_openssl = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="needs openssl to make keys"
)


def made(*options: str) -> None:
    subprocess.run(["openssl", *options], check=True, capture_output=True)


@needs_openssl
def test_tls_by_flags(tmp_path: Path) -> None:
    certificate, private = tmp_path / "certificate.pem", tmp_path / "key.pem"
    made(*CERTIFICATE, "-keyout", str(private), "-out", str(certificate))
    options = ("--tls-certificate", str(certificate), "--tls-key", str(private))
    with serving(tmp_path / "store.db", *options) as (url, _, _):
        assert url.startswith("https://")
        context = ssl.create_default_context(cafile=str(certificate))
        assert httpx.get(f"{url}/healthz", verify=context).json() == {"status": "ok"}
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{url}/healthz")
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http{url.removeprefix('https')}/healthz")
        well = run("health", "--port", url.rpartition(":")[2], "--tls-certificate", certificate)
        assert well.stdout == f"{url}/healthz: 200\n"
        assert run("health", "--url", url).exit_code == 1, (
            "an address is checked by its certificate"
        )


@needs_openssl
def test_a_certificate_that_cannot_be_used_is_an_error_before_anything_is_served(
    tmp_path: Path,
) -> None:
    certificate, private, other, locked, text = (tmp_path / name for name in "abcde")
    made(*CERTIFICATE, "-keyout", str(private), "-out", str(certificate))
    made(*CERTIFICATE, "-keyout", str(other), "-out", str(tmp_path / "unused"))
    made("ec", "-in", str(private), "-out", str(locked), "-aes256", "-passout", "pass:secret")
    text.write_text("not PEM")
    for first, second in (
        (text, private), (certificate, text), (certificate, other), (certificate, locked), (private, certificate),
        (tmp_path, private),
    ):  # fmt: skip
        options = ["--tls-certificate", str(first), "--tls-key", str(second)]
        result = run("serve", "--store", tmp_path / "store.db", "--port", "0", *options)
        assert result.exit_code == 1
        assert "Serving on" not in result.output
        assert "are no certificate and its key" in result.output
        assert "PEM files that belong together" in result.output.replace("\n", " ")


def test_help_does_not_wait_for_the_service_to_load() -> None:
    script = "import sys; sys.argv = ['decoupled', '--help']\nfrom decoupled.cli.main import app\ntry: app()\nexcept SystemExit: pass\n"
    script += "assert not {'fastapi', 'uvicorn', 'httpx', 'apsw', 'numba', 'prometheus_client'} & set(sys.modules)"
    assert "serve" in ran("-c", script)


def test_messages_in_the_shell_have_its_remedies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DECOUPLED_KEY", raising=False)
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # between attempts
    with served(tmp_path, open_to_all=False) as service:
        monkeypatch.setenv("DECOUPLED_URL", service.url)
        missing = run("client", "show")
        assert (missing.exit_code, missing.stdout) == (1, "")
        assert f"key: is missing; {service.url} needs one; pass --key-file" in missing.stderr
        key_file = tmp_path / "key"
        key_file.write_text("dk_wrong")
        wrong = run("client", "show", "--key-file", key_file)
        assert "is unknown to" in wrong.stderr
        assert "pass --key-file, or set DECOUPLED_KEY" in wrong.stderr
        assert run("client", "feedback", "d", "--loss", "1", "--reward", "1").exit_code == 2
    gone = run("client", "show")
    assert gone.exit_code == 1
    assert "is `decoupled serve` running there? pass its address with --url" in gone.stderr
    nowhere = run("client", "show", "--url", "localhost:8000")
    assert "url = 'localhost:8000': must be an address that begins with http://" in nowhere.stderr


def test_health_exits_with_0_only_if_all_is_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(tmp_path, open_to_all=False) as service:
        monkeypatch.setenv("DECOUPLED_PORT", service.url.rpartition(":")[2])
        monkeypatch.setenv("DECOUPLED_HOST", "0.0.0.0")
        assert run("health").stdout == f"{service.url}/healthz: 200\n"
        ready = run("health", "--ready", "--url", f"{service.url}/")
        assert ready.stdout == f"{service.url}/readyz: 200\n"
        monkeypatch.setattr(service.direct, "ready", lambda: False)
        unready = run("health", "--ready")
        assert unready.exit_code == 1
        assert "503" in unready.stderr
        assert "store: cannot be read or written" in unready.stderr
        assert run("health").exit_code == 0
    gone = run("health")
    assert gone.exit_code == 1
    assert "no answer" in gone.stderr
    assert run("health", "--url", "nonsense").exit_code == 1
