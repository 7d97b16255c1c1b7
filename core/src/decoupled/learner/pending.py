"""The decisions that await feedback, with everything their estimates will need.

Arms are serials here.
"""

from collections.abc import Callable
from itertools import islice
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from ..base.arrays import Floats, Ints
from ..decision import Arm, ContextualDecision, Decision, GuardedDecision, LabelRequest
from ..errors import FeedbackError, shown

BaselineKind: TypeAlias = Literal["sparse", "all", "law"]


class Baseline(NamedTuple):
    """What the update of a decision needs of the state in which it was made.

    Attributes:
        serials: the arms that have a baseline.
        values: their baselines, or with the kind "law" the chances with which they were explored.
        kind: "sparse" if the baseline of all other arms is 0, "all" if the policy tells a baseline
            of 0 from none, and "law".
        scalars_of: what else the update of each decision needs, by the decision's id: see
            `Baselines.kept`. With a context it is by the explored arm.
    """

    serials: Ints
    values: Floats
    kind: BaselineKind
    scalars_of: dict[str | int, list[float]]


# How saved states spell the kinds.
_SPELLINGS: dict[BaselineKind, bool | str] = {"sparse": False, "all": True, "law": "law"}
_KINDS: dict[bool | str, BaselineKind] = {text: kind for kind, text in _SPELLINGS.items()}

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
    spelling = _SPELLINGS[baseline.kind]
    content = [baseline.serials.tolist(), baseline.values.tolist(), spelling]
    if baseline.scalars_of:
        content.append(sorted(baseline.scalars_of.items()))
    return content


def baseline_from_json(content: list[Any]) -> Baseline:
    """Restore the result of `baseline_to_json`."""
    serials, values, spelling, *scalars_of = content
    return Baseline(
        np.array(serials, np.int64),
        np.array(values, np.float64),
        _KINDS[spelling],
        dict(*scalars_of),
    )


HeldBaseline: TypeAlias = Baseline | RoundBaseline | None
"""The baselines that a decision holds, perhaps not computed yet; None if all are 0."""


def baseline_of(held: HeldBaseline) -> Baseline | None:
    """The baselines that a decision holds, computed if they are not yet."""
    return held.get() if isinstance(held, RoundBaseline) else held


# A pending decision, the explored arm, the arms it could choose from, and its baselines. A plain
# tuple, because every decision makes one.
Pending: TypeAlias = tuple[Decision, int, EligibleArms, HeldBaseline]

new_decision = tuple.__new__  # takes the kind and the fields; faster than the call of the kind


def number_of(decision_id: str) -> int:
    """The number of the decision with this id.

    >>> number_of("checkout-17")
    17
    """
    return int(decision_id.rpartition("-")[2])


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
        raise ValueError(f"label_request = {content!r} cannot be")
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
        decisions = cls(decision for decision, _, _, _ in pending_store.decisions.values())
        decisions.forgotten = pending_store.forgotten
        return decisions


class PendingStore:
    """The pending decisions of one learner, oldest first.

    Beyond the limit the oldest is forgotten.
    """

    def __init__(self, tag: str, limit: int) -> None:
        self.tag = tag  # keeps the ids of one learner apart from another's
        self.limit = limit  # as the user said
        self.most = limit  # as what decisions keep allows
        self.made = 0  # how many decisions were made
        self.forgotten = 0  # how many of these were forgotten
        self.decisions: dict[str, Pending] = {}

    def __len__(self) -> int:
        return len(self.decisions)

    def oldest(self, count: int) -> list[str]:
        """The ids of the decisions to forget when so many are made, the oldest."""
        return list(islice(self.decisions, max(len(self.decisions) + count - self.most, 0)))

    def find(self, decision: Decision | str) -> Pending:
        """The record of a pending decision, given the decision or its id."""
        decision_id = decision.id if isinstance(decision, Decision) else decision
        pending = self.decisions.get(decision_id) if isinstance(decision_id, str) else None
        if pending is not None:
            made, _, _, _ = pending
            if decision is made or decision is decision_id or decision == made:
                return pending
        problem = self._why_unknown(decision_id, pending)
        raise FeedbackError(f"decision {shown(decision_id)}: {problem}")

    def add(self, pending: Pending) -> None:
        """Wait for the feedback of a decision. The caller makes sure that there is room."""
        decision, _, _, _ = pending
        self.decisions[decision.id] = pending
        self.made += 1

    def replace(self, oldest: list[str], newest: list[Pending]) -> None:
        """Forget the decisions with these ids, and wait for the feedback of others."""
        for pending in newest:
            decision, _, _, _ = pending
            self.decisions[decision.id] = pending
        for decision_id in oldest:
            del self.decisions[decision_id]
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
            decision_id: (decision, arm, newcomer if eligible is None else eligible, baseline)
            for decision_id, (decision, arm, eligible, baseline) in self.decisions.items()
        }
        return copy

    def _why_unknown(self, decision_id: object, pending: Pending | None) -> str:
        """Why feedback for this decision is refused, and what to do."""
        tag = ""
        number = ""
        if isinstance(decision_id, str):
            tag, _, number = decision_id.rpartition("-")
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
        decisions = [decision for decision, _, _, _ in self.decisions.values()]
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

        The result depends only on the numbers, and not on how decisions came to have them: in one
        object, in several after a restart, or in one that also keeps numbers for decisions that
        had their feedback.
        """
        places: dict[Any, int] = {}
        place_of: dict[int, int] = {}
        shared: list[Baseline] = []
        which: list[int | None] = []
        for decision, explored, _, held in self.decisions.values():
            baseline = baseline_of(held)
            if baseline is None:
                which.append(None)
                continue
            place = place_of.get(id(baseline))
            if place is None:
                serials, values, kind, scalars_of = baseline
                same: Any = (
                    decision.round,
                    serials.tobytes(),
                    values.tobytes(),
                    kind,
                    bool(scalars_of),
                )
                if len(serials) == 0 or (kind == "law" and explored in scalars_of):
                    # What is kept is of this decision alone, such as its context.
                    same = same, explored, tuple(scalars_of[explored])
                place = places.setdefault(same, len(shared))
                place_of[id(baseline)] = place
                if place == len(shared):
                    shared.append(Baseline(serials, values, kind, {}))
            for owner in (decision.id, explored):
                if owner in baseline.scalars_of:
                    shared[place].scalars_of[owner] = baseline.scalars_of[owner]
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
            decision_id = record[0]
            label_request = None
            if decision_id in label_requests:
                label_request = checked_label_request(label_requests[decision_id])
            decision = make_decision(record[:fields], guarded.get(decision_id), None, label_request)
            arm, eligible, *place = record[fields:]
            eligible_arms = tuple(eligible) if isinstance(eligible, list) else eligible
            baseline = shared[place[0]] if place else None
            pending_store.decisions[decision.id] = decision, arm, eligible_arms, baseline
        return pending_store
