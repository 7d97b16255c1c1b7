"""Two upstreams for all tests of a module."""

from collections.abc import Iterator

import pytest

from support.mirrors.running import UpstreamProcess, upstreams


@pytest.fixture(scope="module")
def arms() -> Iterator[dict[str, UpstreamProcess]]:
    with upstreams("stable", "next") as found:
        yield found
