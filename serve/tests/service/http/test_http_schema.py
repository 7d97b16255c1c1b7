"""Schemathesis over the OpenAPI document: no 5xx, and nothing that the document does not say.

Eight drawn cases an operation here. In `make reliability`, DECOUPLED_SCHEMA_CASES asks for 2,000, and for the cases that
go through every rule of the document one by one, too.
"""

import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import hypothesis
import jsonschema_rs
import schemathesis
from schemathesis.core.parameters import ParameterLocation
from schemathesis.specs.openapi.checks import positive_data_acceptance

from decoupled_serve.service.http.admission import Limits
from support.http_service import Service, openapi_document, served

LONG = os.environ.get("DECOUPLED_SCHEMA_CASES")
CASES = int(LONG or 8)
SETTINGS = hypothesis.settings(
    max_examples=CASES,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
    suppress_health_check=list(hypothesis.HealthCheck),
)


SERVED = {"open_to_all": False, "limits": Limits(rate=0.0, bad_keys=1e9)}


def prepare(service: Service) -> None:
    service.http.headers.update(service.key("admin"))
    service.create("known", deadline_seconds=3600)
    service.create("ended")


@schemathesis.serializer("application/x-ndjson", "application/vnd.apache.parquet")
def as_it_is(context: Any, value: Any) -> bytes:
    """The body of a log, which is not JSON."""
    return value if isinstance(value, bytes) else str(value).encode(errors="surrogatepass")


DOCUMENT = openapi_document()
CONFIG = schemathesis.Config.from_dict({"phases": {"coverage": {"enabled": LONG is not None}}})
schema = schemathesis.openapi.from_dict(DOCUMENT, config=CONFIG)
Case: TypeAlias = "schemathesis.Case[Any]"


@schema.parametrize()
@SETTINGS
def test_every_operation_keeps_to_the_document(case: Case, service: Service) -> None:
    key = str(service.http.headers["Authorization"])
    hypothesis.assume(all(_is_sent_as_it_is(value) for value in (case.query or {}).values()))
    _meet_something(case, service)
    # What the document allows may still be refused: it cannot say which policies there are. A body that is too large is
    # refused before it is looked at.
    hypothesis.assume(len(repr(case.body)) < Limits().body)
    case.call_and_validate(
        base_url=service.url,
        headers={"Authorization": key},
        excluded_checks=[positive_data_acceptance],
    )


def _is_sent_as_it_is(value: object) -> bool:
    """Nobody can refuse a name with nothing in it, which is not sent at all, or a list of one, sent as what is in it."""
    return value not in ([], {}, None) and not (isinstance(value, list) and len(value) == 1)


def _meet_something(case: Case, service: Service) -> None:
    """Half the cases ask for what exists: made-up names would only ever meet a 404."""
    assert case.meta is not None
    if case.meta.is_negative_at(ParameterLocation.PATH) or zlib.crc32(repr(case.body).encode()) % 2:
        return
    if "name" in case.path_parameters and case.operation.method != "put":
        case.path_parameters["name"] = "ended" if case.path.endswith("/archive") else "known"
    if "key" in case.path_parameters:
        case.path_parameters["key"] = "known"
    if "id" in case.path_parameters:
        case.path_parameters["id"] = service.decide("known")["id"]


def test_every_example_fits_its_schema_and_every_schema_is_used() -> None:
    tried = 0
    for name, schema in DOCUMENT["components"]["schemas"].items():
        for field, described in schema.get("properties", {}).items():
            for example in described.get("examples", ()):
                whole = {**described, "components": DOCUMENT["components"]}
                assert jsonschema_rs.is_valid(whole, example), (name, field, example)
                tried += 1
    assert tried > 50
    used = {each.rpartition("/")[2] for each in references(DOCUMENT)}
    assert used == set(DOCUMENT["components"]["schemas"])
    assert {"DecideIn", "FeedbackIn", "EvaluationIn"} <= used, (
        "bodies that bypass the framework have names"
    )


def references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        part = list(part.values())
    if isinstance(part, list):
        for each in part:
            yield from references(each)


def test_everyone_may_read_it_and_need_not_read_it_twice(tmp_path: Path) -> None:
    with served(tmp_path, open_to_all=False) as locked:
        answer = locked.http.get("/v1/openapi.json")
        assert (answer.status_code, answer.json()) == (200, DOCUMENT)
        again = locked.http.get(
            "/v1/openapi.json", headers={"If-None-Match": answer.headers["ETag"]}
        )
        assert (again.status_code, again.content) == (304, b"")
        assert locked.http.head("/v1/openapi.json").status_code == 200
        assert locked.http.get("/docs").status_code == 200
        assert locked.http.get("/v1/experiments").status_code == 401
