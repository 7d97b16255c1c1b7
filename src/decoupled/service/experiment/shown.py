"""A decision of the log as clients see it."""

from collections.abc import Sequence
from typing import Protocol

from ...decision import Arm
from .annotations import shown_baseline, shown_tags
from .records import DecisionRecord, Status
from .rows import Decided, Settled


class Owner(Protocol):
    """What is shown of the experiment of a decision: its name, the names of all its arms, and its policy."""

    tag: str
    name: str
    names: Sequence[Arm]
    policy: str


def decision_record(row: Decided, settled: Settled | None, owner: Owner) -> DecisionRecord:
    """A decision with its outcome."""
    names = owner.names
    status: Status = "unobserved" if row.explore is None else "pending"
    if settled is not None:
        status = "applied" if settled.kind == "observed" else "expired"
    exploit = None if row.exploit is None else names[row.exploit]
    explore = None if row.explore is None else names[row.explore]
    loss, at = (None, None) if settled is None else (settled.loss, settled.at)
    return DecisionRecord(
        f"{owner.tag}-{row.seq}", owner.name, row.mode, exploit, explore, row.propensity, row.weight,
        owner.policy, row.version, row.made_at, row.expires_at, status, loss, at,
        exploit if row.drawn is None else names[row.drawn], row.guard, row.limited_by,
        shown_tags(row.tags), shown_baseline(row.baseline, names),
    )  # fmt: skip
