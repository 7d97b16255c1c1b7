"""The plain case of a round, decided and observed by built-in methods; see `decoupled.native.quick`."""

from ..decision import ContextualDecision, Decision
from ..kernels.state import ROUND
from ..native.calls import FEW_ARMS
from ..native.quick import NOT_QUICK, QuickCalls, QuickParts, quick_calls
from .saving import Parts


def plain_round(parts: Parts) -> QuickCalls:
    """The quick calls for a learner of these parts, which are stopped so far. Stop them before a part is replaced."""
    arms, losses, running, waiting, guard, _ = parts
    if running.serials.kept is not None:  # pending decisions have serials, and the calls need places
        return NOT_QUICK
    mine = QuickParts(
        decision=Decision if running.contexts is None else ContextualDecision,
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
        # With more arms the calls are not used, and a million serial numbers need not be kept for them.
        keyed=running.keys.calls if len(arms) <= FEW_ARMS else None,
    )
    calls = quick_calls(running.entries, running.flat, running.stream, mine)
    return calls._replace(decide=NOT_QUICK.decide) if guard.rules else calls
