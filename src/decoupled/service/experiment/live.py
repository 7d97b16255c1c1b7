"""One experiment running: its learner, the decisions that wait, and the row of the log it stands at.

A row is made and applied by the same code, `draw`, `settle` and `change`, whether a client asks now or the
log is replayed; a replayed draw must give the very row that was logged.
"""

import json
from collections import deque

from ...decision import Arm, Decision
from ...learner.learner import Learner
from ...learner.loss_range import LossRange
from ...policies import Policy
from ..errors import ReplayError
from .records import Settings
from .rows import Changed, Decided, ExperimentRow, Row, Settled
from .settings import as_settings
from .tallies import Tallies

REMEDY = "run `decoupled doctor` on the store, or restore a backup"
_UNLIMITED = 10**9  # the desk expires what waits too long; its learner forgets nothing by itself


class Running:
    """An experiment in memory. Whoever uses it holds its lock in the store and stands at its head."""

    def __init__(self, row: ExperimentRow) -> None:
        self.id, self.tenant, self.name, self.tag = row.id, row.tenant, row.name, row.tag
        self.settings: Settings = as_settings(json.loads(row.settings))
        self.seed, self.created_at = int(row.seed), row.created_at
        self.archived_at: float | None = None
        self.losses = LossRange.checked(self.settings.loss_range)
        policy = Policy.from_dict(self.settings.policy)
        self.policy = type(policy).__name__
        self.coupled = policy.coupled
        # Where a policy takes the loss as it is, its weight of 1 is no estimate of 1 / propensity.
        self._weighs = policy.cumulative is not None
        self.names: list[Arm] = list(self.settings.arms)
        self.places = {name: place for place, name in enumerate(self.names)}
        self.retired: list[int] = []  # places; a name that comes back is a new arm, at a new place
        self.learner: Learner = policy.start(
            self.names, self.seed, loss_range=self.settings.loss_range, max_pending=_UNLIMITED
        )
        self.tallies = Tallies()
        self.tallies.widen(len(self.names))
        self.pending: dict[int, tuple[Decided, Decision]] = {}
        self.waiting: deque[int] = deque()  # pending and settled decisions, oldest first
        self.head = self.version = self.saved = 0
        self.last_at = row.created_at
        self.late = 0

    # What happens to it

    def now(self, clock: float) -> float:
        """The time of the next row: the log's times never run backwards, whatever the clock does."""
        return max(clock, self.last_at)

    def draw(self, mode: str, available: str | None, at: float) -> Decided:
        """Draw a decision and give its row."""
        learner, places = self.learner, self.places
        arms = None if available is None else [self.names[place] for place in json.loads(available)]
        stream = learner.place_in_stream
        expires: float | None = None
        decision: Decision | None = None
        if mode == "exploit":
            used = learner.exploit(available=arms)
            exploit: int | None = places[used]
            explore, propensity, weight, turn = None, None, None, learner.round
        else:
            decision = learner.decide(available=arms) if mode == "both" else learner.explore(available=arms)
            _, turn, chosen, tried, propensity, weight = decision
            exploit = None if chosen is None else places[chosen]
            explore = places[tried]
            if self.settings.deadline is not None:
                expires = at + self.settings.deadline
        self.head = seq = self.head + 1
        self.last_at = at
        row = Decided(
            seq,
            mode,
            available,
            exploit,
            explore,
            propensity,
            weight,
            turn,
            self.version,
            stream,
            at,
            expires,
        )
        tallies = self.tallies
        tallies.decisions += 1
        if exploit is not None:
            tallies.exploit[exploit] += 1
        if decision is not None and explore is not None:
            tallies.explore[explore] += 1
            self.pending[seq] = (row, decision)
            self._queue(seq)
        return row

    def settle(self, decision: int, kind: str, loss: float | None, at: float) -> Settled:
        """Apply the loss of a pending decision, or end its wait without one, and give the row."""
        row, made = self.pending[decision]
        if loss is None:
            self.learner.forget(made)
        else:
            self.learner.observe(made, loss)
        del self.pending[decision]
        self.head = seq = self.head + 1
        self.last_at = at
        if kind == "observed":
            self.tallies.applied += 1
        else:
            self.tallies.expired += 1
        if loss is not None:
            self.version = seq
            self._compare(row, made.weight, self.losses.scaled(loss))
        return Settled(seq, decision, kind, loss, at)

    def _compare(self, row: Decided, weight: float, loss: float) -> None:
        """Add an observation to the sums that estimate the regret, if it can be compared with all arms."""
        if row.exploit is None or row.explore is None or row.available is not None:
            return
        if row.propensity == 1.0 or (row.propensity is None and not self._weighs):
            self.tallies.blind = True  # other arms had no chance, or none that is known
        used = loss if self.coupled else weight * loss if row.exploit == row.explore else 0.0
        self.tallies.compare(row.exploit, row.explore, used, weight * loss)

    def replay(self, row: Row) -> None:
        """Apply a row of the log."""
        if row.seq != self.head + 1:
            raise ReplayError(
                f"experiment {self.name!r}: row {row.seq} of its log follows {self.head}; {REMEDY}"
            )
        again: Row
        if isinstance(row, Decided):
            again = self.draw(row.mode, row.available, row.made_at)
        elif isinstance(row, Settled):
            if row.decision not in self.pending:
                raise ReplayError(
                    f"experiment {self.name!r}: row {row.seq} settles {row.decision}, which does not wait; {REMEDY}"
                )
            again = self.settle(row.decision, row.kind, row.loss, row.at)
        else:
            again = self.change(row.kind, row.content, row.at)
        if again != row:
            raise ReplayError(
                f"experiment {self.name!r}: row {row.seq} is {row} and was replayed as {again}; {REMEDY}"
            )

    def change(self, kind: str, content: str, at: float) -> Changed:
        """Change the experiment itself, and give the row. What the learner refuses changes nothing."""
        if kind == "archived":
            self.archived_at = at
        elif kind in ("added", "retired"):
            self._change_arms(kind, json.loads(content))
            self.version = self.head + 1
        else:
            raise ReplayError(f"experiment {self.name!r}: the log has a change {kind!r}; {REMEDY}")
        self.head += 1
        self.last_at = at
        return Changed(self.head, kind, content, at)

    def _change_arms(self, kind: str, arms: list[Arm]) -> None:
        if kind == "added":
            self.learner.add_arms(arms)
            for name in arms:
                self.places[name] = len(self.names)
                self.names.append(name)
        else:
            self.learner.retire_arms(arms)
            self.retired += [self.places.pop(name) for name in arms]
        self.tallies.widen(len(self.names))
        self.tallies.compare_anew()

    def _queue(self, seq: int) -> None:
        self.waiting.append(seq)
        if len(self.waiting) > 2 * len(self.pending) + 1000:  # settled ones behind an old one that waits
            self.waiting = deque(self.pending)

    def oldest(self) -> Decided | None:
        """The decision that has waited longest."""
        while self.waiting:
            found = self.pending.get(self.waiting[0])
            if found is not None:
                return found[0]
            self.waiting.popleft()
        return None
