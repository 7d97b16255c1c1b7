"""How a service is, in numbers that an operator watches."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..experiment.live import LiveExperiment
from ..memory.traffic import OTHER, Counts, TrafficCounts


class ExperimentHealth(NamedTuple):
    """What this process did for an experiment, and how the experiment is now.

    Attributes:
        counts: what was done.
        pending: decisions that wait for feedback; 0 if the experiment is not in memory.
        leader_share: the share of the decisions that exploited the arm exploited most, over the whole life of the
            experiment; None if it is not known.
        segments: how many segments its policy tells apart; None if it has none.
    """

    counts: Counts
    pending: int = 0
    leader_share: float | None = None
    segments: int | None = None


class Health(NamedTuple):
    """How a service is.

    Attributes:
        ready: whether the store took the last write.
        sizes: bytes of the "store", of its "wal" and of what is "free" on its disk, as far as they are known.
        snapshot_age: seconds since the oldest of the snapshots that the experiments in memory would restart from.
        snapshot_rows: the most rows that one of them would have to replay.
        compiling: policies that wait to be compiled.
        not_compiled: policies that failed to compile.
        experiments: by tenant and name, those with a place of their own and all others as `OTHER`.
    """

    ready: bool
    sizes: Mapping[str, int]
    snapshot_age: float
    snapshot_rows: int
    compiling: int
    not_compiled: int
    experiments: Mapping[tuple[str, str], ExperimentHealth]


def by_experiment(
    traffic: TrafficCounts, running: Iterable[LiveExperiment]
) -> dict[tuple[str, str], ExperimentHealth]:
    """The health of each experiment; empty if none has a place of its own."""
    if traffic.most == 0:
        return {}
    found = {place: ExperimentHealth(counts) for place, counts in traffic.by_experiment().items()}
    for each in running:
        place = (each.tenant, each.name)
        if place in found:
            counts, waiting = found[place].counts, len(each.pending)
            found[place] = ExperimentHealth(counts, waiting, _leader_share(each), each.segments)
        else:
            others = found[OTHER]
            found[OTHER] = others._replace(pending=others.pending + len(each.pending))
    return found


def _leader_share(running: LiveExperiment) -> float | None:
    plays = running.tallies.exploit
    whole = sum(plays)
    return max(plays) / whole if whole else None
