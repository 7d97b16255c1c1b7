"""The state of a learner as text, and back."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..base.signed_json import seal, unseal
from ..base.validation import whole_number
from ..errors import StateError
from ..kernels.state import ROUND
from .arm_ids import Serials
from .arms import ArmNames
from .guard import Guard
from .loss_range import LossRange
from .pending import Waiting
from .protocol import RunnablePolicy
from .runner import Running

if TYPE_CHECKING:  # loaded when a learner is watched
    from .watch import Watch

FORMAT = "decoupled-learner"
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
    arms, losses, running, waiting, guard, watch = parts
    layout, serials = running.layout, running.serials
    content = {
        "policy": running.policy.to_dict(),
        "arms": arms.to_json(),
        **({} if serials.kept is None else {"serials": [serials.born, serials.kept.tolist()]}),
        "loss_range": list(losses),
        "max_pending": waiting.limit,
        "round": running.round,
        "learned": {name: layout.row(running.state, name).tolist() for name in layout.learned},
        "stream": [hex(int(word)) for word in running.stream],
        **waiting.to_json(),
        **guard.to_json(),
        **({} if watch is None else {"watch": watch.to_json()}),
    }
    return seal(FORMAT, VERSION, content)


def from_text(text: str | bytes, policies: Any) -> Parts:
    """Restore the result of `to_text`; `policies` finds every policy by name."""
    content = unseal(text, FORMAT, VERSION, "Learner.to_json()")
    try:
        return _restored(content, policies.from_saved(content["policy"]))
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise StateError(
            f"state: cannot be restored ({type(error).__name__}: {error}); "
            "give the text that Learner.to_json() wrote"
        ) from error


def _restored(content: dict[str, Any], policy: RunnablePolicy) -> Parts:
    arms, losses = ArmNames.checked(content["arms"]), LossRange.checked(content["loss_range"])
    layout = policy.at(len(arms)).layout
    state = layout.new_state(len(arms))
    state.scalars[ROUND] = content["round"]
    for name in layout.learned:
        layout.row(state, name)[:] = content["learned"][name]
    stream = np.zeros(2, np.uint64)
    stream[:] = [int(word, 16) for word in content["stream"]]
    limit = whole_number("max_pending", content["max_pending"], 1, "it was changed")
    waiting = Waiting.from_json(content, limit)
    serials = None
    if "serials" in content:
        born, kept = content["serials"]
        serials = Serials(born, np.array(kept, np.int64))
    guard = Guard.from_json(content)
    return Parts(arms, losses, Running(policy, state, stream, serials), waiting, guard, _watch(content))


def _watch(content: dict[str, Any]) -> "Watch | None":
    if "watch" not in content:
        return None
    from .watch import Watch

    return Watch.from_json(content["watch"])
