"""The decisions that await feedback, with all that their estimates will need."""

from typing import Any, TypeAlias

import numpy as np

from ..base.arrays import Floats, Ints
from ..decision import Arm, Decision
from ..errors import FeedbackError, shown

# Arms are known here by their serials: see there.

# The arms that have a baseline, what it is, and whether a user foresaw it; all other arms have none, which
# is zero.
Baseline: TypeAlias = tuple[Ints, Floats, bool]

# The arms that a decision could choose from: some; all that there were before a certain serial; or all
# that there are.
Covered: TypeAlias = tuple[int, ...] | int | None

# A decision that awaits feedback: the arm explored, the arms it could choose from, and the baseline, None
# where all are zero. A plain tuple, because one is made for every decision.
Pending: TypeAlias = tuple[Decision, int, Covered, Baseline | None]


class Waiting:
    """The decisions of one learner that await feedback, oldest first; beyond the limit the oldest goes."""

    def __init__(self, tag: str, limit: int) -> None:
        self.tag = tag  # keeps the ids of one learner apart from another's
        self.limit = limit
        self.made = 0
        self.forgotten = 0
        self.decisions: dict[str, Pending] = {}

    def __len__(self) -> int:
        return len(self.decisions)

    def add(
        self,
        chosen: tuple[int, Arm | None, Arm, float | None, float],
        arm: int,
        covered: Ints | None,
        baseline: Baseline | None,
    ) -> Decision:
        """Make a decision of the fields that follow its id, and wait for its feedback."""
        self.made += 1
        name = f"{self.tag}-{self.made}"
        decision = Decision(name, *chosen)
        decisions = self.decisions
        decisions[name] = (decision, arm, None if covered is None else tuple(covered.tolist()), baseline)
        if len(decisions) > self.limit:
            del decisions[next(iter(decisions))]
            self.forgotten += 1
        return decision

    def find(self, decision: Decision | str) -> Pending:
        """What is kept of a decision, given as it was made or by its id."""
        key = decision.id if isinstance(decision, Decision) else decision
        pending = self.decisions.get(key) if isinstance(key, str) else None
        if pending is not None and (decision is pending[0] or decision is key or decision == pending[0]):
            return pending
        raise FeedbackError(f"decision {shown(key)}: {self._why_unknown(key, pending)}")

    def add_arm(self, newcomer: int) -> None:
        """Arms come, the first with this serial: decisions so far could not choose them."""
        for name, (decision, arm, covered, baseline) in self.decisions.items():
            if covered is None:
                self.decisions[name] = (decision, arm, newcomer, baseline)

    def forget(self, decision: Decision | str) -> None:
        """Wait no longer."""
        del self.decisions[self.find(decision)[0].id]
        self.forgotten += 1

    def _why_unknown(self, key: object, pending: Pending | None) -> str:
        tag, _, number = key.rpartition("-") if isinstance(key, str) else ("", "", "")
        if pending is not None:
            return "is pending with other contents; give the decision as this learner made it"
        if tag == self.tag and number.isdecimal() and len(number) < 20 and 0 < int(number) <= self.made:
            return (
                "is not pending: its feedback was applied before, or it was forgotten; "
                "send feedback once for each decision"
            )
        return "was never made by this learner; give a decision that decide() or explore() returned"

    def to_json(self) -> dict[str, Any]:
        """All of it but the limit, as plain values. Decisions that share a baseline share it there."""
        held = {id(each[3]): each[3] for each in self.decisions.values() if each[3] is not None}
        number = {key: place for place, key in enumerate(held)}
        return {
            "tag": self.tag,
            "made": self.made,
            "forgotten": self.forgotten,
            "baselines": [
                [serials.tolist(), values.tolist(), foreseen] for serials, values, foreseen in held.values()
            ],
            "pending": [
                [*decision, arm, covered, *([] if baseline is None else [number[id(baseline)]])]
                for decision, arm, covered, baseline in self.decisions.values()
            ],
        }

    @classmethod
    def from_json(cls, content: dict[str, Any], limit: int) -> "Waiting":
        """What `to_json` gave."""
        waiting = cls(content["tag"], limit)
        waiting.made, waiting.forgotten = content["made"], content["forgotten"]
        shared = [
            (np.array(serials, np.int64), np.array(values, np.float64), foreseen)
            for serials, values, foreseen in content.get("baselines", [])
        ]
        fields = len(Decision._fields)
        for record in content["pending"]:
            decision = Decision(*record[:fields])
            arm, covered, *baseline = record[fields:]
            waiting.decisions[decision.id] = (
                decision,
                arm,
                tuple(covered) if isinstance(covered, list) else covered,
                None if not baseline else shared[baseline[0]] if shared else _sparse(baseline[0]),
            )
        return waiting


def _sparse(row: list[float]) -> Baseline:
    """A baseline as it was once saved: one number for each arm."""
    values = np.array(row, np.float64)
    found = np.flatnonzero(values)
    return found, values[found], False
