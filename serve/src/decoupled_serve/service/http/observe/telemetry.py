"""OpenTelemetry: a span for each request, decision, feedback and commit, an event for each loss, and the metrics of the service.

Nothing here is loaded unless it is asked for, and the routes that carry the traffic do not test for it: they are
replaced by others that trace. Names follow OpenTelemetry's semantic conventions; the rest begins with "decoupled.".

opentelemetry-instrumentation-asgi would not do: it measures requests without their routes, since it knows no routes but the
framework's, and unless a variable says otherwise its names are those that the conventions had before.
"""

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from opentelemetry import propagate
from opentelemetry._logs import Logger, LoggerProvider, NoOpLoggerProvider, SeverityNumber
from opentelemetry.metrics import CallbackOptions, Histogram, Meter, MeterProvider, Observation
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    Tracer,
    TracerProvider,
    format_span_id,
    format_trace_id,
    set_span_in_context,
)
from prometheus_client.metrics_core import Metric
from starlette.types import ASGIApp, Receive, Scope, Send

from decoupled import __version__
from decoupled.client import ServiceError

from ...commits.queue import Command
from ...commits.replies import Reply
from ...experiment.records import DecisionRecord, Feedback
from ...experiment.request_context import Trace
from ...service import DecisionService
from ..admission import Access, Admission
from ..models.decisions import EVALUATION, SCORE
from ..routes.decisions import Begun, FastRoutes, Headers
from .metrics import BUCKETS, METHODS, SIZES, UNKNOWN, Metrics
from .telemetry_settings import check_protocol, exports

_UNITS = {"bytes": "By", "seconds": "s"}


class Telemetry:
    """Traces and measures a service: where spans, metrics and events, one for each feedback, go."""

    def __init__(
        self, tracers: TracerProvider, meters: MeterProvider, loggers: LoggerProvider | None = None
    ) -> None:
        loggers = loggers or NoOpLoggerProvider()
        self._providers = (tracers, meters, loggers)
        self._logger = loggers.get_logger("decoupled", __version__)
        self._tracer = tracers.get_tracer("decoupled", __version__)
        self._meter = meters.get_meter("decoupled", __version__)
        told = "Duration of a transaction: its operations, and writing them to disk."
        self._commit_seconds = _histogram(
            self._meter, "decoupled.commit.duration", "s", told, BUCKETS
        )
        told = "Operations in a transaction."
        self._commit_size = _histogram(
            self._meter, "decoupled.commit.size", "{operation}", told, SIZES
        )
        self._database = ""

    @classmethod
    def from_environment(cls) -> "Telemetry":
        """Spans, metrics and events over OTLP and HTTP, as the standard variables (OTEL_...) say."""
        from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk._logs import LoggerProvider as SdkLoggerProvider
        from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
        from opentelemetry.sdk.metrics import MeterProvider as SdkMeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        check_protocol(os.environ)
        given = os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
        named = "OTEL_SERVICE_NAME" in os.environ or "service.name=" in given
        about = {"service.version": __version__} | ({} if named else {"service.name": "decoupled"})
        resource = Resource.create(about)
        tracers = SdkTracerProvider(resource=resource, shutdown_on_exit=False)
        if exports("traces", os.environ):
            tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        wanted = exports("metrics", os.environ)
        readers = [PeriodicExportingMetricReader(OTLPMetricExporter())] if wanted else []
        meters = SdkMeterProvider(readers, resource, shutdown_on_exit=False)
        loggers = SdkLoggerProvider(resource, shutdown_on_exit=False)
        if exports("logs", os.environ):
            loggers.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
        return cls(tracers, meters, loggers)

    def traced(self, app: ASGIApp) -> ASGIApp:
        """An application that traces and measures each request to another."""
        return _TracedApp(app, self._tracer, self._meter)

    def routes(self, service: DecisionService, admission: Admission) -> FastRoutes:
        """The routes that carry the traffic, with a span for each decision and feedback."""
        return _TracedRoutes(service, admission, self._tracer, self._logger)

    def watch(self, service: DecisionService, metrics: Metrics) -> None:
        """Trace every commit, and export the metrics that Prometheus gets when it asks."""
        self._database = service.database
        service.observe_commits(self._committed)
        for family in metrics.on_request():
            self._export(family, metrics.on_request)

    def close(self) -> None:
        """Send what is left."""
        for provider in self._providers:
            shutdown = getattr(provider, "shutdown", None)  # only those of the SDK have it
            if shutdown is not None:
                shutdown()

    def _committed(
        self, commands: Sequence[Command], seconds: float, error: ServiceError | None
    ) -> None:
        self._commit_seconds.record(seconds)
        self._commit_size.record(len(commands))
        traces = {each.origin.trace: None for each in commands if each.origin.trace is not None}
        requests = [_context(trace) for trace in traces if trace.sampled]
        if not requests:
            return
        now = time.time_ns()
        span = self._tracer.start_span(
            "commit",
            set_span_in_context(NonRecordingSpan(requests[0])),
            links=[Link(each) for each in requests],
            start_time=now - int(1e9 * seconds),
            attributes={"db.system.name": self._database, "db.operation.batch.size": len(commands)},
        )
        if error is not None:
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(StatusCode.ERROR, str(error))
        span.end(now)

    def _export(self, family: Metric, collect: Callable[[], Iterable[Metric]]) -> None:
        """Export a family of Prometheus as an instrument."""
        name = family.name

        def observe(options: CallbackOptions) -> Iterator[Observation]:
            for found in collect():
                if found.name == name:
                    for sample in found.samples:
                        yield Observation(sample.value, sample.labels)

        meter, counts = self._meter, family.type == "counter"
        create = meter.create_observable_counter if counts else meter.create_observable_gauge
        unit = _UNITS.get(name.rpartition("_")[2], "1")
        create(name.replace("_", ".", 1), [observe], unit, family.documentation)


def _histogram(
    meter: Meter, name: str, unit: str, told: str, buckets: Sequence[float]
) -> Histogram:
    return meter.create_histogram(name, unit, told, explicit_bucket_boundaries_advisory=buckets)


def _context(trace: Trace) -> SpanContext:
    flags = TraceFlags(TraceFlags.SAMPLED if trace.sampled else TraceFlags.DEFAULT)
    return SpanContext(
        int(trace.trace_id, 16), int(trace.span_id, 16), is_remote=False, trace_flags=flags
    )


class _TracedApp:
    """A span and a measurement for each request.

    The service reads the place in the trace from the header, so that is replaced by one that names the request's span.
    """

    def __init__(self, app: ASGIApp, tracer: Tracer, meter: Any) -> None:
        self._app, self._tracer = app, tracer
        told = "Duration of HTTP server requests."
        self._seconds = _histogram(meter, "http.server.request.duration", "s", told, BUCKETS)
        self._active = meter.create_up_down_counter(
            "http.server.active_requests", "{request}", "Number of active HTTP server requests."
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        method = scope["method"] if scope["method"] in METHODS else "_OTHER"
        always = {"http.request.method": method, "url.scheme": scope["scheme"]}
        sent = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        started = time.perf_counter()
        self._active.add(1, always)
        with self._tracer.start_as_current_span(
            method if method != "_OTHER" else "HTTP",
            propagate.extract(sent),
            kind=SpanKind.SERVER,
            attributes={**always, **_addresses(scope)},
        ) as span:
            scope = {**scope, "headers": _continued(scope["headers"], span.get_span_context())}
            try:
                await self._app(scope, receive, send)
            finally:
                response = scope["decoupled.response"]  # which the gateway makes
                known: dict[str, Any] = {"http.response.status_code": response.status}
                if response.route != UNKNOWN:
                    span.update_name(f"{method} {response.route}")
                    known["http.route"] = response.route
                span.set_attributes(
                    {**known, "decoupled.request_id": response.origin.request or ""}
                )
                if response.status >= 500:
                    span.set_attribute("error.type", str(response.status))
                    span.set_status(StatusCode.ERROR)
                self._active.add(-1, always)
                self._seconds.record(time.perf_counter() - started, {**always, **known})


def _addresses(scope: Scope) -> Mapping[str, Any]:
    found: dict[str, Any] = {
        "url.path": scope["path"],
        "network.protocol.version": scope["http_version"],
    }
    for name, address in (("client", scope.get("client")), ("server", scope.get("server"))):
        if address:
            found[f"{name}.address"] = address[0]
            if address[1] is not None:
                found[f"{name}.port"] = address[1]
    return found


def _continued(
    headers: Iterable[tuple[bytes, bytes]], context: SpanContext
) -> list[tuple[bytes, bytes]]:
    """Headers whose traceparent names a span."""
    here = f"00-{format_trace_id(context.trace_id)}-{format_span_id(context.span_id)}-{context.trace_flags:02x}"
    kept = [(name, value) for name, value in headers if name != b"traceparent"]
    return [*kept, (b"traceparent", here.encode())]


class _TracedRoutes(FastRoutes):
    """The routes that carry the traffic, each call in a span of its own."""

    def __init__(
        self, service: DecisionService, admission: Admission, tracer: Tracer, logger: Logger
    ) -> None:
        super().__init__(service, admission)
        self._tracer, self._logger = tracer, logger

    def decide(self, access: Access, name: str, headers: Headers, body: bytes) -> Begun:
        begin = partial(super().decide, access, name, headers, body)
        return self._in_span("decide", access, {"decoupled.experiment": name}, begin)

    def feedback(self, access: Access, id: str, headers: Headers, body: bytes) -> Begun:  # noqa: A002
        begin = partial(super().feedback, access, id, headers, body)
        return self._in_span("feedback", access, {"decoupled.decision": id}, begin)

    def give(self, access: Access, given: Sequence[Feedback]) -> Begun:
        begin = partial(super().give, access, given)
        return self._in_span("feedback", access, {"decoupled.feedback.count": len(given)}, begin)

    def _in_span(
        self,
        name: str,
        access: Access,
        attributes: Mapping[str, str | int],
        begin: Callable[[], Begun],
    ) -> Begun:
        """Begin a request, in a span that ends when its reply arrives."""
        span = self._tracer.start_span(
            name, attributes={"decoupled.tenant": access.tenant, **attributes}
        )
        try:
            begun = begin()
        except ServiceError as error:
            _end(span, error)
            raise

        def done(reply: Reply[Any]) -> None:
            error = reply.exception()
            if name == "feedback" and error is None:
                self._evaluated(span, reply.result())
            _end(span, error)

        begun.reply.when_done(asyncio.get_running_loop(), done)
        return begun

    def _evaluated(
        self, span: Span, outcomes: DecisionRecord | Sequence[DecisionRecord | ServiceError]
    ) -> None:
        """An event for each loss that was applied, and for each that a judge gave."""
        for each in [outcomes] if isinstance(outcomes, DecisionRecord) else outcomes:
            if isinstance(each, ServiceError):
                continue
            about = {"decoupled.experiment": each.experiment, "decoupled.arm": str(each.explore)}
            about |= {"decoupled.decision": each.id, "gen_ai.response.id": each.id}
            for kind, score in (("loss", each.loss), ("judged", each.judged)):
                if score is not None:
                    self._logger.emit(
                        event_name=EVALUATION,
                        context=set_span_in_context(span),
                        severity_number=SeverityNumber.INFO,
                        attributes={
                            **about,
                            "gen_ai.evaluation.name": f"decoupled.{kind}",
                            SCORE: score,
                        },
                    )


def _end(span: Span, error: BaseException | None) -> None:
    if error is not None:
        span.set_attribute("error.type", type(error).__name__)
        if not isinstance(error, ServiceError) or error.status >= 500:
            span.set_status(StatusCode.ERROR, str(error))
    span.end()
