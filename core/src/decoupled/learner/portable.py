"""A saved learner that moves to another home: a program, or an experiment of the decision service.

What it has learned and its random stream move; pending decisions stay, because their feedback goes
to the old home.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..base.packed import pack_floats, pack_ints, seal, unpack_floats, unpack_ints, unseal
from ..decision import Arm, Decision, LabelRequest
from .guardrails import Guardrails
from .learner import Learner
from .parts import Parts
from .pending import (
    PendingStore,
    baseline_from_json,
    baseline_to_json,
    checked_label_request,
    make_decision,
)
from .saving import FORMAT, VERSION, WRITER, restoring, to_content
from .saving import as_text as as_text


class Saved(NamedTuple):
    """A summary of a saved learner.

    `risk` and `drift` are None if it is not watched, and `labels` if it has none.

    >>> import decoupled as dc
    >>> saved = described(dc.FTPL().start(arms=["a", "b"], seed=7).to_json())
    >>> saved.arms, saved.loss_range, saved.risk
    (['a', 'b'], (0.0, 1.0), None)
    """

    policy: dict[str, Any]
    arms: list[Arm]
    loss_range: tuple[float, float]
    guardrails: Guardrails
    risk: float | None
    drift: bool | None
    labels: dict[str, Any] | None = None


def described(text: str | bytes) -> Saved:
    """Read a saved learner without starting it, which may have to compile its policy; `StateError`
    if it is damaged.

    >>> import decoupled as dc
    >>> described(dc.Ladder().start(arms=2, seed=7).to_json()).policy["name"]
    'Ladder'
    """
    content = unseal(text, FORMAT, VERSION, WRITER)
    with restoring():
        low, high = content["loss_range"]
        rules = Guardrails.from_dict(content.get("guard", {}).get("rules", {}))
        watch = content.get("watch", {}).get("sequences", {})
        names = content["arms"]
        arms = list(range(names)) if isinstance(names, int) else list(names)
        watched = watch.get("risk"), watch.get("drift"), content.get("labels", {}).get("rules")
        return Saved(content["policy"], arms, (low, high), rules, *watched)


def without_pending(text: str | bytes, max_pending: int, *, renumbered: bool = False) -> str:
    """The state of a learner without its pending decisions, with room for `max_pending` new ones.

    `renumbered` numbers its arms anew. If some were retired, confidence sequences, which use the
    old numbers, are dropped.

    >>> import decoupled as dc
    >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7)
    >>> _ = learner.decide()
    >>> moved = dc.Learner.from_json(without_pending(learner.to_json(), max_pending=10))
    >>> len(moved.pending), moved.decide().explore == learner.decide().explore
    (0, True)
    """
    learner = Learner.from_json(text)
    for decision in learner.pending:
        learner.forget(decision)
    content = unseal(learner.to_json(), FORMAT, VERSION, WRITER)
    content["max_pending"] = max_pending
    if renumbered and content.pop("serials", None) is not None:
        content.pop("watch", None)
        content.get("guard", {}).pop("shown", None)
    return seal(FORMAT, VERSION, content)


def unseen_arms(learner: Learner) -> list[Arm]:
    """The arms about which a learner knows nothing, except perhaps losses of 0.

    >>> import decoupled as dc
    >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7)
    >>> _ = learner.replay([("a", 0.5, 0.9)])
    >>> unseen_arms(learner)
    ['b']
    """
    unknown = learner.inspect(
        lambda parts: parts.policy_state.form.unknown(parts.policy_state.state).tolist()
    )
    return [name for name, unseen in zip(learner.arms, unknown, strict=True) if unseen]


# A learner as text, with its pending decisions apart from it, as columns
#
# It is for callers that keep every decision anyway, such as a service with a log: of a pending
# decision they need only what its row does not have. A hundred thousand of them are written and
# read in a fraction of the time of `to_json`.


_NONE = -1  # no baseline
_FIELDS = len(Decision._fields) - 1


def place_in_stream(learner: Learner) -> bytes:
    """The position in the random stream.

    A log that has it for each decision can be checked draw by draw.

    >>> import decoupled as dc
    >>> learner = dc.FTPL().start(arms=3, seed=7)
    >>> twin, place = learner.fork(seed=7), place_in_stream(learner)
    >>> place_in_stream(twin) == place, learner.decide().round, place_in_stream(learner) == place
    (True, 1, False)
    """
    return learner.inspect(lambda parts: parts.policy_state.stream.tobytes())


def to_columns(learner: Learner) -> tuple[dict[str, Any], Callable[[], dict[str, Any]]]:
    """The learner without its pending decisions, and a function for what these have beyond the
    fields of `Decision`.

    Both are copies, for later and for other threads. The first is for `as_text`, which takes longer
    if there are many arms.

    >>> import decoupled as dc
    >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7)
    >>> made = learner.decide(count=3)
    >>> content, columns = to_columns(learner)
    >>> twin = from_columns(as_text(content), columns(), [each[1:] for each in made])
    >>> twin.pending == learner.pending, twin.decide() == learner.decide()
    (True, True)
    """
    return learner.inspect(_columns_of)


def _columns_of(parts: Parts) -> tuple[dict[str, Any], Callable[[], dict[str, Any]]]:
    """What a learner is without its pending decisions, and a function that makes their columns."""
    store = parts.pending_store
    parts.policy_state.record_baselines()
    if parts.watch is not None:
        parts.watch.sync(store, parts.policy_state)
    bare = PendingStore(store.tag, store.limit)
    bare.made = store.made
    bare.forgotten = store.forgotten
    full = PendingStore(store.tag, store.limit)
    full.decisions = store.decisions.copy()
    return to_content(replace(parts, pending_store=bare)), partial(_columns_of_pending, full)


def _columns_of_pending(pending_store: PendingStore) -> dict[str, Any]:
    """Pending decisions as columns, apart from what their log has anyway."""
    start = len(pending_store.tag) + 1
    shared, which = pending_store.shared_baselines()
    pending = list(pending_store.decisions.values())
    label_requests = [entry[0].label_request for entry in pending]
    with_labels = bool(label_requests) and label_requests[0] is not None
    columns: dict[str, Any] = {
        "numbers": pack_ints(
            np.array([int(key[start:]) for key in pending_store.decisions], np.int64)
        ),
        "arms": pack_ints(np.array([entry[1] for entry in pending], np.int64)),
        "covered": [
            (place, entry[2]) for place, entry in enumerate(pending) if entry[2] is not None
        ],
        "baselines": [baseline_to_json(baseline) for baseline in shared],
        "baseline": pack_ints(
            np.array([_NONE if place is None else place for place in which], np.int64)
        ),
    }
    if with_labels:
        columns["asked"] = pack_floats(np.array(label_requests, np.float64).ravel())
    return columns


def from_columns(text: str, columns: dict[str, Any], chosen: Iterable[Sequence[Any]]) -> Learner:
    """Restore the result of `to_columns`, the first as text; `chosen` has the fields of each
    pending decision after its id.

    The arm that the policy drew and the guardrail that replaced it may follow.

    >>> import decoupled as dc
    >>> content, columns = to_columns(dc.FTPL().start(arms=2, seed=7))
    >>> from_columns(as_text(content), columns(), []).arms
    (0, 1)
    """
    learner = Learner.from_json(text)
    learner.inspect(partial(_restore_pending, columns, chosen))
    return learner


def _restore_pending(
    columns: dict[str, Any], chosen: Iterable[Sequence[Any]], parts: Parts
) -> None:
    """Add the pending decisions of these columns."""
    pending_store = parts.pending_store
    contexts = parts.policy_state.contexts
    with restoring("state of its pending decisions", "give what was written"):
        shared: list[Any] = [baseline_from_json(baseline) for baseline in columns["baselines"]]
        shared.append(None)  # the place of _NONE
        eligible = {
            place: tuple(x) if isinstance(x, list) else x for place, x in columns["covered"]
        }
        numbers = unpack_ints(columns["numbers"]).tolist()
        label_requests: list[LabelRequest | None] = [None] * len(numbers)
        if "asked" in columns:
            rows = unpack_floats(columns["asked"]).reshape(-1, 4).tolist()
            label_requests = [checked_label_request(row) for row in rows]
        arms = unpack_ints(columns["arms"]).tolist()
        baselines = unpack_ints(columns["baseline"]).tolist()
        entries = zip(numbers, arms, baselines, label_requests, chosen, strict=True)
        for place, (number, arm, baseline, label_request, fields) in enumerate(entries):
            name = f"{pending_store.tag}-{number}"
            guarded: Any = fields[_FIELDS:] if len(fields) > _FIELDS else None
            decision = make_decision((name, *fields[:_FIELDS]), guarded, None, label_request)
            if contexts is not None:
                contexts.check(shared[baseline])
            pending_store.decisions[name] = decision, arm, eligible.get(place), shared[baseline]


def diagnostics(learner: Learner) -> dict[str, float]:
    """The scalars of a policy's state, and how often each of its rungs plays, by name.

    Args:
        learner: the running policy.

    >>> import decoupled as dc
    >>> from decoupled.extend import diagnostics
    >>> diagnostics(dc.TsallisINF().start(arms=8, seed=7))["steps"]
    2.0
    >>> list(diagnostics(dc.Ladder().start(arms=8, seed=7)))[-4:]
    ['weight of 0.5', 'weight of 8', 'weight of means', 'weight of recent']
    """
    return learner.inspect(_diagnostics_of)


def _diagnostics_of(parts: Parts) -> dict[str, float]:
    policy_state = parts.policy_state
    names = policy_state.layout.all_scalars
    scalars = policy_state.state.scalars[: len(names)].tolist()
    numbers = dict(zip(names, scalars, strict=True))
    for rung, weight in policy_state.form.rung_weights(policy_state.state).items():
        numbers[f"weight of {rung}"] = weight
    return numbers
