"""Compare the store with the answers that clients got, with as little of the service's own code as possible.

The log is read with plain SQL and replayed on a plain learner: every draw must come out again as it was
told, every loss be applied once, and the learner end as the service's own does, bit for bit.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import merge
from pathlib import Path
from typing import Any

import decoupled as dc
from decoupled.inference.ordering import PATIENCE_OF_LOGS
from decoupled.learner.portable import from_columns
from decoupled_serve.service.analysis.doctor import examine
from decoupled_serve.service.experiment.records import moment
from decoupled_serve.service.store.open import open_store
from decoupled_serve.service.store.store import Store
from support.reliability.clients import EXPERIMENTS
from support.reliability.ledger import Ledger
from support.reliability.serving import Server
from support.waiting import wait_for

_DRAWN = "mode, available, exploit, explore, propensity, weight, version, made_at, expires_at"


def last_states(server: Server) -> dict[str, dict[str, Any]]:
    """The state of every experiment, once no decision waits for its deadline."""
    states: dict[str, dict[str, Any]] = {}

    def settled() -> bool:
        for name in EXPERIMENTS:
            states[name] = json.loads(server.ask("GET", f"/v1/experiments/{name}/state")[1])
        due = [name for name, how in EXPERIMENTS.items() if "deadline_seconds" in how]
        return not any(states[name]["pending"] for name in due)

    wait_for(settled, "decisions whose deadlines are over")
    return states


@dataclass
class Audit:
    """The result: `faults` is empty if all promises were kept."""

    faults: list[str] = field(default_factory=list)
    decisions: int = 0
    losses: int = 0
    laws: int = 0  # propensities computed again from the replayed state
    by_hand: int = 0  # final states compared bit for bit

    def expect(self, kept: bool, fault: str) -> None:
        """Record a fault unless `kept`."""
        if not kept and len(self.faults) < 100:
            self.faults.append(fault)


def audit(
    address: str | Path,
    ledger: Ledger,
    states: dict[str, dict[str, Any]],
    *,
    doubtful: bool = False,
    laws: bool = False,
    unless: tuple[str, ...] = ("disk",),
) -> Audit:
    """Audit a store whose service has ended.

    Args:
        address: the store.
        ledger: what clients were told.
        states: of each experiment, as the service told it last.
        doubtful: a request that was refused may have been done, since the service died right after.
        laws: compute every propensity again.
        unless: checks of the doctor that cannot pass here.
    """
    found = Audit(faults=list(ledger.faults))
    store = open_store(address)
    reader = store.reader()
    try:
        seen: set[str] = set()
        for experiment in reader.run("SELECT id, name, tag, settings, seed, arms FROM experiments"):
            replay = _Replay(found, ledger, reader, experiment, laws)
            replay.run()
            replay.compare(states[experiment[1]])
            replay.count(doubtful)
            seen |= replay.seen
        lost = ledger.decided.keys() - seen
        found.expect(
            not lost, f"{len(lost)} acknowledged decisions are lost, such as {sorted(lost)[:3]}"
        )
    finally:
        reader.close()
        store.close()
    for check in examine(address):
        found.expect(check.good or check.name in unless, f"doctor: {check.name}: {check.finding}")
    return found


class _Replay:
    """One experiment, replayed."""

    def __init__(
        self, found: Audit, ledger: Ledger, reader: Store, experiment: tuple[Any, ...], laws: bool
    ) -> None:
        self.id, self.name, self.tag, settings, seed, arms = experiment
        self.found, self.ledger, self.reader, self.laws = found, ledger, reader, laws
        self.arms: list[Any] = json.loads(arms)
        declared = json.loads(settings)
        policy = dc.Policy.from_dict(declared["policy"])
        self.learner: dc.Learner = policy.start(self.arms, int(seed), max_pending=10**9)
        self.learner.tag = self.tag
        # As the service's learners are.
        patience = declared.get("patience") or PATIENCE_OF_LOGS
        self.learner.watch(patience=patience, expired_loss=declared.get("expired_loss"))
        self.pending: dict[int, Any] = {}
        self.seen: set[str] = set()
        self.made = self.observed = self.expired = 0
        self.version = self.seq = 0

    def run(self) -> None:
        snapshots = dict(
            self.reader.run("SELECT seq, content FROM snapshots WHERE experiment = ?", (self.id,))
        )
        for seq, drawn, settled in self._rows():
            self.found.expect(seq == self.seq + 1, f"{self.name}: row {seq} follows {self.seq}")
            self.seq = seq
            if drawn is not None:
                self._draw(seq, *drawn)
            else:
                self._settle(seq, *settled)
            if seq in snapshots:
                self._bit_for_bit(snapshots[seq])
        keys = "SELECT key, first, size FROM request_keys WHERE experiment = ?"
        stored = {key: (first, size) for key, first, size in self.reader.run(keys, (self.id,))}
        for (name, key), ids in self.ledger.keys.items():
            if name == self.name:
                first = int(ids[0].rpartition("-")[2])
                self.found.expect(
                    stored.get(key) == (first, len(ids)), f"key {key} is {stored.get(key)}"
                )

    def _rows(self) -> Iterator[tuple[int, Any, Any]]:
        values = (self.id,)
        drawn = self.reader.run(
            f"SELECT seq, {_DRAWN} FROM decided WHERE experiment = ? ORDER BY seq", values
        )
        settled = self.reader.run(
            "SELECT seq, decision, kind, loss, at FROM settled WHERE experiment = ? ORDER BY seq",
            values,
        )
        return merge(
            ((row[0], row[1:], None) for row in drawn), ((row[0], None, row[1:]) for row in settled)
        )

    def _draw(
        self,
        seq: int,
        mode: str,
        available: str | None,
        exploit: int | None,
        explore: int | None,
        propensity: float | None,
        weight: float | None,
        version: int,
        made_at: float,
        expires_at: float | None,
    ) -> None:
        some = None if available is None else [self.arms[place] for place in json.loads(available)]
        names = [None if place is None else self.arms[place] for place in (exploit, explore)]
        self.made += 1
        if self.laws and explore is not None and propensity is not None:
            law = self.learner.exploration_probabilities(available=some)
            self.found.laws += 1
            self.found.expect(
                math.isclose(propensity, law[explore], rel_tol=1e-12),
                f"{self.name}: row {seq} has propensity {propensity}, and the law says {law[explore]}",
            )
        again: tuple[Any, ...]
        if mode == "exploit":
            again = (self.learner.exploit(available=some).exploit, None, None, None)
        else:
            decision = (
                self.learner.decide(available=some)
                if mode == "both"
                else self.learner.explore(available=some)
            )
            self.pending[seq] = decision
            again = (decision.exploit, decision.explore, decision.propensity, decision.weight)
        logged = (*names, propensity, weight)
        self.found.expect(
            again == logged, f"{self.name}: row {seq} is {logged}, replayed as {again}"
        )
        self.found.expect(version == self.version, f"{self.name}: row {seq} names state {version}")
        told = self.ledger.decided.get(f"{self.tag}-{seq}")
        if told is not None:
            self.seen.add(told["id"])
            self.found.decisions += 1
            fields = (
                told["mode"],
                told["exploit"],
                told["explore"],
                told["propensity"],
                told["weight"],
            )
            more = (told["state_version"], told["made_at"], told["expires_at"])
            kept = (mode, *logged, version, moment(made_at), moment(expires_at))
            self.found.expect(fields + more == kept, f"decision {told} is kept as {kept}")

    def _settle(self, seq: int, decision: int, kind: str, loss: float | None, at: float) -> None:
        name = f"{self.tag}-{decision}"
        made = self.pending.pop(decision, None)
        self.found.expect(made is not None, f"decision {name} is settled twice, or was never made")
        if loss is None:
            self.learner.forget(made)
        else:
            self.learner.observe(made, loss)
            self.version = seq
        if kind == "observed":
            self.observed += 1
            told = self.ledger.applied.get(name)
            self.found.losses += told is not None
            self.found.expect(
                told == loss, f"decision {name} has the loss {loss}; the client said {told}"
            )
            when = self.ledger.settled_at.get(name)
            self.found.expect(
                when == moment(at), f"decision {name} settled at {moment(at)}, not {when}"
            )
            self.found.expect(
                self.ledger.contrary.get(name) != loss, f"{name} took the contrary loss {loss}"
            )
            self.found.expect(
                name not in self.ledger.late, f"{name} was refused as late and applied"
            )
        else:
            self.expired += 1
            self.found.expect(
                name not in self.ledger.applied, f"{name} was acknowledged, and expired"
            )

    def _bit_for_bit(self, snapshot: str) -> None:
        content = json.loads(snapshot)
        content = content.get("content", content)
        chosen = [
            (*made[1:], *(() if made.guard is None else (made.drawn, made.guard)))
            for made in self.pending.values()
        ]
        kept = from_columns(content["learner"], content["columns"], chosen)
        self.found.by_hand += 1
        self.found.expect(
            kept.to_json() == self.learner.to_json(),
            f"{self.name}: the learner at row {self.seq} is not the replayed one",
        )

    def compare(self, state: dict[str, Any]) -> None:
        """Compare the last state that the service reported with the replayed learner."""
        told = (state["exploitation"], state["exploration"], state["estimates"], state["round"])
        learner = self.learner
        here = (
            learner.exploitation_probabilities().tolist(),
            learner.exploration_probabilities().tolist(),
            learner.estimates().tolist(),
            learner.round,
        )
        self.found.expect(told == here, f"{self.name}: the service says {told}, the replay {here}")
        counts = (state["decisions"], state["applied"], state["expired"], state["pending"])
        mine = (self.made, self.observed, self.expired, len(self.pending))
        self.found.expect(
            counts == mine, f"{self.name}: the service counts {counts}, the log {mine}"
        )
        self.found.expect(
            state["state_version"] == self.version,
            f"{self.name}: is of state {state['state_version']}",
        )

    def count(self, doubtful: bool) -> None:
        """Check that the log holds nothing that no client asked for, and nothing twice."""
        told = sum(each["experiment"] == self.name for each in self.ledger.decided.values())
        spare = self.ledger.unanswered[self.name]
        spare += self.ledger.turned_away[self.name] if doubtful else 0
        self.found.expect(
            told <= self.made <= told + spare,
            f"{self.name}: {self.made} decisions, where {told} were told and {spare} may have been lost on the way",
        )
        acknowledged = sum(name.startswith(f"{self.tag}-") for name in self.ledger.applied)
        self.found.expect(
            self.observed == acknowledged,
            f"{self.name}: {self.observed} losses applied, where {acknowledged} were acknowledged",
        )
