"""The files that say what to serve, and how to read the shares back from one.

nginx's `split_clients` takes percentages with two decimals, so every kind counts in parts of ten thousand.
"""

import json
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass

from decoupled.errors import ParameterError

from .shares import Shares, in_parts

PARTS = 10_000
_ROUTE_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_BY = re.compile(r"[\w$.:@/-]+")
_NGINX_SHARE = re.compile(r"^ *(?:(\d+\.\d\d)%|(\*)) (\S+);$", re.MULTILINE)


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
        """The file for these shares."""
        weights = {name: parts / PARTS for name, parts in in_parts(shares, PARTS).items()}
        return json.dumps({"experiment": shares.experiment, "weights": weights}) + "\n"

    def read(self, text: str) -> dict[str, float]:
        """The shares in a file."""
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
        """The file for these shares."""
        variable = "decoupled_" + re.sub(r"\W", "_", shares.experiment, flags=re.ASCII)
        *first, (last, _) = [each for each in in_parts(shares, PARTS).items() if each[1] > 0]
        lines = [f"    {parts / 100:.2f}% {name};" for name, parts in first] + [f"    * {last};"]
        head = f"# Written by `decoupled weights {shares.experiment}`."
        return "\n".join((head, f'split_clients "{self.by}" ${variable} {{', *lines, "}", ""))

    def read(self, text: str) -> dict[str, float]:
        """The shares in a file."""
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

    def text(self, shares: Shares) -> str:
        """The file for these shares."""
        if _ROUTE_NAME.fullmatch(shares.experiment) is None:
            rule = "must be small letters, digits and '-' to be the name of a route"
            raise ParameterError.of(
                "EXPERIMENT", shares.experiment, rule, "use --to json, and write your own"
            )
        refs = [
            {"name": name, "port": self.port, "weight": parts}
            for name, parts in in_parts(shares, PARTS).items()
        ]
        route = {
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "HTTPRoute",
            "metadata": {"name": shares.experiment},
            "spec": {"parentRefs": [{"name": self.gateway}], "rules": [{"backendRefs": refs}]},
        }
        return json.dumps(route, indent=1) + "\n"

    def read(self, text: str) -> dict[str, float]:
        """The shares in a file."""
        [rule] = json.loads(text)["spec"]["rules"]
        return {str(each["name"]): each["weight"] / PARTS for each in rule["backendRefs"]}
