"""Schemathesis over the OpenAPI document: no 5xx, and nothing that the document does not say.

Eight drawn cases an operation here. In `make reliability`, DECOUPLED_SCHEMA_CASES asks for 2,000, and for the cases that
go through every rule of the document one by one, too.
"""

import os
import zlib
from collections.abc import Iterator
from typing import Any, TypeAlias

import hypothesis
import pytest
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


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    limits = Limits(rate=0.0, bad_keys=1e9)
    with served(tmp_path_factory.mktemp("schema"), open_to_all=False, limits=limits) as running:
        running.http.headers.update(running.key("admin"))
        running.create("known", deadline_seconds=3600)
        running.create("ended")
        yield running


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
        base_url=service.url, headers={"Authorization": key}, excluded_checks=[positive_data_acceptance]
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
