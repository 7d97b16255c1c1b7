"""Keeps experiments in memory, up to a limit: those that were not used for longest leave it."""

from collections import OrderedDict
from collections.abc import Container, Iterator

from ..experiment.live import LiveExperiment

MOST = 2_000
UNIT = 10_000  # arms and waiting decisions that count as one more experiment


class Cache:
    """Live experiments by their id, those that were not used for longest first.

    Args:
        most: how many experiments to keep. One with many arms or many waiting decisions counts as several.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._running: OrderedDict[int, LiveExperiment] = OrderedDict()
        self._weights: dict[int, int] = {}
        self._total = 0

    def __len__(self) -> int:
        return len(self._running)

    def get(self, experiment: int) -> LiveExperiment | None:
        """An experiment, if it is in memory."""
        return self._running.get(experiment)

    def all(self) -> list[LiveExperiment]:
        """Every experiment in memory."""
        return list(self._running.values())

    def use(self, running: LiveExperiment) -> None:
        """Keep an experiment, as the one that was used last."""
        self._weigh(running)
        self._running[running.id] = running
        self._running.move_to_end(running.id)

    def add_unused(self, running: LiveExperiment) -> None:
        """Keep an experiment that nobody asked for, as the first to leave."""
        self.use(running)
        self._running.move_to_end(running.id, last=False)

    def drop(self, experiment: int) -> None:
        """Remove an experiment, if it is there."""
        if self._running.pop(experiment, None) is not None:
            self._total -= self._weights.pop(experiment)

    def clear(self) -> None:
        """Remove all experiments."""
        self._running.clear()
        self._weights.clear()
        self._total = 0

    def surplus(self, needed: Container[int]) -> Iterator[LiveExperiment]:
        """The experiments beyond the limit, except for those that are needed. The caller drops each of them."""
        if self._total <= self._most:
            return
        for running in self.all():
            if running.id not in needed:
                yield running
                if self._total <= self._most:
                    return

    def reweigh(self, running: LiveExperiment) -> None:
        """An experiment may have more arms or waiting decisions than before."""
        if running.id in self._weights:
            self._weigh(running)

    def _weigh(self, running: LiveExperiment) -> None:
        weight = 1 + (len(running.names) + len(running.pending)) // UNIT
        self._total += weight - self._weights.get(running.id, 0)
        self._weights[running.id] = weight
