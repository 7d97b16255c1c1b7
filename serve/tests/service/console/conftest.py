"""One browser for each file of tests."""

from collections.abc import Iterator
from typing import Any

import pytest

from support.browser import chromium


# Playwright's loop runs in this thread as long as the browser does, so tests of other files must not meet it.
@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    yield from chromium()
