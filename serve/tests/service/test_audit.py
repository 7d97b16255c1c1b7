"""The audit trail: every change is in it, with who made it, and nothing else is; over HTTP and on the command line, too."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from decoupled.client import Client
from decoupled.client.errors import Conflict, Forbidden, Invalid, StoreError
from decoupled_serve.service.experiment.records import ACTIONS, AuditRecord, Feedback, Settings
from decoupled_serve.service.experiment.request_context import ORIGIN, Origin
from decoupled_serve.service.service import DecisionService, open_service
from decoupled_serve.service.store.backup import restore
from support.command_line import run
from support.http_service import Service, served
from support.stores import Opened, both_stores, full_disk, held, quick_service
from support.waiting import Clock

TILL = Origin("r-1", "key 3f29c1a0b7de", "till")
SETTINGS = Settings({"name": "FTPL"}, ("a", "b", "c"))


@pytest.fixture(autouse=True)
def _as_till() -> Any:
    token = ORIGIN.set(TILL)
    yield
    ORIGIN.reset(token)


def trail(service: DecisionService, **options: Any) -> list[AuditRecord]:
    return service.audit.read(**options).result()


def change_everything(service: DecisionService, clock: Clock, folder: Path) -> None:
    experiments = service.experiments
    experiments.put("local", "models", SETTINGS, seed=7).result()
    experiments.add_arms("local", "models", ["d"]).result()
    experiments.retire_arms("local", "models", ["a"]).result()
    experiments.change_guardrails("local", "models", {"pinned": "b"}).result()
    experiments.set_budget("local", "models", {"share": 0.1}).result()
    service.decisions.decide("local", "models", count=3).result()
    clock.now += 10.0
    service.logs.retention("local", "models", clock.now - 1.0).result()
    experiments.archive("local", "models").result()
    service.keys.add("shop", "admin", "0" * 64, "old").result()
    service.keys.rotate("0" * 64, "1" * 64).result()
    service.keys.revoke("1" * 64).result()
    service.logs.backup(folder / "copy.db").result()


CHANGES = [
    ("local", "experiment.create", "models"),
    ("local", "arms.add", "models"),
    ("local", "arms.retire", "models"),
    ("local", "guardrails.change", "models"),
    ("local", "budget.set", "models"),
    ("local", "log.drop", "models"),
    ("local", "experiment.archive", "models"),
    ("shop", "key.add", "0" * 12),
    ("shop", "key.rotate", "0" * 12),
    ("shop", "key.revoke", "1" * 12),
    ("local", "backup.write", "copy.db"),
]


@both_stores
def test_changes_and_their_authors_are_read_in_pages(
    opened: Opened, clock: Clock, tmp_path: Path
) -> None:
    service = opened()
    change_everything(service, clock, tmp_path)
    found = trail(service)[::-1]
    assert [(each.tenant, each.action, each.subject) for each in found] == CHANGES
    assert {Origin(each.request, each.caller, each.label) for each in found} == {TILL}
    assert {each.action for each in found} == set(ACTIONS) - {
        "store.restore",
        "experiment.delete",
        "log.replay",
        "incumbent.release",
        "verdict.decide",
    }
    values = {each.action: (each.old, each.new) for each in found}
    assert values["arms.add"] == (None, ["d"])
    assert values["arms.retire"] == (["a"], None)
    old, new = values["guardrails.change"]
    assert (old.get("pinned"), new["pinned"]) == (None, "b")
    assert values["budget.set"][0].get("share") is None
    assert values["budget.set"][1]["share"] == 0.1
    assert values["experiment.create"][1]["arms"] == ["a", "b", "c"]
    assert values["key.add"] == (None, {"role": "admin", "label": "old"})
    assert values["key.rotate"][1] == {"key": "1" * 12}
    assert "0" * 13 not in repr(found), "never more of a digest than its id"
    whole = trail(service)
    pages: list[AuditRecord] = []
    while page := trail(service, limit=4, before=pages[-1].id if pages else None):
        pages += page
    assert pages == whole
    assert [each.action for each in trail(service, tenant="shop")] == [
        "key.revoke",
        "key.rotate",
        "key.add",
    ]
    assert {each.subject for each in trail(service, subject="models")} == {"models"}
    assert [each.action for each in trail(service, tenant="local", action="budget.set")] == [
        "budget.set"
    ]


def test_what_changes_nothing_is_not_recorded(opened: Opened, clock: Clock, tmp_path: Path) -> None:
    service = opened()
    change_everything(service, clock, tmp_path)
    before = trail(service)
    experiments = service.experiments
    experiments.put("local", "models", SETTINGS, seed=7).result()
    with pytest.raises(Conflict):
        experiments.put("local", "models", SETTINGS, seed=8).result()
    experiments.add_arms("local", "models", ["d"]).result()
    experiments.retire_arms("local", "models", ["a"]).result()
    experiments.change_guardrails("local", "models", {"pinned": "b"}).result()
    experiments.set_budget("local", "models", {"share": 0.1}).result()
    experiments.archive("local", "models").result()
    service.keys.revoke("1" * 64).result()
    service.logs.retention("local", "models", clock.now - 1.0).result()
    with pytest.raises(Invalid):
        experiments.change_guardrails("local", "models", {"pinned": "nobody"}).result()
    with pytest.raises(Conflict):
        service.logs.backup(tmp_path / "copy.db").result()
    assert trail(service) == before


def test_a_change_and_its_record_are_one_transaction(opened: Opened) -> None:
    service = opened()
    many = Settings({"name": "FTPL"}, tuple(f"arm {i}" for i in range(2_000)))
    service.experiments.put("local", "models", many).result()
    with full_disk(service), pytest.raises(StoreError):
        service.experiments.change_guardrails("local", "models", {"pinned": "arm 1"}).result()
    [created] = trail(service)
    assert created.new["arms"] == 2_000, "many arms are recorded by their number"
    assert service.experiments.get("local", "models").result().guardrails.pinned is None


def test_requests_that_are_committed_together_keep_their_callers(opened: Opened) -> None:
    service = opened()
    names = [f"experiment-{i}" for i in range(8)]
    for name in names:
        service.experiments.put("local", name, SETTINGS).result()
    replies = []
    with held(service):
        for name in names:
            ORIGIN.set(Origin(f"request of {name}", "key 1"))
            replies.append(service.experiments.change_guardrails("local", name, {"pinned": "a"}))
    for reply in replies:
        reply.result()
    found = trail(service, action="guardrails.change")
    assert {each.subject: each.request for each in found} == {
        name: f"request of {name}" for name in names
    }


def test_a_restored_store_has_the_trail_and_says_so(
    file: str, clock: Clock, tmp_path: Path
) -> None:
    service = quick_service(file, clock=clock)
    change_everything(service, clock, tmp_path)
    service.close()
    empty = tmp_path / "restored.db"
    service = quick_service(str(empty))
    service.keys.add(
        "local", "admin", "2" * 64, "by hand"
    ).result()  # the store has no experiment yet
    service.close()
    restore(tmp_path / "copy.db", empty)
    service = quick_service(str(empty))
    found = trail(service)[::-1]
    service.close()
    actions = [each.action for each in found]
    assert actions == ["key.add", *(action for _, action, _ in CHANGES[:-1]), "store.restore"]
    assert (found[-1].subject, found[-1].caller, found[-1].new) == (
        "copy.db",
        TILL.caller,
        {"experiments": 1},
    )


def test_what_the_service_found_by_itself_is_recorded_once(opened: Opened) -> None:
    service = opened()
    service.experiments.put(
        "local", "models", Settings({"name": "Ladder"}, ("a", "b")), seed=7
    ).result()
    service.experiments.change_guardrails("local", "models", {"incumbent": "a"}).result()
    for _ in range(200):  # a few are enough
        judged = service.verdicts.get("local", "models").result()
        if judged.decided and judged.incumbent_released:
            break
        made = service.decisions.decide("local", "models", count=20).result()
        losses = [Feedback(each.id, 1.0 if each.explore == "a" else 0.0) for each in made]
        service.decisions.feedback_many("local", losses).result()
    service.close()
    service = opened()  # another process looks again
    assert service.verdicts.get("local", "models").result().decided == ["b", "a"]
    found = [each for each in trail(service) if each.caller == "service"]
    assert sorted((each.action, each.subject) for each in found) == [
        ("incumbent.release", "models"),
        ("verdict.decide", "models"),
    ]
    values = {each.action: each.old or each.new["decided"] for each in found}
    assert values == {"incumbent.release": "a", "verdict.decide": ["b", "a"]}


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Service]:
    with served(tmp_path, open_to_all=False) as running:
        yield running


def test_a_tenant_sees_its_own_changes_and_the_operator_sees_all(locked: Service) -> None:
    local, shop = locked.key("admin"), locked.key("admin", "shop")
    locked.create("mine", local)
    locked.create("theirs", shop)
    path = "/v1/experiments/mine/guardrails"
    locked.http.patch(path, json={"pinned": "red"}, headers=local | {"X-Request-Id": "r-7"})

    def seen(headers: dict[str, str], **params: Any) -> list[tuple[str, str]]:
        found = locked.http.get("/v1/audit", headers=headers, params=params).json()
        return [(each["tenant"], each["action"]) for each in found["entries"]]

    own = [("shop", "experiment.create"), ("shop", "key.add")]
    assert seen(shop) == seen(shop, tenant="shop") == seen(local, tenant="shop") == own
    assert set(seen(local)) > set(own)
    assert seen(local, action="key.add", limit=1) == [("shop", "key.add")]
    newest = locked.http.get("/v1/audit", headers=local, params={"subject": "mine"}).json()[
        "entries"
    ][0]
    key = locked.direct.keys.list("local").result()[0]
    assert (newest["action"], newest["request_id"]) == ("guardrails.change", "r-7")
    assert (newest["caller"], newest["label"]) == (f"key {key.id}", "test")
    assert (newest["old"].get("pinned"), newest["new"]["pinned"]) == (None, "red")
    refused = locked.http.get("/v1/audit", headers=shop, params={"tenant": "local"})
    assert (refused.status_code, refused.json()["title"]) == (403, "Forbidden")
    assert locked.http.get("/v1/audit", headers=locked.key("decide")).status_code == 403
    for wrong in (
        {"action": "key.steal"},
        {"limit": 0},
        {"before": 0},
        {"who": "me"},
        {"tenant": "a b"},
    ):
        assert locked.http.get("/v1/audit", headers=local, params=wrong).status_code == 422, wrong


def test_the_client_and_its_command(locked: Service, tmp_path: Path) -> None:
    key = locked.key("admin")["Authorization"].removeprefix("Bearer ")
    with Client(locked.url, key) as client:
        client.create("models", arms=["a", "b"], policy="FTPL")
        assert (
            client.request("GET", "/v1/audit", params={"subject": "models"})["entries"][0]["action"]
            == "experiment.create"
        )
        assert (
            client.request("GET", "/v1/audit", params={"action": "key.add", "limit": 1})["next"]
            is not None
        )
    (tmp_path / "key").write_text(key)
    shown = run("client", "audit", "models", "--url", locked.url, "--key-file", tmp_path / "key")
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.output)["entries"][0]["subject"] == "models"
    reader = locked.key("read")["Authorization"].removeprefix("Bearer ")
    with Client(locked.url, reader) as client, pytest.raises(Forbidden):
        client.request("GET", "/v1/audit")


def test_what_the_command_line_does_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "ada")
    store = tmp_path / "store.db"
    open_service(store).close()
    given = ["--store", str(store)]
    assert run("keys", "add", *given, "--label", "till").exit_code == 0
    service = open_service(store)
    [key] = service.keys.list().result()
    service.close()
    assert run("keys", "rotate", key.id, *given).exit_code == 0
    assert run("backup", tmp_path / "copy.db", *given).exit_code == 0
    restored = ["--store", str(tmp_path / "restored.db")]
    assert run("restore", tmp_path / "copy.db", *restored).exit_code == 0
    lines = run("audit", *restored).output.splitlines()
    assert [line.split()[2] for line in lines] == ["store.restore", "key.rotate", "key.add"]
    assert all("by command line (ada)" in line for line in lines)
    [line] = run("audit", key.id, *given, "--action", "key.add").output.splitlines()
    assert line.endswith('nothing -> {"label": "till", "role": "decide"}')
    assert run("audit", *given).output.splitlines()[0].split()[2] == "backup.write"
