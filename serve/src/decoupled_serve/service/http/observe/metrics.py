"""Prometheus metrics: requests and commits as they happen, and the counters and the health of the service when asked."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TypeAlias

from prometheus_client import CollectorRegistry, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from decoupled import __version__
from decoupled.client import ServiceError

from ...commits.queue import Command
from ...memory.traffic import Counts, ExperimentHealth, Health
from ...service import DecisionService

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_NAMES = (*map(str, BUCKETS), "+Inf")

Recorder: TypeAlias = Callable[[float], None]  # takes the seconds of a request
SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
UNKNOWN = "other"  # stands for the route of a path that is none
METHODS = frozenset(("GET", "PUT", "POST", "PATCH", "DELETE", "HEAD"))
NAMES = {"decisions": "made"}  # of counters, where the metric is called otherwise
GAUGES = frozenset(
    ("queue", "experiments", "pending")
)  # the counters of the service that can decrease
# Each counts what this process did since it was started.
HELP = {
    "commands": "Operations that this process ran in those transactions: decisions, feedback, changes.",
    "commits": "Transactions that this process committed to the store.",
    "decisions": "Decisions that this process made.",
    "expired": "Decisions whose deadline passed without feedback, as this process found.",
    "experiments": "Experiments in memory.",
    "failed_commits": "Transactions that the store refused; their operations were answered with 503.",
    "late": "Feedback that this process refused because it came after its deadline.",
    "observed": "Decisions whose feedback this process applied.",
    "pending": "Decisions that are waiting for feedback, over the experiments in memory.",
    "queue": "Operations that are waiting for the next transaction.",
}
EXPERIMENT_HELP = {
    "decisions": "Decisions that this process made, by experiment.",
    "observed": "Decisions whose feedback this process applied, by experiment.",
    "expired": "Decisions whose deadline passed without feedback, by experiment.",
    "late": "Feedback refused because it came after its deadline, by experiment.",
    "guarded": "Decisions whose arm to exploit a guardrail chose, by experiment.",
    "limited": "Decisions that the budget kept from exploring, by experiment.",
    "loss": "Sum of the losses applied, judged or labelled, each scaled to [0, 1], by experiment.",
    "labels": "Labels that were learned from, by experiment.",
    "labels_missing": "Labels that never came in time, by experiment.",
}
EXPERIMENT_GAUGES = {
    "pending": "Decisions that are waiting for feedback, by experiment, of those in memory.",
    "leader_share": "The share of the arm exploited most among all decisions that exploited one, by experiment.",
    "labels_awaiting": "Decisions that were judged and await their label, by experiment, of those in memory.",
    "judge_lam": "How much the judge counts, from 0 to 1, by experiment, of those in memory.",
    "judge_warning": "1 if the last verdict that was asked for says not to trust the judge, else 0, by experiment.",
    "segments": "The segments that a contextual policy tells apart, by experiment, of those in memory.",
}
SIZE_HELP = {
    "store": "Bytes of the store.",
    "wal": "Bytes of SQLite's write-ahead log.",
    "free": "Bytes that are free on the disk of the store.",
}


class Metrics:
    """The metrics of one service. They do not distinguish tenants, unless experiments are counted by name."""

    def __init__(self, service: DecisionService) -> None:
        self.registry = registry = CollectorRegistry()
        self._requests = RequestCounts()
        registry.register(self._requests)
        text = "Seconds of a transaction: its operations, and writing them to disk."
        self._seconds = Histogram(
            "decoupled_commit_seconds", text, buckets=BUCKETS, registry=registry
        )
        text = "Operations in a transaction."
        self._size = Histogram("decoupled_commit_size", text, buckets=SIZES, registry=registry)
        self.in_flight = 0
        on_request = _OnRequest(service, lambda: self.in_flight)
        registry.register(on_request)
        self.on_request = on_request.collect  # what is read from the service when it is asked for
        ProcessCollector(registry=registry)
        service.observe_commits(self._committed)

    def recorder(self, method: str, route: str, status: int) -> Recorder:
        """The recorder of one kind of request. Methods that callers made up are counted together."""
        return self._requests.recorder(method if method in METHODS else "other", route, status)

    def _committed(
        self, commands: Sequence[Command], seconds: float, error: ServiceError | None
    ) -> None:
        self._seconds.observe(seconds)
        self._size.observe(len(commands))

    def text(self) -> bytes:
        """All metrics in Prometheus's text format."""
        return generate_latest(self.registry)


class _Times:
    """The times of one route: how many fell into each bucket, and their sum."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * len(_NAMES)
        self.total = 0.0


class RequestCounts(Collector):
    """Requests by method, route and status, and their times by route, in plain numbers: one takes a fraction of a microsecond.

    Prometheus's own counters lock for every number. All requests are counted on one event loop, which also collects them.

    >>> counts = RequestCounts()
    >>> counts.recorder("GET", "/healthz", 200)(0.003)
    >>> [metric.name for metric in counts.collect()]
    ['decoupled_http_requests', 'decoupled_http_seconds']
    """

    def __init__(self) -> None:
        self._requests: dict[tuple[str, str, str], list[int]] = {}
        self._times: dict[str, _Times] = {}

    def recorder(self, method: str, route: str, status: int) -> Recorder:
        """What counts a request of this kind, given its seconds."""
        requests = self._requests.setdefault((method, route, str(status)), [0])
        times = self._times.setdefault(route, _Times())
        counts = times.counts

        def record(seconds: float) -> None:
            requests[0] += 1
            counts[bisect_left(BUCKETS, seconds)] += 1
            times.total += seconds

        return record

    def collect(self) -> Iterator[Metric]:
        """The counts as Prometheus takes them."""
        kinds, text = ("method", "route", "status"), "Requests answered."
        requests = CounterMetricFamily("decoupled_http_requests", text, labels=kinds)
        for labels, [count] in self._requests.items():
            requests.add_metric(labels, count)
        yield requests
        text = "Seconds from a request to its response."
        seconds = HistogramMetricFamily("decoupled_http_seconds", text, labels=("route",))
        for route, times in self._times.items():
            counts = list(zip(_NAMES, accumulate(times.counts), strict=True))
            seconds.add_metric((route,), counts, times.total)
        yield seconds


class _OnRequest(Collector):
    """Reads the service when metrics are collected."""

    def __init__(self, service: DecisionService, in_flight: Callable[[], int]) -> None:
        self._service, self._in_flight = service, in_flight

    def collect(self) -> Iterator[Metric]:
        yield _gauge("http_in_flight", "Requests being answered now.", self._in_flight())
        for name, value in sorted(self._service.counters().items()):
            kind = GaugeMetricFamily if name in GAUGES else CounterMetricFamily
            yield kind(f"decoupled_decisions_{NAMES.get(name, name)}", HELP[name], value=value)
        health = self._service.health()
        yield from _health(health)
        if health.experiments:
            yield from _by_experiment(health.experiments)


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"decoupled_{name}", text, value=value)


def _health(health: Health) -> Iterator[Metric]:
    build = GaugeMetricFamily("decoupled_build_info", "1, with the version.", labels=("version",))
    build.add_metric((__version__,), 1)
    yield build
    yield _gauge("ready", "1 if the store took the last write, else 0.", int(health.ready))
    for name, size in health.sizes.items():
        yield _gauge(f"{'store_free' if name == 'free' else name}_bytes", SIZE_HELP[name], size)
    text = (
        "Seconds since the oldest of the snapshots that experiments in memory would restart from."
    )
    yield _gauge("snapshot_age_seconds", text, health.snapshot_age)
    text = (
        "The most rows of a log that an experiment in memory would have to replay after a restart."
    )
    yield _gauge("snapshot_rows", text, health.snapshot_rows)
    yield _gauge("compile_queue", "Policies that wait to be compiled.", health.compiling)
    yield _gauge("compile_failed", "Policies that failed to compile.", health.not_compiled)


def _by_experiment(experiments: Mapping[tuple[str, str], ExperimentHealth]) -> Iterator[Metric]:
    labels = ("tenant", "experiment")
    for name in Counts._fields:
        family = CounterMetricFamily(
            f"decoupled_experiment_{name}", EXPERIMENT_HELP[name], labels=labels
        )
        for place, found in experiments.items():
            family.add_metric(place, getattr(found.counts, name))
        yield family
    for name, text in EXPERIMENT_GAUGES.items():
        gauge = GaugeMetricFamily(f"decoupled_experiment_{name}", text, labels=labels)
        for place, found in experiments.items():
            if (value := getattr(found, name)) is not None:
                gauge.add_metric(place, value)
        yield gauge
