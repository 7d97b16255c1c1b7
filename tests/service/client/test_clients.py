"""The clients against a real service, through a proxy that drops connections at every stage."""

import ast
import asyncio
import inspect
import math
import random
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import decoupled as dc
from decoupled.errors import ParameterError
from decoupled.service import client as client_package
from decoupled.service.client import (
    AsyncClient,
    Client,
    Outbox,
    Retries,
    Undelivered,
    UndeliveredFeedback,
    Unreachable,
)
from decoupled.service.errors import Conflict, Gone, Invalid, NotFound, ServiceError, TooMany, Unauthorized
from support.http_service import FTPL, Service, served

# Two attempts in three fail: of 200 requests one fails 60 times running once in 10**8 runs.
HASTY = Retries(attempts=60, first=0.001, most=0.01)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with served(tmp_path_factory.mktemp("client")) as running:
        yield running


@contextmanager
def dropping_proxy(service: Service, outcome: Callable[[], str]) -> Iterator[str]:
    """A proxy: `outcome` decides for each request to "pass" it, or to drop it "before" or "after" it is served."""
    there = ("127.0.0.1", int(service.url.rsplit(":", 1)[1]))

    def handle(client: socket.socket) -> None:
        with client, socket.create_connection(there) as upstream:
            while request := read_message(client):
                what = outcome()
                if what == "before":
                    return
                upstream.sendall(request)
                answer = read_message(upstream)
                if what == "after" or not answer:
                    return
                client.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=handle, args=(client,), daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def read_message(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65_536)
        if not part:
            return b""
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [
        int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
    ]
    while len(body) < (lengths or [0])[0]:
        part = connection.recv(65_536)
        if not part:
            return b""
        data += part
        body += part
    return data


def random_outcomes(seed: int) -> Callable[[], str]:
    rng = random.Random(seed)
    return lambda: rng.choice(["pass", "before", "after"])


def test_dropped_connections_lose_and_double_nothing(service: Service) -> None:
    service.create("dropped")
    with dropping_proxy(service, random_outcomes(1)) as url, Client(url, retries=HASTY) as client:
        decisions = [client.decide("dropped") for _ in range(40)]
        for i, decision in enumerate(decisions):
            applied = client.feedback(decision, loss=i / 40)
            assert applied is not None
            assert (applied.status, applied.loss) == ("applied", i / 40)
        several = client.decide("dropped", count=5)
        results = client.feedback_many([Undelivered(each.id, reward=1.0) for each in several])
        assert [getattr(each, "loss", None) for each in results] == [0.0] * 5
    state = service.http.get("/v1/experiments/dropped/state").json()
    assert (state["decisions"], state["applied"], state["pending"]) == (45, 45, 0)


def test_the_async_client_does_the_same(service: Service) -> None:
    service.create("dropped-async")

    async def main(url: str) -> None:
        async with AsyncClient(url, retries=HASTY) as client:
            decisions = await asyncio.gather(*(client.decide("dropped-async") for _ in range(20)))
            await asyncio.gather(*(client.feedback(each, loss=0.5) for each in decisions))
            assert (await client.state("dropped-async"))["applied"] == 20
            assert (await client.decision(decisions[0].id)).status == "applied"

    with dropping_proxy(service, random_outcomes(2)) as url:
        asyncio.run(main(url))
    assert service.http.get("/v1/experiments/dropped-async/state").json()["decisions"] == 20


def test_both_clients_write_a_log_in_the_format_of_its_suffix(service: Service, tmp_path: Path) -> None:
    service.create("log")
    decision = service.decide("log")["id"]
    linked, real = tmp_path / "linked.csv", tmp_path / "real.csv"
    linked.symlink_to(real)

    async def awaiting() -> None:
        async with AsyncClient(service.url) as client:
            await client.log("log", tmp_path / "a.parquet")
            await client.log("log", linked)
            with pytest.raises(ParameterError, match=r"known are \.csv, \.parquet"):
                await client.log("log", tmp_path / "a.txt")
            with pytest.raises(FileExistsError):
                await client.log("log", real, overwrite=False)

    asyncio.run(awaiting())
    with Client(service.url) as client:
        client.log("log", tmp_path / "b.parquet")
        client.log("log", tmp_path / "b.txt", "csv")
        with pytest.raises(ParameterError, match=r"known are \.csv, \.parquet"):
            client.log("log", tmp_path / "c.txt")
        with pytest.raises(ParameterError, match="csv, parquet"):
            client.log("log", tmp_path / "c.csv", "xls")  # type: ignore[arg-type]
        with pytest.raises(FileExistsError):
            client.log("log", tmp_path / "b.txt", "csv", overwrite=False)
        client.log("log", "/dev/null", "csv")
    assert Path("/dev/null").is_char_device(), "a device is not replaced"
    assert (tmp_path / "a.parquet").read_bytes()[:4] == (tmp_path / "b.parquet").read_bytes()[:4] == b"PAR1"
    assert decision in real.read_text() == (tmp_path / "b.txt").read_text()
    assert linked.is_symlink()
    names = ["a.parquet", "b.parquet", "b.txt", "linked.csv", "real.csv"]
    assert sorted(each.name for each in tmp_path.iterdir()) == names


def test_an_outbox_refuses_files_of_another_kind(tmp_path: Path) -> None:
    file = tmp_path / "notes"
    for content in (b"a single line", b"a line\nand another", b"[1, 2]\n"):
        file.write_bytes(content)
        with pytest.raises(ParameterError, match="outbox"):
            Outbox(file)
        assert file.read_bytes() == content


def public(kind: type) -> dict[str, Any]:
    return {name: found for name, found in vars(kind).items() if not name.startswith("_")}


def test_both_clients_have_the_same_methods() -> None:
    assert public(Client).keys() == public(AsyncClient).keys()
    for name, method in public(Client).items():
        one, two = inspect.signature(method), inspect.signature(public(AsyncClient)[name])
        if name.startswith("iter_"):  # what they return is awaited item by item
            assert str(two.return_annotation) == str(one.return_annotation).replace("abc.", "abc.Async")
            one, two = (each.replace(return_annotation=None) for each in (one, two))
        assert one == two, name


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_every_method_is_typed_and_has_an_example(kind: type) -> None:
    for name, method in public(kind).items():
        assert ">>>" in (inspect.getdoc(method) or ""), name
        annotated = {*inspect.get_annotations(method), "self"}
        assert annotated == {*inspect.signature(method).parameters, "return", "self"}, name


def test_every_public_name_has_an_example() -> None:
    assert [
        name for name in client_package.__all__ if ">>>" not in getattr(client_package, name).__doc__
    ] == []


def test_of_the_server_the_clients_import_the_errors_only() -> None:
    imported = set[str]()
    for file in Path(client_package.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == 2:
                imported.add(node.module or "")
            elif isinstance(node, ast.ImportFrom | ast.Import):
                assert "service" not in ast.unparse(node)
    assert imported == {"errors"}


def test_an_unknown_option_is_a_type_error() -> None:
    client = Client("http://service.example")
    with pytest.raises(TypeError, match="deadline"):
        client.put_experiment("x", arms=["a", "b"], deadline=60)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="modus"):
        client.decide("x", modus="explore")  # type: ignore[call-overload]


def test_undeliverable_feedback_is_raised(service: Service) -> None:
    service.create("undelivered")
    decision = service.decide("undelivered")["id"]
    retries = Retries(attempts=2, first=0.001)
    with dropping_proxy(service, lambda: "before") as url, Client(url, retries=retries) as client:
        with pytest.raises(UndeliveredFeedback) as caught:
            client.feedback(decision, loss=0.5)
        assert caught.value.items == [Undelivered(decision, loss=0.5)]
        with pytest.raises(Unreachable):
            client.state("undelivered")


def test_an_outbox_survives_the_program(service: Service, tmp_path: Path) -> None:
    service.create("outbox", deadline_seconds=3600)
    decisions = service.decide("outbox", count=3)["decisions"]
    file, retries = tmp_path / "outbox.jsonl", Retries(attempts=2, first=0.001)
    outcome = ["before"]
    with dropping_proxy(service, lambda: outcome[0]) as url:
        with Client(url, outbox=file, retries=retries) as client:
            for each in decisions:
                assert client.feedback(each["id"], loss=0.25, arm=each["explore"]) is None
            client.outbox.add(Undelivered("none-1", loss=0.5))  # type: ignore[union-attr]
            assert len(file.read_bytes().splitlines()) == 4, "on disk before the program ends"
        with file.open("ab") as torn:  # the program dies while it writes
            torn.write(b'{"decision": "torn')
        outcome[0] = "pass"
        with Client(url, outbox=file, retries=retries) as client:
            assert len(client.outbox or []) == 4
            flushed = client.flush()
            assert {each.id for each in flushed.delivered} == {each["id"] for each in decisions}
            assert [(item.decision, type(error)) for item, error in flushed.refused] == [
                ("none-1", NotFound)
            ]
            assert flushed.left == 0
    assert file.read_bytes() == b""
    assert service.http.get("/v1/experiments/outbox/state").json()["applied"] == 3


def test_an_outbox_in_memory_is_not_dropped_silently(service: Service) -> None:
    service.create("memory")
    decision = service.decide("memory")["id"]
    with dropping_proxy(service, lambda: "before") as url:
        client = Client(url, outbox=Outbox(), retries=Retries(attempts=1))
        assert client.feedback(decision, loss=0.5) is None
        with pytest.raises(ParameterError, match="another loss"):
            client.feedback(decision, loss=0.75)
        with pytest.raises(UndeliveredFeedback) as caught:
            client.close()
        assert caught.value.items == [Undelivered(decision, loss=0.5)]


def test_refusals_are_raised_by_their_kind(service: Service) -> None:
    with Client(service.url, retries=HASTY) as client:
        client.put_experiment("kinds", **FTPL, deadline_seconds=1e-9)
        with pytest.raises(NotFound, match="'nothing'"):
            client.decide("nothing")
        with pytest.raises(Conflict, match="other settings"):
            client.put_experiment("kinds", **FTPL)
        with pytest.raises(Invalid, match="mauve"):
            client.decide("kinds", available=["mauve"])
        decision = client.decide("kinds")
        with pytest.raises(Gone):
            client.feedback(decision, loss=0.5)
        with pytest.raises(ParameterError, match="explored"):
            client.feedback(decision)
        assert client.experiments(after="kind", limit=1)["next"] == "kinds"


POLICIES: list[tuple[Any, dict[str, Any]]] = [
    (dc.FTPL(alpha=2.5), dc.FTPL(alpha=2.5).to_dict()),
    (dc.Forgetting(dc.FTPL(), period=50), dc.Forgetting(dc.FTPL(), period=50).to_dict()),
    ({"name": "FTPL", "alpha": 2.5}, dc.FTPL(alpha=2.5).to_dict()),
    ("FTPL", dc.FTPL().to_dict()),
    (dc.FTPL.recommended(), dc.FTPL.recommended().to_dict()),
    (None, dc.FTPL.recommended().to_dict()),
]


def test_a_policy_may_be_an_object_a_dict_or_a_name(service: Service) -> None:
    async def same(name: str, policy: Any) -> dict[str, Any]:
        async with AsyncClient(service.url, timeout=60.0) as client:
            return await client.put_experiment(name, policy=policy, arms=["a", "b"])

    with Client(service.url, timeout=60.0) as client:
        for i, (given, stored) in enumerate(POLICIES):
            created = client.put_experiment(f"policy-{i}", policy=given, arms=["a", "b"])
            assert created["policy"] == stored
            assert asyncio.run(same(f"policy-{i}", given)) == created
        with pytest.raises(ParameterError, match=r"policy = 3: must be a policy.*for example dc\.FTPL"):
            client.put_experiment("policy-x", policy=3, arms=["a", "b"])  # type: ignore[arg-type]
        with pytest.raises(Invalid, match=r"policy\.name = 'FTLP'.*did you mean 'FTPL'"):
            client.put_experiment("policy-x", policy="FTLP", arms=["a", "b"])


def test_all_settings_of_an_experiment_are_sent(service: Service) -> None:
    with Client(service.url) as client:
        settings: dict[str, Any] = {"loss_range": (0, 250), "deadline_seconds": 60, "expired_loss": 250}
        created = client.put_experiment("all", **FTPL, **settings, seed=7)
        assert [created[name] for name in ("loss_range", "deadline_seconds", "expired_loss")] == [
            [0, 250],
            60,
            250,
        ]
        with pytest.raises(Conflict):
            client.put_experiment("all", **FTPL, **settings, seed=8)


@pytest.mark.parametrize(
    ("loss", "applied"),
    [(True, 1.0), (False, 0.0), (np.True_, 1.0), (np.float32(0.5), 0.5), (np.int64(1), 1.0), (1, 1.0)],
)
def test_losses_are_numbers_or_truth_values(service: Service, loss: Any, applied: float) -> None:
    if service.http.get("/v1/experiments/numbers").status_code == 404:
        service.create("numbers")
    with Client(service.url) as client:
        one, two = client.decide("numbers", count=2)
        assert getattr(client.feedback(one, loss=loss), "loss", None) == applied
        [many] = client.feedback_many([Undelivered(two.id, loss=loss)])
        assert getattr(many, "loss", None) == applied


@pytest.mark.parametrize(
    ("feedback", "message"),
    [
        (
            {},
            "feedback: neither loss nor reward is given; give the loss of the explored arm, or its reward",
        ),
        (
            {"loss": 0.5, "reward": 0.5},
            "feedback: loss and reward are both given; give the loss .*, not both",
        ),
        ({"loss": "0.5"}, "loss = '0.5': must be a number, True or False, not str; give the loss of the"),
        ({"reward": math.nan}, "reward = nan: must be a finite number; give the reward of the explored"),
    ],
)
def test_feedback_that_cannot_be_sent_is_refused_by_the_client(
    feedback: dict[str, Any], message: str
) -> None:
    client = Client("http://service.example")
    with pytest.raises(ParameterError, match=message):
        client.feedback("1f2e-7", **feedback)
    with pytest.raises(ParameterError, match=message):
        client.feedback_many([Undelivered("1f2e-7", **feedback)])


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def test_an_unreachable_service_is_named_with_its_address() -> None:
    url, retries = f"http://127.0.0.1:{closed_port()}", Retries(attempts=1)
    with Client(url, retries=retries) as client, pytest.raises(Unreachable) as caught:
        client.state("one")
    assert f"GET {url}/v1/experiments/one/state: no answer (ConnectError" in str(caught.value)
    assert "is `decoupled serve` running there? pass its address to the client" in str(caught.value)

    async def ask() -> None:
        async with AsyncClient(url + "/", retries=retries) as client:
            await client.decide("one")

    with pytest.raises(Unreachable, match=f"POST {url}/v1/experiments/one/decisions: no answer"):
        asyncio.run(ask())
    with Client(url.replace("//", "//me:secret@"), retries=retries) as client:
        with pytest.raises(UndeliveredFeedback, match=f"{url}/v1.* pass outbox=") as lost:
            client.feedback("1f2e-7", loss=0.5)
        assert "secret" not in f"{lost.value}{client!r}"


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8000", "localhost:8000", "ftp://x", "http://", "", "http://x:port"]
)
def test_an_invalid_address_is_refused_at_once(url: str) -> None:
    for kind in (Client, AsyncClient):
        with pytest.raises(ParameterError, match=r"url = .*: must be an address that begins with http://"):
            kind(url)


def test_a_missing_or_wrong_key_is_reported_with_the_remedy_of_the_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DECOUPLED_KEY", raising=False)
    with served(tmp_path, open_to_all=False) as closed:
        for key, rule in ((None, f"key: is missing; {closed.url} needs one"), ("dk_x", "is unknown to")):
            with Client(closed.url, key) as client, pytest.raises(Unauthorized, match=rule) as caught:
                client.experiments()
            assert "pass key=... to the client, or set DECOUPLED_KEY" in str(caught.value)
            assert "Authorization" not in str(caught.value)


def test_a_name_stays_one_part_of_the_path(service: Service) -> None:
    with Client(service.url) as client:
        for name in ("a?b=c", "a b", "a#b", "a%2Fstate"):
            with pytest.raises(Invalid) as caught:
                client.experiment(name)
            assert f'name = "{name}": must be' in str(caught.value)
        for name in ("a/state", "", ".."):
            with pytest.raises(ParameterError, match=r"name = .*without '/'"):
                client.experiment(name)
            with pytest.raises(ParameterError, match=r"decision = .*without '/'"):
                client.feedback(name, loss=0.5)


def test_retries_double_with_jitter_and_heed_retry_after() -> None:
    retries = Retries(attempts=9, first=0.1, most=1.0)
    for attempt, most in ((1, 0.1), (2, 0.2), (4, 0.8), (8, 1.0)):
        pauses = [retries.pause(attempt, 0.0) for _ in range(200)]
        assert max(pauses) <= most
        assert max(pauses) - min(pauses) > 0.5 * most  # a false alarm once in 2**190 runs
    assert retries.pause(1, 7.0) >= 7.0


@pytest.mark.parametrize(("status", "tries"), [(429, 3), (503, 3), (502, 3), (500, 1), (400, 1), (401, 1)])
def test_temporary_errors_are_retried_with_the_same_key(status: int, tries: int) -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(status, json={"detail": "no"})

    client = Client("http://service.example", retries=Retries(attempts=3, first=0.001))
    client._http = httpx.Client(base_url="http://service.example", transport=httpx.MockTransport(answer))
    with pytest.raises(ServiceError, match="key: is missing" if status == 401 else "no") as caught:
        client.decide("x")
    assert len(seen) == tries
    assert len({request.headers["idempotency-key"] for request in seen}) == 1
    assert isinstance(caught.value, TooMany) == (status == 429)


def test_arms_are_added_and_retired_once_despite_dropped_connections(service: Service) -> None:
    service.create("arms-once")
    with dropping_proxy(service, random_outcomes(3)) as url, Client(url, retries=HASTY) as client:
        assert client.add_arms("arms-once", ["mauve"])["arms"] == [*FTPL["arms"], "mauve"]
        assert client.retire_arms("arms-once", ["red"])["retired"] == ["red"]
