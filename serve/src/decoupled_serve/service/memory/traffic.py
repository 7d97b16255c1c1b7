"""What this process did, counted when it is on disk: for a few experiments by name, and for all others together.

Counts only ever grow, as Prometheus expects: they do not depend on which experiments are in memory, and what another
replica did is counted there.
"""

from typing import NamedTuple

from ..experiment.live import LiveExperiment

# Tenant and name of all experiments without a place of their own; no tenant has an empty name.
OTHER = ("", "other")


class Counts(NamedTuple):
    """Counts of one experiment.

    Attributes:
        decisions: decisions made.
        observed: decisions whose feedback was applied.
        expired: decisions whose deadline passed.
        late: feedback refused because it came after its deadline.
        guarded: decisions whose arm to exploit a guardrail chose.
        limited: decisions that the budget kept from exploring.
        loss: the sum of the losses applied, each scaled to [0, 1].
    """

    decisions: int = 0
    observed: int = 0
    expired: int = 0
    late: int = 0
    guarded: int = 0
    limited: int = 0
    loss: float = 0.0

    def grown(self, before: "Counts", after: "Counts") -> "Counts":
        """These counts, and what came between two counts of an experiment."""
        a, b, c, d, e, f, g = self  # written out, because every transaction needs it
        a0, b0, c0, d0, e0, f0, g0 = before
        a1, b1, c1, d1, e1, f1, g1 = after
        return Counts(
            a + a1 - a0, b + b1 - b0, c + c1 - c0, d + d1 - d0, e + e1 - e0, f + f1 - f0, g + (g1 - g0)
        )  # fmt: skip


_NONE = Counts()


def counts_of(running: LiveExperiment) -> Counts:
    """The counts of an experiment as it is in memory."""
    tallies = running.tallies
    return Counts(
        tallies.decisions, tallies.applied, tallies.expired, running.late, running.guarded, running.limited,
        running.loss_applied,
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
