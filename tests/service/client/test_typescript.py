"""The TypeScript client's generated types, and OpenFeature's own provider for Node."""

import json
import runpy
import subprocess
from pathlib import Path
from typing import Any

import pytest

from decoupled.policies import Ladder
from decoupled.service import errors
from support.http_service import openapi_document, served
from support.pages import ROOT, blocks
from support.typescript import PACKAGE, built, without_key

GENERATE = runpy.run_path(str(PACKAGE / "generate.py"))


def test_the_types_are_those_of_the_document() -> None:
    written: str = GENERATE["written"](openapi_document())
    assert (PACKAGE / "src" / "api.ts").read_text() == written, "the API has changed: run `make client`"


def test_every_kind_of_schema_has_its_type() -> None:
    schemas: dict[str, Any] = {
        "Thing": {
            "description": "A thing.",
            "required": ["kind"],
            "properties": {
                "kind": {"enum": ["a", 1]},
                "size": {"type": "integer", "description": "Its size."},
                "pair": {"prefixItems": [{"type": "string"}, {"$ref": "#/components/schemas/Other"}]},
                "many": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
                "table": {"type": "object", "additionalProperties": {"type": "number"}},
                "inner": {"properties": {"any": {}}},
            },
        },
        "Other": {"type": "boolean"},
    }
    written = GENERATE["written"]({"components": {"schemas": schemas}, "paths": {}})
    assert "export type Other = boolean;" in written
    expected = """/** A thing. */
export interface Thing {
  kind: "a" | 1;
  /** Its size. */
  size?: number;
  pair?: [string, Other];
  many?: (string | null)[];
  table?: Record<string, number>;
  inner?: {
    any?: unknown;
  };
}
"""
    assert expected in written


def test_the_errors_have_the_names_of_python() -> None:
    text = (PACKAGE / "src" / "errors.ts").read_text()
    for kind in (
        errors.BadRequest, errors.Unauthorized, errors.Forbidden, errors.NotFound, errors.Conflict, errors.Gone,
        errors.TooLarge, errors.Invalid, errors.TooMany, errors.StoreError, errors.Compiling, errors.NotCompiled,
    ):  # fmt: skip
        assert f"export class {kind.__name__} extends ServiceError" in text
    for named in (errors.Compiling, errors.NotCompiled):  # found by their title
        assert f'"{named.status} {named.title}"' in text


def test_the_package_has_no_dependencies_and_pins_its_tools() -> None:
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
                code = code.replace('"outbox.jsonl"', json.dumps(str(tmp_path / "outbox.jsonl")))
                # In the package's folder, its own name and those of its tools can be imported.
                command = [node, "--input-type=module", "--eval", code]
                done = subprocess.run(
                    command, cwd=PACKAGE, capture_output=True, text=True, env=without_key()
                )
                assert done.returncode == 0, done.stderr
                assert done.stdout == (block.output or "")
                run += 1
    assert run == 4


def test_the_stock_node_provider_gets_arms_and_understands_our_errors(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    node = built(tmp_path_factory)
    with served(tmp_path, open_to_all=False) as service:
        admin = service.key("admin")
        service.create("colour", admin)
        service.create("size", admin, arms=[10, 20, 30])
        service.create("ended", admin)
        service.http.post("/v1/experiments/ended/archive", headers=admin)

        def resolved(key: str) -> Any:
            command = [
                node,
                str(PACKAGE / "test" / "ofrep.mjs"),
                service.url,
                key,
                "colour",
                "nothing",
                "ended",
            ]
            done = subprocess.run(command, capture_output=True, text=True, env=without_key(), timeout=60)
            assert done.returncode == 0, done.stderr
            return json.loads(done.stdout)

        found = resolved(admin["Authorization"].removeprefix("Bearer "))
        assert found["colour"]["value"] in ("red", "green", "blue")
        assert (found["colour"]["variant"], found["colour"]["reason"]) == (
            found["colour"]["value"],
            "SPLIT",
        )
        assert "decision" in found["colour"]["flagMetadata"]
        assert found["number"]["value"] in (10, 20, 30)
        assert (found["nothing"]["value"], found["nothing"]["errorCode"]) == ("fallback", "FLAG_NOT_FOUND")
        assert (found["ended"]["value"], found["ended"]["errorCode"]) == ("fallback", "GENERAL")
        assert "is archived" in found["ended"]["errorMessage"]
        assert resolved("dk_wrong")["colour"]["value"] == "fallback"
