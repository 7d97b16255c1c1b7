"""Counts what a mirror has done since it was started, as JSON and for Prometheus."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

# Why a request is not mirrored, decided before the learner is asked, so that it cannot favour an arm.
NOT_MIRRORED = ("share", "not_repeatable", "too_large", "not_json", "queue_full", "no_decision", "budget")
# Why a copy is given up after the learner was asked; its decision expires without a loss.
DROPPED = ("client_gone", "too_large", "judge_failed", "no_opinion", "refused", "shutdown")
# Why a request was answered by the mirror itself, and no arm was asked.
REFUSED = ("busy", "websocket")
# How telling the webhook ended.
WEBHOOK = ("delivered", "failed")
# What is counted by arm.
BY_ARM = ("failed", "failed_over", "copied", "reused", "unchanged", "spent")
# How the loss of a copy ended.
LEARNED = ("applied", "late", "kept", "left_to_judge")


@dataclass
class MirrorCounts:
    """Counts of everything, by arm or by reason."""

    served: Counter[tuple[str, str]] = field(default_factory=Counter)  # arm, status such as "200"
    failed: Counter[str] = field(default_factory=Counter)  # arm: no answer, or an answer that broke off
    failed_over: Counter[str] = field(default_factory=Counter)  # arm that could not be connected to
    copied: Counter[str] = field(default_factory=Counter)  # arm
    reused: Counter[str] = field(default_factory=Counter)  # arm whose served answer stood for the copy
    unchanged: Counter[str] = field(
        default_factory=Counter
    )  # arm that could not set fields, because a body was no JSON object, or too large
    spent: defaultdict[str, float] = field(
        default_factory=partial(defaultdict, float)
    )  # arm: cost of copies
    not_mirrored: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    learned: Counter[str] = field(default_factory=Counter)
    repeated: int = 0  # requests that found no decision ready, and were served by the arm before
    not_sticky: int = (
        0  # requests with a key whose decision did not come in time, served like those without
    )
    no_context: int = 0  # those with a context, in the same way
    received: int = 0  # copies that came to a sink
    refused: Counter[str] = field(default_factory=Counter)
    webhook: Counter[str] = field(default_factory=Counter)

    def to_dict(self) -> dict[str, Any]:
        """The counts as JSON.

        >>> counts = MirrorCounts()
        >>> counts.dropped["client_gone"] += 1
        >>> counts.to_dict()["dropped"]["client_gone"]
        1
        """
        served: dict[str, dict[str, int]] = {}
        for (arm, status), count in sorted(self.served.items()):
            served.setdefault(arm, {})[status] = count
        reasons = {
            "not_mirrored": NOT_MIRRORED,
            "dropped": DROPPED,
            "learned": LEARNED,
            "refused": REFUSED,
            "webhook": WEBHOOK,
        }
        return {
            "served": served,
            **{name: dict(getattr(self, name)) for name in BY_ARM},
            **{name: {why: getattr(self, name)[why] for why in known} for name, known in reasons.items()},
            **{name: getattr(self, name) for name in _SINGLE},
        }


_SINGLE = {
    "repeated": "Requests that found no decision ready, and were served by the arm of the one before.",
    "not_sticky": "Requests with a key whose decision did not come in time, and that were served like those without.",
    "no_context": "Requests with a context whose decision did not come in time, and that were served like those without.",
    "received": "Copies that came to a sink.",
}
_HELP = {
    "failed": "Answers that did not come or broke off, by arm.",
    "failed_over": "Requests that another arm served, by the arm that could not be connected to.",
    "copied": "Copies sent, by arm.",
    "reused": "Served answers that stood for a copy to the same arm, by arm.",
    "unchanged": "Requests in which an arm could not set its JSON fields, by arm.",
    "spent": "What the answers to copies cost, by arm.",
    "not_mirrored": "Requests that were not mirrored, by reason.",
    "dropped": "Copies that were given up, by reason.",
    "learned": "Losses of copies, by what became of them.",
    "refused": "Requests that the mirror answered itself, by reason.",
    "webhook": "Events that the webhook was told, or could not be told in all attempts.",
}


class MirrorMetrics(Collector):
    """The counts in Prometheus's text format."""

    def __init__(self, counts: MirrorCounts, gauges: Callable[[], dict[str, Any]]) -> None:
        self._counts, self._gauges = counts, gauges
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def text(self) -> bytes:
        """All metrics."""
        return generate_latest(self._registry)

    def describe(self) -> list[Metric]:
        """Nothing: the registry must not collect at the start."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The metrics as they are now."""
        content = self._counts.to_dict()
        served = CounterMetricFamily(
            "decoupled_mirror_served", "Answers to clients, by arm and status.", labels=("arm", "status")
        )
        for arm, statuses in content["served"].items():
            for status, count in statuses.items():
                served.add_metric((arm, status), count)
        yield served
        for name, text in _HELP.items():
            label = "arm" if name in BY_ARM else "reason"
            family = CounterMetricFamily(f"decoupled_mirror_{name}", text, labels=(label,))
            for key, count in content[name].items():
                family.add_metric((key,), count)
            yield family
        for name, text in _SINGLE.items():
            yield CounterMetricFamily(f"decoupled_mirror_{name}", text, value=content[name])
        gauges = self._gauges()
        for name, text in (
            ("queue", "Copies that wait for their answer or their judge."),
            ("queue_bytes", "Bytes that they hold."),
        ):
            yield GaugeMetricFamily(f"decoupled_mirror_{name}", text, value=gauges[name])
        for name, text in (
            ("up", "1 if an arm is up, 0 if it is down."),
            ("decided", "1 for the arm that was found to be the best, 0 for others."),
            ("released", "1 if another arm was found to be better than this one, the incumbent, else 0."),
        ):
            gauge = GaugeMetricFamily(f"decoupled_mirror_{name}", text, labels=("arm",))
            for arm, state in gauges[name].items():
                gauge.add_metric((arm,), float(state))
            yield gauge
