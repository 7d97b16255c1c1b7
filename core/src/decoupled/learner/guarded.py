"""The calls of a learner that are about its guardrails."""

from typing import TYPE_CHECKING, TypeAlias

from ..base.arrays import Ints
from ..base.turns import TakesTurns, in_turn
from ..decision import Served
from ..errors import ParameterError, UnsupportedError
from .arms import ArmNames
from .context import Advice, Context, Contexts, checked_advice, refuse_context
from .guard import Guard
from .guardrails import Guardrails
from .pending import Waiting
from .runner import Running
from .unfinished import Unfinished, undone_by

if TYPE_CHECKING:  # loaded when a learner is watched
    from .watch import Watch


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
            from ..inference.beaten import is_beaten

            rules = guard.rules
            serial = self._running.serials.of_one(self._arms.place(rules.incumbent))
            released = is_beaten(watch.judges, serial, rules.risk, rules.drift)
            guard.looked(watch.judges.observed, released)


def _check_type(rules: object) -> None:
    if not isinstance(rules, Guardrails):
        rule, remedy = "must be guardrails", "for example dc.Guardrails(pinned='a')"
        raise ParameterError.of("guardrails", rules, rule, remedy)
