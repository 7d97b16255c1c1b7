"""The state of a learner as text; `restoring` reads it."""

from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.arrays import Floats
from ..base.packed import pack_floats
from ..base.signed_json import seal
from ..kernels.state import SECRET
from .arms import ArmNames
from .guard import Guard
from .loss_range import LossRange
from .pending import Waiting
from .runner import Running

if TYPE_CHECKING:  # loaded when a learner is watched
    from .watch import Watch

FORMAT = "decoupled-learner"
WRITER = "Learner.to_json()"
MOST_LISTED = 10_000  # numbers in a list
VERSION = 1


class Parts(NamedTuple):
    """The parts of a learner."""

    arms: ArmNames
    losses: LossRange
    running: Running
    waiting: Waiting
    guard: Guard
    watch: "Watch | None" = None


def to_text(parts: Parts) -> str:
    """Everything a learner has learned, its pending decisions, its random stream and its settings."""
    return as_text(to_content(parts))


def to_content(parts: Parts) -> dict[str, Any]:
    """A copy of everything, for `as_text`. It is quick, and `as_text` need not be called before something changes."""
    arms, losses, running, waiting, guard, watch = parts
    layout, serials = running.layout, running.serials
    running.rest()
    return {
        "policy": running.policy.to_dict(),
        "arms": arms.to_json(),
        **({} if serials.kept is None else {"serials": [serials.born, serials.kept.tolist()]}),
        "loss_range": list(losses),
        "max_pending": waiting.limit,
        "round": running.round,
        "secret": running.state.scalars.item(SECRET),
        "learned": {name: layout.row(running.state, name).copy() for name in layout.learned},
        "stream": [hex(int(word)) for word in running.stream],
        **({} if running.contexts is None else {"context": running.contexts.to_json()}),
        **waiting.to_json(),
        **guard.to_json(),
        **({} if watch is None else {"watch": watch.to_json()}),
    }


def as_text(content: dict[str, Any]) -> str:
    """The result of `to_content` as text."""
    learned = {name: _row(row) for name, row in content["learned"].items()}
    return seal(FORMAT, VERSION, {**content, "learned": learned})


def _row(values: Floats) -> list[float] | str:
    """A number for each arm as JSON: a list, or if there are very many, a text that is read in no time."""
    return values.tolist() if len(values) <= MOST_LISTED else pack_floats(values)
