"""Prometheus metrics: requests and commits as they happen, and the counters and vitals of the service when asked."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from ... import __version__
from ..commit_loop import Command
from ..decision_service import DecisionService
from ..errors import ServiceError
from ..traffic import Counts
from ..vitals import ExperimentVitals, Vitals
from .request_counts import BUCKETS, Recorder, RequestCounts

KIND = "text/plain; version=0.0.4; charset=utf-8"
SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
METHODS = frozenset(("GET", "PUT", "POST", "PATCH", "DELETE", "HEAD"))
GAUGES = frozenset(("queue", "experiments", "pending"))  # the counters of the service that can decrease
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
    "loss": "Sum of the losses applied, each scaled to [0, 1], by experiment.",
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
        self._commit_seconds = Histogram(
            "decoupled_commit_seconds", text, buckets=BUCKETS, registry=registry
        )
        text = "Operations in a transaction."
        self._commit_size = Histogram("decoupled_commit_size", text, buckets=SIZES, registry=registry)
        self.in_flight = 0
        self._on_request = _OnRequest(service, lambda: self.in_flight)
        registry.register(self._on_request)
        ProcessCollector(registry=registry)
        service.observe_commits(self._committed)

    def recorder(self, method: str, route: str, status: int) -> Recorder:
        """The recorder of one kind of request. Methods that callers made up are counted together."""
        return self._requests.recorder(method if method in METHODS else "other", route, status)

    def _committed(self, commands: Sequence[Command], seconds: float, error: ServiceError | None) -> None:
        self._commit_seconds.observe(seconds)
        self._commit_size.observe(len(commands))

    def on_request(self) -> Iterator[Metric]:
        """The metrics that are read from the service when they are asked for."""
        return self._on_request.collect()

    def text(self) -> bytes:
        """All metrics in Prometheus's text format."""
        return generate_latest(self.registry)


class _OnRequest(Collector):
    """Reads the service when metrics are collected."""

    def __init__(self, service: DecisionService, in_flight: Callable[[], int]) -> None:
        self._service, self._in_flight = service, in_flight

    def collect(self) -> Iterator[Metric]:
        yield _gauge("http_in_flight", "Requests being answered now.", self._in_flight())
        for name, value in sorted(self._service.counters().items()):
            kind = GaugeMetricFamily if name in GAUGES else CounterMetricFamily
            family = kind(f"decoupled_desk_{name}", HELP[name])
            family.add_metric([], value)
            yield family
        vitals = self._service.vitals()
        yield from _vital(vitals)
        if vitals.experiments:
            yield from _by_experiment(vitals.experiments)

    def describe(self) -> list[Metric]:
        return []


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"decoupled_{name}", text, value=value)


def _vital(vitals: Vitals) -> Iterator[Metric]:
    build = GaugeMetricFamily("decoupled_build_info", "1, with the version.", labels=("version",))
    build.add_metric((__version__,), 1)
    yield build
    yield _gauge("ready", "1 if the store took the last write, else 0.", int(vitals.ready))
    for name, size in vitals.sizes.items():
        yield _gauge(f"{'store_free' if name == 'free' else name}_bytes", SIZE_HELP[name], size)
    text = "Seconds since the oldest of the snapshots that experiments in memory would restart from."
    yield _gauge("snapshot_age_seconds", text, vitals.snapshot_age)
    text = "The most rows of a log that an experiment in memory would have to replay after a restart."
    yield _gauge("snapshot_rows", text, vitals.snapshot_rows)
    jumps = CounterMetricFamily("decoupled_clock_jumps", "Jumps of this machine's clock.")
    jumps.add_metric([], vitals.clock_jumps)
    yield jumps
    text = "Seconds by which this machine's clock is ahead of the times that the service records."
    yield _gauge("clock_behind_seconds", text, vitals.clock_behind)
    yield _gauge("compile_queue", "Policies that wait to be compiled.", vitals.compiling)
    yield _gauge("compile_failed", "Policies that failed to compile.", vitals.not_compiled)


def _by_experiment(experiments: Mapping[tuple[str, str], ExperimentVitals]) -> Iterator[Metric]:
    labels = ("tenant", "experiment")
    for name in Counts._fields:
        family = CounterMetricFamily(f"decoupled_experiment_{name}", EXPERIMENT_HELP[name], labels=labels)
        for place, found in experiments.items():
            family.add_metric(place, getattr(found.counts, name))
        yield family
    text = "Decisions that are waiting for feedback, by experiment, of those in memory."
    pending = GaugeMetricFamily("decoupled_experiment_pending", text, labels=labels)
    text = "The share of the arm exploited most among all decisions that exploited one, by experiment."
    leaders = GaugeMetricFamily("decoupled_experiment_leader_share", text, labels=labels)
    for place, found in experiments.items():
        pending.add_metric(place, found.pending)
        if found.leader_share is not None:
            leaders.add_metric(place, found.leader_share)
    yield pending
    yield leaders
