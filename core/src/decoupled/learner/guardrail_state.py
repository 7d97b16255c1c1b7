"""Guardrails at work: from the arm that the policy drew to the arm that is served, and a learner's calls about them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.arrays import Floats, Ints, certain
from ..base.turns import TakesTurns, in_turn
from ..decision import Served
from ..errors import ParameterError, UnsupportedError
from ..kernels.random.keyed import keyed_race
from ..kernels.state import ROUND
from .arms import ArmNames, Serials
from .context import checked_advice, refuse_context
from .guardrails import Guardrails
from .labels import Labelling
from .losses import LossRange
from .pending import PendingStore
from .policy_state import PolicyState
from .request import Request
from .seeds import hashed

if TYPE_CHECKING:
    from .subsets import Subsets
    from .watch import Watch

WHOLE = -1  # in place of a segment, where none are told apart


@dataclass(slots=True, eq=False)
class GuardrailState:
    """The guardrails of one learner, and the state of their own draws.

    They must not move the policy's stream: then exploring would depend on them. Each draw is a hash of the stream where
    it stands and of a counter, which is all that has to be saved.

    Attributes:
        rules: the guardrails.
        draws: how many draws were made.
        released: whether another arm was found to be better than the incumbent. It stays so.
        next_look: after how many observations to look for that again.
        released_in: the same two for each segment, if the incumbent is left by segment.
        shown: for each segment, or `WHOLE`, the serials of the arms that were shown to be within the margin of every other
            one; and from how many observations on that is to be looked at again.
        frozen: the law that keys draw from, by the arms' places; None without a margin for switches.
    """

    rules: Guardrails
    draws: int = 0
    released: bool = False
    next_look: int = 0
    released_in: dict[int, tuple[bool, int]] = field(default_factory=dict)
    shown: dict[int, tuple[int, list[int]]] = field(default_factory=dict)
    frozen: Floats | None = None
    has_rules: bool = field(init=False)
    may_replace: bool = field(init=False)  # whether a rule may serve another arm than the one drawn
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
        """Whether requests of a segment get the incumbent: no other arm was found to be better than it."""
        if self.rules.incumbent is None:
            return False
        if not self.rules.by_segment:
            return not self.released
        return not self.was_released_in(segment)

    def was_released_in(self, segment: int) -> bool:
        """Whether another arm was found to be better than the incumbent by the evidence of this segment."""
        released, _ = self.released_in.get(segment, (False, 0))
        return released

    @property
    def was_released(self) -> bool:
        """Whether another arm was found to be better than the incumbent; by segment, in any of them."""
        return self.released or any(released for released, _ in self.released_in.values())

    def with_arms(self, count: int) -> "GuardrailState":
        """The guard for so many arms: keys do not draw those that came until the frozen law is replaced."""
        guard = self.with_rules(self.rules)
        if guard.frozen is not None:
            guard.frozen = np.pad(guard.frozen, (0, count - len(guard.frozen)))
        return guard

    def serve(
        self,
        drawn: int,
        arms: ArmNames,
        part: Ints | None,
        stream: bytes,
        key: int | None = None,
        good: Collection[int] = (),
        serials: Serials | None = None,
        segment: int = WHOLE,
    ) -> tuple[int, str | None]:
        """The place of the arm to serve, and the rule that chose it; None if it is the policy's draw.

        A key is always on the same side of the hold-out and the floors. `good` are the places of the arms whose loss is
        known to be within the margin, `serials` are those that a key draws by, and `segment` is that of the request.
        """
        rules = self.rules
        if (pinned := _place(rules.pinned, arms, part)) is not None:
            return pinned, "pinned"
        if rules.holdout > 0.0 or rules.floors:
            if key is None:
                self.draws += 1
            text = f"guard-{stream.hex()}-{self.draws}" if key is None else f"guard-key-{key}"
            chosen, reason = self._by_share(hashed(text), arms, part)
            if chosen is not None:
                return chosen, reason
        if self.keeps_incumbent(segment):
            incumbent = _place(rules.incumbent, arms, part)
            return (drawn, None) if incumbent is None else (incumbent, "incumbent")
        if (cheapest := self._cheapest(good, arms, part)) is not None:
            return cheapest, "cheapest"
        if key is not None and serials is not None and self.frozen is not None:
            if part is None:
                draw = self.draw_of_frozen(self.frozen, serials)
                return (draw.arm(key), "frozen") if draw.sum > 0.0 else (drawn, None)
            law = self.frozen[part]
            if law.any():
                return int(part[int(keyed_race(law, serials.ids(part), key))]), "frozen"
        return drawn, None

    def draw_of_frozen(self, law: Floats, serials: Serials) -> "FrozenDraw":
        """What draws the arms of keys from the frozen law."""
        draw = self.frozen_draw
        if draw is None or not draw.is_of(law, serials):
            draw = self.frozen_draw = FrozenDraw(law, serials)
        return draw

    def _cheapest(self, good: Collection[int], arms: ArmNames, part: Ints | None) -> int | None:
        """The place of the cheapest of these arms, of those that are available and have a price."""
        prices: Mapping[Any, float] = self.rules.prices
        some = [
            place
            for place in good
            if arms.names[place] in prices and (part is None or place in part)
        ]
        return min(some, key=lambda place: (prices[arms.names[place]], place), default=None)

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

    def law(
        self,
        law: Floats,
        arms: ArmNames,
        part: Ints | None,
        good: Collection[int] = (),
        segment: int = WHOLE,
    ) -> Floats:
        """The probability of serving each arm without a key, given the policy's, in a request's segment."""
        rules = self.rules
        if (pinned := _place(rules.pinned, arms, part)) is not None:
            return certain(pinned, len(arms))
        if self.keeps_incumbent(segment):
            served = _place(rules.incumbent, arms, part)
        else:
            served = self._cheapest(good, arms, part)
        rest = law if served is None else certain(served, len(arms))
        fixed = np.zeros(len(arms))
        for name, least in [*rules.floors.items(), (rules.control, rules.holdout)]:
            if (place := _place(name, arms, part)) is not None:
                fixed[place] += least
        if rules.control is None and rules.holdout > 0.0:
            among = np.arange(len(arms)) if part is None else part
            fixed[among] += rules.holdout / len(among)
        guarded: Floats = fixed + (1.0 - fixed.sum()) * rest
        return guarded

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values; nothing if there never was a rule."""
        if not self.rules and self.draws == 0:
            return {}
        state: dict[str, Any] = {"rules": self.rules.to_dict()}
        state |= {name: getattr(self, name) for name in ("draws", "released", "next_look")}
        if self.released_in:
            state["released_in"] = [[segment, *seen] for segment, seen in self.released_in.items()]
        if self.shown and not self.rules.drift:  # else it follows from the evidence of now
            state["shown"] = [[segment, *seen] for segment, seen in self.shown.items()]
        if self.frozen is not None:
            state["frozen"] = self.frozen.tolist()
        return {"guard": state}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "GuardrailState":
        """Restore the result of `to_json`."""
        if "guard" not in content:
            return cls(Guardrails())
        saved = dict(content["guard"])
        shown = {segment: (until, serials) for segment, until, serials in saved.pop("shown", ())}
        frozen = np.array(saved.pop("frozen"), np.float64) if "frozen" in saved else None
        released_in = {
            segment: (gone, look) for segment, gone, look in saved.pop("released_in", ())
        }
        guard = cls(Guardrails.from_dict(saved.pop("rules")), **saved, shown=shown, frozen=frozen)
        guard.released_in = released_in
        return guard


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

    def arm(self, word: int) -> int:
        """The place of the arm of the key with this word."""
        if self._call is not None:
            arm: int = self._call(word)
            return arm
        return int(keyed_race(self._law, self._ids, word))


def _place(name: object, arms: ArmNames, part: Ints | None) -> int | None:
    """The place of a named arm; None if there is no name, or the arm is not available."""
    if name is None:
        return None
    place = arms.place(name)
    return place if part is None or place in part else None


class Guarded(TakesTurns):
    """The part of a learner that applies guardrails to the arm to exploit."""

    _arms: ArmNames
    _losses: LossRange
    _policy_state: PolicyState
    _pending_store: PendingStore
    _guard: GuardrailState
    _subsets: "Subsets"
    _labels: Labelling | None
    _watch: "Watch | None"

    if TYPE_CHECKING:  # the other parts of a learner have these

        def _replace(self, **parts: object) -> None: ...
        def _new_watch(self, risk: float, drift: bool) -> "Watch": ...

    @property
    def guardrails(self) -> Guardrails:
        """The rules about the arm that is served. Assign to it to change them; `Guardrails()` has none.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7)
        >>> learner.guardrails = dc.Guardrails(pinned="a")
        >>> [learner.exploit().exploit for _ in range(3)]
        ['a', 'a', 'a']
        """
        return self._guard.rules

    @guardrails.setter
    def guardrails(self, rules: Guardrails) -> None:
        self._guard_by(rules)

    @in_turn
    def _guard_by(self, rules: Guardrails) -> None:
        given: object = rules
        if not isinstance(given, Guardrails):
            rule, remedy = "must be guardrails", "for example dc.Guardrails(pinned='a')"
            raise ParameterError.of("guardrails", rules, rule, remedy)
        if rules.replace_arms and self._policy_state.policy.coupled:
            rule = "plays the standard game and learns from the arm that is served, so another must not be served"
            name = type(self._policy_state.policy).__name__
            raise UnsupportedError(
                f"guardrails: {name} {rule}; use a decoupled policy such as FTPL"
            )
        rules.check_arms(self._arms)
        contexts, watch = self._policy_state.contexts, self._watch
        rules.check_fits(
            self._arms,
            self._losses,
            self._guard.rules,
            contextual=contexts is not None,
            segmented=self._tells_segments,
            labelled=self._labels is not None,
        )
        if watch is not None and watch.has_preferences:
            rules.check_takes_preferences()
        if (rules.incumbent is not None or rules.cheapest_within is not None) and watch is None:
            watch = self._new_watch(rules.risk, rules.drift)
        if watch is not None and self._by_segment(rules) != (watch.segments is not None):
            watch.sync(self._pending_store, self._policy_state)
            watch = watch.with_segments(self._by_segment(rules))
        if watch is not None and not rules.tries_as(self._guard.rules):
            watch.sync(self._pending_store, self._policy_state)
            watch = watch.with_trial(tried=rules.incumbent is not None, by_segment=rules.by_segment)
        self._replace(guard=self._guard.with_rules(rules), watch=watch)
        self._sync_watch_if_needed()
        self._judge()

    @in_turn
    def _serve(self, request: Request) -> Served:
        policy_state = self._policy_state
        subset = self._subsets.find(request.available)
        part = None if subset is None else subset.places
        word = None if request.key is None else policy_state.keys.word(request.key)
        self._sync_watch_if_needed()
        self._enter_context(request, new=False)
        drawn = policy_state.draw_exploited(part, word)
        exploit, guard = self._serve_by_rules(drawn, part, word)
        policy_state.count_events(
            self._pending_store.made
        )  # a draw that is no decision is no event
        return Served(self._arms.names[exploit], self._arms.names[drawn], guard)

    def _enter_context(self, request: Request, *, new: bool = True) -> None:
        """Put a request's context and advice where a contextual policy reads them; its segment may be `new`."""
        contexts = self._policy_state.contexts
        if contexts is not None:
            laws = checked_advice(request.advice, contexts.policy, self._arms)
            contexts.enter(request.context, laws, new=new)
            contexts.derive()
        elif request.context is not None or request.advice is not None:
            refuse_context(self._policy_state.policy)

    def _serve_by_rules(
        self, drawn: int, part: Ints | None, word: int | None
    ) -> tuple[int, str | None]:
        """The place of the arm to serve instead of the one drawn, and the guardrail that chose it."""
        guard, stream = self._guard, self._policy_state.stream.tobytes()
        good, serials, segment = (
            self._good_enough(),
            self._policy_state.serials,
            self._segment_at_hand(),
        )
        return guard.serve(drawn, self._arms, part, stream, word, good, serials, segment)

    def _segment_at_hand(self) -> int:
        """The place of the segment of the context at hand; `WHOLE` for a policy without contexts."""
        contexts = self._policy_state.contexts
        return WHOLE if contexts is None else contexts.segment

    @property
    def _tells_segments(self) -> bool:
        """Whether the policy tells segments apart."""
        contexts = self._policy_state.contexts
        return contexts is not None and len(contexts.policy.segments) > 0

    def _by_segment(self, rules: Guardrails) -> bool:
        """Whether the rules ask for the evidence of each segment."""
        return (rules.cheapest_within is not None or rules.by_segment) and self._tells_segments

    def _sync_watch_if_needed(self) -> None:
        """Keep what is watched of new decisions, if what is served depends on the evidence of now.

        Then it depends on the decisions and their feedback alone, whatever else was asked. Call this before entering a context.
        """
        if self._guard.rules.cheapest_within is not None and self._watch is not None:
            self._watch.sync(self._pending_store, self._policy_state)

    def _good_enough(self) -> Collection[int]:
        """The places of the arms whose loss is known to be within the margin of every other arm's, in the context at hand."""
        guard, watch, policy_state = self._guard, self._watch, self._policy_state
        at_hand = self._segment_at_hand()
        if guard.rules.cheapest_within is None or watch is None or guard.keeps_incumbent(at_hand):
            return ()
        segment = WHOLE if watch.segments is None else at_hand
        if guard.rules.drift:
            self._look(watch, segment)
        serials = np.array(guard.shown.get(segment, (0, []))[1], np.int64)
        places: list[int] = policy_state.serials.places(serials)[0].tolist()
        return places

    def _look(self, watch: "Watch", segment: int) -> None:
        """Find which arms are within the margin, unless what was found last still holds.

        If losses may drift, it holds for this moment only. If not, it holds for good, and looks, which cost more, get rarer.
        """
        from ..inference.comparisons import within
        from ..inference.sums import share_of_segment

        guard, rules, known = self._guard, self._guard.rules, watch.segments or {}
        sequences = watch.sequences if segment == WHOLE else known.get(segment)
        if sequences is None or sequences.observed < guard.shown.get(segment, (0, []))[0]:
            return
        share = 1.0 if segment == WHOLE else share_of_segment(1 + list(known).index(segment))
        margin = (rules.cheapest_within or 0.0) / (self._losses.high - self._losses.low)
        found = within(sequences.sums, margin, rules.risk * share, drift=rules.drift).tolist()
        observed = sequences.observed
        guard.shown[segment] = observed + 1 if rules.drift else _rarer(observed), found

    def _judge(self) -> None:
        """Judge by what was observed which arms are good enough, and the law that keys draw from."""
        watch, rules = self._watch, self._guard.rules
        if watch is not None and rules.cheapest_within is not None and not rules.drift:
            for segment in [WHOLE] if watch.segments is None else list(watch.segments):
                self._look(watch, segment)
        if rules.switch_margin is not None:
            self._judge_frozen(rules.switch_margin / (self._losses.high - self._losses.low))

    def _judge_frozen(self, margin: float) -> None:
        """Freeze the policy's law of now, if an arm's estimated mean beats that of the frozen law by more than the margin."""
        guard, policy_state = self._guard, self._policy_state
        law, form = guard.frozen, policy_state.form
        means = form.estimates(policy_state.state)
        rounds = 0.0 if form.cumulative is None else policy_state.state.scalars.item(ROUND) - 1.0
        if rounds > 0.0:
            means = means / rounds
        if law is not None:
            whole = guard.draw_of_frozen(law, policy_state.serials).sum
            if whole > 0.0 and law @ means / whole - means.min() <= margin:
                return
        guard.frozen = policy_state.law("exploitation_law", None)

    def _judge_incumbent(self, watch: "Watch") -> None:
        """Release the incumbent once what was observed since it was set shows that another arm is better."""
        guard, rules, observed = self._guard, self._guard.rules, watch.judges.observed
        if rules.incumbent is not None and rules.by_segment:
            self._judge_incumbent_by_segment(watch)
        elif rules.incumbent is not None and not guard.released and observed >= guard.next_look:
            from ..inference.verdicts import is_beaten

            serial = self._policy_state.serials.id_at(self._arms.place(rules.incumbent))
            guard.released = is_beaten(watch.judges, serial, rules.risk, drift=rules.drift)
            guard.next_look = _rarer(observed)

    def _judge_incumbent_by_segment(self, watch: "Watch") -> None:
        """Release the incumbent in segments whose own evidence shows that another arm is better, each with its share of the risk."""
        from ..inference.sums import share_of_segment
        from ..inference.verdicts import is_beaten

        guard, rules, judges = self._guard, self._guard.rules, watch.judges_of_segments
        serial = self._policy_state.serials.id_at(self._arms.place(rules.incumbent))
        for place in sorted(watch.unjudged & judges.keys()):
            sequences = judges[place]
            released, next_look = guard.released_in.get(place, (False, 1))
            if not released and sequences.observed >= next_look:
                share = share_of_segment(1 + list(judges).index(place))
                released = is_beaten(sequences, serial, rules.risk * share, drift=rules.drift)
                guard.released_in[place] = released, _rarer(sequences.observed)
        watch.unjudged.clear()


def _rarer(observed: int) -> int:
    """When to look next. A look costs more than an observation, so the last one is ten observations old, or 5 %."""
    return observed + max(10, observed // 20)
