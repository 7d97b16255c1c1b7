"""Fixtures of the service's tests."""

import logging
from collections.abc import Iterator
from io import StringIO

import pytest

from decoupled_serve.service.http.observe.log_format import JsonFormatter
from support.http_service import Service, served
from support.stores import (
    _services_end,
    address,
    clock,
    file,
    opened,
    postgres,
    server,
    transactions,
)

__all__ = [
    "_services_end",
    "address",
    "clock",
    "file",
    "opened",
    "postgres",
    "server",
    "transactions",
]


@pytest.fixture(scope="module")
def service(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """A service over HTTP for the tests of a file, which says how with `SERVED`, and with `prepare` what is in it."""
    options = getattr(request.module, "SERVED", {})
    with served(tmp_path_factory.mktemp("service"), **options) as running:
        getattr(request.module, "prepare", lambda _: None)(running)
        yield running


@pytest.fixture
def lines() -> Iterator[StringIO]:
    """What is logged, requests included, as the service writes it: an object a line."""
    text = StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(JsonFormatter())
    root, access = logging.getLogger(), logging.getLogger("decoupled.access")
    levels = root.level, access.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    access.setLevel(logging.INFO)
    yield text
    root.removeHandler(handler)
    root.setLevel(levels[0])
    access.setLevel(levels[1])
