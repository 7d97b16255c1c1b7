"""What every client promises: both of Python and the one of TypeScript, against a real service and against bad ones."""

import asyncio
import json
import os
import re
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from decoupled.client import AsyncClient, Client, Outbox, Retries, Undelivered
from decoupled.client.results import Flushed, RemoteDecision
from decoupled.errors import DecoupledError
from support.dropping import answering, dropping_proxy, random_outcomes
from support.http_service import FTPL, Service, served
from support.typescript import Bridge, bridged, built


class Refused(Exception):
    """An error of any client: the name of its class, its message, and the feedback that it carries."""

    def __init__(self, kind: str, message: str, items: Any = None) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind, self.message, self.items = kind, message, items


class Caller(ABC):
    """Calls methods by their Python names, with positional arguments and a dict of options, and returns JSON."""

    @abstractmethod
    def call(self, method: str, *args: Any, **options: Any) -> Any:
        """Call a method; errors are `Refused`."""

    @abstractmethod
    def told(self) -> list[str]:
        """What the client told its caller while it waited."""


def as_json(value: Any) -> Any:
    """A result of a Python client in the form that TypeScript has."""
    if isinstance(value, DecoupledError):
        return {"error": {"name": type(value).__name__, "message": str(value)}}
    if isinstance(value, Flushed):
        refused = [{"item": item.to_json(), **as_json(error)} for item, error in value.refused]
        return {
            "delivered": [as_json(each) for each in value.delivered],
            "refused": refused,
            "left": value.left,
        }
    if isinstance(value, RemoteDecision):
        return asdict(value)
    if isinstance(value, Undelivered):
        return value.to_json()
    if isinstance(value, list):
        return [as_json(each) for each in value]
    assert not is_dataclass(value)
    return value


def _of(name: str, verb: str = "GET", path: str = "", **parts: Any) -> dict[str, Any]:
    return {"method": verb, "path": f"/v1/experiments/{name}{path}", **parts}


# What the Python clients have no method for: the request that the method of the TypeScript client sends.
OTHERS: dict[str, Callable[..., dict[str, Any]]] = {
    "experiments": lambda **params: {"method": "GET", "path": "/v1/experiments", "params": params},
    "archive": lambda name: _of(name, "POST", "/archive"),
    "set_down": lambda name, arms: _of(name, "PUT", "/down", json={"arms": arms}),
    "awaiting_labels": lambda name, limit=100: _of(name, path="/labels", params={"limit": limit}),
    "segments": lambda name: _of(name, path="/segments"),
    "history": lambda name, points: _of(name, path="/history", params={"points": points}),
    "evaluation": lambda name: _of(name, path="/evaluation"),
}


class PythonCaller(Caller):
    def __init__(
        self, kind: type[Client] | type[AsyncClient], url: str, options: dict[str, Any]
    ) -> None:
        self._told: list[str] = []
        outbox, retries = options.pop("outbox", None), Retries(**options.pop("retries", {}))
        self._runner = asyncio.Runner()
        try:
            kept = Outbox() if outbox == "memory" else outbox
            self._client: Any = kind(
                url, outbox=kept, retries=retries, notify=self._told.append, **options
            )
        except DecoupledError as error:
            raise _refused(error) from error

    def call(self, method: str, *args: Any, **options: Any) -> Any:
        if method == "feedback_many":
            args = ([Undelivered(**each) for each in args[0]],)
        try:
            if method in OTHERS:
                found = self._client.request(**OTHERS[method](*args, **options))
            else:
                found = getattr(self._client, method)(*args, **options)
            return as_json(self._runner.run(found) if asyncio.iscoroutine(found) else found)
        except DecoupledError as error:
            raise _refused(error) from error

    def told(self) -> list[str]:
        return self._told

    def end(self) -> None:
        """Close the connections, without sending what is in the outbox."""
        http = self._client._http
        if isinstance(self._client, AsyncClient):
            self._runner.run(http.aclose())
        else:
            http.close()
        self._runner.close()


def _refused(error: DecoupledError) -> Refused:
    return Refused(type(error).__name__, str(error), as_json(getattr(error, "items", None)))


NAMES = {
    "first": "firstSeconds",
    "most": "mostSeconds",
    "compiling": "compilingSeconds",
    "timeout": "timeoutSeconds",
    "idempotency_key": "idempotencyKey",
}


class TypeScriptCaller(Caller):
    """The client of TypeScript, whose options come last, in one object."""

    def __init__(self, bridge: Bridge, url: str, options: dict[str, Any]) -> None:
        self._bridge = bridge
        retries = {
            NAMES.get(name, name): value for name, value in options.pop("retries", {}).items()
        }
        named = {NAMES.get(name, name): value for name, value in options.items()}
        self._number: int | None = None
        self._number = self._one("new", [url, {**named, "retries": retries}])

    def call(self, method: str, *args: Any, **options: Any) -> Any:
        name = re.sub(r"_(\w)", lambda found: found[1].upper(), method)
        named = {NAMES.get(option, option): value for option, value in options.items()}
        return self._one(name, [*args, named] if named else list(args))

    def told(self) -> list[str]:
        found: list[str] = self._one("told", [])
        return found

    def _one(self, method: str, args: list[Any]) -> Any:
        answer = self._bridge.call(self._number, method, args)
        if "error" in answer:
            error = answer["error"]
            raise Refused(error["name"], error["message"], error.get("items"))
        return answer["result"]


KINDS = ("Client", "AsyncClient", "TypeScript")


def caller_factory(kind: str, bridge: Bridge | None, stack: ExitStack) -> Callable[..., Caller]:
    """A function that makes clients of this kind, which end with the stack."""

    def make(url: str, **options: Any) -> Caller:
        if bridge is not None:
            return TypeScriptCaller(bridge, url, options)
        made = PythonCaller(Client if kind == "Client" else AsyncClient, url, options)
        stack.callback(made.end)
        return made

    return make


# Two attempts in three fail: of 200 requests one fails 60 times running once in 10**8 runs.
HASTY = {"attempts": 60, "first": 0.001, "most": 0.01}
ONCE = {"attempts": 1}
Make = Callable[..., Caller]
Kind = tuple[str, Bridge | None]
DECISION: dict[str, Any] = {
    "id": "1f2e-7", "experiment": "x", "mode": "both", "exploit": "a", "explore": "b", "send_feedback": None,
    "propensity": 0.5, "weight": 2.0, "policy": "FTPL", "state_version": 0, "made_at": "", "expires_at": None,
    "status": "pending", "loss": None, "settled_at": None, "drawn": None, "guard": None, "limited_by": None,
}  # fmt: skip


@pytest.fixture(scope="module", params=KINDS)
def kind(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kind]:
    name: str = request.param
    if name != "TypeScript":
        yield name, None
        return
    with bridged(built(tmp_path_factory)) as bridge:
        yield name, bridge


@pytest.fixture
def make(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    monkeypatch.delenv("DECOUPLED_KEY", raising=False)
    with ExitStack() as stack:
        yield caller_factory(*kind, stack)


def name_for(service: Service, kind: Kind, what: str, **settings: Any) -> str:
    """A new experiment for a test with a kind of client."""
    name = f"{what}-{kind[0]}"
    service.create(name, **settings)
    return name


def test_dropped_connections_lose_and_double_nothing(
    service: Service, make: Make, kind: Kind
) -> None:
    name = name_for(service, kind, "dropped")
    with dropping_proxy(service, random_outcomes(1)) as url:
        client = make(url, retries=HASTY)
        for i in range(10):
            applied = client.call("feedback", client.call("decide", name)["id"], loss=i / 10)
            assert (applied["status"], applied["loss"]) == ("applied", i / 10)
        several = client.call("decide", name, count=5)
        items = [{"decision": each["id"], "reward": 1.0} for each in several]
        assert [each["loss"] for each in client.call("feedback_many", items)] == [0.0] * 5
        assert client.call("add_arms", name, ["mauve"])["arms"] == [*FTPL["arms"], "mauve"]
        assert client.call("retire_arms", name, ["red"])["retired"] == ["red"]
    state = service.http.get(f"/v1/experiments/{name}/state").json()
    assert (state["decisions"], state["applied"], state["pending"]) == (15, 15, 0)


def test_everything_can_be_asked(service: Service, make: Make, kind: Kind) -> None:
    client, name = make(service.url), f"all-{kind[0]}"
    made = client.call("create", name, **FTPL, loss_range=[0, 250], deadline_seconds=60, seed=7)
    assert (made["status"], made["loss_range"], made["deadline_seconds"]) == ("ready", [0, 250], 60)
    assert client.call("experiment", name) == made
    assert client.call("experiments", after=name[:-1], limit=1)["experiments"][0]["name"] == name
    asked = {"mode": "explore", "available": ["red", "blue"], "idempotency_key": "once"}
    decision = client.call("decide", name, **asked)
    assert client.call("decide", name, **asked) == decision
    assert decision["explore"] in ("red", "blue")
    assert decision["exploit"] is None
    assert (
        client.call("feedback", decision["id"], loss=True, arm=decision["explore"])["loss"] == 1.0
    )
    assert client.call("decision", decision["id"])["status"] == "applied"
    assert client.call("state", name)["applied"] == 1
    assert client.call("verdict", name)["experiment"] == name
    gate = client.call("gate", name, "red", against="blue", margin=0.1)
    assert (gate["open"], gate["state"], gate["margin"]) == (False, "waiting", 0.1)
    assert client.call("history", name, 5)["decisions"][-1] == 1
    assert client.call("evaluation", name)["observed"] == 1
    kept = client.call("decide", name, key="session-17")
    again = [client.call("decide", name, mode="exploit", key="session-17") for _ in range(8)]
    assert {each["exploit"] for each in again} == {kept["exploit"]}
    assert {each["key"] for each in again} == {kept["key"]} != {"session-17"}
    aware = client.call("create", f"aware-{kind[0]}", **FTPL, context={"subject": "text"})
    assert (aware["context"], aware["unknown_context"]) == ({"subject": "text"}, "refuse")
    about = client.call("decide", aware["name"], context={"subject": "law"})
    assert (about["context"], about["advice"]) == ({"subject": "law"}, None)
    routed, policy = f"why-{kind[0]}", {"name": "ContextualLadder", "segments": ["subject"]}
    client.call("create", routed, arms=["red", "blue"], policy=policy, seed=7)
    for _ in range(8):
        about = client.call("decide", routed, context={"subject": "law"}, why=True)
        assert about["why"]["segment"] == ["law"]
        client.call("feedback", about["id"], loss=float(about["explore"] == "red"))
    subjects = ({"subject": "law"}, {"subject": "art"})
    one, two = (client.call("state", routed, context=each)["exploitation"] for each in subjects)
    assert one[0] < two[0]
    [law] = client.call("segments", aware["name"])["segments"]
    assert (law["segment"], law["decisions"]) == ({"subject": "law"}, 1)
    assert client.call("pin", name, "blue")["guardrails"]["pinned"] == "blue"
    assert client.call("decide", name)["exploit"] == "blue"
    assert client.call("unpin", name)["guardrails"]["pinned"] is None
    assert client.call("change_guardrails", name, holdout=0.1)["guardrails"]["holdout"] == 0.1
    assert client.call("set_down", name, ["red"])["guardrails"]["down"] == ["red"]
    assert client.call("set_budget", name, share=0.5)["budget"]["share"] == 0.5
    assert client.call("archive", name)["status"] == "archived"


def test_labels_are_sent_now_or_later(service: Service, make: Make, kind: Kind) -> None:
    client, name = make(service.url), f"labels-{kind[0]}"
    made = client.call("create", name, **FTPL, labels={"share": 0.1, "first": 3}, seed=7)
    assert made["labels"] == {"share": 0.1, "first": 3, "deadline": 10_000, "missing": 0.5}
    first, second, third = client.call("decide", name, count=3)
    assert (first["label"], first["label_probability"], first["judged"]) == (True, 1.0, None)
    both = client.call("feedback", first["id"], judged=0.25, position=-1, loss=1.0)
    assert (both["status"], both["judged"], both["position"], both["loss"]) == (
        "applied",
        0.25,
        -1.0,
        1.0,
    )
    items = [{"decision": each["id"], "judged": 0.5} for each in (second, third)]
    assert [each["status"] for each in client.call("feedback_many", items)] == [
        "pending",
        "pending",
    ]
    assert [each["id"] for each in client.call("awaiting_labels", name, 1)["decisions"]] == [
        second["id"]
    ]
    assert client.call("label", second["id"], reward=0.75)["loss"] == 0.25
    queue = client.call("awaiting_labels", name)
    assert (queue["used"], queue["awaiting"], queue["missing"]) == (2, 1, 0)
    assert client.call("verdict", name)["judge_report"]["labels"] == 2
    refused: list[tuple[str, str, dict[str, Any], str]] = [
        ("label", second["id"], {"loss": 0.5}, "Conflict"),
        ("feedback", second["id"], {"judged": 0.75}, "Conflict"),
        ("label", third["id"], {}, "ParameterError"),
        ("feedback", third["id"], {"judged": {}}, "ParameterError"),
    ]
    for call, id_, what, error in refused:
        with pytest.raises(Refused, match=f"^{error}: "):
            client.call(call, id_, **what)


def test_refusals_have_the_same_names(service: Service, make: Make, kind: Kind) -> None:
    name = name_for(service, kind, "kinds", deadline_seconds=1e-9)
    client = make(service.url, retries=ONCE)
    decision = client.call("decide", name)["id"]
    asked: list[tuple[str, str, list[Any], dict[str, Any]]] = [
        ("NotFound", "'nothing'", ["decide", "nothing"], {}),
        ("Conflict", "other settings", ["create", name], FTPL),
        ("Invalid", "mauve", ["decide", name], {"available": ["mauve"]}),
        ("Gone", "its deadline has passed", ["feedback", decision], {"loss": 0.5}),
    ]
    for error, words, call, options in asked:
        with pytest.raises(Refused, match=rf"^{error}: .*{words}"):
            client.call(*call, **options)
    with pytest.raises(Refused, match=r"^ParameterError: outbox: this client has none; pass"):
        client.call("flush")
    items = [{"decision": "none-1", "loss": 0.5}, {"decision": decision, "loss": 0.5}]
    results = client.call("feedback_many", items)
    assert [each["error"]["name"] for each in results] == ["NotFound", "Gone"]


@pytest.mark.parametrize(
    ("feedback", "message"),
    [
        ({}, "feedback: neither loss nor reward is given; give the loss of the explored arm, or its reward"),
        ({"loss": 0.5, "reward": 0.5}, "feedback: loss and reward are both given; give the loss .*, not both"),
        ({"loss": "0.5"}, r"loss = '0.5': must be a number, [Tt]rue or [Ff]alse, not str.*; give the loss"),
    ],
)  # fmt: skip
def test_feedback_is_refused_before_it_is_sent(
    make: Make, feedback: dict[str, Any], message: str
) -> None:
    client = make("http://127.0.0.1:9")
    with pytest.raises(Refused, match=f"^ParameterError: {message}"):
        client.call("feedback", "1f2e-7", **feedback)
    with pytest.raises(Refused, match=message):
        client.call("feedback_many", [{"decision": "1f2e-7", **feedback}])


def test_addresses_and_names_are_checked_and_names_escaped(make: Make, service: Service) -> None:
    for url in ("127.0.0.1:8000", "localhost:8000", "ftp://x", "http://", "", "http://x:port"):
        with pytest.raises(
            Refused, match=r"^ParameterError: url = .*: must be an address that begins with http://"
        ):
            make(url)
    client = make("http://127.0.0.1:9")
    for name in ("a/state", "", ".."):
        with pytest.raises(Refused, match=r"name = .*without '/'"):
            client.call("experiment", name)
        with pytest.raises(Refused, match=r"decision = .*without '/'"):
            client.call("feedback", name, loss=0.5)
    client = make(service.url)
    for name in ("a?b=c", "a b", "a#b", "a%2Fstate"):
        with pytest.raises(Refused, match=r"^Invalid: name: "):  # of the path, and not of a query
            client.call("experiment", name)


def test_an_unreachable_service_is_named_without_its_password(make: Make) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    client = make(f"http://me:secret@127.0.0.1:{port}/", retries=ONCE)
    with pytest.raises(Refused) as caught:
        client.call("state", "one")
    assert caught.value.kind == "Unreachable"
    assert (
        f"GET http://127.0.0.1:{port}/v1/experiments/one/state: no answer (" in caught.value.message
    )
    assert (
        "is `decoupled serve` running there? pass its address to the client" in caught.value.message
    )
    with pytest.raises(Refused) as caught:
        client.call("feedback", "1f2e-7", loss=0.25)
    assert caught.value.kind == "UndeliveredFeedback"
    assert caught.value.items == [{"decision": "1f2e-7", "loss": 0.25}]
    assert "secret" not in caught.value.message


def test_a_missing_or_wrong_key_is_reported_with_a_remedy(make: Make, tmp_path: Path) -> None:
    with served(tmp_path, open_to_all=False) as closed:
        for options, rule in (({}, "key: is missing; "), ({"key": "dk_x"}, "key: is unknown to ")):
            with pytest.raises(Refused, match=f"^Unauthorized: {rule}.*or set DECOUPLED_KEY"):
                make(closed.url, **options).call("experiments")
        client = make(closed.url, key=closed.key("read")["Authorization"].removeprefix("Bearer "))
        assert client.call("experiments")["experiments"] == []
        with pytest.raises(Refused, match=r"^Forbidden: "):
            client.call("create", "x", **FTPL)


@pytest.mark.parametrize(
    ("status", "tries", "kind_of_error"),
    [
        (429, 3, "TooMany"),
        (503, 3, "StoreError"),
        (502, 3, "StoreError"),
        (500, 1, "ServiceError"),
        (400, 1, "BadRequest"),
        (302, 1, "ServiceError"),
    ],
)
def test_only_temporary_errors_are_retried(
    make: Make, status: int, tries: int, kind_of_error: str
) -> None:
    with answering((status, {"Location": "/elsewhere"}, {"detail": "no"})) as (url, seen):
        client = make(url, retries={"attempts": 3, "first": 0.001})
        with pytest.raises(Refused, match=f"^{kind_of_error}: .*no"):
            client.call("decide", "x")
    assert [each.path for each in seen] == ["/v1/experiments/x/decisions"] * tries
    assert len({each.headers["idempotency-key"] for each in seen}) == 1
    assert len({json.dumps(each.body) for each in seen}) == 1


def test_a_policy_that_is_being_compiled_is_waited_for(make: Make) -> None:
    compiling = {"detail": "experiment 'x': the service is compiling FTPL", "title": "Compiling"}
    experiment = {"status": "compiling", "policy_label": "FTPL"}
    quick = {"attempts": 1, "first": 0.001, "most": 0.001}
    with answering((503, {}, compiling), (503, {}, compiling), (201, {}, DECISION)) as (url, seen):
        client = make(url, retries=quick)
        assert client.call("decide", "x")["id"] == "1f2e-7"
        assert len(seen) == 3, "waiting for the compiler is no attempt"
        assert client.told() == [compiling["detail"]]
    ready = {**experiment, "status": "ready"}
    with answering((202, {}, experiment), (202, {}, experiment), (200, {}, ready)) as (url, seen):
        client = make(url, retries=quick)
        assert client.call("create", "x", **FTPL)["status"] == "ready"
        assert len(seen) == 3
        [told] = client.told()
        assert "the service is compiling FTPL for experiment 'x'" in told
    broken = {"detail": "it does not compile", "title": "Compilation failed"}
    for status, problem, error in ((503, compiling, "Compiling"), (500, broken, "NotCompiled")):
        with (
            answering((status, {}, problem)) as (url, _),
            pytest.raises(Refused, match=f"^{error}: "),
        ):
            make(url, retries=quick | {"compiling": 0}).call("decide", "x")
    failed = {"status": "failed", "problem": "why"}
    with (
        answering((200, {}, failed)) as (url, _),
        pytest.raises(Refused, match=r"^NotCompiled: .*why"),
    ):
        make(url).call("create", "x", **FTPL)


def test_an_answer_that_is_late_or_not_json_is_an_error_and_retry_after_is_heeded(
    make: Make,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # connects, and never answers
        client = make(f"http://127.0.0.1:{silent.getsockname()[1]}", retries=ONCE, timeout=0.05)
        with pytest.raises(Refused, match=r"^Unreachable: "):
            client.call("decide", "x")
    said = pytest.raises(Refused, match=r"^ServiceError: .*the answer is not JSON")
    with answering((200, {}, b"<html>a proxy</html>")) as (url, _), said:
        make(url, retries=ONCE).call("decide", "x")
    refused = (429, {"Retry-After": "1"}, {"detail": "too many", "title": "Too many requests"})
    with answering(refused, (201, {}, DECISION)) as (url, seen):
        client = make(url, retries={"attempts": 2, "first": 0.0})
        assert client.call("decide", "x")["id"] == "1f2e-7"
    assert len(seen) == 2


def test_an_outbox_survives_the_program(
    service: Service, make: Make, kind: Kind, tmp_path: Path
) -> None:
    name = name_for(service, kind, "outbox", deadline_seconds=3600)
    decisions = service.decide(name, count=3)["decisions"]
    folder, retries = tmp_path / "outbox", {"attempts": 2, "first": 0.001}
    outcome = ["before"]
    with dropping_proxy(service, lambda: outcome[0]) as url:
        client = make(url, outbox=str(folder), retries=retries)
        for each in decisions:
            for _ in range(2):  # the same again is kept once
                assert client.call("feedback", each["id"], loss=0.25, arm=each["explore"]) is None
        assert client.call("feedback", "0123456789abcdef-1", loss=0.5) is None
        assert len(list(folder.glob("*.json"))) == 4, "on disk before the program ends"
        with pytest.raises(Refused, match=r"^ParameterError: .*another loss"):
            client.call("feedback", decisions[0]["id"], loss=0.75)
        client.call("close")  # nothing is lost, so it is no error
        torn = folder / ".0123.json.0123456789abcdef"  # the program died while it wrote
        torn.write_bytes(b'{"decision": "')
        os.utime(torn, (0.0, 0.0))
        outcome[0] = "pass"
        flushed = make(url, outbox=str(folder), retries=retries).call("flush")
    assert {each["id"] for each in flushed["delivered"]} == {each["id"] for each in decisions}
    [refused] = flushed["refused"]
    assert (refused["item"]["decision"], refused["error"]["name"]) == (
        "0123456789abcdef-1",
        "NotFound",
    )
    assert flushed["left"] == 0
    assert list(folder.iterdir()) == []
    assert service.http.get(f"/v1/experiments/{name}/state").json()["applied"] == 3


def test_an_outbox_refuses_files_of_another_kind(make: Make, tmp_path: Path) -> None:
    file = tmp_path / "notes"
    file.write_bytes(b'{"decision": "1f2e-7", "loss": 0.5}\n')
    with pytest.raises(Refused, match="is a file, and an outbox is a folder"):
        make("http://127.0.0.1:9", outbox=str(file))
    file.unlink()
    file.mkdir()
    for content in (b"a line", b"[1, 2]", b'{"loss": 0.5}', b'{"decision": "1f2e-7", "lo'):
        (file / "one.json").write_bytes(content)
        with pytest.raises(Refused, match=r"one\.json': is damaged"):
            make("http://127.0.0.1:9", outbox=str(file))
        assert (file / "one.json").read_bytes() == content


def test_an_outbox_in_memory_is_not_dropped_silently(
    service: Service, make: Make, kind: Kind
) -> None:
    decision = service.decide(name_for(service, kind, "memory"))["id"]
    with dropping_proxy(service, lambda: "before") as url:
        client = make(url, outbox="memory", retries=ONCE)
        assert client.call("feedback", decision, loss=0.5) is None
        assert client.call("flush") == {"delivered": [], "refused": [], "left": 1}
        with pytest.raises(Refused) as caught:
            client.call("close")
        assert caught.value.kind == "UndeliveredFeedback"
        assert caught.value.items == [{"decision": decision, "loss": 0.5}]
