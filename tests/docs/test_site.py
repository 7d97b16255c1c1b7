"""The site builds without a warning, contains every public name, and loads nothing from other hosts."""

import functools
import http.server
import inspect
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import decoupled as dc
from decoupled import theory
from decoupled.base.lazy import exports
from decoupled.paper import EXPERIMENTS
from decoupled.service import client
from support.browser import chromium
from support.once import made_once
from support.pages import ROOT

PHONE = {"width": 390, "height": 844}
NAMES = [
    *(f"decoupled.{name}" for name in exports("decoupled") if not inspect.ismodule(getattr(dc, name))),
    *(f"decoupled.environments.{name}" for name in exports("decoupled.environments")),
    *(f"decoupled.theory.{name}" for name in theory.__all__ if name not in ("bounds", "figures")),
    *(f"decoupled.theory.bounds.{name}" for name in theory.bounds.__all__),
    *(f"decoupled.theory.figures.{name}" for name in theory.figures.__all__),
    *(f"decoupled.inference.{name}" for name in exports("decoupled.inference") if not hasattr(dc, name)),
    *(f"decoupled.service.client.{name}" for name in client.__all__),
    "decoupled.testing.check_policy",
    *(
        f"decoupled.Learner.{name}"
        for name in dir(dc.Learner)
        if not name.startswith("_") and name != "policy_family"
    ),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built once for all processes of a test run."""

    def build(folder: Path) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            env={**os.environ, "NO_MKDOCS_2_WARNING": "true"},
        )
        assert done.returncode == 0, done.stderr
        return done.stderr

    folder, output = made_once(tmp_path_factory, "site", build)
    assert "WARNING" not in output
    return folder


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    text = "".join(page.read_text() for page in site.glob("api/*.html"))
    anchors = set(re.findall(r'id="([\w.]+)"', text))
    assert [name for name in NAMES if name not in anchors] == []
    assert "<blockquote>" not in text, "a docstring example is shown as a quotation"


def test_every_experiment_is_on_its_page(site: Path) -> None:
    page = (site / "reproduce.html").read_text()
    assert [name for name in EXPERIMENTS if f"<td><code>{name}</code></td>" not in page] == []


def test_nothing_is_loaded_from_other_hosts(site: Path) -> None:
    for page in site.glob("**/*.html"):
        text = page.read_text()
        loaded = re.findall(r'<(?:script|img|iframe|source)\b[^>]*\bsrc="([^"]*)"', text)
        loaded += re.findall(r'<link\b[^>]*\bhref="([^"]*)"', text)
        assert [url for url in loaded if re.match(r"(https?:)?//", url)] == [], page.name
    for style in site.glob("**/*.css"):
        assert not re.search(r"(@import|url\()\s*[\"']?(https?:)?//", style.read_text()), style.name


def test_the_changelog_and_the_examples_are_complete(site: Path) -> None:
    assert "Unreleased" in (site / "changelog.html").read_text()
    shown = (site / "examples.html").read_text()
    for example in ROOT.glob("examples/*.py"):
        assert f"examples/{example.name}" in shown, f"{example.name} is on no page"
    assert "--8&lt;" not in shown


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    yield from chromium()


def test_search_works_without_a_network_and_without_a_server(site: Path, browser: Any) -> None:
    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for root in (site.as_uri(), f"http://127.0.0.1:{server.server_address[1]}"):
            page = browser.new_page(viewport=PHONE)
            urls: list[str] = []
            page.on("request", lambda request, urls=urls: urls.append(request.url))
            page.goto(f"{root}/index.html")
            page.locator("label[for=__search]").first.click()
            page.locator("input[name=query]").press_sequentially("replicas")
            page.locator(".md-search-result__item a").first.wait_for(timeout=20_000)
            assert "operating.html" in str(
                page.locator(".md-search-result__list a").evaluate_all("all => all.map(each => each.href)")
            )
            assert [url for url in urls if not url.startswith((root, "about:", "data:", "blob:"))] == []
            page.close()
        server.shutdown()


@pytest.mark.parametrize(("name", "least"), [("ladder", 500), ("inference", 50)])
def test_formulas_are_typeset(site: Path, browser: Any, name: str, least: int) -> None:
    page = browser.new_page()
    failed: list[str] = []
    page.on("requestfailed", lambda request: failed.append(request.url))
    page.on("pageerror", lambda error: failed.append(str(error)))
    page.goto((site / f"{name}.html").as_uri())
    formulas = page.locator(".arithmatex")
    assert formulas.count() > least
    assert page.locator(".arithmatex > .katex, .arithmatex > .katex-display").count() == formulas.count()
    assert page.locator(".katex-error").count() == 0
    page.evaluate("document.fonts.ready")
    # Whatever is left of a formula that no tool saw: a dollar or a backslash in prose.
    prose = "clone => clone.querySelectorAll('.arithmatex, code').forEach(each => each.remove())"
    text = page.evaluate(f"""() => {{
        const clone = document.querySelector("article").cloneNode(true);
        ({prose})(clone);
        return clone.textContent;
    }}""")
    assert not re.search(r"[$\\]", text)
    assert failed == []
    page.close()


def test_only_pages_with_formulas_load_what_typesets_them(site: Path) -> None:
    loading = {each.name for each in site.glob("**/*.html") if "katex" in each.read_text()}
    assert loading == {"inference.html", "ladder.html"}, "KaTeX is large"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        pass


@pytest.mark.parametrize(
    "name", ["index", "traffic", "choosing", "examples", "settings", "api/policies", "inference", "ladder"]
)
def test_a_page_is_no_wider_than_a_phone(site: Path, browser: Any, name: str) -> None:
    page = browser.new_page(viewport=PHONE)
    page.goto((site / f"{name}.html").as_uri(), wait_until="domcontentloaded")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    page.close()
