"""Prometheus metrics: requests by route and status, their times, and the counters of the service."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

KIND = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
METHODS = frozenset(("GET", "PUT", "POST", "HEAD"))
GAUGES = frozenset(("queue", "experiments", "pending"))  # the counters of the service that can decrease
# Each counts since this process was started, or over the experiments in its memory.
HELP = {
    "commands": "Operations that this process ran in those transactions: decisions, feedback, changes.",
    "commits": "Transactions that this process committed to the store.",
    "decisions": "Decisions that this process made.",
    "expired": "Decisions that this process expired, since their deadline passed without feedback.",
    "experiments": "Experiments in memory.",
    "failed_commits": "Transactions that the store refused; their operations were answered with 503.",
    "late": "Feedback that this process refused because it came after its deadline.",
    "observed": "Decisions whose feedback this process applied.",
    "pending": "Decisions that are waiting for feedback, over the experiments in memory.",
    "queue": "Operations that are waiting for the next transaction.",
}


class Recorder(NamedTuple):
    """Records the requests of one method, route and status."""

    increment: Callable[[], None]
    observe: Callable[[float], None]


class Metrics:
    """The metrics of one service. They do not distinguish tenants, so that none learns about another."""

    def __init__(self, counters: Callable[[], Mapping[str, float]]) -> None:
        self._registry = CollectorRegistry()
        labels, registry = ("method", "route", "status"), self._registry
        self._requests = Counter("decoupled_http_requests", "Requests answered.", labels, registry=registry)
        text = "Seconds from a request to its response."
        self._seconds = Histogram(
            "decoupled_http_seconds", text, ("route",), buckets=BUCKETS, registry=registry
        )
        self.in_flight = 0
        self._registry.register(_ServiceCounters(counters, self))

    def recorder(self, method: str, route: str, status: int) -> Recorder:
        """The recorder of one kind of request. Methods that callers made up are counted together."""
        known = method if method in METHODS else "other"
        return Recorder(
            self._requests.labels(known, route, status).inc, self._seconds.labels(route).observe
        )

    def text(self) -> bytes:
        """All metrics in Prometheus's text format."""
        return generate_latest(self._registry)


class _ServiceCounters(Collector):
    """Reads the counters of the service when metrics are collected."""

    def __init__(self, counters: Callable[[], Mapping[str, float]], metrics: Metrics) -> None:
        self._counters, self._metrics = counters, metrics

    def collect(self) -> Iterator[Metric]:
        in_flight = GaugeMetricFamily("decoupled_http_in_flight", "Requests being answered now.")
        in_flight.add_metric([], self._metrics.in_flight)
        yield in_flight
        for name, value in sorted(self._counters().items()):
            kind = GaugeMetricFamily if name in GAUGES else CounterMetricFamily
            family = kind(f"decoupled_desk_{name}", HELP[name])
            family.add_metric([], value)
            yield family

    def describe(self) -> list[Metric]:
        return []
