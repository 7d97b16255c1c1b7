"""What a learner is made of."""

from typing import TYPE_CHECKING, NamedTuple

from .arms import ArmNames
from .guard import Guard
from .labels import Labelling
from .losses import LossRange
from .pending import Waiting
from .runner import Running

if TYPE_CHECKING:  # loaded when a learner is watched
    from .watch import Watch


class Parts(NamedTuple):
    """The parts of a learner."""

    arms: ArmNames
    losses: LossRange
    running: Running
    waiting: Waiting
    guard: Guard
    watch: "Watch | None" = None
    labels: Labelling | None = None
