"""What a watched learner keeps, as plain values and from them."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..base.arrays import Floats
from ..inference.judging import JudgeSums
from ..inference.lookout import Lookout
from ..inference.sequences import Sequences
from ..inference.sums import Observation
from .evidence_queue import EvidenceQueue
from .labels import Judged, Judgement
from .watch import Watch

_WANTED = "wanted"  # in place of a label that is not known yet


def watch_to_json(watch: Watch) -> dict[str, Any]:
    """Everything that a watch keeps as plain values. Equal laws are there once."""
    queue = watch.queue
    # By value: decisions share objects, but not with those that were restored.
    law_places: dict[bytes, int] = {}
    observations = _observations_to_json(queue.observations, law_places)
    content: dict[str, Any] = {
        "sequences": watch.sequences.to_dict(),
        "weighs": watch.weighs,
        "patience": queue.patience,
        "expired_loss": queue.expired_loss,
    }
    if queue.label_patience != queue.patience:
        content["label_patience"] = queue.label_patience
    if queue.waits_for_batch:
        content["later"] = list(queue.batch_mates_left.items())
    if watch.incumbent_trial is not None:
        content["trial"] = watch.incumbent_trial.to_dict()
        content["before"] = sorted(watch.made_before_trial)
    content["laws"] = [np.frombuffer(law).tolist() for law in law_places]
    content["queue"] = observations
    content.update(_segments_to_json(watch))
    if watch.judged_sequences is not None and watch.judge_sums is not None:
        judged_sequences = watch.judged_sequences.to_dict()
        judge_sums = watch.judge_sums.to_json()
        content["judge"] = [judged_sequences, judge_sums, _judgements_to_json(queue)]
    if watch.lookout is not None:
        content["lookout"] = watch.lookout.to_dict()
    if watch.has_preferences:
        content["has_preferences"] = True
    if queue.lost:
        without_laws = {
            decision_id: observation._replace(law=None)
            for decision_id, observation in queue.lost.items()
        }
        content["lost"] = _observations_to_json(without_laws, {})
    return content


def watch_from_json(content: dict[str, Any]) -> Watch:
    """Restore the result of `watch_to_json`."""
    sequences = Sequences.from_dict(content["sequences"])
    watch = Watch(sequences, _queue_from_json(content, sequences.width), weighs=content["weighs"])
    if "trial" in content:
        watch.incumbent_trial = Sequences.from_dict(content["trial"])
        watch.made_before_trial = set(content["before"])
    if "segments" in content:
        by_place, segment_of = content["segments"]
        watch.segments = {place: Sequences.from_dict(saved) for place, saved in by_place}
        watch.segment_of = dict(segment_of)
        watch.by_segment = content.get("by_segment", False) is True
        watch.unjudged = set(watch.segments)  # judged once more, which changes nothing
    if "trials" in content:
        watch.incumbent_trials = {
            place: Sequences.from_dict(saved) for place, saved in content["trials"]
        }
        watch.made_before_trial = set(content["before"])
    if "judge" in content:
        judged_sequences, judge_sums, _ = content["judge"]
        watch.judged_sequences = Sequences.from_dict(judged_sequences)
        watch.judge_sums = JudgeSums.from_json(judge_sums)
    watch.has_preferences = content.get("has_preferences", False) is True
    if "lookout" in content:
        watch.lookout = Lookout.from_dict(content["lookout"])
    return watch


def _queue_from_json(content: dict[str, Any], label_width: float) -> EvidenceQueue:
    """The decisions that wait to become evidence."""
    queue = EvidenceQueue(label_width, content["patience"], content["expired_loss"])
    queue.label_patience = content.get("label_patience", queue.patience)
    queue.waits_for_batch = "later" in content
    queue.batch_mates_left = dict(content.get("later", ()))
    laws = [np.array(law, np.float64) for law in content["laws"]]
    for decision_id, *saved in content["queue"]:
        queue.observations[decision_id] = _observation_from_json(saved, laws) if saved else None
    for decision_id, *saved in content.get("lost", ()):
        queue.lost[decision_id] = _observation_from_json(saved, [])
    if "judge" in content:
        _, _, judgements = content["judge"]
        for decision_id, loss, position, label, fallback, counts_as in judgements:
            judged = Judged(loss, position)
            queue.judgements[decision_id] = Judgement(judged, label, fallback, counts_as)
    return queue


def _segments_to_json(watch: Watch) -> dict[str, Any]:
    """What is kept of segments; nothing if no segment is told apart."""
    content: dict[str, Any] = {}
    if watch.segments is not None:
        content["segments"] = [_by_place(watch.segments), list(watch.segment_of.items())]
        if watch.by_segment:
            content["by_segment"] = True
    if watch.incumbent_trials is not None:
        content["trials"] = _by_place(watch.incumbent_trials)
        content["before"] = sorted(watch.made_before_trial)
    return content


def _judgements_to_json(queue: EvidenceQueue) -> list[list[Any]]:
    """What is known of the judgements of decisions in the queue."""
    return [
        [decision_id, *judged, label, fallback, counts_as]
        for decision_id, (judged, label, fallback, counts_as) in queue.judgements.items()
    ]


def _by_place(sequences: dict[int, Sequences]) -> list[list[Any]]:
    """The sequences of segments as plain values."""
    return [[place, of_segment.to_dict()] for place, of_segment in sequences.items()]


def _observations_to_json(
    observations: Mapping[str, Observation | None], law_places: dict[bytes, int]
) -> list[list[Any]]:
    """Decisions in the queue as plain values, each after its id."""
    return [
        [decision_id, *_observation_to_json(observation, law_places)]
        for decision_id, observation in observations.items()
    ]


def _observation_to_json(
    observation: Observation | None, law_places: dict[bytes, int]
) -> list[Any]:
    """A decision in the queue as plain values, its law by its place in the list of laws; nothing
    for one that is left out.
    """
    if observation is None:
        return []
    explore, weight, loss, exploit, available, law, rho, label = observation
    content: list[Any] = [
        explore,
        weight,
        None if math.isnan(loss) else loss,
        exploit,
        available.stop if isinstance(available, range) else list(available or ()),
        None if law is None else law_places.setdefault(law.tobytes(), len(law_places)),
    ]
    if rho != 1.0:
        is_wanted = label is not None and math.isnan(label)
        content += [rho, _WANTED if is_wanted else label]
    return content


def _observation_from_json(content: list[Any], laws: list[Floats]) -> Observation:
    """Restore what `_observation_to_json` made of an observation."""
    explore, weight, loss, exploit, available, law_place, *labelled = content
    rho, label = labelled or (1.0, None)
    return Observation(
        explore,
        None if weight is None else float(weight),
        math.nan if loss is None else float(loss),
        exploit,
        range(available) if isinstance(available, int) else tuple(available),
        None if law_place is None else laws[law_place],
        rho,
        math.nan if label == _WANTED else label,
    )
