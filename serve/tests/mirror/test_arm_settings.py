"""What an arm may set and state: fields of JSON bodies, and costs, which are held against a budget."""

import base64
import json
import random
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from threading import Thread

import pytest

import decoupled as dc
from decoupled.errors import ParameterError
from decoupled.learner import Aside
from decoupled_serve.mirror.config_file import explained, read_config
from decoupled_serve.mirror.spending import Spending
from support.mirrors.running import ALL, Fixed, Start, UpstreamProcess, echoed, mirror

MODELS = {
    "small": '[arm.json]\nmodel = "small-1"\n[arm.json.options]\nseed = 7\n',
    "large": '[arm.json]\nmodel = "large-1"\n',
}


def one_upstream(start: Start, **urls: str) -> Start:
    """Two arms at the upstream of one, or elsewhere."""
    there = start.arms["stable"]
    arms = {
        name: UpstreamProcess(name, urls.get(name, there.url), there.process) for name in MODELS
    }
    return Start(arms, start.folder)


def body_of(seen: dict[str, object]) -> object:
    content = base64.b64decode(str(seen["body"]))
    assert dict(seen["headers"])["content-length"] == str(len(content))  # type: ignore[call-overload]
    return json.loads(content)


def test_one_upstream_serves_two_models(start: Start) -> None:
    file = one_upstream(start).file(f"{ALL}body_limit = 100\n", **MODELS)
    chat = {"model": "router", "options": {"top_k": 3}, "text": "\ud800 ü"}
    small = chat | {"model": "small-1", "options": {"top_k": 3, "seed": 7}}
    with mirror(file, Fixed("small", "large")) as running:
        for content in (json.dumps(chat).encode(), iter([json.dumps(chat).encode()])):
            before = len(start.arms["stable"].seen())
            assert body_of(echoed(running.http.post("/echo", content=content))) == small
            running.settled()
            served, copied = map(body_of, start.arms["stable"].seen()[before:])
            assert (served, copied) == (small, chat | {"model": "large-1"})
        for content in (b"a=1", b"[1]", iter([b"a" * 101])):
            running.http.post("/echo", content=content)
        assert running.http.get("/echo").status_code == 200
        status = running.settled()
    assert base64.b64decode(start.arms["stable"].seen()[-5]["body"]) == b"a=1"
    assert (status["not_mirrored"]["not_json"], status["not_mirrored"]["too_large"]) == (2, 1)
    assert status["unchanged"] == {"small": 3}, "one without a body has nothing to set"
    assert "sets model, options in JSON" in explained(read_config(file))


def test_the_arm_that_stands_in_gets_its_own_model_and_so_does_that_of_a_sink(start: Start) -> None:
    without = {"small": MODELS["small"]}
    for name, lines, model in (("its own", MODELS, "large-1"), ("the client's", without, "router")):
        with one_upstream(start, small="http://127.0.0.1:9")(
            "", Fixed("small", "large"), **lines
        ) as running:
            found = body_of(echoed(running.http.post("/echo", content=b'{"model":  "router"}')))
        assert found == {"model": model}, name
    with one_upstream(start)(f"sink = true\n{ALL}", Fixed("small", "large"), **MODELS) as running:
        before = len(start.arms["stable"].seen())
        assert running.http.post("/echo", json={"model": "router"}).status_code == 202
        assert running.http.post("/echo", content=b"a=1").status_code == 202
        status = running.settled()
    assert [body_of(each) for each in start.arms["stable"].seen()[before:]] == [
        {"model": "large-1"}
    ]
    assert status["not_mirrored"]["not_json"] == 1


def raw(content: str, *headers: str) -> str:
    """What tells the explored arm to answer this."""
    head = "\r\n".join(["HTTP/1.1 200 OK", f"Content-Length: {len(content)}", *headers, "", ""])
    return "/x?next=raw:" + base64.urlsafe_b64encode((head + content).encode()).decode()


USAGE = '{"usage": {"prompt_tokens": 200000, "completion_tokens": 10000, "details": {"audio": 0}}}'
EVENTS = f'data: {{"usage": null}}\n\ndata: {{"response": {USAGE}}}\n\ndata: [DONE]\n\n'
PRICED = (
    'cost = 0.5\ncost_header = "X-Cost"\nprices = { prompt_tokens = 1, completion_tokens = 10 }\n'
)


def test_costs_are_read_from_the_answer(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    answers = {
        raw("{}", "X-Cost: 0.25"): 0.25,
        raw(USAGE): 0.3,
        raw(EVENTS, "Content-Type: text/event-stream; charset=utf-8"): 0.3,
        raw("{}"): 0.5,
        # A price that is none: the answer has failed, and its call counts as the dearest.
        raw('{"usage": {"prompt_tokens": "NaN"}}', "X-Cost: dear"): 1.0,
    }
    with start(f"{ALL}[loss.cost]\nhigh = 1.0\n", next=PRICED) as running:
        for target in answers:
            running.http.get(target)
            status = running.settled()
    assert running.losses == pytest.approx(list(answers.values()))
    assert status["spent"]["next"] == pytest.approx(1.85)
    assert caplog.text.count("does not state its cost, and counts as cost = 0.5") == 1


def test_a_budget_without_prices_of_its_own_counts_what_the_answers_cost(start: Start) -> None:
    text = f"{ALL}[budget]\nallowance = [1.0, 1e9]\ntotal = 1e9\n"
    lines = {"stable": "cost = 0.2\n", "next": PRICED.replace("0.5", "0.1")}
    for mirrored, budget in ((3, 2), (0, 2)):  # another start goes on from there
        with start(text, None, **lines) as running:
            for _ in range(mirrored + budget):
                running.http.get(raw(USAGE))
                status = running.settled()
            assert sum(status["copied"].values()) == mirrored
            assert status["not_mirrored"]["budget"] == budget


def test_what_was_set_aside_counts_until_the_price_is_known() -> None:
    spending = Spending(dc.Budget(cost={"a": 0.25, "b": 0.5}, total=1.0), ["a", "b"])
    first = spending.reserve(["a", "b"])  # which arm it will be is not known yet
    second = spending.reserve(["a", "b"])
    assert first is not None
    assert second is not None
    assert spending.reserve(["a"]) is None
    assert not spending.end(first)
    assert spending.end(second, "a", 0.3), "above the ceiling of its arm"
    assert spending.shown() == {"spent": {"total": 0.3}, "left": {"total": 0.7}}
    spending.resume("a")
    assert float(spending.meter.spent) == 0.55, "what is set aside does not follow the dearest copy"
    now = 5.0
    spending = Spending(dc.Budget(cost=0.5, allowance=(1.0, 10.0)), ["a"], clock=lambda: now)
    early = spending.resume("a")
    now = 15.0
    late = spending.resume("a")
    spending.end(early, "a", 0.25)  # which counted in its own period
    assert float(spending.meter.spent_in_period) == 0.5
    spending.end(late, "a", 0.25)
    assert float(spending.meter.spent_in_period) == 0.25
    assert float(spending.meter.spent) == 0.5


def attack(budget: dc.Budget, run: int, clock: Callable[[], float]) -> Spending:
    """Eight threads reserve and pay at once, at random prices up to the ceilings, in random order; some never pay."""
    spending, highest = Spending(budget, ["a", "b"], clock=clock, judge=0.125), []

    def client(number: int) -> None:
        chance, waiting = random.Random(1_000 * run + number), list[Aside]()
        for _ in range(25):
            if (aside := spending.reserve(["a", "b"])) is not None:
                waiting.append(aside)
            highest.append((spending.meter.spent, spending.meter.spent_in_period))
            if waiting and chance.random() < 0.6:
                arm = chance.choice("ab")
                paid = waiting.pop(chance.randrange(len(waiting)))
                spending.end(paid, arm, chance.random() * spending.meter.budget.cost_of(arm))

    threads = [Thread(target=client, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(total for total, _ in highest) <= 8
    assert max(in_period for _, in_period in highest) <= 3
    return spending


def test_concurrent_attacks_never_exceed_the_budget() -> None:
    """200 runs, each of 200 attempts: real prices and what is set aside stay within the total and each period's allowance."""
    interval, ticks = sys.getswitchinterval(), count()
    sys.setswitchinterval(1e-6)  # threads take turns in the middle of calls
    try:
        for run in range(200):
            budget = dc.Budget(cost={"a": 0.5, "b": 0.25}, total=8, allowance=(3, 60))
            spending = attack(budget, run, lambda: float(next(ticks)))
            assert spending.meter.above == 0
            assert spending.meter.spent > 4, "the attack reached the budget"
    finally:
        sys.setswitchinterval(interval)


def test_what_was_spent_survives_a_restart_and_no_ceiling_rises(tmp_path: Path) -> None:
    file, budget = tmp_path / "spent", dc.Budget(cost=0.1, total=1.1)
    spending = Spending(budget, ["a", "b"], file)
    spending.end(spending.resume("a"), "a", 0.95)
    spending.close()
    again = Spending(budget, ["a", "b"], file)
    assert (float(again.meter.spent), again.meter.above) == (0.95, 1)
    assert again.reserve(["a"]) is not None
    assert again.reserve(["a"]) is None
    again.close()
    file.write_text("[0.5, 0.5, 0, 0.1]")
    with pytest.raises(ParameterError, match="spent: cannot be read; remove it to count from 0"):
        Spending(budget, ["a"], file)
