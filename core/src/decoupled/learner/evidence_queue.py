"""The decisions of a watched learner that wait to become evidence, in the order of decisions.

Were evidence added as feedback comes, it would be wrong for arms whose feedback is late in a way
that depends on the arm or its loss: what has come by some moment is then no fair sample.
"""

import math
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from copy import copy as shallow_copy

from ..inference.ordering import PATIENCE, Awaited
from ..inference.sums import Observation
from .labels import Judgement


class EvidenceQueue:
    """Decisions that are not in the confidence sequences yet, oldest first.

    A decision leaves the queue once it is settled and every older one has left. It is settled when
    it has its loss, or is given up: it then counts with `expired_loss`, or is left out.

    Args:
        label_width: the width of the range around 1/2 that losses are mapped from; 1 without
            labels.
        patience: how many newer decisions a decision without feedback waits for.
        expired_loss: the loss that a decision counts with when it is given up; None leaves it out.

    Attributes:
        label_patience: the patience with a decision that was judged and awaits its label.
        waits_for_batch: whether a decision also waits for those of its batch that were made after
            it. All of a batch are made before any of them can have its loss.
        batch_mates_left: by the id of a decision, how many of its batch were made after it.
        observations: by the id of a decision, what was observed. The loss is NaN until it comes,
            and a decision that is left out has None.
        lost: the decisions in the queue that are left out, as they would have been observed.
        judgements: by the id of a decision in the queue, what is known of its judgement.
    """

    def __init__(
        self, label_width: float, patience: int = PATIENCE, expired_loss: float | None = None
    ) -> None:
        self.label_width = label_width
        self.patience = patience
        self.expired_loss = expired_loss
        self.label_patience = patience
        self.waits_for_batch = False
        self.batch_mates_left: dict[str, int] = {}
        self.observations: OrderedDict[str, Observation | None] = OrderedDict()
        self.lost: dict[str, Observation] = {}
        self.judgements: dict[str, Judgement] = {}

    def __len__(self) -> int:
        return len(self.observations)

    def with_patience(self, patience: int, expired_loss: float | None) -> "EvidenceQueue":
        """The same decisions, with another patience and without regard to batches."""
        queue = shallow_copy(self)
        queue.patience = patience
        queue.label_patience = patience
        queue.waits_for_batch = False
        queue.batch_mates_left = {}
        queue.expired_loss = expired_loss
        return queue

    def put(self, decision_id: str, observation: Observation) -> None:
        """Put a decision at the end, as it will be observed; its loss is NaN."""
        self.observations[decision_id] = observation

    def note_batch(self, decision_ids: Sequence[str]) -> None:
        """Note that these decisions are made together, before they are put into the queue."""
        if self.waits_for_batch:
            for place, decision_id in enumerate(decision_ids[:-1], 1):
                self.batch_mates_left[decision_id] = len(decision_ids) - place

    # What happens to decisions

    def settle(self, decision_id: str, loss: float, judgement: Judgement | None = None) -> None:
        """Take the feedback of a decision. If it is too late, it changes nothing."""
        observation = self.observations.get(decision_id)
        if observation is None:
            return
        if judgement is not None:
            self.judgements[decision_id] = judgement
        self.observations[decision_id] = self._with_loss(observation, loss, judgement)

    def note_judged(self, decision_id: str, judgement: Judgement) -> None:
        """Take what a judge said of a decision that awaits its label."""
        if decision_id in self.observations:
            self.judgements[decision_id] = judgement

    def forget(self, decision_id: str) -> None:
        """Give up a decision, which will have no feedback any more."""
        observation = self.observations.get(decision_id)
        if observation is None:
            self.batch_mates_left.pop(decision_id, None)
        elif math.isnan(observation.loss):
            self._give_up(decision_id, observation)

    def oldest_settled(self) -> str | None:
        """The id of the oldest decision if it is settled; None if it still waits.

        This gives the decision up if it has waited for long enough.
        """
        if not self.observations:
            return None
        decision_id = next(iter(self.observations))
        observation = self.observations[decision_id]
        if observation is not None and math.isnan(observation.loss):
            if len(self.observations) <= self._patience_with(decision_id):
                return None
            self._give_up(decision_id, observation)
        return decision_id

    def remove(self, decision_id: str) -> None:
        """Drop a decision that is in the confidence sequences now."""
        self.batch_mates_left.pop(decision_id, None)
        del self.observations[decision_id]
        self.lost.pop(decision_id, None)
        self.judgements.pop(decision_id, None)

    def _give_up(self, decision_id: str, observation: Observation) -> None:
        """Settle a decision that has no feedback: it counts with a loss, or is lost."""
        judgement = self.judgements.get(decision_id)
        loss = self.expired_loss if judgement is None else judgement.fallback
        if loss is None:
            self.lost[decision_id] = observation
            self.observations[decision_id] = None
        else:
            self.observations[decision_id] = self._with_loss(observation, loss, judgement)

    def _with_loss(
        self, observation: Observation, loss: float, judgement: Judgement | None
    ) -> Observation:
        """An observation with its loss, and with the label that counts if one was wanted: that of
        the judgement, or the declared loss of a decision that nobody judged.
        """
        if observation.label is None:
            return Observation._make((*observation[:2], loss, *observation[3:]))
        label = None if judgement is None else judgement.counts_as
        if label is None:
            label = 0.5 + self.label_width * (loss - 0.5)
        return observation._replace(loss=loss, label=label)

    def _patience_with(self, decision_id: str) -> int:
        """How many newer decisions this decision waits for."""
        patience = self.label_patience if decision_id in self.judgements else self.patience
        return patience + self.batch_mates_left.get(decision_id, 0)

    # What waits

    @property
    def waiting(self) -> int:
        """How many were observed and wait for earlier decisions."""
        return _count_observed(self.observations.values())

    def waiting_among(self, decision_ids: Iterable[str]) -> int:
        """How many of these decisions were observed and wait for earlier ones."""
        return _count_observed(self.observations[decision_id] for decision_id in decision_ids)

    @property
    def awaited(self) -> Awaited | None:
        """The decision that holds up losses which were observed, and for how long it still may;
        None if none does.
        """
        if self.waiting == 0:
            return None
        decision_id = next(iter(self.observations))
        return Awaited(decision_id, self._patience_with(decision_id) + 1 - len(self))

    def is_awaited(self, decision_id: str) -> bool:
        """Whether a decision that is pending may still become evidence, once it has its loss."""
        observation = self.observations.get(decision_id)
        return observation is not None and math.isnan(observation.loss)


def _count_observed(observations: Iterable[Observation | None]) -> int:
    return sum(
        observation is not None and not math.isnan(observation.loss) for observation in observations
    )
