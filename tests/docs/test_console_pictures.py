"""The pictures of the console in the docs show the console as it is: the same words, in a real browser."""

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.browser import chromium
from support.http_service import served
from support.pages import ROOT

SHOTS = runpy.run_path(str(ROOT / "docs" / "figures" / "console.py"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    yield from chromium()


@pytest.mark.parametrize("name", SHOTS["PICTURES"])
def test_the_pictures_of_the_docs_show_the_console(browser: Any, tmp_path: Path, name: str) -> None:
    kept = ROOT / "docs" / "figures" / f"{name}.png"
    with served(tmp_path) as fresh:
        taken = SHOTS["take"](name, browser, fresh.url, tmp_path, seconds=2.0)
    assert SHOTS["words_in"](taken) == SHOTS["words_in"](kept), "run: python docs/figures/console.py"
    on_phone = SHOTS["on_phone"](kept)
    assert SHOTS["words_in"](on_phone) == SHOTS["words_in"](kept)
    assert SHOTS["on_phone"](taken).exists()
    assert max(kept.stat().st_size, on_phone.stat().st_size) < 150_000
    assert f"(figures/{name}.png)" in (ROOT / "docs" / "console.md").read_text()
