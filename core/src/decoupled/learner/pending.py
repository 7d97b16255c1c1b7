"""The decisions that await feedback, with everything their estimates will need.

Arms are serials here.
"""

from collections.abc import Callable
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from ..base.arrays import Floats, Ints
from ..decision import Arm, ContextualDecision, Decision, GuardedDecision, LabelRequest
from ..errors import FeedbackError, shown

# The arms that have a baseline, their baselines, and whether the policy takes any numbers; the
# baseline of all others is 0. Or LAW, and the chances with which arms were explored. Last, by the
# id of a decision, what else its update needs of the state in which it was made: see
# `Baselines.kept`. (With a context, by explored arm.)
LAW = "law"
Baseline: TypeAlias = tuple[Ints, Floats, bool | str, dict[str | int, list[float]]]

# The arms that a decision could choose from: these serials, all serials below a number, or (None)
# all arms.
EligibleArms: TypeAlias = tuple[int, ...] | int | None


class RoundBaseline:
    """The baselines that a round's decisions share, computed only if one outlives the round: until
    then the state has them.
    """

    __slots__ = ("_compute", "_value")

    def __init__(self, compute: Callable[[], Baseline | None]) -> None:
        self._compute: Callable[[], Baseline | None] | None = compute
        self._value: Baseline | None = None

    def get(self) -> Baseline | None:
        """The baselines, None if all are 0. The first call must come before the state changes."""
        if self._compute is not None:
            self._value = self._compute()
            self._compute = None
        return self._value


def baseline_to_json(baseline: Baseline) -> list[Any]:
    """Baselines as plain values."""
    serials, values, free, kept = baseline
    content = [serials.tolist(), values.tolist(), free]
    if kept:
        content.append(sorted(kept.items()))
    return content


def baseline_from_json(content: list[Any]) -> Baseline:
    """Restore the result of `baseline_to_json`."""
    serials, values, free, *kept = content
    return np.array(serials, np.int64), np.array(values, np.float64), free, dict(*kept)


# The baselines of a decision; None if all are 0.
Recorded: TypeAlias = Baseline | RoundBaseline | None


def recorded(baseline: Recorded) -> Baseline | None:
    """The baselines of a decision, computed if they are not yet."""
    return baseline.get() if isinstance(baseline, RoundBaseline) else baseline


# A pending decision, the explored arm, the arms it could choose from, and its baselines. A plain
# tuple, because every decision makes one.
Pending: TypeAlias = tuple[Decision, int, EligibleArms, Recorded]

new_decision = tuple.__new__  # takes the kind and the fields; faster than the call of the kind


def make_decision(
    fields: tuple[str, int, Arm | None, Arm, float | None, float],
    guarded: tuple[Arm, str] | None,
    why: tuple[Any, ...] | None,
    label_request: LabelRequest | None,
) -> Decision:
    """A decision, perhaps with what the policy drew and the guardrail's name, `Contexts.why`, or
    about its label.
    """
    if guarded is None and why is None and label_request is None:
        return new_decision(Decision, fields)
    if why is None:
        return GuardedDecision.from_fields(fields, guarded, label_request)
    return ContextualDecision.from_fields(fields, guarded, label_request, why)


def checked_label_request(content: Any) -> LabelRequest:
    """What a decision fixed about its label, from plain values."""
    wanted, rho, lam, base = content
    if not (0.0 < rho <= 1.0 and 0.0 <= lam <= 1.0 and 0.0 <= base <= 1.0):
        raise ValueError(f"asked = {content!r} cannot be")
    return LabelRequest(bool(wanted), float(rho), float(lam), float(base))


class PendingDecisions(tuple[Decision, ...]):
    """Pending decisions, oldest first.

    Attributes:
        forgotten: how many others were forgotten before their feedback arrived.
    """

    forgotten: int

    @classmethod
    def of(cls, pending_store: "PendingStore") -> "PendingDecisions":
        """The decisions that a learner waits for now."""
        decisions = cls(pending[0] for pending in pending_store.decisions.values())
        decisions.forgotten = pending_store.forgotten
        return decisions


class PendingStore:
    """The pending decisions of one learner, oldest first.

    Beyond the limit the oldest is forgotten.
    """

    def __init__(self, tag: str, limit: int) -> None:
        self.tag = tag  # keeps the ids of one learner apart from another's
        self.limit = self.most = limit  # as the user said, and as what decisions keep allows
        self.made = self.forgotten = (
            0  # how many decisions were made, and how many of these were forgotten
        )
        self.decisions: dict[str, Pending] = {}

    def __len__(self) -> int:
        return len(self.decisions)

    def oldest(self, count: int) -> list[str]:
        """The ids of the decisions to forget when so many are made, the oldest."""
        return list(islice(self.decisions, max(len(self.decisions) + count - self.most, 0)))

    def find(self, decision: Decision | str) -> Pending:
        """The record of a pending decision, given the decision or its id."""
        key = decision[0] if isinstance(decision, Decision) else decision
        pending = self.decisions.get(key) if isinstance(key, str) else None
        if pending is not None and (
            decision is pending[0] or decision is key or decision == pending[0]
        ):
            return pending
        raise FeedbackError(f"decision {shown(key)}: {self._why_unknown(key, pending)}")

    def add(self, pending: Pending) -> None:
        """Wait for the feedback of a decision, if there is room for one more."""
        self.decisions[pending[0].id] = pending
        self.made += 1

    def replace(self, oldest: list[str], newest: list[Pending]) -> None:
        """Forget the decisions with these ids, and wait for the feedback of others."""
        for pending in newest:
            self.decisions[pending[0].id] = pending
        for key in oldest:
            del self.decisions[key]
        self.made += len(newest)
        self.forgotten += len(oldest)

    def with_arm(self, newcomer: int) -> "PendingStore":
        """A copy that knows that arms from this serial on are new: decisions made so far could not
        choose them.
        """
        copy = PendingStore(self.tag, self.limit)
        copy.made = self.made
        copy.forgotten = self.forgotten
        copy.decisions = {
            name: (decision, arm, newcomer if eligible is None else eligible, baseline)
            for name, (decision, arm, eligible, baseline) in self.decisions.items()
        }
        return copy

    def _why_unknown(self, key: object, pending: Pending | None) -> str:
        tag, _, number = key.rpartition("-") if isinstance(key, str) else ("", "", "")
        if pending is not None:
            return "is pending with other contents; give the decision as this learner made it"
        if (
            tag == self.tag
            and number.isdecimal()
            and len(number) < 20
            and 0 < int(number) <= self.made
        ):
            problem = "is not pending: its feedback was already applied, or it was forgotten"
            return f"{problem}; send feedback once for each decision"
        return "was never made by this learner; give a decision that decide() or explore() returned"

    def to_json(self) -> dict[str, Any]:
        """Everything but the limit as plain values.

        Decisions with the same baselines share them there.
        """
        shared, which = self.shared_baselines()
        decisions = [pending[0] for pending in self.decisions.values()]
        rows = []
        for (decision, arm, eligible, _), place in zip(self.decisions.values(), which, strict=True):
            row = [*decision, arm, eligible]
            if place is not None:
                row.append(place)
            rows.append(row)
        content: dict[str, Any] = {
            "tag": self.tag,
            "made": self.made,
            "forgotten": self.forgotten,
            "baselines": [baseline_to_json(baseline) for baseline in shared],
            "pending": rows,
        }
        guarded = {
            decision.id: [decision.drawn, decision.guard]
            for decision in decisions
            if decision.guard is not None
        }
        if guarded:
            content["guarded"] = guarded
        label_requests = {
            decision.id: list(decision.label_request)
            for decision in decisions
            if decision.label_request is not None
        }
        if label_requests:
            content["asked"] = label_requests
        return content

    def shared_baselines(self) -> tuple[list[Baseline], list[int | None]]:
        """The baselines that differ, and which of them each decision has.

        They tell nothing of how decisions came to have them: in one object, in several after a
        restart, or in one that also keeps numbers for decisions that had their feedback.
        """
        places: dict[Any, int] = {}
        place_of: dict[int, int] = {}
        shared: list[Baseline] = []
        which: list[int | None] = []
        for decision, explored, _, held in self.decisions.values():
            baseline = recorded(held)
            if baseline is None:
                which.append(None)
                continue
            place = place_of.get(id(baseline))
            if place is None:
                serials, values, free, kept = baseline
                same: Any = decision.round, serials.tobytes(), values.tobytes(), free, bool(kept)
                if len(serials) == 0 or (free == LAW and explored in kept):
                    same = (
                        same,
                        explored,
                        tuple(kept[explored]),
                    )  # of this decision, such as its context
                place = place_of[id(baseline)] = places.setdefault(same, len(shared))
                if place == len(shared):
                    shared.append((serials, values, free, {}))
            for key in (decision.id, explored):
                if key in baseline[3]:
                    shared[place][3][key] = baseline[3][key]
            which.append(place)
        return shared, which

    @classmethod
    def from_json(cls, content: dict[str, Any], limit: int) -> "PendingStore":
        """Restore the result of `to_json`."""
        pending_store = cls(content["tag"], limit)
        pending_store.made = content["made"]
        pending_store.forgotten = content["forgotten"]
        shared = [baseline_from_json(baseline) for baseline in content["baselines"]]
        fields = len(Decision._fields)
        guarded = content.get("guarded", {})
        label_requests = content.get("asked", {})
        for record in content["pending"]:
            key = record[0]
            label_request = (
                checked_label_request(label_requests[key]) if key in label_requests else None
            )
            decision = make_decision(record[:fields], guarded.get(key), None, label_request)
            arm, eligible, *place = record[fields:]
            eligible_arms = tuple(eligible) if isinstance(eligible, list) else eligible
            baseline = shared[place[0]] if place else None
            pending_store.decisions[decision.id] = decision, arm, eligible_arms, baseline
        return pending_store
