"""What the examples of the clients' docstrings use: a service with an experiment, and `client`.

The examples of `AsyncClient` await at top level, as in `python -m asyncio`.
"""

import ast
import asyncio
import doctest
import inspect
from collections.abc import Callable, Iterator
from itertools import count
from types import CodeType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:  # every test run loads this module, and few need the service
    from support.http_service import Service

_tenants = count()


@pytest.fixture(scope="session")
def example_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Service"]:
    """The service that the examples talk to."""
    from support.http_service import served

    with served(tmp_path_factory.mktemp("examples"), open_to_all=False) as running:
        yield running


@pytest.fixture(autouse=True)
def client_examples(
    request: pytest.FixtureRequest,
    doctest_namespace: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[None]:
    """Gives each example a `client` of its own tenant, whose experiment `models` has three arms."""
    if not (isinstance(request.node, pytest.DoctestItem) and request.path.parent.name == "client"):
        yield
        return
    from decoupled.client import AsyncClient, Client, Outbox

    service: Service = request.getfixturevalue("example_service")
    key = service.key("admin", f"example-{next(_tenants)}")["Authorization"].removeprefix("Bearer ")
    with Client(service.url, key, outbox=Outbox()) as client:
        client.create("models", arms=["small", "medium", "large"], seed=10)
        if request.path.stem != "aio":
            monkeypatch.setitem(doctest_namespace, "client", client)
            yield
            return
        awaited = AsyncClient(service.url, key, outbox=Outbox())
        monkeypatch.setitem(doctest_namespace, "client", awaited)
        with asyncio.Runner() as runner:
            allow_await(monkeypatch, runner.run)
            yield
            runner.run(awaited.close())


def allow_await(monkeypatch: pytest.MonkeyPatch, run: Callable[[Any], None]) -> None:
    """Let doctest compile and run examples that await."""

    def compile_example(source: str, filename: str, mode: str, flags: int, *rest: Any) -> CodeType:
        code: CodeType = compile(
            source, filename, mode, flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, *rest
        )
        return code

    def run_example(code: CodeType, names: dict[str, Any]) -> None:
        result = eval(code, names)
        if code.co_flags & inspect.CO_COROUTINE:
            run(result)

    monkeypatch.setattr(doctest, "compile", compile_example, raising=False)
    monkeypatch.setattr(doctest, "exec", run_example, raising=False)
