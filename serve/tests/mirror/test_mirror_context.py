"""The context of a request: where it is found, how it is bounded, and that its decision knows it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from decoupled.client.errors import Conflict, StoreError
from decoupled.errors import ParameterError
from decoupled_serve.mirror.backend import Embedded
from decoupled_serve.mirror.config import FieldConfig
from decoupled_serve.mirror.config_file import explained, read_config
from decoupled_serve.mirror.context import ContextFinder
from decoupled_serve.mirror.json_fields import parsed
from decoupled_serve.service.service import open_service
from support.mirrors.running import Fixed, UpstreamProcess, echoed, mirror, write_config

Arms = dict[str, UpstreamProcess]
ALL = '[mirror]\nshare = 1.0\nrepeat = ["* /*"]\n[experiment]\nseed = 7\npolicy = "FTPL"\n'
CONTEXT = """
[context]
subject = { header = "X-Subject" }
tokens = { json = "request.max_tokens", type = "number" }
stream = { json = "stream", type = "boolean" }
route = { path = 1 }
verb = { method = true }
"""


def finder(**fields: dict[str, Any]) -> ContextFinder:
    return ContextFinder({name: FieldConfig.model_validate(field) for name, field in fields.items()})


def test_a_decision_knows_the_context_of_its_request(arms: Arms, tmp_path: Path) -> None:
    config = read_config(write_config(tmp_path, arms, ALL + CONTEXT))
    service = open_service(tmp_path / "store.db")
    with mirror(config, Embedded(service, config)) as running:
        body = {"request": {"max_tokens": 312}, "stream": True, "text": "x" * 5_000}
        got = echoed(running.http.post("/echo", json=body, headers={"X-Subject": "law"}))
        assert got["arm"] in arms
        echoed(running.http.get("/echo"))
        assert running.settled()["no_context"] == 0
        page = service.listing.decisions("local", "mirror", status="applied").result().items
        found = service.logs.segments("local", "mirror", ["subject"]).result()
    assert [each.context for each in page] == [
        {"route": "echo", "verb": "GET"},
        {"route": "echo", "stream": True, "subject": "law", "tokens": 312.0, "verb": "POST"},
    ]
    assert {each.values: each.observed for each in found.segments} == {("law",): 1, (None,): 1}


def test_a_service_that_fails_does_not_keep_clients_waiting(arms: Arms, tmp_path: Path) -> None:
    backend = Fixed()
    with mirror(write_config(tmp_path, arms, ALL + CONTEXT), backend) as running:
        assert echoed(running.http.get("/echo"))["arm"] == "stable"
        backend.failing = StoreError("the disk is full")
        assert echoed(running.http.get("/echo"))["arm"] == "stable"
        assert (running.status()["no_context"], running.status()["not_sticky"]) == (1, 0)
        backend.failing = None


def test_values_are_bounded_and_what_does_not_fit_is_missing() -> None:
    header = finder(subject={"header": "X-Subject"}, size={"header": "X-Size", "type": "number"})
    for value, expected in (
        (b"x" * 5_000, "x" * 200),
        (" é ".encode(), "é"),
        (b"", None),
        (b"a\x00b", None),
        (b"\xff", "\ufffd"),
    ):
        found = header.find("GET", b"/", [(b"x-subject", value), (b"x-size", value)], None)
        assert (found.get("subject"), found.get("size")) == (expected, None)
    for text, number in (
        (b"1e3", 1000.0),
        (b"nan", None),
        (b"1e400", None),
        (b"-7", -7.0),
        (b"1e101", None),
    ):
        assert header.find("GET", b"/", [(b"x-size", text)], None).get("size") == number
    body = finder(a={"json": "a.b"}, n={"json": "n", "type": "number"}, t={"json": "t", "type": "boolean"})
    assert body.in_body
    contents: list[tuple[Any, dict[str, Any]]] = [
        ({"a": {"b": 7}, "n": "12", "t": "TRUE"}, {"a": "7", "n": 12.0, "t": True}),
        ({"a": {"b": True}, "n": 10**400, "t": 2}, {}),
        ({"a": "b", "n": [1], "t": None}, {}),
        ([1], {}),
    ]
    for content, context in contents:
        assert body.find("GET", b"/", [], content) == context
    for broken in (b"{", b"", b"\xff", b"[" * 100_000):
        assert parsed(broken) is None
    assert body.find("GET", b"/", [], None) == {}
    path = finder(whole={"path": 0}, second={"path": 2})
    assert path.find("GET", b"/v1/chat", [], None) == {"whole": "/v1/chat", "second": "chat"}
    assert path.find("GET", b"/", [], None) == {"whole": "/"}
    assert ContextFinder({}).find("GET", b"/", [], None) == {}


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("a = {}", "context.a: must have exactly one of header, json, path and method"),
        ('a = { header = "X", method = true }', "context.a: must have exactly one of"),
        ('a = { header = "X Y" }', "context.a.header: "),
        ('a = { json = "a..b" }', "context.a.json: "),
        ("a = { path = -1 }", "context.a.path: "),
        ('a = { method = true, type = "int" }', "context.a.type: Input should be 'text'"),
        ('a = { hedaer = "X" }', "did you mean 'header'?"),
        ('"a b" = { method = true }', "the name of a field must be"),
    ],
)
def test_what_is_no_context(table: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "mirror.toml"
    arms = "".join(f'[[arm]]\nname = "{name}"\nurl = "http://{name}"\n' for name in "ab")
    file.write_text(f"[context]\n{table}\n{arms}")
    with pytest.raises(ParameterError) as caught:
        read_config(file)
    assert words in str(caught.value)


def test_the_check_says_it_and_other_fields_need_another_experiment(arms: Arms, tmp_path: Path) -> None:
    config = read_config(write_config(tmp_path, arms, ALL + CONTEXT))
    assert (
        "knows of a request: subject (text of header 'X-Subject'), tokens (number of json 'request.max_tokens'), "
        "stream (boolean of json 'stream'), route (text of path 1), verb (text of method)"
    ) in explained(config)
    service = open_service(tmp_path / "store.db")
    asyncio.run(Embedded(service, config).prepare())
    other = config.model_copy(update={"context": {}})
    with pytest.raises(Conflict, match=r"exists with context = "):
        asyncio.run(Embedded(service, other).prepare())
    service.close()


def test_a_sink_knows_the_context_of_a_copy(arms: Arms, tmp_path: Path) -> None:
    config = read_config(write_config(tmp_path, arms, f"sink = true\n{ALL}{CONTEXT}"))
    service = open_service(tmp_path / "store.db")
    with mirror(config, Embedded(service, config)) as running:
        assert running.http.post("/echo", json={"stream": False}).status_code == 202
        running.settled()
        [made] = service.listing.decisions("local", "mirror", status="applied").result().items
    assert made.context == {"route": "echo", "stream": False, "verb": "POST"}
