"""How a learner comes to be watched, and how its watch goes on when its parts change."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import ParameterError, UnsupportedError
from ..inference.ordering import PATIENCE
from .guardrails import CONTEXTS, refuse_by_segment, refuse_constant_means
from .inferring import check_watchable, not_watched
from .parts import Parts
from .policy_state import PolicyState

if TYPE_CHECKING:  # loaded when a learner is watched
    from .watch import Watch


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """How to watch a learner. The values were checked.

    Attributes:
        risk: the risk of each family of confidence sequences.
        drift: whether losses may drift.
        patience: how many newer decisions wait for one without feedback; None for the default.
        expired: the loss, on a scale from 0 to 1, that it then counts as; None leaves it out.
        by_segment: whether verdicts of each segment are wanted.
    """

    risk: float
    drift: bool
    patience: int | None = None
    expired: float | None = None
    by_segment: bool = False


def current_watch(parts: Parts) -> "Watch":
    """The watch of a learner, with every decision made until now; an error if there is none."""
    if parts.watch is None:
        raise not_watched()
    parts.sync_watch()
    return parts.watch


def new_watch(parts: Parts, options: WatchOptions) -> "Watch":
    """A watch that counts the decisions that are made from now on."""
    from ..inference.sequences import Sequences
    from .evidence_queue import EvidenceQueue
    from .watch import Watch

    check_watchable(len(parts.arms))
    serials = parts.policy_state.serials
    policy = parts.policy_state.policy
    rules = None if parts.labels is None else parts.labels.rules
    sequences = Sequences(
        serials.n_ever,
        options.risk,
        drift=options.drift,
        coupled=policy.coupled,
        label_share=1.0 if rules is None else rules.share,
    )
    patience = PATIENCE if options.patience is None else options.patience
    queue = EvidenceQueue(sequences.width, patience, options.expired)
    queue.waits_for_batch = options.patience is None
    watch = Watch(sequences, queue, weighs=policy.cumulative is not None)
    if rules is not None:
        watch.keep_labels(rules)
        queue.label_patience = rules.deadline if options.patience is None else options.patience
    watch = watch.with_arms(serials)
    if parts.compares_by_segment(parts.guard.rules):
        watch.segments = {}
    watch.made = parts.pending_store.made  # nothing is kept of decisions that are made already
    return watch


def watch_from_now(parts: Parts, options: WatchOptions) -> "Watch":
    """The watch that a user asks for; an error if the learner cannot have it."""
    if parts.watch is not None:
        raise ParameterError("watch(): this learner is watched already; call it once")
    if not options.drift and parts.policy_state.contexts is not None:
        refuse_constant_means("watch()", CONTEXTS)
    if options.by_segment and not parts.tells_segments:
        refuse_by_segment("watch(by_segment=True)")
    watch = new_watch(parts, options)
    watch.by_segment = options.by_segment
    return watch.with_segments(kept=options.by_segment or watch.segments is not None)


def watch_of_arms(parts: Parts, policy_state: PolicyState) -> "Watch | None":
    """The watch of a learner whose arms become those of another policy state."""
    if parts.watch is None:
        return None
    check_watchable(policy_state.state.floats.shape[1])
    parts.sync_watch()
    return parts.watch.with_arms(policy_state.serials)


def watch_with_patience(parts: Parts, patience: int, expired: float | None) -> "Watch":
    """The same watch with another patience, and another loss, from 0 to 1, if it runs out."""
    if parts.watch is None:
        raise not_watched()
    if expired is not None and parts.labels is not None:
        expired = parts.labels.rules.to_unit(expired)
    return parts.watch.with_patience(patience, expired)


def watch_for_alarms(parts: Parts, alarm_every: float) -> "Watch":
    """A watch with every decision made until now, that looks out for alarms as rarely as asked.

    A learner whose own watch does so already gets that one.
    """
    if parts.watch is None:
        rule = "this learner is not watched, so nothing is ever decided; call watch() first"
        raise UnsupportedError(f"budget.decided_share: {rule}")
    if parts.policy_state.contexts is not None:
        rule = (
            "the verdict is about all requests, and a contextual policy may still learn what is "
            "best for some"
        )
        raise UnsupportedError(f"budget.decided_share: {rule}; leave it out")
    parts.sync_watch()  # so that the answer depends on decisions and their feedback alone
    if parts.watch.lookout is None or parts.watch.lookout.every != alarm_every:
        return parts.watch.with_lookout(alarm_every)
    return parts.watch


def tell_watch(parts: Parts) -> None:
    """Tell the watch of a learner, if it has one, what it needs to know of the other parts."""
    watch = parts.watch
    policy_state = parts.policy_state
    if watch is None:
        return
    serials = policy_state.serials.ids(policy_state.everyone).tolist()
    watch.serials = {None: None}
    watch.serials.update(zip(parts.arms.names, serials, strict=True))
    watch.sees_contexts = policy_state.contexts is not None
    watch.mixes_laws = parts.tells_segments
