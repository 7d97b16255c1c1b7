"""The state of a learner as text, and back."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..base.arrays import Floats
from ..base.packed import pack_floats, unpack_floats
from ..base.signed_json import seal, unseal
from ..base.validation import whole_number
from ..errors import StateError
from ..kernels.state import ROUND, SECRET
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
    running.record_baselines()
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


def from_text(text: str | bytes, policies: Any) -> Parts:
    """Restore the result of `to_text`; `policies` finds every policy by name."""
    content = unseal(text, FORMAT, VERSION, "Learner.to_json()")
    try:
        return _restored(content, policies.from_dict(content["policy"]))
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise StateError(
            f"state: cannot be restored ({type(error).__name__}: {error}); "
            "give the text that Learner.to_json() wrote"
        ) from error


def _restored(content: dict[str, Any], policy: RunnablePolicy) -> Parts:
    arms, losses = ArmNames.checked(content["arms"]), LossRange.checked(content["loss_range"])
    layout = policy.at(len(arms)).layout
    state = layout.new_state(len(arms))
    state.scalars[ROUND], state.scalars[SECRET] = content["round"], content["secret"]
    for name in layout.learned:
        row = content["learned"][name]
        layout.row(state, name)[:] = unpack_floats(row) if isinstance(row, str) else row
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
