"""Guardrails at work: from the arm that the policy drew to the arm that is served."""

import hashlib
from typing import Any

import numpy as np

from ..base.arrays import Floats, Ints
from ..errors import ArmError
from .arms import ArmNames
from .guardrails import Guardrails


class Guard:
    """The guardrails of one learner, and the state of their own draws.

    They must not move the policy's stream: then exploring would depend on them. Each draw is a hash of the stream where
    it stands and of a counter, which is all that has to be saved.

    Attributes:
        rules: the guardrails.
        draws: how many draws were made.
        released: whether another arm was found to be better than the incumbent. It stays so.
        next_look: after how many observations to look for that again.
    """

    __slots__ = ("draws", "next_look", "released", "rules")

    def __init__(
        self, rules: Guardrails, draws: int = 0, released: bool = False, next_look: int = 0
    ) -> None:
        self.rules, self.draws, self.released, self.next_look = rules, draws, released, next_look

    def following(self, rules: Guardrails) -> "Guard":
        """The guard for other rules: draws go on, and a new incumbent has not been released."""
        same = rules.incumbent == self.rules.incumbent
        return Guard(rules, self.draws, self.released and same, self.next_look if same else 0)

    def is_due(self, observed: int) -> bool:
        """Whether to look, after so many observations, if another arm is better than the incumbent.

        A look costs more than an observation, so looks become rarer: the last one is ten observations old, or 5 %.
        """
        return self.rules.incumbent is not None and not self.released and observed >= self.next_look

    def looked(self, observed: int, released: bool) -> None:
        """Remember what a look found after so many observations."""
        self.released, self.next_look = released, observed + max(10, observed // 20)

    def available(self, part: Ints | None, arms: ArmNames) -> Ints | None:
        """The places of the available arms, without those that are down; None for all."""
        if not self.rules.down:
            return part
        down = arms.places(self.rules.down)
        left = np.setdiff1d(np.arange(len(arms)) if part is None else part, down, assume_unique=True)
        if len(left) == 0:
            names = ", ".join(repr(arms.names[place]) for place in (down if part is None else part))
            raise ArmError(f"available: every arm of this decision is down ({names}); see guardrails.down")
        return left

    def serve(
        self, drawn: int, arms: ArmNames, part: Ints | None, stream: bytes, key: int | None = None
    ) -> tuple[int, str | None]:
        """The place of the arm to serve, and the rule that chose it; None if it is the policy's draw.

        A key is always on the same side of the hold-out and the floors.
        """
        rules = self.rules
        if (pinned := _place(rules.pinned, arms, part)) is not None:
            return pinned, "pinned"
        if rules.holdout > 0.0 or rules.floors:
            u = self._uniform(stream) if key is None else _hashed(f"guard-key-{key}")
            chosen, reason = self._by_share(u, arms, part)
            if chosen is not None:
                return chosen, reason
        if not self.released and (incumbent := _place(rules.incumbent, arms, part)) is not None:
            return incumbent, "incumbent"
        return drawn, None

    def _by_share(self, u: float, arms: ArmNames, part: Ints | None) -> tuple[int | None, str]:
        """The arm whose share of [0, 1) contains u: first the hold-out, then the floors."""
        rules = self.rules
        if u < rules.holdout:
            if rules.control is not None:
                return _place(rules.control, arms, part), "holdout"
            count = len(arms) if part is None else len(part)
            at = min(int(u / rules.holdout * count), count - 1)
            return (at if part is None else int(part[at])), "holdout"
        end = rules.holdout
        for name, least in rules.floors.items():
            end += least
            if u < end:
                return _place(name, arms, part), "floor"
        return None, ""

    def _uniform(self, stream: bytes) -> float:
        """A number uniform on [0, 1)."""
        self.draws += 1
        return _hashed(f"guard-{stream.hex()}-{self.draws}")

    def law(self, law: Floats, arms: ArmNames, part: Ints | None) -> Floats:
        """The probability of serving each arm, given the policy's."""
        rules = self.rules
        if (pinned := _place(rules.pinned, arms, part)) is not None:
            return _certain(pinned, len(arms))
        rest = law
        if not self.released and (incumbent := _place(rules.incumbent, arms, part)) is not None:
            rest = _certain(incumbent, len(arms))
        fixed = np.zeros(len(arms))
        for name, least in rules.floors.items():
            if (place := _place(name, arms, part)) is not None:
                fixed[place] += least
        if rules.control is not None:
            if (place := _place(rules.control, arms, part)) is not None:
                fixed[place] += rules.holdout
        elif rules.holdout > 0.0:
            among = np.arange(len(arms)) if part is None else part
            fixed[among] += rules.holdout / len(among)
        guarded: Floats = fixed + (1.0 - fixed.sum()) * rest
        return guarded

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values; nothing if there never was a rule."""
        if not self.rules and self.draws == 0:
            return {}
        state = {"draws": self.draws, "released": self.released, "next_look": self.next_look}
        return {"guard": {"rules": self.rules.to_dict(), **state}}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "Guard":
        """Restore the result of `to_json`."""
        if "guard" not in content:
            return cls(Guardrails())
        saved = content["guard"]
        state = (saved["draws"], saved["released"], saved["next_look"])
        return cls(Guardrails.from_dict(saved["rules"]), *state)


def _hashed(text: str) -> float:
    """A number on [0, 1)."""
    return (int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 11) * 2.0**-53


def _place(name: object, arms: ArmNames, part: Ints | None) -> int | None:
    """The place of a named arm; None if there is no name, or the arm is not available."""
    if name is None:
        return None
    place = arms.place(name)
    return place if part is None or place in part else None


def _certain(place: int, count: int) -> Floats:
    law = np.zeros(count)
    law[place] = 1.0
    return law
