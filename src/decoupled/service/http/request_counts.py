"""Counts of requests, and of how long they took, in plain numbers: a request is counted for a fraction of a microsecond.

Prometheus's own counters lock for every number. All requests are counted on one event loop, which also collects them.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import TypeAlias

from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_NAMES = (*map(str, BUCKETS), "+Inf")

Recorder: TypeAlias = Callable[[float], None]  # takes the seconds of a request


class _Times:
    """The times of one route: how many fell into each bucket, and their sum."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * len(_NAMES)
        self.total = 0.0


class RequestCounts(Collector):
    """Requests by method, route and status, and their times by route.

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
        requests = CounterMetricFamily(
            "decoupled_http_requests", "Requests answered.", labels=("method", "route", "status")
        )
        for labels, [count] in self._requests.items():
            requests.add_metric(labels, count)
        yield requests
        seconds = HistogramMetricFamily(
            "decoupled_http_seconds", "Seconds from a request to its response.", labels=("route",)
        )
        for route, times in self._times.items():
            seconds.add_metric(
                (route,), list(zip(_NAMES, accumulate(times.counts), strict=True)), times.total
            )
        yield seconds

    def describe(self) -> list[Metric]:
        """Nothing: the kinds of requests are not known before they come."""
        return []
