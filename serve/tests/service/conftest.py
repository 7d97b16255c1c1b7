"""Fixtures of the service's tests."""

from collections.abc import Iterator

import pytest

from support.http_service import Service, served
from support.stores import _services_end, address, clock, file, opened, postgres, server, transactions

__all__ = ["_services_end", "address", "clock", "file", "opened", "postgres", "server", "transactions"]


@pytest.fixture(scope="module")
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service over HTTP for the tests of a file, which says how with `SERVED`, and with `prepare` what is in it."""
    options = getattr(request.module, "SERVED", {})
    with served(tmp_path_factory.mktemp("service"), **options) as running:
        getattr(request.module, "prepare", lambda _: None)(running)
        yield running
