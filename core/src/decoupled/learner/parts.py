"""What a learner is made of."""

from typing import TYPE_CHECKING, NamedTuple

from .arms import ArmNames
from .guardrail_state import GuardrailState
from .labels import Labelling
from .losses import LossRange
from .pending import PendingStore
from .policy_state import PolicyState

if TYPE_CHECKING:  # loaded when a learner is watched
    from .watch import Watch


class Parts(NamedTuple):
    """The parts of a learner."""

    arms: ArmNames
    losses: LossRange
    policy_state: PolicyState
    pending_store: PendingStore
    guard: GuardrailState
    watch: "Watch | None" = None
    labels: Labelling | None = None
