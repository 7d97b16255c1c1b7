"""Counts what a mirror has done since it was started, as JSON and for Prometheus."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

# Why a request is not mirrored, decided before the learner is asked, so that it cannot favour an arm.
NOT_MIRRORED = (
    "share",
    "not_repeatable",
    "too_large",
    "not_json",
    "queue_full",
    "no_decision",
    "budget",
)
# Why a copy is given up after the learner was asked; its decision expires without a loss.
DROPPED = (
    "client_gone",
    "too_large",
    "judge_failed",
    "no_opinion",
    "refused",
    "shutdown",
    "unsaved",
)
# How the loss of a copy ended.
LEARNED = ("applied", "late", "kept", "left_to_judge")
# Why an answer cannot be read or priced, and counts as a failed one: its coding, JSON that is none, a price that is no
# price, or any other error while it is read.
UNREADABLE = ("encoding", "json", "price", "error")
# What became of answers whose decisions ask for a label.
LABELS = (
    "kept",
    "labelled",
    "later",
    "no_opinion",
    "redact_failed",
    "failed",
    "error",
    "refused",
    "full",
    "shutdown",
)
_BY_ARM = {
    "failed": "Answers that did not come or broke off, by arm.",
    "failed_over": "Requests that another arm served, by the arm that could not be connected to.",
    "copied": "Copies sent, by arm.",
    "reused": "Served answers that stood for a copy to the same arm, by arm.",
    "unchanged": "Requests in which an arm could not set its JSON fields, by arm.",
    "spent": "What the answers to copies cost, by arm.",
}
_BY_REASON = {
    "not_mirrored": ("Requests that were not mirrored, by reason.", NOT_MIRRORED),
    "dropped": ("Copies that were given up, by reason.", DROPPED),
    "learned": ("Losses of copies, by what became of them.", LEARNED),
    "unreadable": (
        "Answers that cannot be read or priced, and count as failed, by reason.",
        UNREADABLE,
    ),
    "refused": ("Requests that the mirror answered itself, by reason.", ("busy", "websocket")),
    "fields_missing": (
        "Fields of contexts whose function raised an error or took too long.",
        ("failed", "late"),
    ),
    "labels": ("Answers whose decisions ask for a label, by what became of them.", LABELS),
    "webhook": (
        "Events that the webhook was told, or could not be told in all attempts.",
        ("delivered", "failed"),
    ),
}
_SINGLE = {
    "repeated": "Requests that found no decision ready, and were served by the arm of the one before.",
    "not_sticky": "Requests with a key whose decision did not come in time, and that were served like those without.",
    "no_context": "Requests with a context whose decision did not come in time, and that were served like those without.",
    "received": "Copies that came to a sink.",
    "above_ceiling": "Copies that cost more, with their judge, than was declared and set aside.",
}
_GAUGES = {
    "queue": "Copies that wait for their answer or their judge.",
    "queue_bytes": "Bytes that they hold.",
    "judge_warning": "1 if the judge alone would decide for another arm than labels do, else 0.",
}
_LABELLED_GAUGES = {
    "up": ("arm", "1 if an arm is up, 0 if it is down."),
    "decided": ("arm", "1 for the arm that was found to be the best, 0 for others."),
    "released": (
        "arm",
        "1 if another arm was found to be better than this one, the incumbent, else 0.",
    ),
    "budget_spent": (
        "limit",
        "What is spent of the money of the budget, what is set aside included, by limit.",
    ),
    "budget_left": ("limit", "What is left of it, by limit."),
}


_KINDS = 20  # of failures that are told apart
_PREFIX = "decoupled_mirror_"
Family: TypeAlias = CounterMetricFamily | GaugeMetricFamily


class Judgements:
    """Counts what a judge said, how often it failed and why, what it cost, and how it preferred what it saw first.

    >>> judge = Judgements()
    >>> judge.said(1.0, 0.02), judge.said(-1.0, 0.02), judge.failed("KeyError: 'text'", 0.0)
    (None, None, True)
    >>> judge.problem, judge.position
    ("judge failed 1 of 3: KeyError: 'text'", 0.0)
    """

    def __init__(self) -> None:
        self.asked = self._placed = 0
        self.failures = Counter[str]()  # by the kind of error, such as "KeyError" or "status 401"
        self._last: dict[str, str] = {}
        self.spent = self._positions = 0.0

    def said(self, position: float | None, cost: float) -> None:
        """Count a verdict."""
        self.asked, self.spent = self.asked + 1, self.spent + cost
        if position is not None:
            self._placed, self._positions = self._placed + 1, self._positions + position

    def failed(self, why: str, cost: float) -> bool:
        """Count a failure; returns whether to say so, which is at 1, 10, 100 and so on."""
        self.asked, self.spent = self.asked + 1, self.spent + cost
        kind = why.partition(":")[0]
        kind = kind if kind in self.failures or len(self.failures) < _KINDS else "other"
        self.failures[kind] += 1
        self._last[kind] = " ".join(why.split())[:200]
        return str(self.failures.total()).strip("0") == "1"

    @property
    def problem(self) -> str | None:
        """How often it failed, and how it failed most often; None if it did not."""
        if not self.failures:
            return None
        [(kind, _)] = self.failures.most_common(1)
        return f"judge failed {self.failures.total()} of {self.asked}: {self._last[kind]}"

    @property
    def position(self) -> float | None:
        """1 if it always prefers what it sees first, -1 if always the other; None if that is not known."""
        return self._positions / self._placed if self._placed else None

    def to_dict(self) -> dict[str, Any]:
        """The counts as JSON."""
        return {
            "judgements": self.asked, "failed": dict(self.failures), "problem": self.problem,
            "position": self.position, "spent": self.spent,
        }  # fmt: skip


class MirrorCounts:
    """Counts of everything, by arm or by reason. What each counts is told above, for Prometheus."""

    def __init__(self) -> None:
        self.served: Counter[tuple[str, str]] = Counter()  # by arm and status, such as "200"
        self.failed, self.failed_over, self.copied = Counter[str](), Counter[str](), Counter[str]()
        self.reused, self.unchanged = Counter[str](), Counter[str]()
        self.spent: defaultdict[str, float] = defaultdict(float)
        self.not_mirrored, self.dropped, self.learned = (
            Counter[str](),
            Counter[str](),
            Counter[str](),
        )
        self.fields_missing = Counter[str]()
        self.unreadable = Counter[str]()
        self.refused, self.webhook, self.labels = Counter[str](), Counter[str](), Counter[str]()
        self.judge = Judgements()
        self.repeated = self.not_sticky = self.no_context = self.received = self.above_ceiling = 0

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
        return {
            "served": served,
            **{name: dict(getattr(self, name)) for name in _BY_ARM},
            **{
                name: {why: getattr(self, name)[why] for why in known}
                for name, (_, known) in _BY_REASON.items()
            },
            **{name: getattr(self, name) for name in _SINGLE},
            "judge": self.judge.to_dict(),
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

    def collect(self) -> Iterator[Metric]:
        """The metrics as they are now."""
        counts, gauges = self._counts, self._gauges()
        content, judge = counts.to_dict(), counts.judge
        told = "Answers to clients, by arm and status."
        served = CounterMetricFamily(f"{_PREFIX}served", told, labels=("arm", "status"))
        for key, count in sorted(counts.served.items()):
            served.add_metric(key, count)
        yield served
        by_reason = [(name, told, "reason") for name, (told, _) in _BY_REASON.items()]
        for name, told, label in (
            *((name, told, "arm") for name, told in _BY_ARM.items()),
            *by_reason,
        ):
            yield _labelled(CounterMetricFamily, name, told, label, content[name])
        told = "Judgements, failed ones included."
        single = [(name, told, content[name]) for name, told in _SINGLE.items()]
        single += [
            ("judgements", told, judge.asked),
            ("judge_spent", "What judging cost.", judge.spent),
        ]
        for name, told, value in single:
            yield CounterMetricFamily(_PREFIX + name, told, value=value)
        told = "Failures of the judge, by kind."
        yield _labelled(CounterMetricFamily, "judge_failed", told, "kind", judge.failures)
        if judge.position is not None:
            told = "1 if the judge always prefers what it sees first, -1 if always the other."
            yield GaugeMetricFamily(f"{_PREFIX}judge_position", told, value=judge.position)
        for name, told in _GAUGES.items():
            yield GaugeMetricFamily(_PREFIX + name, told, value=gauges[name])
        for name, (label, told) in _LABELLED_GAUGES.items():
            yield _labelled(GaugeMetricFamily, name, told, label, gauges[name])


def _labelled(
    kind: type[Family], name: str, told: str, label: str, values: Mapping[str, float]
) -> Metric:
    family = kind(_PREFIX + name, told, labels=(label,))
    for labelled, value in values.items():
        family.add_metric((labelled,), float(value))
    return family
