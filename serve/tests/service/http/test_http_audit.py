"""The audit trail over HTTP, in the clients and on the command line."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from decoupled.cli.main import app
from decoupled.client import Client
from decoupled.client.errors import Forbidden
from decoupled_serve.service.service import open_service
from support.http_service import Service, served

run = CliRunner().invoke


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with served(tmp_path, open_to_all=False) as running:
        yield running


def test_who_changed_what(service: Service) -> None:
    admin = service.key("admin")
    service.create("models", admin)
    path = "/v1/experiments/models/guardrails"
    changed = service.http.patch(path, json={"pinned": "red"}, headers=admin | {"X-Request-Id": "r-7"})
    assert changed.status_code == 200
    found = service.http.get("/v1/audit", headers=admin, params={"subject": "models"}).json()
    assert found["next"] is None
    newest, created = found["entries"]
    [key] = service.direct.keys.list().result()
    assert (newest["action"], newest["request_id"]) == ("guardrails.change", "r-7")
    assert (newest["caller"], newest["label"], newest["tenant"]) == (f"key {key.id}", "test", "local")
    assert (newest["old"].get("pinned"), newest["new"]["pinned"]) == (None, "red")
    assert created["action"] == "experiment.create"
    assert created["old"] is None


def test_a_tenant_sees_its_own_changes_and_the_operator_sees_all(service: Service) -> None:
    local, shop = service.key("admin"), service.key("admin", "shop")
    service.create("mine", local)
    service.create("theirs", shop)

    def seen(headers: dict[str, str], **params: str) -> set[tuple[str, str]]:
        found = service.http.get("/v1/audit", headers=headers, params=params).json()
        return {(each["tenant"], each["action"]) for each in found["entries"]}

    own = {("shop", "key.add"), ("shop", "experiment.create")}
    assert seen(shop) == seen(shop, tenant="shop") == seen(local, tenant="shop") == own
    assert seen(local) == own | {("local", "key.add"), ("local", "experiment.create")}
    refused = service.http.get("/v1/audit", headers=shop, params={"tenant": "local"})
    assert (refused.status_code, refused.json()["title"]) == (403, "Forbidden")
    assert service.http.get("/v1/audit", headers=service.key("decide")).status_code == 403


def test_pages_and_filters(service: Service) -> None:
    admin = service.key("admin")
    for name in ("one", "two", "three"):
        service.create(name, admin)
    first = service.http.get("/v1/audit", headers=admin, params={"limit": 2}).json()
    rest = service.http.get("/v1/audit", headers=admin, params={"before": first["next"]}).json()
    assert [each["subject"] for each in first["entries"]] == ["three", "two"]
    assert [each["action"] for each in rest["entries"]] == ["experiment.create", "key.add"]
    keys = service.http.get("/v1/audit", headers=admin, params={"action": "key.add"}).json()
    assert len(keys["entries"]) == 1
    for wrong in ({"action": "key.steal"}, {"limit": 0}, {"before": 0}, {"who": "me"}, {"tenant": "a b"}):
        assert service.http.get("/v1/audit", headers=admin, params=wrong).status_code == 422, wrong


def test_the_client_and_its_command(service: Service, tmp_path: Path) -> None:
    key = service.key("admin")["Authorization"].removeprefix("Bearer ")
    with Client(service.url, key) as client:
        client.create("models", arms=["a", "b"], policy="FTPL")
        assert client.audit("models")["entries"][0]["action"] == "experiment.create"
        assert client.audit(action="key.add", limit=1)["next"] is not None
    (tmp_path / "key").write_text(key)
    shown = run(
        app, ["client", "audit", "models", "--url", service.url, "--key-file", str(tmp_path / "key")]
    )
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.output)["entries"][0]["subject"] == "models"
    reader = service.key("read")["Authorization"].removeprefix("Bearer ")
    with Client(service.url, reader) as client, pytest.raises(Forbidden):
        client.audit()


def test_what_the_command_line_does_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "ada")
    store = tmp_path / "store.db"
    open_service(store).close()
    given = ["--store", str(store)]
    assert run(app, ["keys", "add", *given, "--label", "till"]).exit_code == 0
    service = open_service(store)
    [key] = service.keys.list().result()
    service.close()
    assert run(app, ["keys", "rotate", key.id, *given]).exit_code == 0
    assert run(app, ["backup", str(tmp_path / "copy.db"), *given]).exit_code == 0
    restored = ["--store", str(tmp_path / "restored.db")]
    assert run(app, ["restore", str(tmp_path / "copy.db"), *restored]).exit_code == 0
    lines = run(app, ["audit", *restored]).output.splitlines()
    assert [line.split()[2] for line in lines] == ["store.restore", "key.rotate", "key.add"]
    assert all("by command line (ada)" in line for line in lines)
    [line] = run(app, ["audit", key.id, *given, "--action", "key.add"]).output.splitlines()
    assert line.endswith('nothing -> {"label": "till", "role": "decide"}')
    assert run(app, ["audit", *given]).output.splitlines()[0].split()[2] == "backup.write"
