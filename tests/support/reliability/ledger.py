"""The answers that clients got, read from their journals."""

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# The fields of a decision that never change.
LASTING = (
    "id", "experiment", "mode", "exploit", "explore", "propensity", "weight", "state_version", "made_at", "expires_at",
)  # fmt: skip


@dataclass
class Ledger:
    """Everything that was acknowledged, and contradictions within it."""

    decided: dict[str, dict[str, Any]] = field(default_factory=dict)
    applied: dict[str, float] = field(default_factory=dict)
    late: set[str] = field(default_factory=set)
    contrary: dict[str, float] = field(default_factory=dict)
    settled_at: dict[str, str] = field(default_factory=dict)
    keys: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    unanswered: Counter[str] = field(
        default_factory=Counter
    )  # decisions without a key that may be made
    turned_away: Counter[str] = field(default_factory=Counter)  # refused with 503
    refused: int = 0
    repeated: int = 0  # repeated answers
    faults: list[str] = field(default_factory=list)

    @property
    def acknowledged(self) -> int:
        """Decisions and losses, each counted once."""
        return len(self.decided) + len(self.applied)

    def told(self) -> str:
        return (
            f"{self.acknowledged:,} acknowledged ({len(self.decided):,} decisions, {len(self.applied):,} losses), "
            f"{self.repeated:,} answered again, {len(self.contrary):,} contrary losses refused, "
            f"{len(self.late):,} late, {self.refused:,} answers 503, "
            f"{sum(self.unanswered.values()):,} decisions without key unanswered"
        )

    def read(self, folder: Path) -> "Ledger":
        for path in sorted(folder.glob("*.jsonl")):
            for line in path.read_bytes().splitlines():
                kind, *rest = json.loads(line)
                self._take(kind, rest)
        return self

    def _take(self, kind: str, rest: list[Any]) -> None:
        if kind == "decided":
            name, key, made = rest
            self._made(name, key, made)
        elif kind == "decided again":
            name, key, status, content = rest
            self.repeated += 1
            if status != 201:
                self.faults.append(f"key {key} again: {status} {content}")
                return
            made = content.get("decisions", [content])
            if [each["id"] for each in made] != self.keys[name, key]:
                self.faults.append(f"key {key} made other decisions: {made}")
            for each in made:
                self._same(each)
        elif kind == "applied":
            self._applied(*rest)
        elif kind == "conflict":
            self.contrary[rest[0]] = rest[1]
        elif kind == "late":
            self.late.add(rest[0])
        elif kind == "unanswered":
            self.unanswered[rest[0]] += rest[1]
        elif kind == "turned away":
            self.turned_away[rest[0]] += rest[1]
        elif kind == "refused":
            self.refused += 1
        else:
            self.faults.append(f"{kind} {rest}"[:500])

    def _made(self, name: str, key: str | None, made: list[dict[str, Any]]) -> None:
        for each in made:
            if each["id"] in self.decided:
                self.faults.append(f"decision {each['id']} was made twice")
            self.decided[each["id"]] = each
        if key is not None:
            self.keys[name, key] = [each["id"] for each in made]

    def _same(self, told: dict[str, Any]) -> None:
        before = self.decided.get(told["id"], told)
        if any(before[name] != told[name] for name in LASTING):
            self.faults.append(f"decision {told['id']} was {before} and later {told}")

    def _applied(self, decision: str, loss: float, content: dict[str, Any]) -> None:
        self.repeated += decision in self.applied
        self.applied[decision] = loss
        if (content["id"], content["status"], content["loss"]) != (decision, "applied", loss):
            self.faults.append(f"the loss {loss} of {decision} was answered with {content}")
        if self.settled_at.setdefault(decision, content["settled_at"]) != content["settled_at"]:
            self.faults.append(f"decision {decision} was settled twice: {content}")
        self._same(content)
