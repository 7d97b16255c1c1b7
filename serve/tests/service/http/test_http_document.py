"""The OpenAPI document: its own words, examples that fit, and references that lead somewhere."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs

from support.http_service import openapi_document, served

DOCUMENT = openapi_document()


def test_every_example_fits_its_schema() -> None:
    tried = 0
    for name, schema in DOCUMENT["components"]["schemas"].items():
        for field, described in schema.get("properties", {}).items():
            for example in described.get("examples", ()):
                whole = {**described, "components": DOCUMENT["components"]}
                assert jsonschema_rs.is_valid(whole, example), (name, field, example)
                tried += 1
    assert tried > 50


def references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        part = list(part.values())
    if isinstance(part, list):
        for each in part:
            yield from references(each)


def test_every_reference_leads_to_a_schema_and_every_schema_is_used() -> None:
    used = {each.rpartition("/")[2] for each in references(DOCUMENT)}
    assert used == set(DOCUMENT["components"]["schemas"])
    assert {"DecideIn", "FeedbackIn", "EvaluationIn"} <= used, "bodies that bypass the framework have names"


def test_nothing_in_it_is_the_framework_s() -> None:
    text = json.dumps(DOCUMENT)
    for words in ("Successful Response", "Validation Error", "HTTPValidationError"):
        assert words not in text
    summaries = [operation["summary"] for path in DOCUMENT["paths"].values() for operation in path.values()]
    assert len(set(summaries)) == len(summaries), "each says what only this operation does"
    assert not [each for each in summaries if each == each.title()], "not made of the name of a function"


def test_everyone_may_read_it_and_need_not_read_it_twice(tmp_path: Path) -> None:
    with served(tmp_path, open_to_all=False) as locked:
        answer = locked.http.get("/v1/openapi.json")
        assert (answer.status_code, answer.json()) == (200, DOCUMENT)
        again = locked.http.get("/v1/openapi.json", headers={"If-None-Match": answer.headers["ETag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert locked.http.head("/v1/openapi.json").status_code == 200
        assert locked.http.get("/docs").status_code == 200
        assert locked.http.get("/v1/experiments").status_code == 401
