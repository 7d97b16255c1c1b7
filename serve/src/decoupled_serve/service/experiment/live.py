"""One running experiment: its learner, its pending decisions, and its counts.

`draw`, `settle` and `change` make a row and apply it. The same code runs when a client asks and when the log is
replayed, and a replayed row must equal the logged one.
"""

import json
from array import array
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from decoupled.base import pack_ints, unpack_ints
from decoupled.client import ReplayError
from decoupled.decision import Arm, Decision, Mode, Served
from decoupled.learner import Budget, Guardrails, Learner, LossRange, Meter, place_in_stream
from decoupled.policies import Policy

from .context import (
    NOTHING,
    Annotations,
    Declared,
    given_advice,
    logged_key,
    shown_advice,
    shown_baseline,
    shown_context,
    shown_tags,
)
from .records import (
    Changed,
    Decided,
    DecisionRecord,
    ExperimentRow,
    Judgement,
    Outcome,
    Row,
    Settings,
    Settled,
    Status,
)
from .settings import as_settings

R = TypeVar("R", bound=DecisionRecord)
ContextAndAdvice: TypeAlias = tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]
REMEDY = "run `decoupled doctor` on the store, or restore a backup"
_KEPT_UP = 64  # rows; by their numbers, so that a replay does the same
UNLIMITED = 10**9  # the service expires old decisions itself; its learner must not forget any


class Loss(NamedTuple):
    """A loss on the experiment's own scale, as it is logged, and scaled to [0, 1]."""

    value: float
    scaled: float


@dataclass(slots=True)
class Tallies:
    """Counts, those by arm in the order of all arms that the experiment ever had."""

    exploit: "array[int]" = field(default_factory=lambda: array("q"))
    explore: "array[int]" = field(default_factory=lambda: array("q"))
    decisions: int = 0
    applied: int = 0
    expired: int = 0

    def widen(self, arms: int) -> None:
        """Make room for that many arms."""
        for each in (self.exploit, self.explore):
            each.frombytes(bytes(each.itemsize * (arms - len(each))))

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Tallies":
        """The result of `to_dict`."""
        by_arm = {
            name: array("q", unpack_ints(content[name]).tobytes())
            for name in ("exploit", "explore")
        }
        return cls(**content | by_arm)

    def copied(self) -> "Tallies":
        """The counts as they are now."""
        return replace(self, exploit=self.exploit[:], explore=self.explore[:])

    def to_dict(self) -> dict[str, Any]:
        """The counts as JSON."""
        counts = {each.name: getattr(self, each.name) for each in fields(self)}
        for name in ("exploit", "explore"):
            counts[name] = pack_ints(np.frombuffer(counts[name], np.int64))
        return counts


def places_of(names: Sequence[Arm], retired: Collection[int] = ()) -> Mapping[Arm, int]:
    """The place of each arm that is not retired. A name that came back has the later place."""
    gone = set(retired)
    return {name: place for place, name in enumerate(names) if place not in gone}


class LiveExperiment:
    """An experiment in memory. Callers must hold its lock in the store and have replayed its log."""

    def __init__(self, row: ExperimentRow) -> None:
        self.id, self.tenant, self.name, self.tag = row.id, row.tenant, row.name, row.tag
        self.settings: Settings = as_settings(json.loads(row.settings))
        self.seed, self.created_at = int(row.seed), row.created_at
        self.key_secret = row.key_secret
        self.archived_at: float | None = None
        self.head = self.version = self.saved = 0
        self.last_at = self.saved_at = row.created_at
        self.watched_since: float | None = None
        self.losses = LossRange.checked(self.settings.loss_range)
        policy = Policy.from_dict(self.settings.policy)
        self.policy = type(policy).__name__
        self.coupled = policy.coupled
        it = self.settings
        self.declared = Declared(
            it.context, it.unknown_context, it.log_context, self.key_secret, policy
        )
        self.contextual = policy.contextual
        self.advisers: tuple[str, ...] = getattr(policy, "advisers", ())
        self.names: list[Arm] = list(self.settings.arms)
        self.places: Mapping[Arm, int] = places_of(self.names)
        self.retired: list[int] = []  # places; a name that comes back is a new arm, at a new place
        self.learner: Learner = policy.start(
            self.names, self.seed, loss_range=self.settings.loss_range, max_pending=UNLIMITED,
            labels=self.settings.labels,
        )  # fmt: skip
        # Its own tag would be another one in every process, and a replay would not end in the same state.
        self.learner.tag = self.tag
        self.watch()
        if self.settings.guardrails:
            self.learner.guardrails = self.settings.guardrails
        self.meter: Meter | None = None
        self._change_budget(self.settings.budget)
        self.tallies = Tallies()
        self.tallies.widen(len(self.names))
        self.pending: dict[int, tuple[Decided, Decision]] = {}
        self.judged: dict[int, Judgement] = {}  # of the pending decisions that await their label
        self.waiting: deque[int] = deque()  # pending and settled decisions, oldest first
        self.awaited: deque[int] = deque()  # those that the evidence may wait for, oldest first
        self.late = 0
        # Counts for metrics since it is in memory, which nothing else depends on.
        self.guarded = self.limited = 0
        self.loss_applied = 0.0
        self.replayed: dict[
            str, int
        ] = {}  # how many records of each log were learned, by the log's digest
        self.next_expiry: float | None = (
            None  # as it is stored: no pending decision expires before it
        )

    @property
    def incumbent_released(self) -> bool | None:
        """Whether another arm was found to be better than the incumbent; None if there is none."""
        learner = self.learner
        return (
            None if learner.guardrails.incumbent is None else learner.inference.incumbent_released
        )

    def watch(self) -> None:
        """Keep confidence sequences from here on."""
        it = self.settings
        self.learner.watch(
            it.risk, drift=it.drift, patience=it.patience, expired_loss=it.expired_loss
        )

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The arms that can be chosen."""
        return self.learner.arms

    @property
    def segments(self) -> int | None:
        """How many segments a contextual policy tells apart; None for others."""
        segments = self.learner.segments
        return None if segments is None else len(segments)

    def now(self, clock: float) -> float:
        """The time of the next row: times in a log never go back, whichever clock wrote them."""
        return max(clock, self.last_at)

    def measured(self, loss: object, reward: object = None) -> Loss:
        """A loss, given as such or as a reward; `LossError` if it is outside the loss range.

        This is the only place where the service scales a loss. A reward becomes a loss first, because the log holds
        only losses, and a replay must scale the same number.
        """
        scaled = self.losses.scaled(loss, reward)
        if reward is None:
            return Loss(float(loss), scaled)  # type: ignore[arg-type]
        low, high = self.losses
        value = min(max(high - float(reward) + low, low), high)  # type: ignore[arg-type]
        return Loss(value, self.losses.scaled(value))

    # Rows

    def draw(
        self,
        mode: Mode,
        available: str | None,
        at: float,
        attached: Annotations = NOTHING,
        key: str | None = None,
        logged: Decided | None = None,
    ) -> Decided:
        """Draw a decision, and return its row. If the budget does not allow it to explore, its mode is "exploit".

        A key draws the arm to exploit. In a replay it is no longer known, and that arm is taken from its row, `logged`.
        """
        learner, places = self.learner, self.places
        if learner.guardrails.down:
            available = self.up(available)
        arms = None if available is None else [self.names[place] for place in json.loads(available)]
        limited_by, share = None, None
        if self.meter is not None and mode != "exploit":
            share = self.meter.share(learner)
            limited_by = self.meter.limit(learner.arms if arms is None else arms, at, share)
            mode = "exploit" if limited_by is not None else mode
        stream = place_in_stream(learner)
        expires: float | None = None
        decision: Decision | None = None
        guard, drawn = None, None
        told = self.told(attached)
        if mode == "exploit":
            served = self._served(logged) if logged else self._exploited(arms, told, key)
            exploit: int | None = places[served.exploit]
            explore, propensity, weight, turn = None, None, None, learner.round
            if served.guard is not None:
                drawn, guard = places[served.drawn], served.guard
        else:
            decision = self._decided(mode, arms, told, key, logged)
            _, turn, chosen, tried, propensity, weight = decision
            exploit = None if chosen is None else places[chosen]
            explore = places[tried]
            if decision.guard is not None and decision.drawn is not None:
                drawn, guard = places[decision.drawn], decision.guard
            if self.settings.deadline is not None:
                expires = at + self.settings.deadline
        asked = (
            None if decision is None else decision.label_request
        )  # for a label, and with what probability
        label, rho = (None, None) if asked is None else (int(asked.wanted), asked.rho)
        self.head = seq = self.head + 1
        self.last_at = at
        row = Decided(
            seq, mode, available, exploit, explore, propensity, weight, turn, self.version, stream, at, expires,
            drawn, guard, limited_by, *attached, self._logged(key) if logged is None else logged.key,
            label, rho, share,
        )  # fmt: skip
        if self.meter is not None:
            self.meter.count(None if explore is None else self.names[explore], at, seq)
        if guard is not None:
            self.guarded += 1
        if limited_by is not None:
            self.limited += 1
        tallies = self.tallies
        tallies.decisions += 1
        if exploit is not None:
            tallies.exploit[exploit] += 1
        if decision is not None and explore is not None:
            tallies.explore[explore] += 1
            self.pending[seq] = (row, decision)
            self.waiting.append(seq)
            self.awaited.append(seq)
            # Then many are settled, behind an old pending one.
            if len(self.waiting) > 2 * len(self.pending) + 1000:
                self.waiting = deque(self.pending)
            if len(self.awaited) > 2 * len(self.pending) + 1000:
                self.awaited = deque(each for each in self.awaited if each in self.pending)
            if (
                seq % _KEPT_UP == 0
            ):  # else the first feedback after many decisions would hold up everybody
                learner.inference.catch_up()
        return row

    def _decided(
        self,
        mode: Mode,
        arms: list[Arm] | None,
        told: ContextAndAdvice,
        key: str | None,
        logged: Decided | None,
    ) -> Decision:
        learner = self.learner
        if mode == "explore":
            return learner.explore(available=arms, context=told[0])
        if logged is None:
            return learner.decide(key=key, available=arms, context=told[0], advice=told[1])
        return learner.redecide(
            self._served(logged), available=arms, context=told[0], advice=told[1]
        )

    def _exploited(self, arms: list[Arm] | None, told: ContextAndAdvice, key: str | None) -> Served:
        return self.learner.exploit(key=key, available=arms, context=told[0], advice=told[1])

    def told(self, attached: Annotations) -> ContextAndAdvice:
        """The context and the advice of a decision as a contextual policy takes them; nothing for others."""
        if not self.contextual:
            return None, None
        return shown_context(attached.context) or {}, given_advice(attached.advice, self.names)

    def _served(self, row: Decided) -> Served:
        """What a row served."""
        assert row.exploit is not None
        drawn = row.exploit if row.drawn is None else row.drawn
        return Served(self.names[row.exploit], self.names[drawn], row.guard)

    def _logged(self, key: str | None) -> str | None:
        return None if key is None else logged_key(key, self.settings.log_keys, self.key_secret)

    def up(self, available: str | None) -> str:
        """The places of the arms that are available and not down, as the log has them; "[]" if there are none."""
        down = {self.places[name] for name in self.learner.guardrails.down}
        asked = sorted(self.places.values()) if available is None else json.loads(available)
        return json.dumps([place for place in asked if place not in down], separators=(",", ":"))

    def settle(
        self,
        decision: int,
        kind: str,
        loss: Loss | None,
        at: float,
        judged: Loss | None = None,
        position: float | None = None,
        cost: float | None = None,
    ) -> Settled:
        """Apply the feedback of a pending decision, or drop the decision without any, and return the row.

        In an experiment with labels, the loss is the label, if it has one; `judged` is what was not known before. A decision
        whose cost never comes costs what was declared.
        """
        made, known = self.pending[decision][1], self.judged.get(decision)
        said = None if judged is None else judged.value
        if kind == "missing" or (kind == "expired" and loss is None):
            self.learner.forget(made)
        elif kind == "expired" and loss is not None:
            self.learner.expire(made, loss.value)
        else:
            label = None if loss is None else loss.value
            self.learner.observe(made, label, judged=said, position=position)
        del self.pending[decision]
        if self.meter is not None:
            self.meter.charge(decision, cost)
        if known is not None:
            said, position, cost = (
                known.judged,
                known.position,
                known.cost if cost is None else cost,
            )
            del self.judged[decision]
        self.head = seq = self.head + 1
        self.last_at = at
        if kind == "observed":
            self.tallies.applied += 1
            seen = loss or judged  # a decision that wants no label has what the judge said
            self.loss_applied += 0.0 if seen is None else seen.scaled
        else:
            self.tallies.expired += 1
        if kind == "observed" or loss is not None:
            self.version = seq
        return Settled(
            seq, decision, kind, None if loss is None else loss.value, at, said, position, cost
        )

    def judge(
        self,
        decision: int,
        judged: Loss,
        position: float | None,
        at: float,
        cost: float | None = None,
    ) -> Judgement:
        """Note what a judge said of a pending decision that asks for a label, and return the row."""
        self.learner.observe(self.pending[decision][1], judged=judged.value, position=position)
        if self.meter is not None and cost is not None:
            self.meter.charge(decision, cost)
        self.head = seq = self.head + 1
        self.last_at = at
        self.judged[decision] = row = Judgement(seq, decision, judged.value, position, at, cost)
        return row

    def overdue(self) -> list[int]:
        """The decisions whose label is overdue, oldest first. `sweep` settles them before anything else is learned."""
        if not self.judged:
            return []
        overdue = {decision.id for decision in self.learner.overdue}
        return sorted(seq for seq in self.judged if self.pending[seq][1].id in overdue)

    def change(self, kind: str, content: str, at: float) -> Changed:
        """Change the experiment itself, and return the row. If the learner refuses, nothing changes."""
        if kind == "archived":
            self.archived_at = at
        elif kind in ("added", "retired"):
            self._change_arms(kind, json.loads(content))
            self.version = self.head + 1
        elif kind == "guardrails":
            self.learner.guardrails = Guardrails.from_dict(json.loads(content))
        elif kind == "budget":
            self._change_budget(Budget.from_dict(json.loads(content)))
        elif kind == "overdue":
            self._give_up_to(int(content))
        elif kind == "replayed":
            self._learn_records(**json.loads(content))
            self.version = self.head + 1
        else:
            raise ReplayError(f"experiment {self.name!r}: the log has a change {kind!r}; {REMEDY}")
        self.head += 1
        self.last_at = at
        return Changed(self.head, kind, content, at)

    def _change_arms(self, kind: str, arms: list[Arm]) -> None:
        if kind == "added":
            self.learner.add_arms(arms)
            self.names = [*self.names, *arms]
        else:
            self.learner.retire_arms(arms)
            self.retired += [self.places[name] for name in arms]
        self.places = places_of(self.names, self.retired)
        self.tallies.widen(len(self.names))

    def _learn_records(self, log: str, records: list[list[Any]]) -> None:
        """Learn a slice of another log, which was checked as a whole: places, propensities, losses, contexts where the policy
        learns by them, and with labels what was judged and the probability of a label.
        """
        for place, propensity, loss, *more in records:
            record = {"explore": self.names[place], "propensity": propensity, "loss": loss}
            if self.contextual:
                record["context"] = shown_context(more[0]) or {}
            if len(more) > 1:
                record |= {"judged": more[1], "label_probability": more[2]}
            self.learner.replay([record], unrandomised=True)
        self.replayed[log] = self.replayed.get(log, 0) + len(records)

    def _change_budget(self, budget: Budget) -> None:
        if self.meter is not None:
            self.meter = self.meter.with_budget(budget)
        elif budget:
            self.meter = Meter(budget, seed=self.seed)

    def replay(self, row: Row) -> None:
        """Apply a row of the log."""
        if row.seq != self.head + 1:
            raise self._mismatch(row, f"follows row {self.head}")
        again: Row
        if isinstance(row, Decided):
            # A decision that the budget limited asked for more; which mode it was does not matter.
            mode: Mode = row.mode if row.limited_by is None else "both"
            attached = Annotations(row.tags, row.baseline, row.context, row.advice)
            logged = None if row.key is None else row
            again = self.draw(mode, row.available, row.made_at, attached, logged=logged)
        elif isinstance(row, Settled):
            if row.decision not in self.pending:
                raise self._mismatch(row, f"settles {row.decision}, which is not pending")
            known = self.judged.get(row.decision)
            given = row.loss, None if known is not None else row.judged
            loss, judged = (None if each is None else self.measured(each) for each in given)
            cost = None if known is not None and known.cost is not None else row.cost
            again = self.settle(
                row.decision,
                row.kind,
                loss,
                row.at,
                judged,
                None if judged is None else row.position,
                cost,
            )
        elif isinstance(row, Judgement):
            if row.decision not in self.pending or row.decision in self.judged:
                raise self._mismatch(row, f"judges {row.decision}, which does not wait for that")
            again = self.judge(
                row.decision, self.measured(row.judged), row.position, row.at, row.cost
            )
        else:
            again = self.change(row.kind, row.content, row.at)
        if again != row:
            raise self._mismatch(row, f"is {row} and was replayed as {again}")

    def _mismatch(self, row: Row, problem: str) -> ReplayError:
        return ReplayError(
            f"experiment {self.name!r}: row {row.seq} of its log {problem}; {REMEDY}"
        )

    # Pending decisions

    def oldest(self) -> Decided | None:
        """The oldest pending decision, apart from those that await a label only: these do not expire."""
        while self.waiting:
            found = self.pending.get(self.waiting[0])
            if found is not None and self.waiting[0] not in self.judged:
                return found[0]
            self.waiting.popleft()
        return None

    def holding_up(self) -> Decided | None:
        """The oldest decision without feedback that the evidence waits for; None if there is none.

        One that awaits a label only is not meant: newer decisions end its wait, and no clock.
        """
        while self.awaited:
            found = self.pending.get(self.awaited[0])
            if found is not None and self.awaited[0] not in self.judged:
                row, decision = found[:2]
                if self.learner.inference.awaits(decision):
                    return row
            self.awaited.popleft()
        return None

    def overdue_to(self, now: float) -> int | None:
        """The last decision that the evidence has waited for long enough; None if there is none."""
        wait, first = self.settings.wait, self.holding_up()
        if wait is None or first is None or now < first.made_at + wait:
            return None
        last = first.seq
        for seq in self.awaited:
            if seq in self.pending:
                if now < self.pending[seq][0].made_at + wait:
                    break
                last = seq
        return last

    def _give_up_to(self, last: int) -> None:
        """Let the evidence wait no longer for decisions up to this one."""
        while (row := self.holding_up()) is not None and row.seq <= last:
            self.learner.inference.give_up(self.pending[row.seq][1])
            self.awaited.popleft()

    def first_expiry(self) -> float | None:
        """When the next pending decision expires, or the evidence waits for one no longer; None if none does."""
        wait = self.settings.wait
        if wait is not None:
            first = self.holding_up()
            return None if first is None else first.made_at + wait
        oldest = None if self.settings.deadline is None else self.oldest()
        return None if oldest is None else oldest.expires_at

    def record(self, row: Decided, settled: Outcome = None, *, why: bool = False) -> DecisionRecord:
        """A decision as clients see it; if asked for, with why its arm was drawn, as far as that is still known."""
        pending = self.pending.get(row.seq) if why and row.exploit is not None else None
        drawn = None if pending is None else pending[1].why
        return decision_as(
            DecisionRecord, row, settled or self.judged.get(row.seq), self, why=drawn
        )


class Owner(NamedTuple):
    """What is shown of the experiment of a decision, if it is not running."""

    tag: str
    name: str
    names: Sequence[Arm]
    policy: str


def decision_as(
    kind: Callable[..., R],
    row: Decided,
    outcome: Outcome,
    owner: LiveExperiment | Owner,
    **more: Any,
) -> R:
    """A decision with its outcome, as a record of this kind; `more` are the fields that only that kind has."""
    names = owner.names
    status: Status = "unobserved" if row.explore is None else "pending"
    settled = outcome if isinstance(outcome, Settled) else None
    if settled is not None:
        status = "applied" if settled.kind == "observed" else "expired"
    exploit = None if row.exploit is None else names[row.exploit]
    explore = None if row.explore is None else names[row.explore]
    loss, at = (None, None) if settled is None else (settled.loss, settled.at)
    return kind(
        f"{owner.tag}-{row.seq}", owner.name, row.mode, exploit, explore, row.propensity, row.weight,
        owner.policy, row.version, row.made_at, row.expires_at, status, loss, at,
        exploit if row.drawn is None else names[row.drawn], row.guard, row.limited_by,
        {} if row.tags is None else shown_tags(row.tags),
        None if row.baseline is None else shown_baseline(row.baseline, names),
        row.key or None, shown_context(row.context), shown_advice(row.advice, names),
        bool(row.label), row.label_probability, outcome and outcome.judged, outcome and outcome.position,
        **more,
    )  # fmt: skip
