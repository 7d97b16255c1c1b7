"""What a learner is made of."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .arms import ArmNames
from .context import checked_advice, refuse_context
from .guardrail_state import WHOLE, GuardrailState
from .guardrails import Guardrails
from .labels import Labelling
from .losses import LossRange
from .pending import PendingStore
from .policy_state import PolicyState
from .request import Request

if TYPE_CHECKING:  # loaded when a learner is watched
    from .watch import Watch


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """The parts of a learner. Each may change; another one in its place makes other `Parts`.

    Attributes:
        arms: the names of the arms.
        losses: the range of losses.
        policy_state: what the policy has learned, and its random stream.
        pending_store: the decisions that await feedback.
        guard: the guardrails, and what they have found.
        watch: the confidence sequences; None if the learner is not watched.
        labels: what labels say of the judge; None if losses are true.
    """

    arms: ArmNames
    losses: LossRange
    policy_state: PolicyState
    pending_store: PendingStore
    guard: GuardrailState
    watch: "Watch | None" = None
    labels: Labelling | None = None

    @property
    def tells_segments(self) -> bool:
        """Whether the policy tells segments apart."""
        contexts = self.policy_state.contexts
        return contexts is not None and len(contexts.policy.segments) > 0

    @property
    def segment(self) -> int:
        """The place of the segment of the context at hand; `WHOLE` without contexts."""
        contexts = self.policy_state.contexts
        return WHOLE if contexts is None else contexts.segment

    def compares_by_segment(self, rules: Guardrails) -> bool:
        """Whether these rules ask for the evidence of each segment."""
        is_asked = rules.cheapest_within is not None or rules.by_segment
        return is_asked and self.tells_segments

    def enter_context(self, request: Request, *, new: bool = True) -> None:
        """Put a request's context and advice where a contextual policy reads them.

        Only if it may be `new`, a segment that never appeared is counted.
        """
        contexts = self.policy_state.contexts
        if contexts is not None:
            laws = checked_advice(request.advice, contexts.policy, self.arms)
            contexts.enter(request.context, laws, new=new)
            contexts.derive()
        elif request.context is not None or request.advice is not None:
            refuse_context(self.policy_state.policy)

    def sync_watch(self) -> None:
        """Keep what is watched of new decisions.

        Call this before they or the policy's state change, are asked about or are saved.
        """
        if self.watch is not None:
            self.watch.sync(self.pending_store, self.policy_state)
