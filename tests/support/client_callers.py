"""One way to call every client: the two of Python and the one of TypeScript."""

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, is_dataclass
from typing import Any

from decoupled.client import AsyncClient, Client, Outbox, Retries, Undelivered
from decoupled.client.results import Flushed, RemoteDecision
from decoupled.errors import DecoupledError

from .typescript import Bridge


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


class PythonCaller(Caller):
    def __init__(self, kind: type[Client] | type[AsyncClient], url: str, options: dict[str, Any]) -> None:
        self._told: list[str] = []
        outbox, retries = options.pop("outbox", None), Retries(**options.pop("retries", {}))
        self._runner = asyncio.Runner()
        try:
            kept = Outbox() if outbox == "memory" else outbox
            self._client: Any = kind(url, outbox=kept, retries=retries, notify=self._told.append, **options)
        except DecoupledError as error:
            raise _refused(error) from error

    def call(self, method: str, *args: Any, **options: Any) -> Any:
        if method == "feedback_many":
            args = ([Undelivered(**each) for each in args[0]],)
        try:
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
    items = getattr(error, "items", None)
    return Refused(type(error).__name__, str(error), as_json(items))


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
        retries = {NAMES.get(name, name): value for name, value in options.pop("retries", {}).items()}
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
