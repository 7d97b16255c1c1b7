"""What /metrics tells: requests by route and status, times, and the counters of the service."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

KIND = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
GAUGES = frozenset(("queue", "experiments", "pending"))  # of the service's counters, those that can fall
# What each counter counts: since this process was started, or over the experiments in its memory.
HELP = {
    "commands": "Operations that this process ran in those transactions: decisions, feedback, changes.",
    "commits": "Transactions that this process committed to the store.",
    "decisions": "Decisions made, over the experiments in memory.",
    "expired": "Decisions whose deadline passed without feedback, over the experiments in memory.",
    "experiments": "Experiments in memory.",
    "failed_commits": "Transactions that the store did not take; what they contained was answered with 503.",
    "late": "Feedback refused because it came after its deadline, over the experiments in memory.",
    "observed": "Decisions whose feedback was applied, over the experiments in memory.",
    "pending": "Decisions that wait for feedback, over the experiments in memory.",
    "queue": "Operations that wait for the next transaction now.",
}


class Metrics:
    """The counters of one service; tenants are not told apart, so that none learns of another."""

    def __init__(self, desk_counters: Callable[[], Mapping[str, float]]) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "decoupled_http_requests",
            "Requests answered.",
            ("method", "route", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "decoupled_http_seconds",
            "Seconds from a request to its answer.",
            ("route",),
            buckets=BUCKETS,
            registry=self._registry,
        )
        self.in_flight = 0
        self._children: dict[tuple[str, str, int], Callable[[float], None]] = {}
        self._registry.register(_DeskCounters(desk_counters, self))

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """One request was answered."""
        count = self._children.get((method, route, status))
        if count is None:
            # Labels that a caller could make up would fill the memory.
            known = method if method in ("GET", "PUT", "POST", "HEAD") else "other"
            requests, times = self._requests.labels(known, route, status), self._seconds.labels(route)

            def count(seconds: float) -> None:
                requests.inc()
                times.observe(seconds)

            if known == method:
                self._children[method, route, status] = count
        count(seconds)

    def text(self) -> bytes:
        """The whole, in Prometheus's text format."""
        return generate_latest(self._registry)


class _DeskCounters(Collector):
    """Asks the desk when it is asked."""

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
