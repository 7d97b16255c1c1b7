"""Pairs that await a person's label: who sees which, what a label does, and where they must never be found."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

import decoupled as dc
from decoupled.client.errors import Conflict, Invalid, NotFound
from decoupled_serve.service.api.pairs import LEASE, LONGEST_TEXT, Leased, Pair
from decoupled_serve.service.experiment.records import Settings
from decoupled_serve.service.service import DecisionService
from support.http_service import Service, served
from support.stores import Opened, both_stores, quick_service
from support.waiting import Clock, wait_for

SECRET = "the-patient-is-ill"
SETTINGS = Settings({"name": "FTPL"}, ("a", "b"), labels=dc.Labels(share=1.0))
LABELLED: dict[str, Any] = {"arms": ["a", "b"], "labels": {"share": 1.0}}


def kept(
    service: DecisionService,
    count: int = 1,
    name: str = "one",
    settings: Settings = SETTINGS,
    **more: Any,
) -> list[str]:
    """Decisions that await a label, with their pairs; their ids."""
    service.experiments.put("me", name, settings, seed=7).result()
    made = [each.id for each in service.decisions.decide("me", name, count=count).result()]
    for number, each in enumerate(made):
        judged: Any = "explore" if settings.feedback == "preference" else 0.25
        service.decisions.feedback("me", each, judged=judged).result()
        pair = Pair(
            "POST /chat", f"{SECRET} {number}", f"exploit {number}", f"explore {number}", **more
        )
        service.pairs.keep("me", each, pair, 7.0).result()
    return made


def take(service: DecisionService, caller: str = "key ann", name: str = "one") -> Leased:
    found, _ = service.pairs.lease("me", name, caller).result()
    assert found is not None
    return found


def label(service: DecisionService, pair: Leased, preferred: str, caller: str = "key ann") -> None:
    """Prefer "explore" or "exploit", wherever that answer is shown, or neither."""
    choice: Any = "tie"
    if preferred != "tie":
        choice = "first" if pair.first.startswith(preferred) else "second"
    service.pairs.label("me", "one", caller, pair.lease, choice).result()


def loss_of(service: DecisionService, id: str) -> float | None:  # noqa: A002
    return service.decisions.get("me", id).result().loss


@both_stores
def test_a_label_is_the_loss_of_the_explored_arm_and_is_given_once(opened: Opened) -> None:
    service = opened()
    ids = kept(service, 3, low=0.2, high=0.6)
    answers = (("explore", 0.2), ("exploit", 0.6), ("tie", 0.4))
    for pair_id, (preferred, loss) in zip(ids, answers, strict=True):
        pair = take(service)
        assert pair.request.endswith(str(ids.index(pair_id))), (
            "the one that waited longest comes first"
        )
        label(service, pair, preferred)
        label(service, pair, preferred)
        assert loss_of(service, pair_id) == pytest.approx(loss)
        with pytest.raises(Conflict, match="label already"):
            label(service, pair, "exploit" if preferred == "explore" else "explore")
    assert service.pairs.lease("me", "one", "key ann").result() == (None, 0)
    every = service.pairs.kept("me", "one").result()
    assert [each.label for each in every] == ["explore", "exploit", "tie"]
    assert [each.verdict for each in every] == [pytest.approx(0.125)] * 3


@pytest.mark.parametrize(("takes", "worst"), [("loss", 10.0), ("preference", 1.0)])
def test_without_own_losses_a_pair_has_the_experiments(
    opened: Opened, takes: Any, worst: float
) -> None:
    service = opened()
    [id] = kept(service, settings=replace(SETTINGS, feedback=takes, loss_range=(0.0, worst)))  # noqa: A001
    label(service, take(service), "exploit")
    assert loss_of(service, id) == worst


@both_stores
def test_nobody_gets_the_pair_of_another_until_its_lease_has_run_out(
    opened: Opened, clock: Clock
) -> None:
    service = opened()
    kept(service, 2)
    first, second = take(service, "key ann"), take(service, "key bob")
    assert {first.request[-1], second.request[-1]} == {"0", "1"}
    assert service.pairs.lease("me", "one", "key cem").result() == (None, 2)
    again = take(service, "key ann")
    assert (again.request, again.first) == (first.request, first.first), "a reload shows the same"
    with pytest.raises(Conflict, match="run out"):  # the lease before was given back
        label(service, first, "tie")
    with pytest.raises(Conflict, match="run out"):
        label(service, again, "tie", "key bob")
    clock.now += LEASE
    third = take(service, "key cem")
    assert third.request == first.request
    with pytest.raises(Conflict, match="run out"):
        label(service, again, "tie")
    label(service, third, "tie", "key cem")
    label(service, second, "explore", "key bob")  # late, but nobody else has it


@both_stores
def test_two_processes_never_give_the_same_pair_to_two_people(address: str) -> None:
    services = [quick_service(address) for _ in range(2 if address.startswith("postgres") else 1)]
    kept(services[0], 20)
    people = [f"key {number}" for number in range(30)]
    with ThreadPoolExecutor(10) as pool:
        for service in services * 10:  # as housekeeping does, meanwhile
            service._threads["pairs"].start(service.pairs.sweep)
        asked = [
            pool.submit(services[number % len(services)].pairs.lease("me", "one", who).result)
            for number, who in enumerate(people)
        ]
        found = [pair for each in asked for pair in each.result()[:1] if pair is not None]
    assert len({pair.request for pair in found}) == len(found) == 20
    with ThreadPoolExecutor(10) as pool:  # one key, twenty times at once
        service = services[0]
        list(
            pool.map(
                lambda n: services[n % len(services)].pairs.lease("me", "one", "key 0").result(),
                range(20),
            )
        )
    held = service._session.store.open_pairs()
    assert held.run("SELECT count(*) FROM pairs WHERE leased_by = 'key 0'")[0][0] <= 1
    held.close()


def judge(running: Service, id: str) -> None:  # noqa: A002
    assert (
        running.http.put(f"/v1/decisions/{id}/feedback", json={"judged": 0.25}).status_code == 200
    )


def test_the_order_is_drawn_and_says_nothing(opened: Opened) -> None:
    service = opened()
    kept(service, 64)
    explored_first = 0
    for _ in range(64):
        pair = take(service)
        explored_first += pair.first.startswith("explore")
        assert {pair.first.split()[0], pair.second.split()[0]} == {"exploit", "explore"}
        label(service, pair, "tie")
    assert 8 < explored_first < 56, "a fair coin is outside once in 10^9 runs"


def test_what_awaits_no_label_is_not_kept_and_not_shown(opened: Opened) -> None:
    service = opened()
    ids = kept(service, 3)
    service.decisions.label("me", ids[0], loss=0.5).result()
    pair = take(service)
    assert pair.request.endswith("1")
    service.decisions.label("me", ids[1], loss=0.5).result()
    with pytest.raises(Conflict):  # it was labelled elsewhere, while the person read
        label(service, pair, "explore")
    assert loss_of(service, ids[1]) == 0.5
    assert take(service).request.endswith("2")
    assert len(service.pairs.kept("me", "one").result()) == 1, "nothing is kept that is of no use"
    empty = Pair("", "", "", "")
    service.experiments.put(
        "me", "rare", replace(SETTINGS, labels=dc.Labels(share=0.5, first=0)), 3
    ).result()
    for made in service.decisions.decide("me", "rare", count=20).result():
        with pytest.raises(Conflict, match="awaits no label"):  # not judged yet
            service.pairs.keep("me", made.id, empty).result()
        service.decisions.feedback("me", made.id, judged=0.5).result()
        refused = service.pairs.keep("me", made.id, empty).exception()
        assert (refused is None) == made.label, "others would be shown without need"
    with pytest.raises(NotFound):
        service.pairs.lease("other", "one", "key ann").result()
    with pytest.raises(NotFound):
        service.pairs.keep("other", ids[2], empty).result()
    with pytest.raises(Invalid, match="cut it"):
        service.pairs.keep("me", ids[2], Pair("", "", "x" * (LONGEST_TEXT + 1), "")).result()
    with pytest.raises(Invalid, match="days"):
        service.pairs.keep("me", ids[2], empty, 0.0).result()


def test_pairs_expire(opened: Opened, clock: Clock, file: str) -> None:
    service = opened()
    kept(service, 2)
    clock.now += 7 * 86_400.0
    assert service.pairs.lease("me", "one", "key ann").result() == (None, 0)
    assert SECRET.encode() in Path(f"{file}-pairs").read_bytes()
    service.pairs.sweep()
    assert SECRET.encode() not in Path(f"{file}-pairs").read_bytes(), (
        "what is deleted is overwritten"
    )


@both_stores
def test_pairs_go_at_once_with_their_experiment(address: str, clock: Clock) -> None:
    service = quick_service(address, clock=clock, delete_after=0.0)
    kept(service, 2)
    kept(service, 1, "two")
    service.experiments.archive("me", "one").result()
    service.deletion.delete("me", "one").result()
    pairs = service._session.store.open_pairs()
    try:
        assert pairs.run("SELECT count(*) FROM pairs") in ([(1,)], [[1]])
    finally:
        pairs.close()
    if not address.startswith("postgres"):
        content = Path(f"{address}-pairs").read_bytes()
        assert content.count(SECRET.encode()) == 1, "those of the other experiment"


def test_the_service_deletes_by_itself(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("decoupled_serve.service.service.SIZES_EVERY", 0.0)
    clock = Clock()
    kept(quick_service(file, clock=clock))
    clock.now += 8 * 86_400.0
    wait_for(
        lambda: SECRET.encode() not in Path(f"{file}-pairs").read_bytes(), "the file to be swept"
    )


@both_stores
def test_no_backup_export_log_or_audit_has_a_pair(
    address: str, tmp_path: Path, lines: StringIO
) -> None:
    with served(
        address if address.startswith("postgres") else tmp_path, backups=tmp_path
    ) as running:
        running.create("one", **LABELLED)
        made = running.decide("one")
        judge(running, made["id"])
        body = {"request": SECRET, "exploit": SECRET, "explore": SECRET}
        answer = running.http.put(f"/v1/decisions/{made['id']}/pair", json=body)
        assert answer.status_code == 200, answer.text
        bad = running.http.put(
            f"/v1/decisions/{made['id']}/pair", json={**body, "request": [SECRET]}
        )
        found = running.http.post("/v1/experiments/one/pairs/lease").json()
        assert found["pair"]["first"] == SECRET
        backup = running.http.post("/v1/backups").json()["file"]
        export = running.http.get("/v1/experiments/one/log?format=csv").text
        trail = running.http.get("/v1/audit").text
        listed = running.http.get("/v1/experiments/one/decisions").text
    assert bad.status_code == 422
    for text in (bad.text, export, trail, listed, lines.getvalue()):
        assert SECRET not in text
    assert SECRET.encode() not in (tmp_path / backup).read_bytes()
    if not address.startswith("postgres"):
        assert SECRET.encode() in (tmp_path / "store.db-pairs").read_bytes(), (
            "the test would find it"
        )
        assert SECRET.encode() not in (tmp_path / "store.db").read_bytes()
        assert (tmp_path / "store.db-pairs").stat().st_mode & 0o77 == 0


def test_a_key_that_labels_can_do_nothing_else(tmp_path: Path) -> None:
    with served(tmp_path) as running:
        running.create("one", **LABELLED)
        ids = [running.decide("one")["id"] for _ in range(2)]
        body = {"request": "Hi?", "exploit": "exploit", "explore": "explore"}
        for id in ids:  # noqa: A001
            judge(running, id)
            running.http.put(f"/v1/decisions/{id}/pair", json=body)
        keys = {role: running.key(role) for role in ("read", "decide", "admin", "label")}
        stranger = running.key("label", "shop")
        lease, labels = "/v1/experiments/one/pairs/lease", "/v1/experiments/one/pairs/label"

        def status(method: str, path: str, role: str, **sent: Any) -> int:
            return running.http.request(method, path, headers=keys[role], **sent).status_code

        for path, operations in running.http.get("/v1/openapi.json").json()["paths"].items():
            for method in operations:
                if path in ("/healthz", "/readyz", "/v1/access", lease.replace("one", "{name}")):
                    continue
                if path == labels.replace("one", "{name}"):
                    continue
                where = (
                    path.replace("{name}", "one").replace("{id}", ids[0]).replace("{key}", "one")
                )
                sent: dict[str, Any] = {} if method in ("get", "delete", "head") else {"json": {}}
                assert status(method.upper(), where, "label", **sent) == 403, (method, path)
        assert status("PUT", f"/v1/decisions/{ids[0]}/pair", "label", json=body) == 403
        assert status("GET", "/v1/experiments/one", "label") == 403
        assert running.http.get("/v1/access", headers=keys["label"]).json()["may"] == ["label"]
        assert [status("POST", lease, role) for role in keys] == [403, 403, 200, 200]
        assert running.http.post(lease, headers=stranger).status_code == 404
        pair = running.http.post(lease, headers=keys["label"]).json()["pair"]
        assert set(pair) == {"lease", "leased_until", "title", "request", "first", "second"}
        choice = {"lease": pair["lease"], "choice": "first"}
        assert status("PUT", labels, "label", json=choice) == 405
        assert [status("POST", labels, role, json=choice) for role in keys] == [403, 403, 409, 200]
        made = [running.http.get(f"/v1/decisions/{id}", headers=keys["read"]).json() for id in ids]  # noqa: A001
        assert [each["loss"] for each in made].count(None) == 1
