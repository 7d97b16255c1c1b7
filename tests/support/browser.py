"""A real browser, for the tests of pages."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
FLAGS = [
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
]


def chromium() -> Iterator[Any]:
    """The body of a fixture: an open browser. One for each module, as an event loop runs while it is open."""
    if CHROMIUM is None:
        pytest.skip(
            "no Chromium is installed, so NO page was looked at in a browser: apt install chromium"
        )
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()
