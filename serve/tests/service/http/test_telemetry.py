"""OpenTelemetry: spans and metrics of real requests, and what it takes to turn them on."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from decoupled.errors import ParameterError
from decoupled_serve.service.http.observe.telemetry import Telemetry
from decoupled_serve.service.http.observe.telemetry_settings import (
    check_protocol,
    exports,
    is_wanted,
)
from support.command_line import run
from support.dropping import answering
from support.http_service import Service, served
from support.stores import full_disk, held
from support.waiting import wait_for

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SAMPLED = {"traceparent": f"00-{TRACE}-{PARENT}-01"}


class Collected:
    """Telemetry that stays in memory."""

    def __init__(self) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        tracers = TracerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.events, loggers = InMemoryLogRecordExporter(), LoggerProvider()  # type: ignore[no-untyped-call]
        loggers.add_log_record_processor(SimpleLogRecordProcessor(self.events))
        self.telemetry = Telemetry(tracers, MeterProvider([self.reader]), loggers)

    def spans(self, service: Service) -> dict[str, list[ReadableSpan]]:
        """The spans that ended, by name. Those of a commit end after its answers, but before the next commit."""
        service.direct.keys.list().result()
        found: dict[str, list[ReadableSpan]] = {}
        for span in self.exporter.get_finished_spans():
            found.setdefault(span.name, []).append(span)
        self.exporter.clear()
        return found

    def metrics(self) -> dict[str, Any]:
        data = self.reader.get_metrics_data()
        assert data is not None
        scopes = [scope for resource in data.resource_metrics for scope in resource.scope_metrics]
        return {
            metric.name: metric.data.data_points for scope in scopes for metric in scope.metrics
        }


COLLECTED = Collected()
SERVED = {"telemetry": COLLECTED.telemetry, "metrics_experiments": 5}


def prepare(service: Service) -> None:
    service.create("models")


DECISIONS, FEEDBACK = "POST /v1/experiments/{name}/decisions", "PUT /v1/decisions/{id}/feedback"


def test_a_request_a_decision_its_feedback_and_their_commits_are_spans(service: Service) -> None:
    COLLECTED.spans(service)
    made = service.http.post("/v1/experiments/models/decisions", headers=SAMPLED).json()
    spans = COLLECTED.spans(service)
    [request], [decide], [commit] = spans[DECISIONS], spans["decide"], spans["commit"]
    assert request.kind is SpanKind.SERVER
    assert request.parent is not None
    assert f"{request.parent.span_id:016x}" == PARENT
    assert {f"{each.context.trace_id:032x}" for each in (request, decide, commit)} == {TRACE}
    assert decide.parent == request.context
    assert commit.parent is not None
    assert commit.parent.span_id == request.context.span_id
    assert [link.context.span_id for link in commit.links] == [request.context.span_id]
    attributes = dict(request.attributes or {})
    assert attributes["http.request.method"] == "POST"
    assert attributes["http.route"] == "/v1/experiments/{name}/decisions"
    assert attributes["http.response.status_code"] == 201
    assert attributes["url.path"] == "/v1/experiments/models/decisions"
    assert attributes["client.address"] == "127.0.0.1"
    assert (decide.attributes or {})["decoupled.experiment"] == "models"
    assert dict(commit.attributes or {}) == {
        "db.system.name": "sqlite",
        "db.operation.batch.size": 1,
    }

    sent = service.http.put(f"/v1/decisions/{made['id']}/feedback", json={"loss": 0.5})
    spans = COLLECTED.spans(service)
    assert len(spans[FEEDBACK]) == len(spans["feedback"]) == len(spans["commit"]) == 1
    assert (spans[FEEDBACK][0].attributes or {})["decoupled.request_id"] == sent.headers[
        "x-request-id"
    ]


def evaluations(*told: dict[str, Any], scope: str = "evaluator") -> dict[str, Any]:
    """OTLP's JSON, as the SDK and protobuf write it."""
    exporter, provider = InMemoryLogRecordExporter(), LoggerProvider()  # type: ignore[no-untyped-call]
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    for attributes in told:
        provider.get_logger(scope).emit(
            event_name="gen_ai.evaluation.result", attributes=attributes
        )
    provider.get_logger(scope).emit(event_name="another", body="not an evaluation")
    found: dict[str, Any] = MessageToDict(encode_logs(exporter.get_finished_logs()))
    return found


def scored(decision: str, score: object, name: str = "Relevance") -> dict[str, Any]:
    return {
        "gen_ai.evaluation.name": name,
        "gen_ai.evaluation.score.value": score,
        "gen_ai.response.id": decision,
    }


def test_evaluations_are_feedback_and_feedback_is_an_evaluation(service: Service) -> None:
    """Scores are rewards unless the address says otherwise; other evaluations and what decoupled wrote do not count."""
    made = service.decide("models", count=3)["decisions"]
    one, two, three = (each["id"] for each in made)
    COLLECTED.events.clear()
    body = evaluations(scored(one, 0.75), scored(two, 1), scored(three, 0.5, "Toxicity"))
    answer = service.http.post("/v1/logs?evaluation=Relevance", json=body)
    assert (answer.status_code, answer.json()) == (200, {"partialSuccess": {}})
    assert service.http.post("/v1/logs?evaluation=Relevance", json=body).json() == {
        "partialSuccess": {}
    }
    losses = [
        service.http.get(f"/v1/decisions/{each}").json()["loss"] for each in (one, two, three)
    ]
    assert losses == [0.25, 0.0, None]
    spoken = [each.log_record for each in COLLECTED.events.get_finished_logs()]
    assert [each.event_name for each in spoken[:2]] == ["gen_ai.evaluation.result"] * 2
    attributes = dict(spoken[0].attributes or {})
    assert attributes == {
        "decoupled.experiment": "models", "decoupled.arm": made[0]["explore"], "decoupled.decision": one,
        "gen_ai.response.id": one, "gen_ai.evaluation.name": "decoupled.loss", "gen_ai.evaluation.score.value": 0.25,
    }  # fmt: skip
    assert spoken[0].trace_id, "in the trace of its request"
    ours = evaluations(scored(three, 0.5), scope="decoupled")
    assert service.http.post("/v1/logs", json=ours).json() == {"partialSuccess": {}}
    assert service.http.get(f"/v1/decisions/{three}").json()["status"] == "pending"
    assert (
        service.http.post("/v1/logs?score=loss", json=evaluations(scored(three, 0.5))).status_code
        == 200
    )
    assert service.http.get(f"/v1/decisions/{three}").json()["loss"] == 0.5


def test_evaluations_that_cannot_count_are_rejected_one_by_one(service: Service) -> None:
    made = service.decide("models")["id"]
    nameless = {"gen_ai.evaluation.score.value": 1.0}
    told = [scored(made, 0.5), scored(made, "good"), scored("nothing-1", 0.5), nameless]
    found = service.http.post("/v1/logs", json=evaluations(*told)).json()["partialSuccess"]
    assert (found["rejectedLogRecords"], "is not a number" in found["errorMessage"]) == ("3", True)
    assert service.http.get(f"/v1/decisions/{made}").json()["status"] == "applied"
    other = service.decide("models")["id"]
    with full_disk(service.direct):
        body = evaluations(scored(other, 0.5))
        assert service.http.post("/v1/logs", json=body).status_code == 503, (
            "so that it is sent again"
        )
    assert service.http.post("/v1/logs", json=body).json() == {"partialSuccess": {}}
    many = evaluations(*[scored(other, 0.5)] * 1_001)
    assert service.http.post("/v1/logs", json=many).status_code == 413
    assert service.http.post("/v1/logs?score=other", json=body).status_code == 422


def test_a_commit_links_to_every_request_that_it_answers(service: Service) -> None:
    COLLECTED.spans(service)
    with ThreadPoolExecutor(4) as pool, held(service.direct):
        for _ in range(4):
            pool.submit(service.decide, "models")
        wait_for(lambda: service.direct._commits.queued() == 4)
    spans = COLLECTED.spans(service)
    [commit] = spans["commit"]
    assert (commit.attributes or {})["db.operation.batch.size"] == 4
    linked = {link.context.span_id for link in commit.links}
    assert linked == {span.context.span_id for span in spans[DECISIONS]}
    assert len(linked) == 4


def test_requests_of_the_framework_and_failures_are_spans(service: Service) -> None:
    COLLECTED.spans(service)
    assert service.http.get("/v1/experiments/models/state").status_code == 200
    assert service.http.post("/v1/experiments/nobody/decisions").status_code == 404
    spans = COLLECTED.spans(service)
    [state] = spans["GET /v1/experiments/{name}/state"]
    assert state.status.status_code is StatusCode.UNSET
    [decide] = spans["decide"]
    assert (decide.attributes or {})["error.type"] == "NotFound"
    assert decide.status.status_code is StatusCode.UNSET, "the fault is the caller's"

    with full_disk(service.direct):
        assert service.http.post("/v1/experiments/models/decisions").status_code == 503
    spans = COLLECTED.spans(service)
    for name in (DECISIONS, "decide", "commit"):
        assert spans[name][0].status.status_code is StatusCode.ERROR, name


def test_metrics_have_conventional_names_and_what_is_not_sampled_is_not_recorded(
    service: Service,
) -> None:
    service.decide("models")
    found = COLLECTED.metrics()
    [hot] = [
        point
        for point in found["http.server.request.duration"]
        if point.attributes.get("http.route") == "/v1/experiments/{name}/decisions"
        and point.attributes["http.response.status_code"] == 201
    ]
    assert hot.count >= 1
    assert {
        "http.server.active_requests",
        "decoupled.commit.duration",
        "decoupled.commit.size",
    } <= set(found)
    [decisions] = found["decoupled.decisions_made"]
    assert decisions.value == service.direct.counters()["decisions"]
    named = [dict(point.attributes) for point in found["decoupled.experiment_decisions"]]
    assert {"tenant": "local", "experiment": "models"} in named
    COLLECTED.spans(service)
    service.http.post(
        "/v1/experiments/models/decisions", headers={"traceparent": f"00-{TRACE}-{PARENT}-00"}
    )
    assert not COLLECTED.spans(service)


def test_it_is_off_unless_asked_for() -> None:
    endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}
    assert not is_wanted(None, {})
    assert is_wanted(None, endpoint)
    assert is_wanted(True, {})
    assert not is_wanted(False, endpoint)
    assert not is_wanted(True, {"OTEL_SDK_DISABLED": "true"})
    assert not exports("metrics", {"OTEL_METRICS_EXPORTER": "none"})
    with pytest.raises(
        ParameterError, match="OTEL_TRACES_EXPORTER = 'zipkin': must be otlp or none"
    ):
        exports("traces", {"OTEL_TRACES_EXPORTER": "zipkin"})
    with pytest.raises(
        ParameterError, match="OTEL_EXPORTER_OTLP_PROTOCOL = 'grpc': must be http/protobuf"
    ):
        check_protocol({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})


def test_without_the_extra_the_error_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(
        sys.modules, "decoupled_serve.service.http.observe.telemetry", raising=False
    )
    for name in [name for name in sys.modules if name.split(".")[0] == "opentelemetry"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    store = tmp_path / "store.db"
    found = run("serve", "--otel", "--store", store, "--port", "0")
    assert found.exit_code == 1
    assert "decoupled-bandits[otel]" in found.output
    assert "--no-otel" in found.output
    assert not store.exists()


def test_it_goes_to_a_collector_as_variables_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering((200, {}, b""), read=bytes) as (url, seen):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
        monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
        assert is_wanted(None, os.environ)
        telemetry = Telemetry.from_environment()
        with served(tmp_path, telemetry=telemetry) as service:
            service.create("models")
            decided = service.decide("models")
            service.http.put(f"/v1/decisions/{decided['id']}/feedback", json={"loss": 0.5})
        telemetry.close()

    def received(path: str) -> list[bytes]:
        return [each.body for each in seen if each.path == path]

    traces = [ExportTraceServiceRequest.FromString(each) for each in received("/v1/traces")]
    resources = [resource for each in traces for resource in each.resource_spans]
    names = {span.name for each in resources for scope in each.scope_spans for span in scope.spans}
    assert {DECISIONS, "decide", "commit"} <= names
    about = {
        item.key: item.value.string_value
        for item in traces[0].resource_spans[0].resource.attributes
    }
    assert about["service.name"] == "decoupled"
    assert about["deployment.environment.name"] == "test"
    [logs] = [ExportLogsServiceRequest.FromString(each) for each in received("/v1/logs")]
    [event] = logs.resource_logs[0].scope_logs[0].log_records
    assert event.event_name == "gen_ai.evaluation.result"
    [metrics] = [ExportMetricsServiceRequest.FromString(each) for each in received("/v1/metrics")]
    sent = {metric.name for metric in metrics.resource_metrics[0].scope_metrics[0].metrics}
    assert {"http.server.request.duration", "decoupled.decisions_made"} <= sent
