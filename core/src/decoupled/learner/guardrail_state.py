"""Guardrails at work: from the arm that the policy drew to the arm that is served."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..base.arrays import Floats, Ints, Words, certain
from ..kernels.random.keyed import keyed_race
from .arms import ArmNames, Serials
from .guardrails import Guardrails
from .seeds import hashed

WHOLE = -1  # in place of a segment, where none are told apart


@dataclass(slots=True, eq=False)
class GuardrailState:
    """The guardrails of one learner, and the state of their own draws.

    Guardrails must not move the policy's stream: then exploring would depend on them. Each draw is
    a hash of the stream where it stands and of a counter, which is all that has to be saved.

    Attributes:
        rules: the guardrails.
        draws: how many draws were made.
        released: whether another arm was found to be better than the incumbent. It stays so.
        next_look: after how many observations to look for that again.
        released_in: `released` and `next_look` of each segment, if the incumbent is left by
            segment.
        shown: for each segment, or `WHOLE`, from how many observations on to look again at which
            arms are within the margin of every other one; and the serials of the arms that were
            shown to be so.
        frozen: the law that keys draw from, by the arms' places; None without a margin for
            switches.
        has_rules: whether there are any guardrails.
        may_replace: whether a rule may serve another arm than the one drawn.
        frozen_draw: what draws the arms of keys from the frozen law; None until it is needed.
    """

    rules: Guardrails
    draws: int = 0
    released: bool = False
    next_look: int = 0
    released_in: dict[int, tuple[bool, int]] = field(default_factory=dict)
    shown: dict[int, tuple[int, list[int]]] = field(default_factory=dict)
    frozen: Floats | None = None
    has_rules: bool = field(init=False)
    may_replace: bool = field(init=False)
    frozen_draw: "FrozenDraw | None" = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.has_rules = bool(self.rules)  # every decision asks
        self.may_replace = self.rules.replace_arms

    def with_rules(self, rules: Guardrails) -> "GuardrailState":
        """The guard for other rules: draws go on, and a new incumbent has not been released."""
        guard = GuardrailState(rules, self.draws)
        if rules.tries_as(self.rules):
            guard.released = self.released
            guard.next_look = self.next_look
            guard.released_in = dict(self.released_in)
        if rules.switch_margin is not None:
            guard.frozen = self.frozen
        return guard

    def keeps_incumbent(self, segment: int) -> bool:
        """Whether requests of a segment get the incumbent: no better arm was found."""
        if self.rules.incumbent is None:
            return False
        if not self.rules.by_segment:
            return not self.released
        return not self.was_released_in(segment)

    def was_released_in(self, segment: int) -> bool:
        """Whether the evidence of this segment has shown a better arm than the incumbent."""
        released, _ = self.released_in.get(segment, (False, 0))
        return released

    @property
    def was_released(self) -> bool:
        """Whether a better arm than the incumbent was found; by segment, in any of them."""
        return self.released or any(released for released, _ in self.released_in.values())

    def with_arms(self, count: int) -> "GuardrailState":
        """The guard for so many arms. A frozen law does not draw those that came later."""
        guard = self.with_rules(self.rules)
        if guard.frozen is not None:
            guard.frozen = np.pad(guard.frozen, (0, count - len(guard.frozen)))
        return guard

    def serve(
        self,
        drawn: int,
        arms: ArmNames,
        places: Ints | None,
        stream: Words,
        *,
        key_hash: int | None = None,
        good: Sequence[int] = (),
        serials: Serials | None = None,
        segment: int = WHOLE,
    ) -> tuple[int, str | None]:
        """The place of the arm to serve, and the rule that chose it, None if the policy drew it.

        A key is always on the same side of the hold-out and the floors. `good` are the places of
        the arms with a price whose loss is known to be within the margin, cheapest first, `serials`
        are those that a key draws by, and `segment` is that of the request.
        """
        rules = self.rules
        if rules.pinned is not None:
            pinned = _place(rules.pinned, arms, places)
            if pinned is not None:
                return pinned, "pinned"
        if rules.holdout > 0.0 or rules.floors:
            if key_hash is None:
                self.draws += 1
                text = f"guard-{stream.tobytes().hex()}-{self.draws}"
            else:
                text = f"guard-key-{key_hash}"
            chosen, reason = self._by_share(hashed(text), arms, places)
            if chosen is not None:
                return chosen, reason
        if self.keeps_incumbent(segment):
            incumbent = _place(rules.incumbent, arms, places)
            return (drawn, None) if incumbent is None else (incumbent, "incumbent")
        if good:
            cheapest = _first_available(good, places)
            if cheapest is not None:
                return cheapest, "cheapest"
        frozen = None
        if key_hash is not None and serials is not None:
            frozen = self._arm_of_frozen(key_hash, places, serials)
        return (drawn, None) if frozen is None else (frozen, "frozen")

    def _arm_of_frozen(self, key_hash: int, places: Ints | None, serials: Serials) -> int | None:
        """The place of the arm that a key draws from the frozen law; None if that has none."""
        if self.frozen is None:
            return None
        if places is None:
            draw = self.draw_of_frozen(self.frozen, serials)
            return draw.arm(key_hash) if draw.sum > 0.0 else None
        law = self.frozen[places]
        if not law.any():
            return None
        return int(places[int(keyed_race(law, serials.ids(places), key_hash))])

    def draw_of_frozen(self, law: Floats, serials: Serials) -> "FrozenDraw":
        """What draws the arms of keys from the frozen law."""
        draw = self.frozen_draw
        if draw is None or not draw.is_of(law, serials):
            draw = FrozenDraw(law, serials)
            self.frozen_draw = draw
        return draw

    def cheapest_first(self, places: Sequence[int], arms: ArmNames) -> list[int]:
        """Those of these places whose arms have a price, by their price."""
        prices: Mapping[Any, float] = self.rules.prices
        priced = [place for place in places if arms.names[place] in prices]
        return sorted(priced, key=lambda place: (prices[arms.names[place]], place))

    def _by_share(self, u: float, arms: ArmNames, places: Ints | None) -> tuple[int | None, str]:
        """The arm whose share of [0, 1) contains u: first the hold-out, then the floors."""
        rules = self.rules
        if u < rules.holdout:
            if rules.control is not None:
                return _place(rules.control, arms, places), "holdout"
            count = len(arms) if places is None else len(places)
            index = min(int(u / rules.holdout * count), count - 1)
            return (index if places is None else int(places[index])), "holdout"
        end = rules.holdout
        for name, least in rules.floors.items():
            end += least
            if u < end:
                return _place(name, arms, places), "floor"
        return None, ""

    def law(
        self,
        law: Floats,
        arms: ArmNames,
        places: Ints | None,
        good: Sequence[int] = (),
        segment: int = WHOLE,
    ) -> Floats:
        """The probability of serving each arm without a key, in a segment, given the policy's."""
        rules = self.rules
        pinned = _place(rules.pinned, arms, places)
        if pinned is not None:
            return certain(pinned, len(arms))
        if self.keeps_incumbent(segment):
            served = _place(rules.incumbent, arms, places)
        else:
            served = _first_available(good, places)
        otherwise = law if served is None else certain(served, len(arms))
        fixed = np.zeros(len(arms))
        for name, least in [*rules.floors.items(), (rules.control, rules.holdout)]:
            place = _place(name, arms, places)
            if place is not None:
                fixed[place] += least
        if rules.control is None and rules.holdout > 0.0:
            available = np.arange(len(arms)) if places is None else places
            fixed[available] += rules.holdout / len(available)
        guarded: Floats = fixed + (1.0 - fixed.sum()) * otherwise
        return guarded

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values; nothing if there never was a rule."""
        if not self.rules and self.draws == 0:
            return {}
        state: dict[str, Any] = {
            "rules": self.rules.to_dict(),
            "draws": self.draws,
            "released": self.released,
            "next_look": self.next_look,
        }
        if self.released_in:
            state["released_in"] = [
                [segment, was_released, next_look]
                for segment, (was_released, next_look) in self.released_in.items()
            ]
        if self.shown:
            state["shown"] = [
                [segment, next_look, serials]
                for segment, (next_look, serials) in self.shown.items()
            ]
        if self.frozen is not None:
            state["frozen"] = self.frozen.tolist()
        return {"guard": state}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "GuardrailState":
        """Restore the result of `to_json`."""
        if "guard" not in content:
            return cls(Guardrails())
        saved = dict(content["guard"])
        shown = {
            segment: (next_look, serials) for segment, next_look, serials in saved.pop("shown", ())
        }
        frozen = np.array(saved.pop("frozen"), np.float64) if "frozen" in saved else None
        released_in = {
            segment: (was_released, next_look)
            for segment, was_released, next_look in saved.pop("released_in", ())
        }
        rules = Guardrails.from_dict(saved.pop("rules"))
        return cls(rules, **saved, released_in=released_in, shown=shown, frozen=frozen)


class FrozenDraw:
    """Draws the arms of keys from a frozen law."""

    def __init__(self, law: Floats, serials: Serials) -> None:
        self._law = law
        self.sum = float(law.sum())
        self._serials = serials
        self._ids = serials.ids(np.arange(len(law)))
        shipped = getattr(keyed_race, "shipped", lambda: None)()  # not under a debugger
        self._call = None if shipped is None else shipped.prepared(law, self._ids)

    def is_of(self, law: Floats, serials: Serials) -> bool:
        """Whether this draws from this law of these arms."""
        return law is self._law and serials is self._serials

    def arm(self, key_hash: int) -> int:
        """The place of the arm of the key with this hash."""
        if self._call is not None:
            arm: int = self._call(key_hash)
            return arm
        return int(keyed_race(self._law, self._ids, key_hash))


def _first_available(candidates: Sequence[int], places: Ints | None) -> int | None:
    """The first of these places that is available; None if none is."""
    for place in candidates:
        if places is None or place in places:
            return place
    return None


def _place(name: object, arms: ArmNames, places: Ints | None) -> int | None:
    """The place of a named arm; None if there is no name, or the arm is not available."""
    if name is None:
        return None
    place = arms.place(name)
    return place if places is None or place in places else None
