"""The TypeScript client's generated types, and the snippets of the pages, one of them with OpenFeature's provider for Node."""

import json
import runpy
import subprocess
from pathlib import Path

import pytest

from decoupled.policies import Ladder
from support.http_service import openapi_document, served
from support.pages import ROOT, blocks
from support.typescript import PACKAGE, built, without_key

GENERATE = runpy.run_path(str(PACKAGE / "generate.py"))


def test_the_types_are_those_of_the_document_and_the_package_has_no_dependencies() -> None:
    written: str = GENERATE["written"](openapi_document())
    assert (PACKAGE / "src" / "api.ts").read_text() == written, "the API has changed: run `make client`"
    package = json.loads((PACKAGE / "package.json").read_text())
    assert "dependencies" not in package
    assert all(version[0].isdigit() for version in package["devDependencies"].values())


def test_what_only_this_client_has(tmp_path_factory: pytest.TempPathFactory) -> None:
    node, file = built(tmp_path_factory), PACKAGE / "test" / "client.test.mjs"
    done = subprocess.run([node, "--test", str(file)], capture_output=True, text=True, env=without_key())
    assert done.returncode == 0, done.stdout
    assert "# pass 3" in done.stdout


PAGES = (ROOT / "docs" / "other-languages.md", PACKAGE / "README.md")


def test_the_snippets_of_the_pages_run(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    node, run = built(tmp_path_factory), 0
    with served(tmp_path) as service:
        service.create("checkout", arms=["one page", "two pages"], policy=Ladder().to_dict())
        for page in PAGES:
            for block in blocks(page, "js"):
                code = block.code.replace("http://127.0.0.1:8000", service.url)
                code = code.replace('"outbox"', json.dumps(str(tmp_path / "outbox")))
                # In the package's folder, its own name and those of its tools can be imported.
                command = [node, "--input-type=module", "--eval", code]
                done = subprocess.run(
                    command, cwd=PACKAGE, capture_output=True, text=True, env=without_key()
                )
                assert done.returncode == 0, done.stderr
                assert done.stdout == (block.output or "")
                run += 1
    assert run == 3
