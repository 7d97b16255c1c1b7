"""What is written, when, and what stays when the service or the gateway is away."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoupled.client.errors import NotFound, Unreachable
from decoupled.errors import ParameterError, UnsupportedError
from decoupled_serve.weights.shares import (
    PARTS,
    AiGatewayRoute,
    Document,
    HttpRoute,
    Json,
    Nginx,
    Shares,
    all_to,
    in_parts,
    shares_of,
)
from decoupled_serve.weights.targets import FileTarget, Follower, HaProxy, NotTaken
from support import command_line
from support.http_service import Service, served
from support.pages import ROOT

DOCUMENTS: list[Document] = [
    Json(),
    Nginx("$request_id"),
    HttpRoute("front", 80),
    AiGatewayRoute("front", 80),
]
probabilities = st.lists(st.floats(0.0, 1.0), min_size=2, max_size=6).filter(
    lambda each: sum(each) > 0.01
)


@given(probabilities)
def test_what_is_written_is_what_to_serve_to_a_hundredth_of_a_percent(weights: list[float]) -> None:
    total = sum(weights)
    shares = Shares("chat", {f"arm-{place}": each / total for place, each in enumerate(weights)})
    assert sum(in_parts(shares, PARTS).values()) == PARTS
    for document in DOCUMENTS:
        found = document.read(document.text(shares))
        assert sum(found.values()) == pytest.approx(1.0)
        for name, share in shares.of.items():
            assert found.get(name, 0.0) == pytest.approx(share, abs=1.01 / PARTS)


def test_the_route_is_one_by_the_schema_of_the_gateway_api() -> None:
    kinds = json.loads((ROOT / "serve/tests/deploy/schemas/gateways.json").read_text())["kinds"]
    validator = jsonschema_rs.Draft7Validator(kinds["gateway.networking.k8s.io/v1 HTTPRoute"])
    route = json.loads(HttpRoute("front", 80).text(Shares("chat", {"small": 0.25, "large": 0.75})))
    assert [error.message for error in validator.iter_errors(route)] == []
    assert [each["weight"] for each in route["spec"]["rules"][0]["backendRefs"]] == [2500, 7500]
    route["spec"]["rules"][0]["backendRefs"][0]["weight"] = -1
    assert list(validator.iter_errors(route))


# The part of the CRD that routes use: group, version and kind, and what its schema and its rules ask of backends.
AI_ROUTE = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "apiVersion": {"const": "aigateway.envoyproxy.io/v1alpha1"},
        "kind": {"const": "AIGatewayRoute"},
        "spec": {
            "type": "object",
            "required": ["rules"],
            "additionalProperties": False,
            "properties": {
                "parentRefs": {"type": "array", "maxItems": 16, "items": {"required": ["name"]}},
                "rules": {
                    "type": "array",
                    "maxItems": 128,
                    "items": {
                        "properties": {
                            "backendRefs": {
                                "maxItems": 128,
                                "items": {
                                    "required": ["name"],
                                    "additionalProperties": False,
                                    "properties": {
                                        "name": {"type": "string", "minLength": 1},
                                        "modelNameOverride": {"type": "string"},
                                        "weight": {"type": "integer", "minimum": 0},
                                    },
                                },
                            }
                        }
                    },
                },
            },
        },
    },
}


def test_the_ai_route_is_one_by_its_crd_and_asks_each_backend_for_its_model() -> None:
    shares = Shares("chat", {"small": 0.25, "large": 0.75})
    text = AiGatewayRoute("front", 80, {"large": "gpt-5"}).text(shares)
    validator = jsonschema_rs.Draft7Validator(AI_ROUTE)
    assert [error.message for error in validator.iter_errors(json.loads(text))] == []
    assert list(validator.iter_errors(json.loads(HttpRoute("front", 80).text(shares)))), (
        "no other fits"
    )
    refs = json.loads(text)["spec"]["rules"][0]["backendRefs"]
    assert refs == [
        {"name": "small", "weight": 2500}, {"name": "large", "modelNameOverride": "gpt-5", "weight": 7500},
    ]  # fmt: skip
    with pytest.raises(ParameterError, match="--model = 'big': is not an upstream"):
        AiGatewayRoute("front", 80, {"big": "gpt-5"}).text(shares)


def test_names_that_mean_something_in_a_configuration_are_refused() -> None:
    state: dict[str, Any] = {
        "experiment": "chat",
        "arms": ["a b;", "c"],
        "exploitation": [0.5, 0.5],
    }
    with pytest.raises(ParameterError, match="'a b;': must be letters"):
        shares_of(state, {})
    assert shares_of(state, {"a b;": "x"}).of == {"x": 0.5, "c": 0.5}
    with pytest.raises(ParameterError, match="is that of two arms"):
        shares_of(state, {"a b;": "c"})
    with pytest.raises(ParameterError, match="is not an arm"):
        shares_of(state, {"d": "x"})
    with pytest.raises(ParameterError, match="no spaces, quotes or braces"):
        Nginx('$x" $y {')
    with pytest.raises(ParameterError, match="name of a route"):
        HttpRoute("front", 80).text(Shares("Chat_1", {"a": 1.0}))


class Telling:
    """A service that answers what it is told to, and a gateway's file with a command that counts its calls."""

    def __init__(self, folder: Path) -> None:
        self.file, self.calls = folder / "weights.json", folder / "calls"
        self.said: list[str] = []
        self.warned: list[str] = []
        self.answer: dict[str, float] | Exception = {"a": 0.5, "b": 0.5}
        script = f"import sys; open({str(self.calls)!r}, 'a').write('x'); sys.exit('bad' in open({str(self.file)!r}).read())"
        self.target = FileTarget(self.file, Json(), (sys.executable, "-S", "-c", script))

    def look(self) -> Shares:
        if isinstance(self.answer, Exception):
            raise self.answer
        return Shares("chat", self.answer)

    def follower(self, *, fallback: Shares | None = None) -> Follower:
        return Follower(
            self.look, self.target, 0.01, fallback, self.said.append, self.warned.append
        )

    def written(self) -> dict[str, float]:
        return Json().read(self.file.read_text())

    def reloads(self) -> int:
        return len(self.calls.read_text()) if self.calls.exists() else 0


@pytest.fixture
def telling(tmp_path: Path) -> Telling:
    return Telling(tmp_path)


def test_it_writes_only_beyond_the_threshold_and_for_an_arm_that_must_get_nothing(
    telling: Telling,
) -> None:
    follower = telling.follower()
    steps: list[tuple[dict[str, float], int]] = [
        ({"a": 0.5, "b": 0.5}, 1),
        ({"a": 0.505, "b": 0.495}, 1),
        ({"a": 0.49, "b": 0.51}, 1),
        ({"a": 0.48, "b": 0.52}, 2),
        ({"a": 0.008, "b": 0.992}, 3),
        ({"a": 0.0, "b": 1.0}, 4),  # it is down
        ({"a": 0.005, "b": 0.995}, 4),
    ]
    for answer, reloads in steps:
        telling.answer = answer
        follower.once()
        assert telling.reloads() == reloads, answer
    assert telling.written() == {"a": 0.0, "b": 1.0}
    assert telling.said[0] == "chat: a 50.00%, b 50.00%"


def test_while_the_service_is_away_the_last_value_stays(telling: Telling) -> None:
    follower = telling.follower(fallback=all_to("chat", "a"))
    telling.answer = Unreachable("no answer")
    with pytest.raises(Unreachable):
        follower.once()
    assert telling.written() == {"a": 1.0}, "nothing was there, so the fallback"
    telling.answer = {"a": 0.3, "b": 0.7}
    follower.once()
    telling.answer = Unreachable("no answer")
    with pytest.raises(Unreachable):
        follower.once()
    assert telling.written() == {"a": 0.3, "b": 0.7}


def test_a_gateway_that_refuses_keeps_what_it_had(telling: Telling) -> None:
    follower = telling.follower()
    telling.answer = {"bad": 1.0}
    with pytest.raises(
        NotTaken, match=r"exit status 1: ; .* stays for a gateway that starts later"
    ):
        follower.once()
    assert telling.written() == {"bad": 1.0}, "nginx does not start without the file"
    telling.answer = {"a": 0.3, "b": 0.7}
    follower.once()
    telling.answer = {"bad": 1.0}
    with pytest.raises(NotTaken, match="is as it was before"):
        follower.once()
    assert telling.written() == {"a": 0.3, "b": 0.7}


def test_a_loop_outlives_what_passes_and_ends_with_what_does_not(telling: Telling) -> None:
    telling.follower().once()
    away = Unreachable("away")
    answers: Iterator[Any] = iter([away, away, {"a": 0.1, "b": 0.9}, away, NotFound("gone")])

    def wait() -> None:
        telling.answer = next(answers)

    with pytest.raises(NotFound, match="gone"):
        telling.follower().forever(wait)
    # The first look tells the gateway in any case: a process before it may have been killed before it could.
    assert telling.reloads() == 3
    assert telling.written() == {"a": 0.1, "b": 0.9}
    assert telling.warned == ["away; the gateway keeps what it has"] * 2, "once an outage"


def test_an_arm_that_came_later_and_cannot_be_an_upstream_is_left_out() -> None:
    state: dict[str, Any] = {"experiment": "chat", "arms": ["a", "b", "b c;", "v1"]}
    state["exploitation"] = [0.5, 0.25, 0.15, 0.1]
    names = {"a": "v1", "gone": "v0"}
    with pytest.raises(ParameterError, match="'gone': is not an arm"):
        shares_of(state, names, lenient=True)
    shares = shares_of(state, names, ["gone"], lenient=True)
    assert shares.of == {"v1": pytest.approx(2 / 3), "b": pytest.approx(1 / 3)}
    assert [problem.partition(":")[0] for problem in shares.problems] == [
        "arm 'gone' is retired, and v0 gets nothing", "arm 'b c;' is left out", "arm 'v1' is left out",
    ]  # fmt: skip
    with pytest.raises(ParameterError, match="must be letters"):
        shares_of(
            state, {**names, "b": "b c;"}, ["gone"], lenient=True
        )  # an option that was never right
    # What is served must not be an arm that is no longer there, so the others share it.
    unserved = shares_of(
        state | {"exploitation": [0.0, 0.0, 1.0, 0.0]}, names, ["gone"], lenient=True
    )
    assert unserved.of == {"v1": 0.5, "b": 0.5}
    with pytest.raises(ParameterError, match="'b c;' is left out"):
        shares_of(state | {"arms": ["b c;"], "exploitation": [1.0]}, {}, lenient=True)


def test_a_loop_goes_on_with_the_upstreams_that_the_gateway_has(telling: Telling) -> None:
    """An arm is retired and another, which the gateway does not have, is added: the retired one gets nothing."""
    answers: Iterator[dict[str, float] | Exception] = iter(
        [
            {"b": 0.25, "bad": 0.75},
            {"b": 0.2, "bad": 0.8},
            ParameterError("no upstream"),
            UnsupportedError("no such kind"),
            OSError("no space"),
            {"a": 0.5, "b": 0.5},
            NotFound("gone"),
        ]
    )
    written = []

    def wait() -> None:
        written.append(telling.written())
        telling.answer = next(answers)

    with pytest.raises(NotFound, match="gone"):
        telling.follower().forever(wait)
    assert written == [{"a": 0.5, "b": 0.5}, *[{"b": 1.0}] * 5, {"a": 0.5, "b": 0.5}]
    [left_out, away] = telling.warned
    assert left_out.startswith("bad left out: `")
    assert away == "no upstream; the gateway keeps what it has", "once for all that follows it"


def test_wrong_options_end_a_loop_before_anything_is_written(telling: Telling) -> None:
    telling.answer = ParameterError("--upstream = 'smal': is not an arm")
    with pytest.raises(ParameterError, match="'smal'"):
        telling.follower().forever(lambda: None)
    assert not telling.file.exists()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with served(tmp_path_factory.mktemp("weights")) as running:
        running.create("chat", arms=["small", "large"], guardrails={"floors": {"small": 0.5}})
        yield running


@pytest.fixture
def run(service: Service) -> Callable[..., Any]:
    return lambda *words: command_line.run("weights", "chat", "--url", service.url, *words)


def test_the_command_prints_or_writes_by_the_guardrails(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    assert json.loads(run().stdout)["weights"] == {"small": 0.75, "large": 0.25}
    assert "75.00% v1;" in run("--to", "nginx", "--upstream", "small=v1").stdout
    route = json.loads(run("--to", "httproute", "--gateway", "front").stdout)
    assert route["spec"]["parentRefs"] == [{"name": "front"}]
    asked = run("--to", "aigatewayroute", "--gateway", "front", "--model", "large=gpt-5").stdout
    assert json.loads(asked)["spec"]["rules"][0]["backendRefs"][1]["modelNameOverride"] == "gpt-5"
    out = tmp_path / "weights.json"
    said = run("--out", str(out))
    assert (said.exit_code, said.stdout) == (0, "chat: small 75.00%, large 25.00%\n")
    assert run("--out", str(out)).stdout == "", "nothing has moved"
    assert Json().read(out.read_text()) == {"small": 0.75, "large": 0.25}


def test_the_command_says_what_is_missing(run: Callable[..., Any], tmp_path: Path) -> None:
    for words, problem in (
        (["--to", "apache"], "--to = 'apache': is not known"),
        (["--to", "haproxy"], "--socket: is missing"),
        (["--to", "httproute"], "--gateway: is missing"),
        (["--to", "aigatewayroute"], "--gateway: is missing"),
        (
            ["--to", "aigatewayroute", "--gateway", "front", "--model", "gpt-5"],
            "must be NAME=MODEL",
        ),
        (["--model", "small=gpt-5"], "is for --to aigatewayroute"),
        (["--watch"], "--watch: needs a file"),
        (["--upstream", "small"], "--upstream = 'small': must be ARM=NAME"),
    ):
        said = run(*words)
        assert (said.exit_code, problem in said.stderr) == (2, True), said.stderr
    said = run("--to", "haproxy", "--socket", str(tmp_path / "none.sock"))
    assert (said.exit_code, "does not answer" in said.stderr) == (1, True)


def test_without_a_service_the_command_falls_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "chat.conf"
    words = ["chat", "--to", "nginx", "--out", str(out), "--reload", "", "--upstream", "small=v1"]
    words += ["--fallback", "small", "--url", "http://127.0.0.1:1"]
    said = command_line.run("weights", *words, env={"DECOUPLED_KEY": ""})
    assert said.exit_code != 0
    assert "* v1;" in out.read_text()
    monkeypatch.delattr("socket.AF_UNIX")
    with pytest.raises(NotTaken, match="this system has no such sockets; use HOST:PORT"):
        HaProxy("/run/haproxy.sock", "chat").current()
