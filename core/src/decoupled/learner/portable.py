"""A saved learner that moves to another home: a program, or an experiment of the decision service.

What it has learned and its random stream move; its pending decisions stay behind, because their feedback goes to the
old home.
"""

from typing import Any, NamedTuple

from ..base.signed_json import seal, unseal
from ..decision import Arm
from .guardrails import Guardrails
from .learner import Learner
from .restoring import restoring
from .saving import FORMAT, VERSION, WRITER


class Saved(NamedTuple):
    """What a saved learner says about itself; `risk` and `drift` are None if it is not watched.

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


def described(text: str | bytes) -> Saved:
    """Read a saved learner without starting it, which may have to compile its policy; `StateError` if it is damaged."""
    content = unseal(text, FORMAT, VERSION, WRITER)
    with restoring():
        low, high = content["loss_range"]
        rules = Guardrails.from_dict(content.get("guard", {}).get("rules", {}))
        watch = content.get("watch", {}).get("sequences", {})
        names = content["arms"]
        arms = list(range(names)) if isinstance(names, int) else list(names)
        return Saved(content["policy"], arms, (low, high), rules, watch.get("risk"), watch.get("drift"))


def without_pending(text: str | bytes, max_pending: int, *, renumbered: bool = False) -> str:
    """The state of a learner without its pending decisions, for at most so many others.

    `renumbered` numbers its arms anew, as if none had ever been retired. If some were, its confidence sequences, which
    have their numbers, are dropped.

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
    return seal(FORMAT, VERSION, content)


def unseen_arms(learner: Learner) -> list[Arm]:
    """The arms about which a learner knows nothing, except perhaps losses of 0.

    >>> import decoupled as dc
    >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7)
    >>> _ = learner.replay([("a", 0.5, 0.9)])
    >>> unseen_arms(learner)
    ['b']
    """
    unknown = learner._running.unknown().tolist()
    return [name for name, unseen in zip(learner.arms, unknown, strict=True) if unseen]
