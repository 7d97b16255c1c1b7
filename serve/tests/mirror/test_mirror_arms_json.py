"""What an arm may set and state: fields of JSON bodies, costs; and the ids of requests that the mirror refuses."""

import base64
import json
from pathlib import Path

import pytest

from decoupled.errors import ParameterError
from decoupled_serve.mirror.config_file import explained, read_config
from decoupled_serve.service.http.observe.log_format import TextFormatter
from support.mirrors.running import Fixed, UpstreamProcess, echoed, mirror, write_config

Arms = dict[str, UpstreamProcess]
ALL = '[mirror]\nshare = 1.0\nrepeat = ["* /*"]\n'
MODELS = {
    "small": '[arm.json]\nmodel = "small-1"\n[arm.json.options]\nseed = 7\n',
    "large": '[arm.json]\nmodel = "large-1"\n',
}


def one_upstream(arms: Arms, **urls: str) -> Arms:
    """Two arms at the upstream of one, or elsewhere."""
    there = arms["stable"]
    return {name: UpstreamProcess(name, urls.get(name, there.url), there.process) for name in MODELS}


def body_of(seen: dict[str, object]) -> object:
    content = base64.b64decode(str(seen["body"]))
    assert dict(seen["headers"])["content-length"] == str(len(content))  # type: ignore[call-overload]
    return json.loads(content)


def test_one_upstream_serves_two_models(arms: Arms, tmp_path: Path) -> None:
    file = write_config(tmp_path, one_upstream(arms), f"{ALL}body_limit = 100\n", **MODELS)
    chat = {"model": "router", "options": {"top_k": 3}, "text": "\ud800 ü"}
    small = chat | {"model": "small-1", "options": {"top_k": 3, "seed": 7}}
    with mirror(file, Fixed("small", "large")) as running:
        for content in (json.dumps(chat).encode(), iter([json.dumps(chat).encode()])):
            before = len(arms["stable"].seen())
            assert body_of(echoed(running.http.post("/echo", content=content))) == small
            running.settled()
            served, copied = map(body_of, arms["stable"].seen()[before:])
            assert (served, copied) == (small, chat | {"model": "large-1"})
        for content in (b"a=1", b"[1]", iter([b"a" * 101])):
            running.http.post("/echo", content=content)
        assert running.http.get("/echo").status_code == 200
        status = running.settled()
    assert base64.b64decode(arms["stable"].seen()[-5]["body"]) == b"a=1"
    assert (status["not_mirrored"]["not_json"], status["not_mirrored"]["too_large"]) == (2, 1)
    assert status["unchanged"] == {"small": 3}, "one without a body has nothing to set"
    assert "sets model, options in JSON" in explained(read_config(file))


def test_the_arm_that_stands_in_gets_its_own_model(arms: Arms, tmp_path: Path) -> None:
    without = {"small": MODELS["small"]}
    for name, lines, model in (("its own", MODELS, "large-1"), ("the client's", without, "router")):
        pair = one_upstream(arms, small="http://127.0.0.1:9")
        with mirror(write_config(tmp_path, pair, **lines), Fixed("small", "large")) as running:
            found = body_of(echoed(running.http.post("/echo", content=b'{"model":  "router"}')))
        assert found == {"model": model}, name


def test_a_sink_sets_the_fields_of_the_explored_arm(arms: Arms, tmp_path: Path) -> None:
    file = write_config(tmp_path, one_upstream(arms), f"sink = true\n{ALL}", **MODELS)
    with mirror(file, Fixed("small", "large")) as running:
        before = len(arms["stable"].seen())
        assert running.http.post("/echo", json={"model": "router"}).status_code == 202
        assert running.http.post("/echo", content=b"a=1").status_code == 202
        status = running.settled()
    assert [body_of(each) for each in arms["stable"].seen()[before:]] == [{"model": "large-1"}]
    assert status["not_mirrored"]["not_json"] == 1


def raw(content: str, *headers: str) -> str:
    """What tells the explored arm to answer this."""
    head = "\r\n".join(["HTTP/1.1 200 OK", f"Content-Length: {len(content)}", *headers, "", ""])
    return "/x?next=raw:" + base64.urlsafe_b64encode((head + content).encode()).decode()


USAGE = '{"usage": {"prompt_tokens": 200000, "completion_tokens": 10000, "details": {"audio": 0}}}'
EVENTS = f'data: {{"usage": null}}\n\ndata: {{"response": {USAGE}}}\n\ndata: [DONE]\n\n'
PRICED = 'cost = 0.5\ncost_header = "X-Cost"\nprices = { prompt_tokens = 1, completion_tokens = 10 }\n'


def test_costs_are_read_from_the_answer(
    arms: Arms, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    answers = {
        raw("{}", "X-Cost: 0.25"): 0.25,
        raw(USAGE): 0.3,
        raw(EVENTS, "Content-Type: text/event-stream; charset=utf-8"): 0.3,
        raw("{}"): 0.5,
        raw('{"usage": {"prompt_tokens": "NaN"}}', "X-Cost: dear"): 0.5,
    }
    backend = Fixed()
    file = write_config(tmp_path, arms, f"{ALL}[loss.cost]\nhigh = 1.0\n", next=PRICED)
    with mirror(file, backend) as running:
        for target in answers:
            running.http.get(target)
            status = running.settled()
    assert [loss for _, loss in backend.losses.values()] == pytest.approx(list(answers.values()))
    assert status["spent"]["next"] == pytest.approx(1.85)
    assert caplog.text.count("does not state its cost, and counts as cost = 0.5") == 1


def test_a_budget_without_prices_of_its_own_counts_what_the_answers_cost(
    arms: Arms, tmp_path: Path
) -> None:
    text = f"{ALL}[budget]\nallowance = [1.0, 1e9]\ntotal = 1e9\n"
    file = write_config(tmp_path, arms, text, stable="cost = 0.2\n", next=PRICED.replace("0.5", "0.1"))
    for mirrored, budget in ((3, 2), (0, 2)):  # another start goes on from there
        with mirror(file, Fixed()) as running:
            for _ in range(mirrored + budget):
                running.http.get(raw(USAGE))
                status = running.settled()
            assert sum(status["copied"].values()) == mirrored
            assert status["not_mirrored"]["budget"] == budget
    unknown = write_config(tmp_path, arms, "[budget]\ntotal = 5\n", stable="cost = 0.2\n")
    with pytest.raises(ParameterError, match=r"budget\.total = 5: needs the costs of all arms, and 'next'"):
        read_config(unknown)
    negative = write_config(tmp_path, arms, "[budget]\ntotal = -5\n", stable="cost = 1", next="cost = 1")
    with pytest.raises(ParameterError, match=r"budget\.total = -5: must be"):
        read_config(negative)


def test_an_error_of_the_mirror_has_the_id_of_its_request(
    arms: Arms, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.handler.setFormatter(TextFormatter())
    with mirror(write_config(tmp_path, arms), Fixed()) as running:
        named = running.http.get("/silent", headers={"X-Request-Id": "checkout-7"})
        fresh = running.http.get("/x", headers={"Upgrade": "websocket", "X-Request-Id": "not sane"})
    assert (named.status_code, fresh.status_code) == (502, 501)
    assert named.json()["request_id"] == named.headers["x-request-id"] == "checkout-7"
    assert fresh.json()["request_id"] == fresh.headers["x-request-id"] != "not sane"
    assert (
        "502: arm 'stable': gave no valid answer (closed the connection) [request checkout-7]"
        in caplog.text
    )
    assert f"[request {fresh.json()['request_id']}]" in caplog.text
