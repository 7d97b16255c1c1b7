"""Configurations: what is refused, and where."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from decoupled.cli.main import app
from decoupled.errors import ParameterError
from decoupled_serve.mirror.config_file import explained, read_config
from support.mirrors.running import ARMS

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
        (f"[budget]\ntotal = 1\n{MODEL}url = 'http://a'\n" + ARMS.replace("url", "cost = 1\nurl"), "needs the cost of the judge"),
        ("[loss]\nstatus = 1\ngood_status = [9]\n" + ARMS, "loss.good_status[0]: Input should be greater than or equal to 100"),
        ("[sticky]\n" + ARMS, "sticky: must have exactly one of header, cookie and json"),
        ("[sticky]\nheader = 'a'\ncookie = 'b'\n" + ARMS, "sticky: must have exactly one of header, cookie and json"),
        ("[sticky]\njson = 'user..id'\n" + ARMS, "sticky.json: "),
        ("[context]\na = {}\n" + ARMS, "context.a: must have exactly one of header, json, path and method"),
        ('[context]\na = { header = "X", method = true }\n' + ARMS, "context.a: must have exactly one of"),
        ('[context]\n"a b" = { method = true }\n' + ARMS, "the name of a field must be"),
        ("[budget]\ntotal = 5\n" + ARMS, "budget.total = 5: needs the costs of all arms, and 'stable' has none"),
        ("[budget]\ntotal = -5\n" + ARMS.replace("url", "cost = 1\nurl"), "budget.total = -5: must be"),
        ("[experiment]\npolicy = 'UCB1'\n" + ARMS, "experiment.policy: name = 'UCB1': plays the standard game"),
        ("[experiment]\npolicy = 'FTPLL'\n" + ARMS, "experiment.policy: name = 'FTPLL': is not a known policy; did you mean 'FTPL'?"),
        ("[experiment]\npolicy = { alpha = 3 }\n" + ARMS, "experiment.policy: "),
        ("[experiment]\nseed = true\n" + ARMS, "experiment.seed: "),
        ("[experiment]\nname = 'a/b'\n" + ARMS, "experiment.name = 'a/b': must be"),
    ],
)  # fmt: skip
def test_a_wrong_configuration_is_refused_where_it_is_wrong(tmp_path: Path, text: str, words: str) -> None:
    said = refusal(tmp_path, text)
    assert words in said
    assert said.startswith("mirror.toml: ")


def test_an_arm_may_judge_itself_if_told_so(tmp_path: Path) -> None:
    judge, named = f"{MODEL}url = 'http://127.0.0.1:9001/v1'\n", ARMS + "json = { model = 'other' }\n"
    for text in (f"{judge}self_judging = true\n{ARMS}", judge.replace("9001", "9002") + named):
        (tmp_path / "mirror.toml").write_text(text)
        assert "judge 1 (model m at http://127.0.0.1:900" in explained(
            read_config(tmp_path / "mirror.toml")
        )


def test_a_secret_is_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "one\ntwo")
    said = refusal(tmp_path, ARMS + 'headers = { Authorization = "Bearer ${A_KEY}" }\n')
    assert "arm[1].headers.Authorization: must be one line" in said
    assert "two" not in said
    monkeypatch.setenv("A_KEY", "secret")
    file = tmp_path / "mirror.toml"
    shown = CliRunner().invoke(app, ["mirror", "--check", str(file)])
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
    said = CliRunner().invoke(app, ["mirror", "--check", str(file)])
    assert (said.exit_code, "401" in said.stdout) == (0, False)
    assert ("every client gets 401" in said.stderr) == warns
    file.write_text(f"[loss.judge]\npython = 'no_such_judge:compare'\n{ARMS}{line}")
    said = CliRunner().invoke(app, ["mirror", "--check", str(file)])
    assert (said.exit_code, "the module no_such_judge is not found" in said.output) == (1, True)
