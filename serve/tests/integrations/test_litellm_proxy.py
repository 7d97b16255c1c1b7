"""The plug-in with LiteLLM's real proxy and stub models: one proxy, and a model group for each case.

`make test-litellm` runs them. They are skipped where LiteLLM is not installed.
"""

import asyncio
import doctest
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
import yaml

import decoupled as dc
from support.stub_models import StubModels, stub_models
from support.waiting import wait_for

if find_spec("litellm") is None:
    pytest.skip(
        "LiteLLM is not installed here; make test-litellm installs it", allow_module_level=True
    )

EXAMPLE = Path(__file__).parents[3] / "examples" / "litellm_router"
KEY = "sk-7d1a90c4e2f85b36d1a90c4e2f85b36a7d1a90c4e2f85b36d1a90c4e2f85b36a"
PLUGIN = """
from pathlib import Path
import decoupled as dc
from decoupled_serve.litellm import Plugin

HERE = Path(__file__).parent
"""
JUDGE = '''
"""Loss 1 for the model named large, 0 for others; waits for a file where the prompt says so."""
import json, os, time

def compare(request, served, mirrored):
    with open(os.path.join(os.path.dirname(__file__), "judged.jsonl"), "a") as file:
        print(json.dumps({"request": request.to_dict(), "served": served.to_dict(), "mirrored": mirrored.to_dict()}), file=file)
    while "judge hangs" in request.body.decode():
        time.sleep(0.05)
    return float("large" in mirrored.text)
'''
# Every request has a shadow, unless a case says otherwise.
CASES = {
    "chat": 'Plugin("chat", ARMS, LOSS, save=HERE / "chat.json", session_header="X-Session-Id", **ALL)',
    "forwards": 'Plugin("forwards", ARMS, LOSS, forward_headers=["X-Tenant", "Cookie"], copy_fields=["top_k"], **UNIFORM)',
    "bare": 'Plugin("bare", ARMS, LOSS, **UNIFORM)',
    "failing": 'Plugin("failing", ARMS, LOSS, save=HERE / "failing.json", guardrails=dc.Guardrails(pinned=ARMS[0]), **ALL)',
    "money": 'Plugin("money", ARMS, LOSS, save=HERE / "money.json", seed=1, folder=HERE, '
    "budget=dc.Budget(cost=0.0004, total=0.001))",
    "down": 'Plugin("down", ARMS, LOSS, service="http://127.0.0.1:9", session_header="X-Session-Id", **ALL)',
    "hanging": 'Plugin("hanging", ARMS, LOSS, service=HANGING, session_header="X-Session-Id", **ALL)',
    "raises": 'Plugin("raises", ARMS, LOSS, **ALL)\nplugin.routing.choose = plugin.routing.served = None',
}


@pytest.fixture(scope="module")
def models() -> Iterator[StubModels]:
    with stub_models() as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("proxy")


@pytest.fixture(scope="module")
def proxy(models: StubModels, folder: Path) -> Iterator[httpx.Client]:
    """A proxy with a group for each case, and one without a plug-in, on a free port."""
    with socket.socket() as hanging, socket.socket() as free:
        hanging.bind(("127.0.0.1", 0))
        hanging.listen(100)  # it accepts connections, and never answers
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        names = "ARMS = ['openai/small', 'openai/large']\nLOSS = {'judge': {'python': 'judge:compare', 'timeout': 300}}\n"
        names += "ALL = {'seed': 1, 'folder': HERE, 'budget': dc.Budget()}\n"
        names += "UNIFORM = {**ALL, 'policy': dc.FollowTheLeader()}\n"
        names += f"HANGING = 'http://127.0.0.1:{hanging.getsockname()[1]}'\n"
        for name, made in CASES.items():
            (folder / f"{name}_case.py").write_text(f"{PLUGIN}{names}plugin = {made}\n")
        (folder / "judge.py").write_text(JUDGE)
        (folder / "config.yaml").write_text(json.dumps(_config(models.url)))  # JSON is YAML
        command = [sys.executable, "-c", "from litellm import run_server; run_server()"]
        command += [
            "--config",
            str(folder / "config.yaml"),
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
        ]
        settings = {
            "LITELLM_MASTER_KEY": KEY,
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "NO_PROXY": "*",
        }
        with open(folder / "proxy.log", "w") as log:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env={**os.environ, **settings},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            try:
                headers = {"Authorization": f"Bearer {KEY}"}
                with httpx.Client(
                    base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60.0
                ) as http:
                    wait_for(lambda: _is_up(http, process), "the proxy", folder / "proxy.log")
                    yield http
            finally:
                process.terminate()
                process.wait(30)


def _is_up(http: httpx.Client, process: "subprocess.Popen[bytes]") -> bool:
    assert process.poll() is None, "it has ended"
    try:
        return http.get("/health/liveliness").is_success
    except httpx.TransportError:
        return False


def _config(url: str) -> dict[str, Any]:
    prices = {"small": 1e-5, "large": 2e-5, "other": 1e-5}
    deployments = [
        {
            "model_name": group,
            "litellm_params": {
                "model": f"openai/{model}",
                "api_base": url,
                "api_key": "sk-operator",
                "input_cost_per_token": prices[model],
                "output_cost_per_token": prices[model],
            },
        }
        for group in (*CASES, "control")
        for model in ("small", "large", "other")[: 3 if group == "chat" else 2]
    ]
    return {
        "model_list": deployments,
        "router_settings": {"num_retries": 2, "retry_after": 0},
        "litellm_settings": {"callbacks": [f"{name}_case.plugin" for name in CASES]},
    }


def saved(file: Path, rounds: int) -> dc.Learner:
    """The learner in a file, once it has learned so much."""

    def learned() -> Any:
        return file.exists() and (found := dc.Learner.load(file)).round >= rounds and found

    return cast(dc.Learner, wait_for(learned, f"a learner in round {rounds}"))


def ask(
    proxy: httpx.Client,
    group: str,
    prompt: str,
    headers: dict[str, str] | None = None,
    **fields: Any,
) -> httpx.Response:
    body = {"model": group, "messages": [{"role": "user", "content": prompt}], **fields}
    answer = proxy.post("/v1/chat/completions", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer


def judged(folder: Path, prompt: str) -> list[dict[str, Any]]:
    """What the judge saw of a prompt."""
    file = folder / "judged.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    return [json.loads(line) for line in lines if prompt in line]


def verdicts(folder: Path, prompt: str, count: int) -> list[dict[str, Any]]:
    """The same, once there are so many."""
    wait_for(lambda: len(judged(folder, prompt)) == count, f"{count} verdicts")
    return judged(folder, prompt)


def test_it_serves_the_better_model_and_once(
    proxy: httpx.Client, models: StubModels, folder: Path
) -> None:
    for number in range(60):
        ask(proxy, "chat", f"question {number}.")
    seen = verdicts(folder, "question ", 60)
    # A model is asked once: by the client or by the shadow, which is the served answer if both are the same.
    for number in range(60):
        asked = models.of(f"question {number}.")
        assert len(set(asked)) == len(asked)
        assert set(asked) <= {"small", "large"}  # "other" is in the group, and not an arm
    assert {each["mirrored"]["arm"] for each in seen} == {"openai/small", "openai/large"}
    small, large = saved(folder / "chat.json", 61).exploitation_probabilities()
    assert small > 0.9 > large
    assert ask(proxy, "chat", "last").json()["choices"][0]["message"]["content"] == "I am small."


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
def test_every_kind_of_call_has_a_shadow(
    proxy: httpx.Client, models: StubModels, folder: Path, path: str, stream: bool
) -> None:
    for number in range(8):
        prompt = f"{path} {stream} {number}."
        content = (
            {"messages": [{"role": "user", "content": prompt}]}
            if "chat" in path
            else {"input": prompt}
        )
        answer = proxy.post(path, json={"model": "forwards", "stream": stream, **content})
        assert answer.status_code == 200
        assert "I am " in answer.text
    seen = verdicts(folder, f"{path} {stream}", 8)
    copies = [each for each in seen if each["mirrored"]["arm"] != each["served"]["arm"]]
    ours = {
        "cache",
        "cooldown_time",
        "disable_fallbacks",
        "litellm_metadata",
        "metadata",
        "num_retries",
    }
    assert not any(ours & each["body"].keys() for each in models.asked)
    assert copies  # else the seed makes this a test of nothing
    for each in copies:
        for answer in (each["served"], each["mirrored"]):  # a judge sees a streamed answer whole
            assert f"I am {answer['arm'].removeprefix('openai/')}." in _text(
                json.loads(answer["body"])
            )
        price = {"openai/small": 1e-5, "openai/large": 2e-5}
        assert each["mirrored"]["cost"] == pytest.approx(15 * price[each["mirrored"]["arm"]])
        assert each["served"]["cost"] == pytest.approx(15 * price[each["served"]["arm"]])


def _text(answer: dict[str, Any]) -> str:
    if "output" in answer:
        return str(answer["output"][0]["content"][0]["text"])
    return str(answer["choices"][0]["message"]["content"])


def test_shadows_carry_only_allowed_headers(
    proxy: httpx.Client, models: StubModels, folder: Path
) -> None:
    headers = {"X-Tenant": "blue", "X-Secret": "s3cret", "Cookie": "sid=c00kie"}
    for number in range(8):
        for group in ("bare", "forwards"):
            ask(
                proxy,
                group,
                f"headers {group} {number}.",
                headers,
                temperature=0.5,
                top_k=3,
                user="ann",
            )
    for group in ("bare", "forwards"):
        seen = verdicts(folder, f"headers {group}", 8)
        shadows = [each for each in seen if each["mirrored"]["arm"] != each["served"]["arm"]]
        assert shadows
        for each in shadows:
            prompt = json.loads(each["request"]["body"])["messages"][0]["content"]
            model = each["mirrored"]["arm"].removeprefix("openai/")
            [sent] = [
                a for a in models.asked if a["model"] == model and prompt in json.dumps(a["body"])
            ]
            assert sent["headers"]["authorization"] == "Bearer sk-operator"
            assert KEY not in json.dumps(sent)
            assert "s3cret" not in json.dumps([sent, each])
            assert sent["body"]["temperature"] == 0.5
            assert "ann" not in sent["body"].values()
            assert ("x-tenant" in sent["headers"]) == (group == "forwards")
            assert ("c00kie" in json.dumps(sent)) == (group == "forwards")
            assert ("top_k" in sent["body"]) == (group == "forwards")
            assert "c00kie" not in json.dumps(each)  # the judge sees no credentials


@pytest.mark.parametrize("group", ["raises", "down", "hanging"])
@pytest.mark.parametrize("stream", [False, True])
def test_answers_outlive_errors(
    proxy: httpx.Client, models: StubModels, group: str, stream: bool
) -> None:
    for number in range(3):
        prompt = f"{group} {stream} {number}."
        answer = ask(proxy, group, prompt, {"X-Session-Id": str(number)}, stream=stream)
        model = models.of(prompt)[0]
        while models.of(f"as {prompt}")[-1:] != [model]:  # until LiteLLM picks the same one
            expected = ask(proxy, "control", f"as {prompt}", stream=stream)
        plain = [
            each.text.replace(f'"{name}"', '"group"')
            for each, name in ((answer, group), (expected, "control"))
        ]
        assert _undated(plain[0]) == _undated(plain[1])
        assert len(models.of(prompt)) == 1  # and there is no shadow
        if group != "raises":
            assert model == "small"  # the first arm serves


def _undated(text: str) -> str:
    return re.sub(r'"created":\d+', '"created":0', text)


def test_answers_do_not_wait_for_a_judge(proxy: httpx.Client, folder: Path) -> None:
    for number in range(20):
        ask(proxy, "chat", f"judge hangs {number}.")
    assert wait_for(lambda: judged(folder, "judge hangs"), "a judge that was asked")


def test_a_failing_model_has_the_loss_1_and_a_shadow_does_not_trouble_clients(
    proxy: httpx.Client, models: StubModels, folder: Path
) -> None:
    models.failing.add("large")
    try:
        for number in range(12):
            assert "small" in ask(proxy, "failing", f"failing {number}.").text
        assert models.of("failing ").count("small") == 12
        wait_for(lambda: "large" in models.of("failing "), "a shadow that failed")
        learner = saved(folder / "failing.json", 13)
    finally:
        models.failing.clear()
    # No cooldown because of a shadow, no retry of one.
    assert all(models.of(f"failing {number}.").count("large") <= 1 for number in range(12))
    small, large = learner.estimates()
    assert small < large


def test_real_prices_count(proxy: httpx.Client, folder: Path) -> None:
    with ThreadPoolExecutor(20) as clients:
        list(clients.map(lambda number: ask(proxy, "money", f"money {number}."), range(40)))
    spent = folder / "money.json.spent"
    meter = wait_for(lambda: spent.exists() and json.loads(spent.read_text()), "the file")
    assert float(meter["spent"]) <= 0.001
    assert len(judged(folder, "money ")) >= 3


def asked_in_process(
    models: StubModels, prompt: str, limit: int, **settings: Any
) -> tuple[Any, list[str]]:
    """Ask a router whose plug-in is pinned to the small model, which takes prompts up to a limit of tokens."""
    import litellm

    from decoupled_serve.litellm import Plugin

    arms = ["openai/small", "openai/large"]
    deployments = [
        {
            "model_name": "chat",
            "litellm_params": {"model": arm, "api_base": models.url, "api_key": "sk-operator"},
            "model_info": {"max_input_tokens": limit if arm == arms[0] else 100_000},
        }
        for arm in arms
    ]
    router = litellm.Router(model_list=deployments, retry_after=0, **settings)
    pinned = dc.Guardrails(pinned=arms[0])
    plugin = Plugin(
        "chat", arms, {"status": 1.0}, budget=dc.Budget(), guardrails=pinned, router=router
    )

    async def ask() -> None:
        with suppress(litellm.InternalServerError):
            await router.acompletion(model="chat", messages=[{"role": "user", "content": prompt}])
        await asyncio.sleep(1.0)  # LiteLLM tells its callbacks later
        await plugin.routing.copies.drain(10.0)

    before, litellm.callbacks = litellm.callbacks, [plugin]
    try:
        asyncio.run(ask())
    finally:
        litellm.callbacks = before
    return plugin, models.of(prompt)


def test_another_model_serves_what_the_exploited_one_does_not_take(models: StubModels) -> None:
    _, asked = asked_in_process(models, "short", 1_000, enable_pre_call_checks=True)
    assert asked[0] == "small"
    _, asked = asked_in_process(models, "long " * 2_000, 1_000, enable_pre_call_checks=True)
    assert asked[0] == "large"


def test_retries_are_not_decided_again(models: StubModels) -> None:
    models.failing = {"small", "large"}
    try:
        plugin, asked = asked_in_process(models, "retried", 1_000, num_retries=2, allowed_fails=100)
    finally:
        models.failing = set()
    # Three attempts, and one shadow of the first, unless it explores the model that failed.
    counts = plugin.routing.counts
    assert (asked[0], len(asked)) == ("small", 3 + counts.copied.total())
    assert counts.copied.total() + counts.reused.total() == counts.learned["applied"] == 1
    assert plugin.learner.pending == ()


def test_the_example_in_the_docstring_runs() -> None:
    from decoupled_serve.litellm import plugin

    assert doctest.testmod(plugin) == doctest.TestResults(failed=0, attempted=2)


def test_a_failing_shadow_cools_no_deployment_down(models: StubModels) -> None:
    import litellm
    from litellm.router_utils.cooldown_handlers import _async_get_cooldown_deployments

    from decoupled_serve.litellm import Plugin

    arms = ["openai/small", "openai/large"]
    keys = {"api_base": models.url, "api_key": "sk-operator"}
    deployments = [{"model_name": "cool", "litellm_params": {"model": arm, **keys}} for arm in arms]
    router = litellm.Router(
        model_list=deployments, num_retries=0, allowed_fails=0, cooldown_time=60
    )
    pinned, policy = dc.Guardrails(pinned=arms[0]), dc.FollowTheLeader()
    settings: dict[str, Any] = {"guardrails": pinned, "policy": policy, "seed": 1, "router": router}
    plugin = Plugin("cool", arms, {"status": 1.0}, budget=dc.Budget(), **settings)

    async def steps() -> list[str]:
        for number in range(8):
            messages = [{"role": "user", "content": f"cool {number}."}]
            await router.acompletion(model="cool", messages=messages)
        await asyncio.sleep(1.0)  # LiteLLM tells its callbacks later
        await plugin.routing.copies.drain(10.0)
        return list(await _async_get_cooldown_deployments(router, None))

    before, litellm.callbacks, models.failing = litellm.callbacks, [plugin], {"large"}
    try:
        assert asyncio.run(steps()) == []
    finally:
        litellm.callbacks, models.failing = before, set()
    assert "large" in models.of("cool ")


def test_the_configuration_of_the_example_names_its_arms(tmp_path: Path) -> None:
    from litellm.proxy.types_utils.utils import get_instance_fn

    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    config = yaml.safe_load((tmp_path / "config.yaml").read_text())
    plugin = get_instance_fn(config["litellm_settings"]["callbacks"], str(tmp_path / "config.yaml"))
    models: dict[str, set[str]] = {each["model_name"]: set() for each in config["model_list"]}
    for each in config["model_list"]:
        models[each["model_name"]].add(each["litellm_params"]["model"])
    assert models == {plugin.group: set(plugin.routing.arms)}


def test_the_example_runs_and_judges_its_claims(tmp_path: Path) -> None:
    options = ["--requests", "16", "--runs", "1", "--out", str(tmp_path / "runs.jsonl")]
    command = [sys.executable, str(EXAMPLE / "run.py"), *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # One run has no interval, so nothing can be claimed from it.
    assert done.stdout.count("undecided") == 10
    assert (tmp_path / "runs.jsonl").read_text().count("\n") == 1
