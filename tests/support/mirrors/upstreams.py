"""Two upstreams for all tests of a module."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # every test run loads this module, and few need a mirror
    from support.mirrors.running import UpstreamProcess


@pytest.fixture(scope="module")
def arms() -> Iterator[dict[str, "UpstreamProcess"]]:
    from support.mirrors.running import upstreams

    with upstreams("stable", "next") as found:
        yield found
