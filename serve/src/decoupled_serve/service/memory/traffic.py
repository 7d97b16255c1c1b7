"""What this process did, counted when it is on disk: for a few experiments by name, and for all others together.

Counts only ever grow, as Prometheus expects: they do not depend on which experiments are in memory, and what another
replica did is counted there.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from ..experiment.live import LiveExperiment

# Tenant and name of all experiments without a place of their own; no tenant has an empty name.
OTHER = ("", "other")


class Counts(NamedTuple):
    """Counts of one experiment; the help of the metrics says what each counts."""

    decisions: int = 0
    observed: int = 0
    expired: int = 0
    late: int = 0
    guarded: int = 0
    limited: int = 0
    loss: float = 0.0
    labels: int = 0
    labels_missing: int = 0

    def grown(self, before: "Counts", after: "Counts") -> "Counts":
        """These counts, and what came between two counts of an experiment."""
        steps = zip(self, before, after, strict=True)
        return Counts._make(known + (now - was) for known, was, now in steps)


_NONE = Counts()


def counts_of(running: LiveExperiment) -> Counts:
    """The counts of an experiment as it is in memory."""
    tallies, labels = running.tallies, running.learner.labels
    return Counts(
        tallies.decisions, tallies.applied, tallies.expired, running.late, running.guarded, running.limited,
        running.loss_applied, labels.used if labels else 0, labels.missing if labels else 0,
    )  # fmt: skip


class TrafficCounts:
    """Counts by experiment. The first `most` experiments that are used have a place of their own, for good.

    >>> traffic = TrafficCounts(most=1)
    >>> for name in ("models", "prompts", "models"):
    ...     traffic.add(("local", name), Counts(), Counts(decisions=1))
    >>> [(name, counts.decisions) for (tenant, name), counts in traffic.by_experiment().items()]
    [('models', 2), ('other', 1)]
    >>> traffic.total.decisions
    3
    """

    def __init__(self, most: int = 0) -> None:
        self.most = most
        self.total = _NONE
        self._named: dict[tuple[str, str], Counts] = {}
        self._others = _NONE

    def add(self, experiment: tuple[str, str], before: Counts, after: Counts) -> None:
        """Count the difference between the counts of an experiment before and after a transaction."""
        if after == before:
            return
        self.total = self.total.grown(before, after)
        if self.most == 0:
            return
        if experiment in self._named or len(self._named) < self.most:
            self._named[experiment] = self._named.get(experiment, _NONE).grown(before, after)
        else:
            self._others = self._others.grown(before, after)

    def by_experiment(self) -> dict[tuple[str, str], Counts]:
        """The counts of each experiment with a place of its own, and of all others."""
        return {**self._named, OTHER: self._others}


class ExperimentHealth(NamedTuple):
    """What this process did for an experiment, and how the experiment is now, as far as it is in memory."""

    counts: Counts
    pending: int = 0
    leader_share: float | None = None
    segments: int | None = None
    labels_awaiting: int | None = None
    judge_lam: float | None = None
    judge_warning: int | None = None


class Health(NamedTuple):
    """How a service is, as the help of the metrics says; `experiments` without a place of their own are together, as `OTHER`."""

    ready: bool
    sizes: Mapping[str, int]
    snapshot_age: float
    snapshot_rows: int
    compiling: int
    not_compiled: int
    experiments: Mapping[tuple[str, str], ExperimentHealth]


def by_experiment(
    traffic: TrafficCounts, running: Iterable[LiveExperiment], warned: Collection[int]
) -> dict[tuple[str, str], ExperimentHealth]:
    """The health of each experiment; empty if none has a place of its own. The judges of some `warned`."""
    if traffic.most == 0:
        return {}
    found = {place: ExperimentHealth(counts) for place, counts in traffic.by_experiment().items()}
    for each in running:
        place = (each.tenant, each.name)
        if place in found:
            plays = each.tallies.exploit
            leader = max(plays) / sum(plays) if any(plays) else None
            labels = each.learner.labels
            judge = () if labels is None else (labels.awaiting, labels.lam, int(each.id in warned))
            known = found[place].counts, len(each.pending), leader, each.segments
            found[place] = ExperimentHealth(*known, *judge)
        else:
            others = found[OTHER]
            found[OTHER] = others._replace(pending=others.pending + len(each.pending))
    return found
