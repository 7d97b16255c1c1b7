"""The share of the traffic that each upstream should get, and the files that say so, from which it can be read back."""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from decoupled.errors import ParameterError, near_name

PARTS = 10_000  # in every kind of file, because nginx takes percentages with two decimals
_ROUTE_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_BY = re.compile(r"[\w$.:@/-]+")
_NGINX_SHARE = re.compile(r"^ *(?:(\d+\.\d\d)%|(\*)) (\S+);$", re.MULTILINE)
_ROUNDING = 1e-9
_UPSTREAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class Shares(NamedTuple):
    """The shares of an experiment's upstreams, in the order of its arms; they add up to 1. `problems` says which arms lack one, and why."""

    experiment: str
    of: dict[str, float]
    problems: tuple[str, ...] = ()

    def without(self, names: Collection[str]) -> Self:
        """The others, which share what these would get; equally if they would get nothing."""
        left = {name: share for name, share in self.of.items() if name not in names}
        total = sum(left.values())
        shares = {name: share / total if total else 1.0 / len(left) for name, share in left.items()}
        return self._replace(of=shares)

    def __str__(self) -> str:
        return f"{self.experiment}: " + ", ".join(
            f"{name} {share:.2%}" for name, share in self.of.items()
        )


def shares_of(
    state: Mapping[str, Any],
    upstreams: Mapping[str, str],
    retired: Iterable[object] = (),
    *,
    lenient: bool = False,
) -> Shares:
    """What to serve by the state of an experiment: its probabilities of exploiting, which follow its guardrails.

    A mapped arm may be `retired`. If `lenient`, an arm that is not mapped and cannot be an upstream is left out.

    >>> state = {"experiment": "chat", "arms": ["small", "large"], "exploitation": [0.25, 0.75]}
    >>> print(shares_of(state, {"large": "llm-2"}))
    chat: small 25.00%, llm-2 75.00%
    """
    arms = [str(arm) for arm in state["arms"]]
    gone = [arm for arm in upstreams if arm not in arms]
    known = set(map(str, retired))
    for arm in gone:
        if arm not in known:
            rule = "is not an arm of the experiment"
            raise ParameterError.of("--upstream", arm, rule, near_name(arm, arms))
    problems = [f"arm {arm!r} is retired, and {upstreams[arm]} gets nothing" for arm in gone]
    names: dict[str, str] = {}  # of mapped arms first: no other arm may take the upstream of one
    for arm in sorted(arms, key=lambda each: each not in upstreams):
        name = upstreams.get(arm, arm)
        try:
            if _checked(name) in names.values():
                remedy = "give each arm an upstream of its own"
                raise ParameterError.of("--upstream", name, "is that of two arms", remedy)
        except ParameterError as error:
            if not lenient or arm in upstreams:
                raise
            problems.append(f"arm {arm!r} is left out: {error}")
        else:
            names[arm] = name
    if not names:
        raise ParameterError("; ".join(problems))
    shares = {
        names.get(arm, ""): share for arm, share in zip(arms, state["exploitation"], strict=True)
    }
    return Shares(state["experiment"], shares, tuple(problems)).without([""])


def all_to(experiment: str, upstream: str) -> Shares:
    """Everything to one upstream."""
    return Shares(experiment, {_checked(upstream): 1.0})


def _checked(upstream: str) -> str:
    """A name that means nothing else in any configuration."""
    if _UPSTREAM.fullmatch(upstream) is None:
        rule = "must be letters, digits, '.', '_' and '-', a letter or a digit first"
        raise ParameterError.of(
            "--upstream", upstream, rule, "give the arm another name, as in ARM=NAME"
        )
    return upstream


def in_parts(shares: Shares, parts: int) -> dict[str, int]:
    """The shares as whole numbers that add up to `parts`, by largest remainders.

    >>> in_parts(Shares("chat", {"a": 1 / 3, "b": 2 / 3, "c": 0.0}), 100)
    {'a': 33, 'b': 67, 'c': 0}
    """
    exact = {name: share * parts / sum(shares.of.values()) for name, share in shares.of.items()}
    whole = {name: int(each) for name, each in exact.items()}
    by_remainder = sorted(exact, key=lambda name: whole[name] - exact[name])
    for name in by_remainder[: parts - sum(whole.values())]:
        whole[name] += 1
    return whole


def has_moved(now: Mapping[str, float], then: Mapping[str, float], threshold: float) -> bool:
    """Whether a share differs by more than a threshold.

    >>> has_moved({"a": 0.5, "b": 0.5}, {"a": 0.495, "b": 0.505}, 0.01)
    False
    """
    names = now.keys() | then.keys()
    return any(
        abs(now.get(name, 0.0) - then.get(name, 0.0)) > threshold + _ROUNDING for name in names
    )


class Document(ABC):
    """A kind of file."""

    @abstractmethod
    def text(self, shares: Shares) -> str:
        """The file for these shares."""

    @abstractmethod
    def read(self, text: str) -> dict[str, float]:
        """The shares in a file; a `ValueError` or a `LookupError` if it is none of this kind."""


class Json(Document):
    """The shares as JSON.

    >>> print(Json().text(Shares("chat", {"small": 0.25, "large": 0.75})))
    {"experiment": "chat", "weights": {"small": 0.25, "large": 0.75}}
    <BLANKLINE>
    """

    def text(self, shares: Shares) -> str:
        weights = {name: parts / PARTS for name, parts in in_parts(shares, PARTS).items()}
        return json.dumps({"experiment": shares.experiment, "weights": weights}) + "\n"

    def read(self, text: str) -> dict[str, float]:
        return {str(name): float(share) for name, share in json.loads(text)["weights"].items()}


@dataclass(frozen=True)
class Nginx(Document):
    """A `split_clients` block to include in nginx's `http`. Arms keep their order, so that few clients change sides.

    >>> print(Nginx("$request_id").text(Shares("chat", {"small": 0.25, "large": 0.75})))
    # Written by `decoupled weights chat`.
    split_clients "$request_id" $decoupled_chat {
        25.00% small;
        * large;
    }
    <BLANKLINE>
    """

    by: str

    def __post_init__(self) -> None:
        if _BY.fullmatch(self.by) is None:
            rule = "must be variables of nginx, with no spaces, quotes or braces"
            raise ParameterError.of("--by", self.by, rule, "for example '$cookie_session'")

    def text(self, shares: Shares) -> str:
        variable = "decoupled_" + re.sub(r"\W", "_", shares.experiment, flags=re.ASCII)
        *first, (last, _) = [each for each in in_parts(shares, PARTS).items() if each[1] > 0]
        lines = [f"    {parts / 100:.2f}% {name};" for name, parts in first] + [f"    * {last};"]
        head = f"# Written by `decoupled weights {shares.experiment}`."
        return "\n".join((head, f'split_clients "{self.by}" ${variable} {{', *lines, "}", ""))

    def read(self, text: str) -> dict[str, float]:
        found: dict[str, float] = {}
        for percent, _, name in _NGINX_SHARE.findall(text):
            found[name] = round(float(percent) / 100.0 if percent else 1.0 - sum(found.values()), 4)
        if not found:
            raise ValueError("has no split_clients block")
        return found


@dataclass(frozen=True)
class HttpRoute(Document):
    """A route of the Gateway API, as JSON, which `kubectl apply` takes. Its backends are Services."""

    gateway: str
    port: int

    api = "gateway.networking.k8s.io/v1"
    kind = "HTTPRoute"

    def _backend(self, name: str) -> dict[str, Any]:
        return {"name": name, "port": self.port}

    def text(self, shares: Shares) -> str:
        if _ROUTE_NAME.fullmatch(shares.experiment) is None:
            rule = "must be small letters, digits and '-' to be the name of a route"
            remedy = "use --to json, and write your own"
            raise ParameterError.of("EXPERIMENT", shares.experiment, rule, remedy)
        weights = in_parts(shares, PARTS).items()
        refs = [{**self._backend(name), "weight": parts} for name, parts in weights]
        route = {
            "apiVersion": self.api,
            "kind": self.kind,
            "metadata": {"name": shares.experiment},
            "spec": {"parentRefs": [{"name": self.gateway}], "rules": [{"backendRefs": refs}]},
        }
        return json.dumps(route, indent=1) + "\n"

    def read(self, text: str) -> dict[str, float]:
        [rule] = json.loads(text)["spec"]["rules"]
        return {str(each["name"]): each["weight"] / PARTS for each in rule["backendRefs"]}


@dataclass(frozen=True)
class AiGatewayRoute(HttpRoute):
    """A route of Envoy AI Gateway, whose backends are AIServiceBackends; each may be asked for a model of its own.

    >>> route = AiGatewayRoute("front", 0, {"large": "gpt-5"}).text(Shares("chat", {"small": 0.25, "large": 0.75}))
    >>> json.loads(route)["spec"]["rules"][0]["backendRefs"][1]
    {'name': 'large', 'modelNameOverride': 'gpt-5', 'weight': 7500}
    """

    models: Mapping[str, str] = field(default_factory=dict)
    api = "aigateway.envoyproxy.io/v1alpha1"
    kind = "AIGatewayRoute"

    def _backend(self, name: str) -> dict[str, Any]:
        return {"name": name} | (
            {"modelNameOverride": self.models[name]} if name in self.models else {}
        )

    def text(self, shares: Shares) -> str:
        for name in self.models:
            if name not in shares.of:
                raise ParameterError.of(
                    "--model", name, "is not an upstream", near_name(name, shares.of)
                )
        return super().text(shares)
