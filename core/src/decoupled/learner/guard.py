"""Guardrails at work: from the arm that the policy drew to the arm that is served, and a learner's calls about them."""

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..base.arrays import Floats, Ints
from ..base.turns import TakesTurns, in_turn
from ..decision import Served
from ..errors import ArmError, ParameterError, UnsupportedError
from .arms import ArmNames
from .context import Advice, Context, Contexts, checked_advice, refuse_context
from .guardrails import Guardrails
from .pending import Unfinished, Waiting, undone_by
from .runner import Running
from .seeds import hashed

if TYPE_CHECKING:
    from .watch import Watch


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
            u = self._uniform(stream) if key is None else hashed(f"guard-key-{key}")
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
        return hashed(f"guard-{stream.hex()}-{self.draws}")

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


# The calls of a learner that are about its guardrails


# What comes with a request: its context, and advice.
Told: TypeAlias = tuple[Context | None, Advice | None]


class Guarded(TakesTurns):
    """The part of a learner that applies guardrails to the arm to exploit."""

    _arms: ArmNames
    _running: Running
    _waiting: Waiting
    _guard: Guard
    _watch: "Watch | None"
    _unfinished: Unfinished | None

    if TYPE_CHECKING:  # the other parts of a learner have these

        def _replace(self, **parts: object) -> None: ...
        def _part(self, some: list[object] | None) -> Ints | None: ...
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
        self._set_guardrails(rules)

    def _set_guardrails(self, rules: Guardrails) -> None:
        _check_type(rules)
        if rules.replace_arms and self._running.policy.coupled:
            raise UnsupportedError(
                f"guardrails: {type(self._running.policy).__name__} plays the standard game and learns from the arm "
                "that is served, so another must not be served; use a decoupled policy such as FTPL"
            )
        self._guard_by(rules)

    @in_turn
    def _guard_by(self, rules: Guardrails) -> None:
        rules.check_arms(self._arms)
        watch = self._watch
        if rules.incumbent is not None and watch is None:
            watch = self._new_watch(rules.risk, rules.drift)
        if watch is not None and rules.incumbent != self._guard.rules.incumbent:
            watch.keep_drawn(self._waiting, self._running)
            watch = watch.with_trial(self._running.serials, tried=rules.incumbent is not None)
        self._replace(guard=self._guard.following(rules), watch=watch)

    @in_turn
    def _serve(self, some: list[object] | None, key: str | None, told: Told | None = None) -> Served:
        part, word = self._part(some), self._word(key)
        self._enter(told, new=False)
        drawn = self._running.draw_exploited(part, word)
        exploit, guard = self._served(drawn, part, word)
        self._running.count_events(self._waiting.made)  # a draw that is no decision is no event
        return Served(self._arms.names[exploit], self._arms.names[drawn], guard)

    def _enter(self, told: Told | None, *, new: bool = True) -> None:
        """Put a request's context and advice where a contextual policy reads them; its segment may be `new`."""
        contexts = self._running.contexts
        if contexts is not None:
            context, advice = told or (None, None)
            laws = checked_advice(advice, contexts.policy, self._arms)
            if new:
                self._unfinished = self._without_new_segments(contexts)
            contexts.enter(context, laws, new=new)
            contexts.derive()
        elif told is not None:
            refuse_context(self._running.policy)

    def _without_new_segments(self, contexts: Contexts) -> Unfinished:
        """What takes back the segment of a decision that is refused or interrupted before it is made."""
        waiting, made, count = self._waiting, self._waiting.made, len(contexts.encoder.segments)

        def undo() -> None:
            if waiting.made == made:
                contexts.encoder.forget_from(count)

        return undone_by(undo)

    def _word(self, key: str | None) -> int | None:
        return None if key is None else self._running.keys.word(key)

    def _served(self, drawn: int, part: Ints | None, word: int | None) -> tuple[int, str | None]:
        """The place of the arm to serve instead of the one drawn, and the guardrail that chose it."""
        return self._guard.serve(drawn, self._arms, part, self._running.stream.tobytes(), word)

    def _judge_incumbent(self, watch: "Watch") -> None:
        """Release the incumbent once what was observed since it was set shows that another arm is better."""
        guard = self._guard
        if guard.rules.incumbent is not None and guard.is_due(watch.judges.observed):
            from ..inference.verdicts import is_beaten

            rules = guard.rules
            serial = self._running.serials.of_one(self._arms.place(rules.incumbent))
            released = is_beaten(watch.judges, serial, rules.risk, rules.drift)
            guard.looked(watch.judges.observed, released)


def _check_type(rules: object) -> None:
    if not isinstance(rules, Guardrails):
        rule, remedy = "must be guardrails", "for example dc.Guardrails(pinned='a')"
        raise ParameterError.of("guardrails", rules, rule, remedy)
