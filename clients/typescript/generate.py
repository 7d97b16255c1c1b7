"""Writes src/api.ts: the types of the service's API, from its OpenAPI document. `make client` runs
it.

The document is that of the service in this repository, so the types cannot fall behind: a test
compares the file.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

from decoupled_serve.service.http.app import create_app
from decoupled_serve.service.service import DecisionService

FILE = Path(__file__).parent / "src" / "api.ts"
HEAD = """// The types of the service's API. Written by generate.py from the OpenAPI document: \
do not edit, run `make client`.
"""
PLAIN = {
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "string": "string",
    "null": "null",
}
WIDTH = 116


def document() -> dict[str, Any]:
    """The OpenAPI document. No route is called, so it needs no service."""
    return create_app(cast(DecisionService, Mock())).inner.openapi()


def written(content: Mapping[str, Any]) -> str:
    """The whole file for a document."""
    schemas = sorted(content["components"]["schemas"].items())
    parts = [
        HEAD,
        *(_named(name, schema) for name, schema in schemas),
        _operations(content["paths"]),
    ]
    return "\n".join(parts)


def _named(name: str, schema: Mapping[str, Any]) -> str:
    about = _comment(schema.get("description"), "")
    if "properties" in schema:
        return f"{about}export interface {name} {_object(schema, '')}\n"
    return f"{about}export type {name} = {_type(schema)};\n"


def _object(schema: Mapping[str, Any], indent: str) -> str:
    required = set(schema.get("required", ()))
    lines = ["{"]
    for name, each in schema["properties"].items():
        mark = "" if name in required else "?"
        about = _comment(each.get("description"), indent + "  ")
        lines.append(f"{about}{indent}  {name}{mark}: {_type(each, indent + '  ')};")
    if schema.get("additionalProperties") is True:
        lines.append(f"{indent}  [other: string]: unknown;")
    return "\n".join([*lines, indent + "}"])


def _type(schema: Mapping[str, Any], indent: str = "") -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "const" in schema:
        return _literal(schema["const"])
    if "enum" in schema:
        return _union(_literal(each) for each in schema["enum"])
    if "properties" in schema:
        return _object(schema, indent)
    for kind in ("anyOf", "oneOf"):
        if kind in schema:
            return _union(_type(each, indent) for each in schema[kind])
    if "prefixItems" in schema:
        return f"[{', '.join(_type(each, indent) for each in schema['prefixItems'])}]"
    if schema.get("type") == "array":
        inner = _type(schema.get("items", {}), indent)
        return f"({inner})[]" if " | " in inner else f"{inner}[]"
    if schema.get("type") == "object":
        values = schema.get("additionalProperties", True)
        return f"Record<string, {_type(values, indent) if isinstance(values, dict) else 'unknown'}>"
    return PLAIN.get(schema.get("type", ""), "unknown")


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


def _union(parts: Iterable[str]) -> str:
    return " | ".join(dict.fromkeys(parts))


def _operations(paths: Mapping[str, Any]) -> str:
    lines = [
        "/** Every operation: what it takes in its path, its query and its body, "
        "and what it returns. */"
    ]
    lines.append("export interface Operations {")
    for path, operations in sorted(paths.items()):
        for method, operation in sorted(operations.items()):
            about = _comment(operation["summary"], "  ")
            lines.append(f'{about}  "{method.upper()} {path}": {{')
            lines += [f"    {name}: {kind};" for name, kind in _parts(operation).items()]
            lines.append("  };")
    return "\n".join([*lines, "}", ""])


def _parts(operation: Mapping[str, Any]) -> dict[str, str]:
    given: dict[str, list[str]] = {"path": [], "query": []}
    for each in operation.get("parameters", ()):
        if each["in"] in given:
            mark = "" if each.get("required") else "?"
            given[each["in"]].append(f"{each['name']}{mark}: {_type(each['schema'])}")
    taken = {
        kind: f"{{ {'; '.join(fields)} }}" if fields else "object" for kind, fields in given.items()
    }
    body = operation.get("requestBody")
    content = body["content"] if body else {}
    kind = (
        _type(content["application/json"]["schema"])
        if "application/json" in content
        else "undefined"
    )
    if content and kind == "undefined":
        kind = "Blob | string"  # a file, such as a log
    taken["body"] = kind if body is None or body.get("required") else f"{kind} | undefined"
    return {**taken, "response": _response(operation["responses"])}


def _response(responses: Mapping[str, Any]) -> str:
    found = [
        _type(content["schema"]) if kind == "application/json" else "Blob"
        for status, response in responses.items()
        if status.startswith("2")
        for kind, content in response.get("content", {}).items()
    ]
    return _union(found) or "unknown"


def _comment(text: str | None, indent: str) -> str:
    if not text:
        return ""
    text = re.sub(r"\*/", "* /", text)
    lines = text.split("\n")
    if len(lines) == 1 and len(text) < WIDTH:
        return f"{indent}/** {text} */\n"
    body = "".join(f"{indent} * {line}".rstrip() + "\n" for line in lines)
    return f"{indent}/**\n{body}{indent} */\n"


if __name__ == "__main__":
    FILE.write_text(written(document()))
    print(f"Wrote {FILE}")
