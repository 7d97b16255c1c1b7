"""Prometheus metrics: requests by route and status, their times, and the counters of the service."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from .request_counts import Recorder, RequestCounts

KIND = "text/plain; version=0.0.4; charset=utf-8"
METHODS = frozenset(("GET", "PUT", "POST", "HEAD"))
GAUGES = frozenset(("queue", "experiments", "pending"))  # the counters of the service that can decrease
# Each counts since this process was started, or over the experiments in its memory.
HELP = {
    "commands": "Operations that this process ran in those transactions: decisions, feedback, changes.",
    "commits": "Transactions that this process committed to the store.",
    "decisions": "Decisions made, over the experiments in memory.",
    "expired": "Decisions whose deadline passed without feedback, over the experiments in memory.",
    "experiments": "Experiments in memory.",
    "failed_commits": "Transactions that the store refused; their operations were answered with 503.",
    "late": "Feedback refused because it came after its deadline, over the experiments in memory.",
    "observed": "Decisions whose feedback was applied, over the experiments in memory.",
    "pending": "Decisions that are waiting for feedback, over the experiments in memory.",
    "queue": "Operations that are waiting for the next transaction.",
}


class Metrics:
    """The metrics of one service. They do not distinguish tenants, so that none learns about another."""

    def __init__(self, counters: Callable[[], Mapping[str, float]]) -> None:
        self._registry = CollectorRegistry()
        self._requests = RequestCounts()
        self._registry.register(self._requests)
        self.in_flight = 0
        self._registry.register(_ServiceCounters(counters, self))

    def recorder(self, method: str, route: str, status: int) -> Recorder:
        """The recorder of one kind of request. Methods that callers made up are counted together."""
        return self._requests.recorder(method if method in METHODS else "other", route, status)

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
