"""Configurations: what is refused, and where."""

import base64
import json
import re
import socket
from pathlib import Path

import pytest

from decoupled.errors import ParameterError
from decoupled_serve.mirror.config import JudgeConfig
from decoupled_serve.mirror.config_file import explained, free_port, read_config
from support.command_line import run, said
from support.mirrors.running import ARMS, Start
from support.stub_models import stub_models

MODEL = "[loss.judge]\nmodel = 'm'\n"


def refusal(folder: Path, text: str) -> str:
    file = folder / "mirror.toml"
    file.write_text(text)
    with pytest.raises(ParameterError) as caught:
        read_config(file)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = [", "mirror.toml: is not TOML"),
        ("", "arm: Field required"),
        (ARMS.split("[[arm]]\nname = \"next\"")[0], "arm: Tuple should have at least 2 items"),
        (ARMS.replace("next", "stable"), "arm.name = 'stable': is there twice"),
        (ARMS.replace("http://127.0.0.1:9002", "ftp://a"), "arm[1].url: url = 'ftp://a': must be an address"),
        (ARMS.replace("http://127.0.0.1:9002", "http://user:word@a"), "without a user"),
        (ARMS + "colour = 1\n", "arm[1].colour: Extra inputs are not permitted"),
        ("lisen = 'a'\n" + ARMS, "lisen: Extra inputs are not permitted"),
        ("key = 'a'\n" + ARMS, "key: is not a key here"),
        ("listen = '8080'\n" + ARMS, "listen = '8080': must be an address and a port"),
        ("console = '0.0.0.0:80'\n" + ARMS, "console = '0.0.0.0:80': must be loopback"),
        ("store = 'a.db'\nservice = 'http://a'\n" + ARMS, "store, service: both are given"),
        ("[mirror]\nshare = 1.5\n" + ARMS, "mirror.share = 1.5: must be a number from 0 to 1"),
        ("[mirror]\nrepeat = ['POST']\n" + ARMS, "mirror: repeat = 'POST': must be a method and a path"),
        ("[mirror]\nqueue = 0\n" + ARMS, "mirror.queue: Input should be greater than or equal to 1"),
        ("[mirror]\nheaders = { 'a b' = 'c' }\n" + ARMS, "mirror.headers.a b.[key]: "),
        (ARMS + 'headers = { X = "${NOT_SET_ANYWHERE}" }\n', "the environment variable NOT_SET_ANYWHERE is not set"),
        (ARMS + 'pass_credentials = ["Accept"]\n', "arm[1].pass_credentials = 'Accept': is not a credential"),
        (ARMS + "timeout = '5'\n", "arm[1].timeout: "),
        (ARMS + "json = { day = 2026-01-01 }\n", "arm[1].json.day: "),
        ("[loss]\nstatus = 0\n" + ARMS, "loss: every weight is 0"),
        ("[loss]\nlatency = { low = 2, high = 1 }\n" + ARMS, "loss.latency: high = 1.0: must be above low = 2"),
        ("[loss]\nbytes = { high = 1e9 }\n" + ARMS, "loss.bytes.high = 1000000000.0: must not exceed mirror.answer_limit"),
        ("[loss.judge]\nweight = 1\n" + ARMS, "loss.judge: must have either python or url"),
        (f"{MODEL}url = 'http://127.0.0.1:9001/v1'\n" + ARMS, "loss.judge.model = 'm': is the arm 'stable', too"),
        (f"{MODEL}url = 'http://a'\nalone = true\n" + ARMS, "model = 'm': needs a url, and compares two answers"),
        (MODEL + "python = 'a:b'\n" + ARMS, "model = 'm': needs a url"),
        ("[loss.judge]\npython = 'a:b'\norder = 'both'\n" + ARMS, "loss.judge: order: is for a model alone"),
        (f"{MODEL}url = 'http://a'\nrubric = 'r'\nrubric_file = 'f'\n" + ARMS, "rubric, rubric_file: both are given"),
        (f"{MODEL}url = 'http://a'\nkey_env = 'NOT_SET_ANYWHERE'\n" + ARMS, "variable NOT_SET_ANYWHERE is not set"),
        (f"[budget]\ntotal = 1\n{MODEL}url = 'http://a'\n" + ARMS.replace("url", "cost = 1\nurl"), "and the judge has neither ceiling nor cost"),
        ("[loss]\nstatus = 1\ngood_status = [9]\n" + ARMS, "loss.good_status[0]: Input should be greater than or equal to 100"),
        ("[sticky]\n" + ARMS, "sticky: must have exactly one of header, cookie and json"),
        ("[sticky]\nheader = 'a'\ncookie = 'b'\n" + ARMS, "sticky: must have exactly one of header, cookie and json"),
        ("[sticky]\njson = 'user..id'\n" + ARMS, "sticky.json: "),
        ("[context]\na = {}\n" + ARMS, "context.a: must have exactly one of header, json, path, method and python"),
        ('[context]\na = { header = "X", method = true }\n' + ARMS, "context.a: must have exactly one of"),
        ('[context]\n"a b" = { method = true }\n' + ARMS, "the name of a field must be"),
        ("[budget]\ntotal = 5\n" + ARMS, "budget.total = 5: needs the most that a copy and its judgement cost, and the arm 'stable' has"),
        ("[budget]\ntotal = -5\n" + ARMS.replace("url", "cost = 1\nurl"), "budget.total = -5: must be"),
        ("[experiment]\npolicy = 'UCB1'\n" + ARMS, "experiment.policy: name = 'UCB1': plays the standard game"),
        ("[experiment]\npolicy = 'FTPLL'\n" + ARMS, "experiment.policy: name = 'FTPLL': is not a known policy; did you mean 'FTPL'?"),
        ("[experiment]\npolicy = { alpha = 3 }\n" + ARMS, "experiment.policy: "),
        ("[experiment]\nseed = true\n" + ARMS, "experiment.seed: "),
        ("[experiment]\nname = 'a/b'\n" + ARMS, "experiment.name = 'a/b': must be"),
    ],
)  # fmt: skip
def test_a_wrong_configuration_is_refused_where_it_is_wrong(
    tmp_path: Path, text: str, words: str
) -> None:
    said = refusal(tmp_path, text)
    assert words in said
    assert said.startswith("mirror.toml: ")


def test_an_arm_may_judge_itself_and_secrets_hide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge, named = (
        f"{MODEL}url = 'http://127.0.0.1:9001/v1'\n",
        ARMS + "json = { model = 'other' }\n",
    )
    for text in (f"{judge}self_judging = true\n{ARMS}", judge.replace("9001", "9002") + named):
        (tmp_path / "mirror.toml").write_text(text)
        assert "judge 1 (model m at http://127.0.0.1:900" in explained(
            read_config(tmp_path / "mirror.toml")
        )
    monkeypatch.setenv("A_KEY", "one\ntwo")
    said = refusal(tmp_path, ARMS + 'headers = { Authorization = "Bearer ${A_KEY}" }\n')
    assert "arm[1].headers.Authorization: must be one line" in said
    assert "two" not in said
    monkeypatch.setenv("A_KEY", "secret")
    file = tmp_path / "mirror.toml"
    shown = run("mirror", "--check", "--offline", file)
    assert shown.exit_code == 0, shown.output
    assert "arm 'next': http://127.0.0.1:9002, adds Authorization" in shown.output
    assert "secret" not in shown.output


@pytest.mark.parametrize(
    ("line", "warns"),
    [
        ("", True),
        ('pass_credentials = ["Cookie"]\n', True),
        ('pass_credentials = ["authorization"]\n', False),
        ('headers = { Authorization = "Bearer of-the-arm" }\n', False),
    ],
)
def test_the_check_warns_if_no_arm_is_authorized(tmp_path: Path, line: str, warns: bool) -> None:
    file = tmp_path / "mirror.toml"
    file.write_text(ARMS + line)
    said = run("mirror", "--check", "--offline", file)
    assert (said.exit_code, "401" in said.stdout) == (0, False)
    assert ("every client gets 401" in said.stderr) == warns
    file.write_text(f"[loss.judge]\npython = 'no_such_judge:compare'\n{ARMS}{line}")
    said = run("mirror", "--check", "--offline", file)
    assert (said.exit_code, "the module no_such_judge is not found" in said.output) == (1, True)


def answered(status: int, *headers: str, body: bytes = b"{}") -> str:
    """A health path to which an upstream answers this."""
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}", *headers, "", ""]
    wire = "\r\n".join(lines).encode() + body
    return f"/raw:{base64.urlsafe_b64encode(wire).decode()}"


def test_the_check_asks_each_arm_once_and_says_what_it_answers(start: Start) -> None:
    priced = 'cost_header = "X-Cost"\n'
    well = f'health = "{answered(200, "X-Cost: 0.25")}"\n{priced}'
    cases = {
        "status 200 after": (well, 0),
        "cost 0.25": (well, 0),
        "status 200": ("", 0),
        "status 404 after": (f'health = "{answered(404)}"', 1),
        "status 503 after": (f'health = "{answered(503)}"', 1),
        "unreadable: its X-Cost is not a finite number": (
            f'health = "{answered(200, "X-Cost: dear")}"\n{priced}',
            1,
        ),
        "no answer, gave no valid answer": ('health = "/malformed"', 1),
        "because the check has no credentials": (
            f'health = "{answered(401)}"\npass_credentials = ["Cookie"]',
            0,
        ),
    }
    for words, (lines, code) in cases.items():
        before = {name: len(arm.seen()) for name, arm in start.arms.items()}
        checked = run("mirror", "--check", start.file("", next=lines))
        [line] = [each for each in checked.output.splitlines() if "asked arm 'next'" in each]
        assert words in line
        assert checked.exit_code == code, checked.output
        assert ("do not answer well: next;" in checked.stderr) == bool(code)
        after = {name: len(arm.seen()) for name, arm in start.arms.items()}
        assert after == {name: count + 1 for name, count in before.items()}, "one request each"
        offline = run("mirror", "--check", "--offline", start.file("", next=lines))
        assert (offline.exit_code, "asked arm" in offline.output) == (0, False)
        assert {name: len(arm.seen()) for name, arm in start.arms.items()} == after


def test_the_check_names_an_arm_that_is_not_there(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # and does not listen
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        arms = f'[[arm]]\nname = "a"\nurl = "{url}"\n[[arm]]\nname = "b"\nurl = "{url}"\n'
        (tmp_path / "mirror.toml").write_text(arms)
        checked = run("mirror", "--check", tmp_path / "mirror.toml")
    assert checked.exit_code == 1
    assert checked.stderr.count("no answer, cannot be connected to (ConnectionRefusedError)") == 2
    assert "do not answer well: a, b;" in checked.stderr
    alone = run("mirror", "--offline", tmp_path / "mirror.toml")
    assert (alone.exit_code, "add --check" in alone.output) == (1, True)


def test_the_check_asks_what_the_file_lets_it_repeat(start: Start) -> None:
    sample = {
        "request": {"method": "POST", "target": "/search?check", "headers": [], "body": "a=1"}
    }
    answer = {"arm": "a", "status": 200, "headers": [], "body": "hi"}
    content = json.dumps({**sample, "served": answer, "mirrored": answer})
    (start.folder / "sample.json").write_text(content)
    (start.folder / "agreeing_judge.py").write_text("def compare(*_):\n    return 0.5\n")
    judge = '[loss.judge]\npython = "agreeing_judge:compare"\nsample = "sample.json"\n'
    chat = '[mirror]\nrepeat = ["POST /v1/chat/completions"]\n'
    search = '[mirror]\nrepeat = ["POST /search"]\n'
    for text, asked in (
        (chat, ("POST", "/v1/chat/completions")),
        (search + judge, ("POST", "/search?check")),
        (chat + judge, ("POST", "/v1/chat/completions")),
        (judge, ("GET", "/")),
        (search, ("GET", "/")),
    ):
        before = len(start.arms["next"].seen())
        checked = run("mirror", "--check", start.file(text))
        assert checked.exit_code == 0, checked.output
        [seen] = start.arms["next"].seen()[before:]
        assert (seen["method"], seen["target"]) == asked


INIT = ["init", "llm", "large=http://127.0.0.1:9101/v1", "small=http://127.0.0.1:9102/v1"]
JUDGE = ["--judge", "judge=http://127.0.0.1:9103/v1"]
KEYS = (
    "OPENAI_BASE_URL",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "MISTRAL_API_KEY",
    "GROQ_API_KEY",
)


def initialised(
    folder: Path, patch: pytest.MonkeyPatch, *words: str, **variables: str
) -> tuple[int, str, dict[str, str]]:
    """The status, the output, and the files that `decoupled init` writes with these variables alone."""
    for name in KEYS:
        patch.delenv(name, raising=False)
    for name, value in variables.items():
        patch.setenv(name, value)
    done = run(*words, "--out", folder)
    return done.exit_code, done.output, {each.name: each.read_text() for each in folder.iterdir()}


def test_the_first_file_for_models_is_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stub_models() as models:
        models.says["judge"] = lambda body: '{"better": "tie"}'
        url = models.url.removesuffix("/v1")
        arms = ["init", "llm", f"large={url}/v1", f"small={url}/v1"]
        words = [
            *arms,
            "--judge",
            f"judge={url}/v1",
            "--price",
            "small=0.15,0.6",
            "--budget",
            "2.5",
        ]
        status, said, files = initialised(tmp_path, monkeypatch, *words)
        assert (status, list(files)) == (0, ["mirror.toml"]), said
        check = run("mirror", tmp_path / "mirror.toml", "--check")
        asked = [each["model"] for each in models.asked]
    assert (check.exit_code, "judged a sample pair" in check.output) == (0, True), check.output
    assert (asked.count("large"), asked.count("small")) == (1, 1)
    config = read_config(tmp_path / "mirror.toml")
    assert [(arm.name, arm.url) for arm in config.arms] == [
        ("large", url), ("small", url)
    ]  # fmt: skip
    assert config.guardrails == {"incumbent": "large"}
    assert config.spending_limits == {"allowance": [2.5, 86400]}
    assert config.labels is not None
    assert config.labels.to == "console"
    assert config.labels.redact
    assert config.arms[1].prices == {"prompt_tokens": 0.15, "completion_tokens": 0.6}
    assert [arm.dearest for arm in config.arms] == pytest.approx([0.01, 0.0036])


def test_the_environment_tells_where_models_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["init", "llm", "large", "here=http://127.0.0.1:9101/v1", "--judge", "judge"]
    status, said, files = initialised(tmp_path, monkeypatch, *words, OPENROUTER_API_KEY="sk-1")
    assert status == 0, said
    assert "sk-1" not in files["mirror.toml"] + said
    config = read_config(tmp_path / "mirror.toml")
    assert config.arms[0].url == "https://openrouter.ai/api"
    assert config.arms[0].headers == {"Authorization": "Bearer sk-1"}
    assert config.arms[1].headers == {}, "another provider does not get the key"
    assert config.loss.judge is not None
    assert config.loss.judge.key_env == "OPENROUTER_API_KEY"


def test_the_first_file_listens_where_nothing_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        for first in (port, port - 1):  # the mirror's, and the console's
            assert free_port(first) > first
    releases = ["init", "http", "http://127.0.0.1:9201", "canary=http://127.0.0.1:9202"]
    status, shown, _ = initialised(tmp_path, monkeypatch, *releases)
    assert status == 0, shown
    said("mirror", tmp_path / "mirror.toml", "--check", "--offline")
    config = read_config(tmp_path / "mirror.toml")
    assert [arm.name for arm in config.arms] == ["stable", "canary"]
    assert (config.guardrails, config.budget) == ({"incumbent": "stable"}, {"rate": [10, 1]})


def test_the_files_of_the_plug_in_are_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, said, files = initialised(tmp_path, monkeypatch, *INIT, *JUDGE, "--to", "litellm")
    assert (status, sorted(files)) == (0, ["config.yaml", "plugin.py"]), said
    deployments = re.findall(r"litellm_params: (.*)", files["config.yaml"])
    assert [json.loads(each)["model"] for each in deployments] == ["openai/large", "openai/small"]
    names: dict[str, object] = {}
    exec(re.findall(r"(?s)ARMS = .*?(?=COST)", files["plugin.py"])[0], names)
    assert names["ARMS"] == ["openai/large", "openai/small"]
    assert JudgeConfig.model_validate(names["JUDGE"]).url == "http://127.0.0.1:9103/v1"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["init", "llm", "large", *INIT[3:], *JUDGE], "MODEL = 'large': has no address"),
        ([*INIT[:3], *JUDGE], "is one model; give two or more"),
        ([*INIT[:3], "small=http://127.0.0.1:9102", *JUDGE], "which does not end with /v1"),
        ([*INIT, "--judge", "small=http://127.0.0.1:9102/v1"], "is the arm 'small', too"),
        ([*INIT, "--judge", "small=http://127.0.0.1:9103/v1", "--to", "litellm"], "--judge = 'small': is an arm, too"),
        ([*INIT, *JUDGE, "--price", "tiny=1,2"], "must be MODEL=IN,OUT for one of judge, large, small"),
        ([*INIT, *JUDGE, "--price", "small=1"], "must be MODEL=IN,OUT"),
        ([*INIT, *JUDGE, "--label", "console", "--to", "litellm"], "takes no labels"),
        ([*INIT, *JUDGE, "--label", "somebody"], "labels.to"),
        (["init", "http", "http://127.0.0.1:9201"], "is one release"),
        (["init", "http", "http://127.0.0.1:9201", "ftp://a"], "arm[1].url"),
    ],
)  # fmt: skip
def test_a_wrong_first_file_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    status, output, files = initialised(tmp_path, monkeypatch, *words)
    assert status != 0
    assert said in output
    assert files == {}


def test_a_file_is_overwritten_by_force_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mirror.toml").write_text("mine")
    status, said, files = initialised(tmp_path, monkeypatch, *INIT, *JUDGE)
    assert (status, files["mirror.toml"]) == (1, "mine")
    assert "give --force" in said
    status, said, files = initialised(tmp_path, monkeypatch, *INIT, *JUDGE, "--force")
    assert status == 0, said
    assert files["mirror.toml"] != "mine"
