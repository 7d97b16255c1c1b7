"""The state of a learner as text, and a learner from that text."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.arrays import Floats
from ..base.packed import pack_floats, seal, unpack_floats, unseal
from ..base.validation import MOST_ROUNDS, check_number, whole_number
from ..errors import MissingExtraError, ParameterError, StateError
from ..kernels.state import NEVER_FORGETS, OBSERVED, ROUND, SECRET, State
from ..policy import Definition
from .arms import ArmNames, Serials
from .guardrail_state import GuardrailState
from .inferring import checked_patience
from .labels import Labelling
from .losses import LossRange
from .parts import Parts
from .pending import Pending, PendingStore
from .policy_state import PolicyState

if TYPE_CHECKING:
    from ..inference.sums import Observation
    from .evidence_queue import EvidenceQueue
    from .watch import Watch

FORMAT = "decoupled-learner"
WRITER = "Learner.to_json()"
MOST_LISTED = 10_000  # numbers in a list
VERSION = 1


def to_content(parts: Parts) -> dict[str, Any]:
    """A copy of what a learner has learned, its pending decisions, random stream and settings:
    quick, for `as_text` later.
    """
    policy_state = parts.policy_state
    policy_state.flush()
    layout = policy_state.layout
    scalars = policy_state.state.scalars
    serials = policy_state.serials
    content: dict[str, Any] = {
        "policy": policy_state.policy.to_dict(),
        "arms": parts.arms.to_json(),
        "loss_range": list(parts.losses),
        "max_pending": parts.pending_store.limit,
        "round": policy_state.round,
        "remembered_round": scalars.item(ROUND),
        "secret": scalars.item(SECRET),
        "learned": {name: layout.row(policy_state.state, name).copy() for name in layout.learned},
        "stream": [hex(int(word)) for word in policy_state.stream],
    }
    content.update(parts.pending_store.to_json())
    content.update(parts.guard.to_json())
    if serials.kept is not None:
        content["serials"] = [serials.n_ever, serials.kept.tolist()]
    if policy_state.contexts is not None:
        content["context"] = policy_state.contexts.to_json()
    if parts.watch is not None:
        from .watch_saving import watch_to_json

        content["watch"] = watch_to_json(parts.watch)
    if parts.labels is not None:
        content["labels"] = parts.labels.to_json()
    return content


def as_text(content: dict[str, Any]) -> str:
    """The result of `to_content` as text.

    >>> import decoupled as dc
    >>> learner = dc.FTPL().start(arms=2, seed=7)
    >>> as_text(learner.inspect(to_content))[:38]
    '{"format":"decoupled-learner","version'
    """
    learned = {name: _row(row) for name, row in content["learned"].items()}
    return seal(FORMAT, VERSION, {**content, "learned": learned})


def _row(values: Floats) -> list[float] | str:
    """A number for each arm as JSON: a list, or if there are very many, a text that is read in no
    time.
    """
    return values.tolist() if len(values) <= MOST_LISTED else pack_floats(values)


# A learner from text. Nothing in the text is trusted, not even if its checksum is right: a program
# may have edited it


COUNTS = ("counts", "seen")  # how often something was seen, as floats
LARGEST = 1e150  # above everything that can be learned, and its square is finite


def from_text(text: str | bytes) -> Parts:
    """Restore the result of `as_text`."""
    content = unseal(text, FORMAT, VERSION, WRITER)
    with restoring():
        return _restored(content, Definition.from_dict(content["policy"]))


@contextmanager
def restoring(
    what: str = "state", remedy: str = f"give the text that {WRITER} wrote"
) -> Iterator[None]:
    """Turn whatever goes wrong with content that nobody wrote into a `StateError`."""
    try:
        yield
    except (StateError, MissingExtraError):
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise StateError(f"{what}: cannot be restored ({reason}); {remedy}") from error


def _restored(content: dict[str, Any], policy: Definition) -> Parts:
    """The parts of a learner from content that nobody has checked."""
    arms = ArmNames.checked(content["arms"])
    losses = LossRange.checked(content["loss_range"])
    state = _state(content, policy, len(arms))
    stream = np.zeros(2, np.uint64)
    stream[:] = [_whole("stream", int(word, 16), 0, 2**64 - 1) for word in content["stream"]]
    serials = _serials(content, len(arms))
    pending_store = PendingStore.from_json(
        content, _whole("max_pending", content["max_pending"], 1)
    )
    _check_waiting(pending_store, content, content["round"], serials.n_ever)
    guard = GuardrailState.from_json(content)
    guard.rules.check_arms(arms)
    for name in ("draws", "next_look"):
        _whole(name, getattr(guard, name), 0)
    _check("released", guard.released, holds=isinstance(guard.released, bool))
    for place, (released, look) in guard.released_in.items():
        _check("released_in", place, holds=type(place) is int and isinstance(released, bool))
        _whole("released_in", look, 0)
    for segment, (next_look, ids) in guard.shown.items():
        is_whole = type(segment) is int and type(next_look) is int
        _check("shown", segment, holds=is_whole and all(type(serial) is int for serial in ids))
    law = guard.frozen
    if law is not None:
        _check(
            "frozen",
            law,
            holds=law.shape == (len(arms),) and bool(((law >= 0.0) & (law <= 1.0)).all()),
        )
    policy_state = PolicyState(policy, state, stream, serials)
    if policy_state.contexts is not None:
        policy_state.contexts.restore(content["context"])
        for _, _, _, baseline in pending_store.decisions.values():
            policy_state.contexts.check(baseline)
    labels = Labelling.from_json(content["labels"]) if "labels" in content else None
    watch = _watch(content, pending_store, serials.n_ever)
    _check(
        "watch", "its labels", holds=watch is None or (watch.judge_sums is None) == (labels is None)
    )
    return Parts(arms, losses, policy_state, pending_store, guard, watch, labels)


def _state(content: dict[str, Any], policy: Definition, arms: int) -> State:
    """The state of the policy, with what it learned; an error if it learns something else."""
    layout = policy.at(arms).layout
    learned = content["learned"]
    if learned.keys() != set(layout.learned):
        rule = "what it says was learned is not what this version of the policy learns"
        raise StateError(f"state: {rule}; start anew and replay the log")
    rows = {name: _numbers(name, learned[name]) for name in layout.learned}
    for name, values in rows.items():  # before anything is made for so many arms
        shape: tuple[int, ...] = (arms,)
        if name in layout.scalars:
            shape = (1,)
        elif name in layout.pairs:
            shape = (arms, arms)
        _check(name, f"{values.size} numbers", holds=values.shape == shape)
        counted = name in COUNTS or name in layout.ints or name in layout.pairs
        _check(name, "a negative number", holds=not counted or bool((values >= 0).all()))
    secret = content["secret"]
    _check(
        "secret",
        secret,
        holds=isinstance(secret, float) and secret.is_integer() and 0.0 <= secret < 2.0**52,
    )
    state = layout.new_state(arms, secret)
    whole = _whole("round", content["round"], 1)
    state.scalars[OBSERVED] = whole - 1
    state.scalars[ROUND] = _remembered(content, whole, forgets=layout.forgets != NEVER_FORGETS)
    for name, values in rows.items():
        layout.row(state, name)[:] = values
    return state


def _remembered(content: dict[str, Any], whole: int, *, forgets: bool) -> float:
    """The round of the policy, which is below the learner's `whole` round if it forgets."""
    remembered = content["remembered_round"]
    sound = isinstance(remembered, float) and (
        1.0 <= remembered <= whole if forgets else remembered == whole
    )
    _check("remembered_round", remembered, holds=sound)
    return float(remembered)


def _serials(content: dict[str, Any], arms: int) -> Serials:
    """The serials of the arms, which are their places unless some were retired."""
    if "serials" not in content:
        return Serials(arms)
    n_ever, kept = content["serials"]
    places = np.array(kept, np.int64)
    _check(
        "serials",
        kept,
        holds=places.shape == (arms,) and bool((np.diff(places, prepend=-1) > 0).all()),
    )
    return Serials(_whole("serials", n_ever, int(places[-1]) + 1), places)


def _check_waiting(
    pending_store: PendingStore, content: dict[str, Any], now: int, n_ever: int
) -> None:
    """Check the pending decisions, and the baselines that they need."""
    _check("tag", pending_store.tag, holds=isinstance(pending_store.tag, str))
    for name in ("made", "forgotten"):
        _whole(name, content[name], 0)
    _check(
        "pending",
        "its ids",
        holds=len(pending_store.decisions) == len(content["pending"]) <= pending_store.limit,
    )
    for serials, values, kind, *scalars_of in content["baselines"]:
        _check(
            "baselines",
            serials,
            holds=all(_whole("baselines", serial, 0, n_ever - 1) >= 0 for serial in serials),
        )
        _check("baselines", values, holds=_numbers("baselines", values).shape == (len(serials),))
        _check("baselines", kind, holds=isinstance(kind, bool) or kind == "law")
        # By the id of the decision, or by its explored arm.
        for owner, numbers in scalars_of[0] if scalars_of else ():
            _check(
                "baselines",
                owner,
                holds=isinstance(owner, str) or _whole("baselines", owner, 0, n_ever - 1) >= 0,
            )
            _check("baselines", numbers, holds=_numbers("baselines", numbers).ndim == 1)
    for pending in pending_store.decisions.values():
        _check_pending(pending, now, n_ever)


def _check_pending(pending: Pending, now: int, n_ever: int) -> None:
    """Check one pending decision, made before this round by a learner with so many arms."""
    decision, serial, eligible, _ = pending
    _check("pending", decision.id, holds=isinstance(decision.id, str))
    _whole("pending", decision.round, 1, now)
    check_number("pending", decision.weight, "choose another", above=0.0)
    if decision.propensity is not None:
        _check("pending", decision.propensity, holds=0.0 < decision.propensity <= 1.0)
    _whole("pending", serial, 0, n_ever - 1)
    if isinstance(eligible, tuple):
        _check(
            "pending",
            eligible,
            holds=serial in [_whole("pending", arm, 0, n_ever - 1) for arm in eligible],
        )
    elif eligible is not None:
        _check("pending", eligible, holds=serial < _whole("pending", eligible, 1, n_ever))


def _watch(content: dict[str, Any], pending_store: PendingStore, n_ever: int) -> "Watch | None":
    """The watch, with its sequences and its queue checked; None if the learner was not watched."""
    if "watch" not in content:
        return None
    from .watch_saving import watch_from_json

    watch = watch_from_json(content["watch"])
    for sequences in watch.all_sequences():
        _check("watch", sequences, holds=sequences.count == n_ever)
    # Not those that are pending here: columns bring these later.
    are_ids = all(isinstance(decision_id, str) for decision_id in watch.made_before_trial)
    _check("watch", "its decisions", holds=are_ids)
    places = [*(watch.segments or {}), *(watch.incumbent_trials or {})]
    _check("watch", "its segments", holds=all(type(place) is int for place in places))
    _check("watch", watch.weighs, holds=isinstance(watch.weighs, bool))
    watch.made = pending_store.made
    _check_queue(watch.queue, n_ever)
    return watch


def _check_queue(queue: "EvidenceQueue", n_ever: int) -> None:
    """Check the decisions that wait to become evidence, and for how long they do."""
    checked_patience(queue.patience)
    checked_patience(queue.label_patience)
    expired_loss = queue.expired_loss
    _check("watch", expired_loss, holds=expired_loss is None or 0.0 <= expired_loss <= 1.0)
    for decision_id, count in queue.batch_mates_left.items():
        is_count = type(count) is int and count >= 0
        _check("watch", decision_id, holds=isinstance(decision_id, str) and is_count)
    for decision_id, observation in queue.observations.items():
        is_possible = observation is None or _is_possible(observation, n_ever)
        _check("watch", decision_id, holds=isinstance(decision_id, str) and is_possible)
    for decision_id, judgement in queue.judgements.items():
        (loss, position), *others = judgement
        losses = [loss, *(0.5 if value is None else value for value in others)]
        are_losses = all(0.0 <= value <= 1.0 for value in losses)
        is_position = position is None or -1.0 <= position <= 1.0
        _check(
            "watch",
            decision_id,
            holds=isinstance(decision_id, str) and are_losses and is_position,
        )


def _is_possible(observation: "Observation", n_ever: int) -> bool:
    """Whether a decision in the queue can have come about with so many arms."""
    explore, weight, loss, exploit, available, law, rho, label = observation
    arms = available if isinstance(available, tuple) else (len(available or ()) - 1,)
    all_arms = (explore, 0 if exploit is None else exploit, *arms)
    return (
        all(type(arm) is int and 0 <= arm < n_ever for arm in all_arms)
        and explore in (available or ())
        and (weight is None or 0.0 < weight < 1e100)
        and (math.isnan(loss) or 0.0 <= loss <= 1.0)
        and 0.0 < rho <= 1.0
        and (label is None or math.isnan(label) or 0.0 <= label <= 1.0)
        and (
            law is None
            or (explore < len(law) <= n_ever and law.min() >= 0.0 and law[explore] > 0.0)
        )
    )


def _numbers(name: str, row: Any) -> Any:
    values = unpack_floats(row) if isinstance(row, str) else np.array(row)
    _check(
        name,
        "its numbers",
        holds=values.dtype.kind in "fiu" and bool((np.abs(values) < LARGEST).all()),
    )
    return values


def _whole(name: str, value: object, low: int, high: int = MOST_ROUNDS) -> int:
    number = whole_number(name, value, low, "it was changed")
    _check(name, value, holds=number <= high)
    return number


def _check(name: str, value: object, *, holds: bool) -> None:
    if not holds:
        raise ParameterError.of(name, value, "cannot be", "it was changed")
