"""The plain case of a round, decided and observed by built-in functions; see `decoupled.native.quick`."""

from threading import Lock
from typing import Any

from ..decision import Arm, Decision
from ..kernels.state import ROUND
from ..native.quick import NOT_QUICK, QuickCalls, QuickParts, quick_calls
from .saving import Parts


def plain_round(parts: Parts, lock: Any) -> QuickCalls:
    """The quick calls for a learner of these parts. Stop them before a part is replaced."""
    arms, losses, running, waiting, guard, watch = parts
    if running.serials.kept is not None:  # pending decisions have serials, and the calls need places
        return NOT_QUICK
    mine = QuickParts(
        decision=Decision,
        round_at=ROUND,
        names=arms.names,
        loss_range=losses,
        tag=waiting.tag,
        limit=waiting.limit,
        made=waiting.counter,
        pending=waiting.decisions,
        has_baselines=running.baseline is not None,
        shared=running.shared,
        sharing=running.sharing,
        locked=lock.locked if watch is None else Lock().locked,
    )
    calls = quick_calls(running.entries, running.flat, running.stream, mine)
    if watch is not None and calls is not NOT_QUICK:
        calls = _watched(calls, parts, lock)
    return calls._replace(decide=NOT_QUICK.decide) if guard.rules else calls


def _watched(calls: QuickCalls, parts: Parts, lock: Any) -> QuickCalls:
    """The quick calls, each with what the watch has to know; the lock makes one step of the two."""
    arms, losses, running, waiting, guard, watch = parts
    assert watch is not None
    acquire, release, pending = lock.acquire, lock.release, waiting.decisions
    places: dict[Arm | None, int] = {name: place for place, name in enumerate(arms.names)}

    def decide() -> Decision | None:
        acquire()
        try:
            decision: Decision | None = calls.decide()
            if decision is not None:
                watch.draw(decision, places[decision.exploit], None, running, waiting.limit)
            return decision
        finally:
            release()

    def observe(decision: Any, loss: Any) -> bool:
        key = decision.id if type(decision) is Decision else decision
        acquire()
        try:
            made = pending.get(key) if type(key) is str else None
            if made is None or not calls.observe(decision, loss):
                return False
            watch.observe(made, losses.scaled(loss))
            return True
        finally:
            release()

    # An incumbent is judged after every observation.
    return calls._replace(
        decide=decide, observe=observe if guard.rules.incumbent is None else NOT_QUICK.observe
    )
