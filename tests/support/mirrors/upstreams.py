"""Fixtures for tests of mirrors: two upstreams for all tests of a module, and what starts a mirror before them."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # every test run loads this module, and few need a mirror
    from support.mirrors.running import Start, UpstreamProcess


@pytest.fixture(scope="module")
def arms() -> Iterator[dict[str, "UpstreamProcess"]]:
    from support.mirrors.running import upstreams

    with upstreams("stable", "next") as found:
        yield found


@pytest.fixture
def start(arms: dict[str, "UpstreamProcess"], tmp_path: Path) -> "Start":
    from support.mirrors.running import Start

    return Start(arms, tmp_path)
