"""The site builds without a warning, contains every public name, and loads nothing from other hosts."""

import inspect
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import decoupled as dc
from decoupled import client, extend
from decoupled.base.lazy import exports
from decoupled_lab import theory
from support.browser import chromium
from support.notebooks import NOTEBOOKS, executed
from support.once import made_once
from support.pages import ROOT

NAMES = [
    *(
        f"decoupled.{name}"
        for name in exports("decoupled")
        if not inspect.ismodule(getattr(dc, name))
    ),
    *(f"decoupled.environments.{name}" for name in exports("decoupled.environments")),
    *(
        f"decoupled_lab.theory.{name}"
        for name in theory.__all__
        if name not in ("bounds", "figures")
    ),
    *(f"decoupled_lab.theory.bounds.{name}" for name in theory.bounds.__all__),
    *(f"decoupled_lab.theory.figures.{name}" for name in theory.figures.__all__),
    *(
        f"decoupled.inference.{name}"
        for name in exports("decoupled.inference")
        if not hasattr(dc, name)
    ),
    *(
        f"decoupled.client.{name}"
        for name, each in vars(client).items()
        if name[0] != "_" and name != "Client" and not inspect.ismodule(each)
    ),
    *(f"decoupled.extend.{name}" for name in vars(extend) if callable(getattr(extend, name))),
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
        notebooks = folder.with_name("executed-notebooks")
        notebooks.mkdir()
        for path in NOTEBOOKS:
            shutil.copy(executed(tmp_path_factory, path), notebooks)
        done = subprocess.run(
            [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            env={**os.environ, "NO_MKDOCS_2_WARNING": "true", "EXECUTED_NOTEBOOKS": str(notebooks)},
        )
        assert done.returncode == 0, done.stderr
        return done.stderr

    folder, output = made_once(tmp_path_factory, "site", build)
    assert "WARNING" not in output
    return folder


def test_every_public_name_is_in_the_reference_and_nothing_is_loaded_from_other_hosts(
    site: Path,
) -> None:
    text = "".join(page.read_text() for page in site.glob("api/*.html"))
    anchors = set(re.findall(r'id="([\w.]+)"', text))
    # Constants are named in the text.
    assert [
        name for name in NAMES if name not in anchors and not name.rpartition(".")[2].isupper()
    ] == []
    assert "<blockquote>" not in text, "a docstring example is shown as a quotation"
    for page in site.glob("**/*.html"):
        text = page.read_text()
        loaded = re.findall(r'<(?:script|img|iframe|source)\b[^>]*\bsrc="([^"]*)"', text)
        loaded += re.findall(r'<link\b[^>]*\bhref="([^"]*)"', text)
        assert [url for url in loaded if re.match(r"(https?:)?//", url)] == [], page.name
    for style in site.glob("**/*.css"):
        assert not re.search(r"(@import|url\()\s*[\"']?(https?:)?//", style.read_text()), style.name


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_notebook_is_there_to_read_and_to_download(site: Path, path: Path) -> None:
    page = (site / "notebooks" / f"{path.stem}.html").read_text()
    shown = re.findall(r'<img alt="([^"]+)" src="([^"]+)"', page)
    pictures = [source for _, source in shown if f"figures/notebooks/{path.stem}-" in source]
    assert len(pictures) >= 5
    assert all(
        (site / "notebooks" / source).resolve().stat().st_size > 5_000 for source in pictures
    )
    assert (site / "notebooks" / path.name).read_bytes() == path.read_bytes()
    assert f'href="{path.name}"' in page
    assert f'href="notebooks/{path.stem}.html"' in (site / "notebooks.html").read_text()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    yield from chromium()


FORMULA = 'class="arithmatex"'


def test_formulas_are_typeset_and_stay_on_one_line(site: Path, browser: Any) -> None:
    page = browser.new_page()
    failed: list[str] = []
    page.on("requestfailed", lambda request: failed.append(request.url))
    page.on("pageerror", lambda error: failed.append(str(error)))
    seen = 0
    for file in sorted(site.glob("**/*.html")):
        if FORMULA not in file.read_text():
            continue
        name = file.relative_to(site).with_suffix("").as_posix()
        page.goto(file.as_uri(), timeout=120_000)  # on a busy machine KaTeX takes long
        formulas = page.locator(".arithmatex").count()
        seen += formulas
        typeset = page.locator(".arithmatex > .katex, .arithmatex > .katex-display")
        assert typeset.count() == formulas, name
        assert page.locator(".katex-error").count() == 0, name
        page.evaluate("document.fonts.ready")
        broken = "all => all.filter(each => each.getClientRects().length > 1).map(each => each.textContent)"
        whole = page.locator("span.arithmatex:not(.arithmatex--long)")
        assert whole.evaluate_all(broken) == [], name
        # Whatever is left of a formula that no tool saw: a dollar or a backslash in prose.
        text = page.evaluate("""() => {
            const clone = document.querySelector("article").cloneNode(true);
            clone.querySelectorAll(".arithmatex, code").forEach(each => each.remove());
            return clone.textContent;
        }""")
        assert not re.search(r"[$\\]", text), name
    assert failed == []
    assert seen > 1_000
    page.close()


def test_every_page_is_there_as_markdown_and_in_the_index_for_language_models(site: Path) -> None:
    pages = {each.relative_to(ROOT / "docs").as_posix() for each in (ROOT / "docs").rglob("*.md")}
    pages |= {f"notebooks/{path.stem}.md" for path in NOTEBOOKS}
    pages |= {f"gallery/{path.stem}.md" for path in (ROOT / "docs" / "gallery").glob("*.py")}
    index, whole = ((site / name).read_text() for name in ("llms.txt", "llms-full.txt"))
    assert index.startswith("# decoupled\n\n> Decoupled bandits")
    home = (site / "index.html").read_text()
    assert all(f'<a href="{name}">' in home for name in ("llms.txt", "llms-full.txt"))
    assert sorted(re.findall(r"^- \[.+\]\((.+?)\): \S.*$", index, re.MULTILINE)) == sorted(pages)
    for name in pages:
        text = (site / name).read_text()
        assert text in whole, name
        assert not re.search(r"^::: |^ *--8<--|^<!-- list", text, re.MULTILINE), name
    assert f"[{dc.__version__}]" in (site / "changelog.md").read_text()
