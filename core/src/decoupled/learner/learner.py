"""A running policy: it decides, and it learns from the losses of the arms it explored."""

import hashlib
import os
from collections.abc import Callable, Iterable
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

import numpy as np

from ..base.arrays import Floats, Words
from ..base.files import write_atomically
from ..base.names import is_name, name_rule
from ..base.turns import in_turn, in_turn_by_place
from ..base.validation import MOST_ROUNDS, whole_number
from ..decision import Arm, Decision, LabelSums, Served, with_label
from ..errors import (
    FeedbackError,
    LossError,
    Message,
    ParameterError,
    StateError,
    UnsupportedError,
)
from ..inference.ordering import PATIENCE
from ..policy import Definition
from .arms import ArmNames, Arms, listed, listed_available, refuse_set
from .context import Advice, Context
from .guardrail_state import Guarded, GuardrailState
from .guardrails import CONTEXTS, PREFERENCES, Guardrails, refuse_by_segment, refuse_constant_means
from .inferring import Inference, WatchCalls, check_watchable, checked_patience, not_watched
from .labels import (
    Judged,
    Judgement,
    Labelling,
    Labels,
    LabelStatus,
    checked_labels,
    checked_position,
)
from .losses import LossRange, Preference, preference_loss
from .parts import Parts
from .pending import Pending, PendingDecisions, PendingStore, Recorded, make_decision, new_decision
from .policy_state import PolicyState
from .replay import RecordLike, check_randomised, checked_record, listed_records, warn_of_unseen
from .request import ANYTHING, Request
from .saving import as_text, from_text, to_content
from .seeds import Key, Seed, key_text, randomness
from .subsets import Subset, Subsets

if TYPE_CHECKING:  # loaded when a learner is watched
    from .watch import Watch

_Answer = TypeVar("_Answer")

DEFAULT_PENDING = 100_000


class Learner(Guarded):
    """A running policy. Make one with `policy.start(arms, seed)`.

    Only `observe` and `replay` learn: they change the estimates and the round, which is 1 + the number of observations
    applied. `decide`, `exploit` and `explore` draw from that state and change only the random stream and the pending
    decisions. So you can call them any number of times between two observations, and feedback may come late, out of
    order, or never. Use `add_arms` and `retire_arms` to change the arms at any time.

    A learner is thread-safe: calls from several threads run one after another. If Ctrl-C interrupts an update, the next call
    raises `StateError`: restore the learner then, or replay its log. In a forked process, a learner has its own random
    stream, and its decisions have other ids than the parent's.

    Args:
        policy: the policy to run, such as `Ladder()`.
        arms: the number of arms, which are then called 0, 1, 2 and so on, or their names in a list; two or more.
        seed: the seed of the random stream, a whole number or a `numpy.random.SeedSequence`; None for fresh randomness.
        loss_range: the lowest and the highest possible loss. A loss outside it is rejected.
        max_pending: how many decisions may await feedback. Beyond that, the oldest is forgotten. So it is beyond 100
            million numbers, if decisions keep one for each arm: 10,000 decisions with 10,000 arms.
        guardrails: rules about the arm that is served; None for no rules.
        labels: how many decisions ask for a label, if losses come from a judge; None if losses are true.

    >>> import decoupled as dc
    >>> learner = dc.FTPL().start(arms=["a", "b", "c"], seed=7)
    >>> decision = learner.decide()
    >>> learner.observe(decision, loss=0.3)      # the loss of decision.explore
    >>> learner.round, len(learner.pending)
    (2, 0)
    """

    _labels: Labelling | None

    def __init__(
        self,
        policy: Definition,
        arms: Arms,
        seed: Seed = None,
        *,
        loss_range: tuple[float, float] = (0.0, 1.0),
        max_pending: int = DEFAULT_PENDING,
        guardrails: Guardrails | None = None,
        labels: Labels | None = None,
    ) -> None:
        names, losses = ArmNames.checked(arms), LossRange.checked(loss_range)
        remedy = f"the default is {DEFAULT_PENDING}"
        limit = whole_number("max_pending", max_pending, 1, remedy, MOST_ROUNDS)
        stream, tag = randomness(seed)
        policy_state = PolicyState.fresh(policy, len(names), stream)
        labelling = None if labels is None else Labelling(checked_labels(labels))
        guard = GuardrailState(Guardrails())
        self._assign_parts(
            Parts(names, losses, policy_state, PendingStore(tag, limit), guard, None, labelling)
        )
        if guardrails is not None:
            self._guard_by(guardrails)  # an assignment would hide the property from the reference

    def _assign_parts(self, parts: Parts) -> None:
        self._policy = parts.policy_state.policy
        # Whether an update has begun that has not ended; if so at the next call, it was interrupted.
        self._is_updating = False
        # The numbers of this process and those above it, each as a child, if it was forked since the last call.
        self._forks: tuple[int, ...] = ()
        self._assign(parts._asdict())
        self._policy_state.count_events(self._pending_store.made)
        self._open()

    def _serials(self) -> Iterable[int]:
        kept = self._policy_state.serials.kept
        return range(len(self._arms)) if kept is None else kept.tolist()

    @property
    def _parts(self) -> Parts:
        return Parts(*(getattr(self, f"_{name}") for name in Parts._fields))

    # One call at a time

    def _check_whole(self) -> None:
        """Refuse to go on after an update that did not end; otherwise, count events anew, and leave the parent of a fork."""
        if self._is_updating:
            problem = "this learner was interrupted in the middle of an update, so what it has learned is not whole"
            remedy = "restore it from a saved state, or start it anew and replay its log"
            raise StateError(Message(f"learner: {problem}", remedy))
        self._policy_state.count_events(self._pending_store.made)
        self._policy_state.kept_of = ""  # the state may be that of a draw which was never used
        if self._forks:  # draw other arms than the parent and its other children, under other ids
            words = [*self._policy_state.stream.tolist(), self._pending_store.made, *self._forks]
            self._renew(*self._descended(*randomness(np.random.SeedSequence(words))))

    def _replace(self, **parts: Any) -> None:
        """Replace some parts of the learner, by their names."""
        self._is_updating = True
        self._assign(parts)
        self._is_updating = False

    def _assign(self, parts: dict[str, Any]) -> None:
        for name, part in parts.items():
            setattr(self, f"_{name}", part)
        # Tell parts of the learner what they need of the others.
        policy_state = self._policy_state
        policy_state.pending = self._pending_store.decisions
        self._pending_store.most = min(self._pending_store.limit, policy_state.most_pending)
        self._subsets = Subsets(self._arms, policy_state.serials, self._guard.rules.down)
        # Whether the policy's draw alone makes a decision of which nothing is asked, and arms are numbered by their places;
        # and whether feedback does nothing but teach the policy.
        self._is_plain = (
            not self._guard.has_rules
            and policy_state.contexts is None
            and policy_state.serials.kept is None
            and self._labels is None
        )
        self._only_learns = self._is_plain and self._watch is None
        if self._watch is not None:
            self._watch.serials = {
                None: None,
                **dict(zip(self._arms.names, self._serials(), strict=True)),
            }
            self._watch.sees_contexts = policy_state.contexts is not None
            self._watch.mixes_laws = self._tells_segments

    def _forked(self, number: int) -> None:
        self._open()
        self._forks = (*self._forks, number)
        self._has_failed = True  # so that the next call does the rest

    def _descended(self, stream: Words, tag: str) -> tuple[Words, str]:
        # The new ids differ from the old ones even if the seed is the same.
        lineage = f"{self._pending_store.tag}-{self._pending_store.made}-{tag}".encode()
        return stream, hashlib.sha256(lineage).hexdigest()[:12]

    def _renew(self, stream: Words, tag: str) -> None:
        """Go on with another random stream, and with ids of another tag. Numbers go on: no event happens twice."""
        self._policy_state.stream[:] = stream
        self._pending_store.tag = tag
        self._forks = ()

    def __repr__(self) -> str:
        size = f"{len(self._arms)} arms, round {self.round}, {len(self._pending_store)} pending"
        return f"<Learner {self._policy!r}, {size}>"

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        # Unpickling the policy's class defines it, so that from_json can find the policy by name.
        return _unpickled, (type(self), type(self._policy), self.to_json())

    # Properties

    @property
    def policy(self) -> Definition:
        """The policy that is running."""
        return self._policy

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The names of the arms, in order."""
        return tuple(self._arms.names)

    @property
    def loss_range(self) -> tuple[float, float]:
        """The lowest and highest possible loss."""
        return self._losses.low, self._losses.high

    @property
    def round(self) -> int:
        """1 + the number of observations applied."""
        return self._policy_state.round

    @property
    def max_pending(self) -> int:
        """How many decisions may await feedback. Beyond that, the oldest is forgotten.

        >>> import decoupled as dc
        >>> dc.Ladder().start(arms=10_000, seed=1).max_pending
        10000
        """
        return self._pending_store.most

    @property
    def tag(self) -> str:
        """What the ids of new decisions begin with: a decision has the id `<tag>-<number>`.

        Each learner draws a tag of its own, so that no two learners make decisions with the same id. A service that logs
        its decisions and replays them sets the tag that its log has, before the first decision.

        Raises:
            ParameterError: if you set something that is no name, or set it while decisions are pending.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7)
        >>> learner.tag = "checkout"
        >>> learner.decide().id
        'checkout-1'
        """
        return self._pending_store.tag

    @tag.setter
    def tag(self, tag: str) -> None:
        self._set_tag(tag)

    @in_turn
    def _set_tag(self, tag: str) -> None:
        if not is_name(tag):
            raise ParameterError.of("tag", tag, name_rule(), "for example 'checkout'")
        if len(self._pending_store) > 0:
            rule = (
                f"cannot be set while decisions are pending, and {len(self._pending_store):,} are"
            )
            raise ParameterError.of("tag", tag, rule, "set it before the first decision")
        self._pending_store.tag = tag

    @property
    def segments(self) -> tuple[tuple[str | None, ...], ...] | None:
        """The segments that a contextual policy tells apart, in order of appearance; None for other policies.

        >>> import decoupled as dc
        >>> learner = dc.ContextualLadder(segments=("subject",)).start(arms=2, seed=7)
        >>> for subject in ("law", "art", "law"):
        ...     decision = learner.decide(context={"subject": subject})
        >>> learner.segments
        (('law',), ('art',))
        """
        contexts = self._policy_state.contexts
        return None if contexts is None else tuple(contexts.encoder.segments)

    @property
    @in_turn
    def pending(self) -> PendingDecisions:
        """The decisions that await feedback, oldest first; `pending.forgotten` counts those that were forgotten before.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=2, seed=7, max_pending=3)
        >>> for _ in range(5):
        ...     decision = learner.decide()
        >>> len(learner.pending), learner.pending.forgotten, learner.pending[-1] == decision
        (3, 2, True)
        """
        return PendingDecisions.of(self._pending_store)

    @property
    @in_turn
    def overdue(self) -> tuple[Decision, ...]:
        """The decisions whose label is overdue, oldest first; see `Labels.deadline`. They stay pending until then.

        The next feedback settles them first, as `forget` does. A service that logs each of these events asks for them
        and settles them itself.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=2, seed=7, labels=dc.Labels(share=1.0, deadline=2))
        >>> decision = learner.decide()
        >>> learner.observe(decision, judged=0.5)
        >>> _ = learner.decide(count=2)
        >>> learner.overdue == (decision,)
        True
        >>> learner.forget(decision)
        >>> learner.overdue, learner.labels.missing
        ((), 1)
        """
        if self._labels is None:
            return ()
        decisions = self._pending_store.decisions
        return tuple(decisions[key][0] for key in self._labels.overdue(self._pending_store.made))

    @property
    def labels(self) -> LabelStatus | None:
        """The labels so far; None if the learner was started without `labels=`. See `Labels` for an example."""
        known = self._labels
        if known is None:
            return None
        return LabelStatus(int(known.sums[0]), known.missing, len(known.judged), known.lam)

    @property
    def inference(self) -> Inference:
        """Intervals, differences and verdicts that hold at every moment at once, since `watch` was called.

        Raises:
            UnsupportedError: if the learner is not watched.
        """
        if self._watch is None:
            raise not_watched()
        return Inference(
            WatchCalls(
                query=self._query_watch,
                configure=self._configure_watch,
                give_up=self._give_up,
                stop=self._unwatch,
                loss_range=self.loss_range,
            )
        )

    # Deciding

    @overload
    def decide(
        self,
        count: None = None,
        *,
        context: Context | None = None,
        advice: Advice | None = None,
        key: Key | None = None,
        available: Iterable[Arm] | None = None,
    ) -> Decision: ...
    @overload
    def decide(
        self,
        count: int,
        *,
        context: Context | None = None,
        advice: Advice | None = None,
        key: Key | None = None,
        available: Iterable[Arm] | None = None,
    ) -> list[Decision]: ...

    def decide(
        self,
        count: int | None = None,
        *,
        context: Context | None = None,
        advice: Advice | None = None,
        key: Key | None = None,
        available: Iterable[Arm] | None = None,
    ) -> Decision | list[Decision]:
        """Decide on an arm to exploit and an arm to explore; with `count`, return a list of decisions.

        A policy of the standard game (`policy.coupled`) gives the same arm for both.

        Args:
            count: the number of decisions, at most `max_pending`; None returns one decision, and not a list.
            context: what is known of the request, for a `ContextualLadder`: values by the names of fields, each a string, a
                boolean, a number, or None if it is missing. Fields that the policy does not name are ignored.
            advice: what advisers of the policy would exploit: an arm, or a mapping from arms to probabilities, by the
                adviser's name. An adviser who says nothing counts as the policy's pooled ladder.
            key: a session, a user or anything else that should keep its arm; None draws afresh. The key decides the
                draw of the arm to exploit, and nothing else: the same key exploits the same arm until what is learned
                moves it, here, after saving and loading, and on every replica. Nobody can predict that arm without the
                seed, unless it can be guessed. A string of 1 to 1,024 bytes in UTF-8, or a whole number, the same key as its digits.
            available: the arms to choose from; None for all. The policy applies its own rule to their estimates, and
                the propensity is exact for that choice. When the loss arrives, the unavailable arms are charged the
                same loss, an unbiased estimate of the mean loss of the available arms, so absence gains nothing.

        Returns:
            One decision, or a list of `count` decisions.

        Raises:
            ArmError: if `available` is empty or names something that is not an arm.
            ParameterError: if `count` is not a whole number from 1 to `max_pending`.
            UnsupportedError: if the policy takes no `context`, or plays the standard game and gets a `key`.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b", "c"], seed=7)
        >>> [decision.explore for decision in learner.decide(count=3)]
        ['b', 'b', 'a']
        >>> learner.decide(available=["b"]).propensity
        1.0
        >>> {learner.decide(key="session-17").exploit for _ in range(20)}
        {'b'}
        """
        is_plain = context is None and advice is None and key is None and available is None
        if is_plain and count is None:
            return self._decide(ANYTHING)[0]
        request = Request(
            context=context,
            advice=advice,
            available=None if available is None else listed_available(available),
            key=None if key is None else self._checked_key(key),
        )
        if count is None:
            return self._decide(request)[0]
        request.count = whole_number("count", count, 1, "leave it out for a single decision")
        if request.count > self._pending_store.limit:
            rule = f"must not exceed max_pending = {self._pending_store.limit}"
            raise ParameterError.of("count", count, rule, "raise max_pending in start()")
        return self._decide(request)

    def _checked_key(self, key: Key) -> str:
        self._refuse_coupled("decide(key=...)")
        return key_text(key)

    def redecide(
        self,
        served: Served,
        *,
        context: Context | None = None,
        advice: Advice | None = None,
        available: Iterable[Arm] | None = None,
    ) -> Decision:
        """Make a decision of your log again, where a key drew the arm to exploit and the log does not have the key.

        To replay a log of everything that a learner did, make its calls again: `decide`, `exploit`, `observe` and so on.
        A learner of the same seed then ends in the same state. Where `decide` had a key that you keep secret, call this
        with the arm that the log says was exploited. The arm to explore is drawn again.

        Args:
            served: the arm that was exploited, and the guardrail that chose it, if one did.
            context: what was known of the request, as in `decide`.
            advice: what advisers would have exploited, as in `decide`.
            available: the arms that could be chosen, as in `decide`.

        Raises:
            ArmError: if the arm is not one of the learner's.
            UnsupportedError: if the policy plays the standard game, where the arm played is the arm seen.

        >>> import decoupled as dc
        >>> learner, again = (dc.FTPL().start(arms=["a", "b", "c"], seed=7) for _ in range(2))
        >>> decision = learner.decide(key="a user")
        >>> again.redecide(dc.Served(decision.exploit, decision.drawn, decision.guard)) == decision
        True
        """
        self._refuse_coupled("redecide()")
        self._check_arm(served.exploit)
        request = Request(
            context=context,
            advice=advice,
            available=listed_available(available),
            served=served,
        )
        return self._decide(request)[0]

    @in_turn
    def _check_arm(self, arm: Arm) -> None:
        """Raise an error if this is no arm of the learner."""
        self._arms.place(arm)

    @in_turn_by_place
    def _decide(self, request: Request) -> list[Decision]:
        """Make the decisions of a request."""
        policy_state, pending_store = self._policy_state, self._pending_store
        if (
            request is ANYTHING
            and self._is_plain
            and len(pending_store.decisions) < pending_store.most
        ):  # nearly always: nothing but the policy's draw makes the decision
            baseline = policy_state.share_baseline() if policy_state.has_baselines else None
            exploit, explore, weight, propensity = policy_state.calls.decide()
            number, names = pending_store.made + 1, self._arms.names
            key = f"{pending_store.tag}-{number}"
            chance = None if isnan(propensity) else propensity  # NaN means unknown
            fields = key, policy_state.round, names[exploit], names[explore], chance, weight
            decision = new_decision(Decision, fields)
            policy_state.kept_of = key
            pending_store.decisions[key] = decision, explore, None, baseline
            pending_store.made = number
            return [decision]
        if self._guard.has_rules:
            self._sync_watch_if_needed()
        if self._labels is not None and self._labels.judged:
            for gone in pending_store.oldest(request.count):  # they are forgotten to make room
                if gone in self._labels.judged:
                    self._settle_missing(gone)
        subset = self._subsets.find(request.available)
        if (
            policy_state.contexts is not None
            or request.context is not None
            or request.advice is not None
        ):
            self._enter_context(request)
        baseline = None
        if subset is None and policy_state.has_baselines and policy_state.contexts is None:
            baseline = policy_state.share_baseline()
        if request.count > 1:
            policy_state.record_baselines()
        word = None if request.key is None else policy_state.keys.word(request.key)
        among = policy_state if subset is None else policy_state.restricted_to(subset.places)
        if subset is not None and policy_state.has_baselines and policy_state.contexts is None:
            baseline = policy_state.read_baseline(subset.places, among)
        if request.count == 1 and len(pending_store.decisions) < pending_store.most:
            pending = self._draw(pending_store.made + 1, among, subset, baseline, word, request)
            made = [pending[0]]
            pending_store.decisions[pending[0].id] = pending
            pending_store.made += 1
        else:
            made = self._draw_often(request, among, subset, baseline, word)
        if subset is not None:  # they were drawn in a state of their own
            policy_state.count_events(pending_store.made)
        return made

    def _draw_often(
        self,
        request: Request,
        among: PolicyState,
        subset: Subset | None,
        baseline: Recorded,
        word: int | None,
    ) -> list[Decision]:
        """Make several decisions at once, or one in place of the oldest that waits."""
        pending_store = self._pending_store
        made = [
            self._draw(pending_store.made + place, among, subset, baseline, word, request)
            for place in range(1, request.count + 1)
        ]
        oldest = pending_store.oldest(request.count)
        if oldest:
            self._sync_watch()
        self._is_updating = True
        self._wait_for(made, oldest)
        self._is_updating = False
        return [pending[0] for pending in made]

    def explore(
        self,
        *,
        context: Context | None = None,
        available: Iterable[Arm] | None = None,
    ) -> Decision:
        """Make a decision that only explores: its `exploit` is None.

        Args:
            context: what is known of the request, as in `decide`; None for nothing.
            available: the arms to choose from, as in `decide`; None for all.

        Raises:
            UnsupportedError: if the policy plays the standard game, where the arm played is the arm seen.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b", "c"], seed=7)
        >>> learner.explore().exploit is None
        True
        """
        self._refuse_coupled("explore()")
        request = Request(
            context=context, available=listed_available(available), is_exploiting=False
        )
        return self._decide(request)[0]

    def exploit(
        self,
        *,
        context: Context | None = None,
        advice: Advice | None = None,
        key: Key | None = None,
        available: Iterable[Arm] | None = None,
    ) -> Served:
        """Draw an arm to use now. It needs no feedback and does not advance the schedule.

        Args:
            context: what is known of the request, as in `decide`; None for nothing.
            advice: what advisers would exploit, as in `decide`; None for nothing.
            key: a session or a user that should keep its arm, as in `decide`; None draws afresh.
            available: the arms to choose from, as in `decide`; None for all.

        Returns:
            The arm, as `exploit`, and which guardrail chose it.

        Raises:
            UnsupportedError: if the policy plays the standard game, where the arm played is the arm seen.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b", "c"], seed=7)
        >>> [learner.exploit().exploit for _ in range(4)], learner.round, len(learner.pending)
        (['b', 'c', 'a', 'b'], 1, 0)
        >>> learner.guardrails = dc.Guardrails(pinned="c")
        >>> learner.exploit()
        Served(exploit='c', drawn='a', guard='pinned', limited_by=None)
        """
        self._refuse_coupled("exploit()")
        request = Request(
            context=context,
            advice=advice,
            available=listed_available(available),
            key=None if key is None else key_text(key),
        )
        return self._serve(request)

    def _refuse_coupled(
        self, call: str, where: str = "the arm played is the arm seen; use decide(), or"
    ) -> None:
        if self._policy.coupled:
            game = f"{type(self._policy).__name__} plays the standard game"
            raise UnsupportedError(f"{call}: {game}, where {where} a decoupled policy such as FTPL")

    def _draw(
        self,
        number: int,
        among: PolicyState,
        subset: Subset | None,
        baseline: Recorded,
        word: int | None,
        request: Request,
    ) -> Pending:
        """The decision of this number, as it will be kept."""
        policy_state, names = self._policy_state, self._arms.names
        exploit, explore, weight, propensity = among.calls.decide()
        name = f"{self._pending_store.tag}-{number}"
        if subset is None:
            policy_state.kept_of = name
        else:
            exploit, explore = int(subset.places[exploit]), int(subset.places[explore])
        guarded = why = asked = None
        if self._guard.has_rules or word is not None or request.served is not None:
            exploit, guarded = self._guarded(exploit, among, subset, word, request)
        chance = None if isnan(propensity) else propensity  # NaN means unknown
        served = names[exploit] if request.is_exploiting else None
        fields = name, policy_state.round, served, names[explore], chance, weight
        if self._labels is not None:
            asked = self._labels.ask(number, policy_state.stream.tobytes())
        serial = policy_state.serials.id_at(explore)
        if policy_state.contexts is not None:
            baseline = policy_state.contexts.record(among.state, among.serials, serial)
            why = policy_state.contexts.why(among.state)
        eligible = None if subset is None else subset.ids
        return make_decision(fields, guarded, why, asked), serial, eligible, baseline

    def _guarded(
        self,
        drawn: int,
        among: PolicyState,
        subset: Subset | None,
        word: int | None,
        request: Request,
    ) -> tuple[int, tuple[Arm, str] | None]:
        """The arm to exploit, of a key or by guardrails; with what the policy drew and the guardrail, if one chose it."""
        if request.served is not None:
            served = request.served
            guarded = None if served.guard is None else (served.drawn, served.guard)
            return self._arms.place(served.exploit), guarded
        if word is not None:
            place = among.keys.arm(word)
            drawn = place if subset is None else int(subset.places[place])
        if not request.is_exploiting or not self._guard.has_rules:
            return drawn, None
        part = None if subset is None else subset.places
        exploit, guard = self._serve_by_rules(drawn, part, word)
        return exploit, None if guard is None else (self._arms.names[drawn], guard)

    def _wait_for(self, made: list[Pending], gone: list[str]) -> None:
        """Wait for the feedback of decisions, and forget others."""
        pending_store = self._pending_store
        for pending in made:
            pending_store.decisions[pending[0].id] = pending
        if self._watch is not None and len(made) > 1:
            self._watch.note_batch([pending[0].id for pending in made])
        for key in gone:
            del pending_store.decisions[key]
            if self._watch is not None:
                self._watch.forget(key)
        pending_store.made += len(made)
        pending_store.forgotten += len(gone)

    # Learning

    def observe(
        self,
        decision: Decision | str,
        loss: float | None = None,
        *,
        reward: float | None = None,
        preference: Preference | None = None,
        judged: float | Preference | None = None,
        position: float | None = None,
    ) -> None:
        """Learn the loss of the arm that a decision *explored*.

        Do not report the loss of the exploited arm: it is suffered and not seen. Give exactly one of `loss`, `reward`
        and `preference`, and do not mix preferences with losses.

        With `labels`, give `judged` for every decision, and the label as one of the three if `decision.label` is true, in the
        same call or a later one. Until its label comes, the decision stays pending.

        Args:
            decision: the decision, or its id.
            loss: the loss of the explored arm, within `loss_range`.
            reward: its reward in place of the loss: the mirror image of the loss within `loss_range`.
            preference: which of the two arms did better, in place of a number; see `preference_loss`.
            judged: what the judge says: a loss within `loss_range`, or a preference. Only with `labels`.
            position: how much the judge preferred what it saw first: 1 if that won, -1 if the second did, 0 for a tie; None
                if you do not know. It changes nothing but `inference.judge()`.

        Raises:
            FeedbackError: if the decision is not pending: its feedback has arrived already, it was forgotten, or it
                belongs to another learner. Also for a label that was not asked for, or comes before the judgement.
            LossError: if the loss is missing, given twice, not a number, or outside `loss_range`.
            UnsupportedError: if a policy of the standard game is given a preference.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7, loss_range=(0, 250))
        >>> late, prompt = learner.decide(count=2)
        >>> learner.observe(prompt, loss=120)
        >>> learner.observe(late.id, reward=200)
        """
        if self._labels is None and preference is None and judged is None and position is None:
            self._observe(decision, self._losses.scaled(loss, reward), False)
            return
        compared = preference is not None or isinstance(judged, str)
        if preference is not None:
            loss = self._preferred(preference, loss, reward)
        if self._labels is None:
            if judged is not None or position is not None:
                name = "position" if judged is None else "judged"
                rule = "this learner has no labels, so what a judge says is its loss"
                remedy = "give loss=, or start it with labels=dc.Labels(share=0.1)"
                raise ParameterError(f"{name}: {rule}; {remedy}")
            self._observe(decision, self._losses.scaled(loss, reward), compared)
            return
        label = None
        if judged is None or loss is not None or reward is not None:
            label = self._losses.scaled(loss, reward)
        if isinstance(judged, str):
            judged = self._preferred(judged, None, None)
        found = None if judged is None else self._losses.scaled_as("judged", judged)
        self._observe_judged(decision, found, checked_position(position), label, compared)

    @in_turn_by_place
    def _observe(self, decision: Decision | str, loss: float, compared: bool) -> None:
        if self._only_learns and not compared and type(decision) is Decision:
            key, decisions = decision[0], self._pending_store.decisions
            pending = decisions.get(key) if type(key) is str else None
            if pending is not None and pending[0] is decision and pending[2] is None:
                self._is_updating = True
                try:
                    self._policy_state.learn(pending[1], decision[5], loss, pending[3], key)
                except StateError:  # a solver failed, and nothing is changed
                    self._is_updating = False
                    raise
                del decisions[key]
                self._is_updating = False
                return
        pending = self._find_pending(decision, compared)
        self._note_feedback(compared)
        self._apply_feedback(pending, loss)

    def _find_pending(self, decision: Decision | str, compared: bool) -> Pending:
        pending = self._pending_store.find(decision)
        if compared and pending[0].exploit is None:
            problem = f"decision {pending[0].id!r}: has no exploited arm to compare with"
            raise FeedbackError(Message(problem, "make decisions to compare with decide()"))
        if compared and self._watch is not None:
            if not self._watch.sequences.drift:
                refuse_constant_means("preference", PREFERENCES)
            self._guard.rules.check_takes_preferences()
        return pending

    def _note_feedback(self, compared: bool) -> None:
        """Note whether feedback that was checked is a preference."""
        if compared and self._watch is not None:
            self._watch.has_preferences = True

    def _apply_feedback(
        self,
        pending: Pending,
        loss: float,
        labelled: tuple[LabelSums, int, Judgement] | None = None,
    ) -> None:
        """Learn a loss on a scale from 0 to 1; with labels, also their new sums, how many are missing, and what was judged."""
        policy_state, watch, labels = self._policy_state, self._watch, self._labels
        key, judgement = pending[0].id, None
        if watch is not None:
            watch.sync(self._pending_store, policy_state)
        self._is_updating = True
        try:
            policy_state.settle(pending, loss)
        except StateError:  # a solver failed, and nothing is changed
            self._is_updating = False
            raise
        del self._pending_store.decisions[key]
        if labelled is not None and labels is not None:
            sums, missing, judgement = labelled
            if sums is not labels.sums or missing != labels.missing:
                labels.set_sums(sums, missing)
            labels.judged.pop(key, None)
        if watch is not None:
            watch.settle(key, loss, judgement)
        self._is_updating = False
        if watch is not None:
            self._judge_incumbent(watch)
        if self._guard.has_rules:
            self._judge()

    # Labels

    @in_turn_by_place
    def _observe_judged(
        self,
        decision: Decision | str,
        judged: float | None,
        position: float | None,
        label: float | None,
        compared: bool,
    ) -> None:
        pending, labels = self._find_pending(decision, compared), self._labels
        decision, key = pending[0], pending[0].id
        asked = decision.label_request
        assert labels is not None
        assert asked is not None
        labels.check(decision, judged, label)
        self._note_feedback(compared)
        said = labels.judged[key] if judged is None else Judged(judged, position)
        for overdue in labels.overdue(self._pending_store.made):
            if overdue != key:
                self._settle_missing(overdue)
        if label is None and asked.wanted:
            self._sync_watch()
            missing = labels.fed(asked, said.loss, labels.rules.missing)
            self._expect(key, said, missing)
            return
        sums = labels.sums if label is None else with_label(labels.sums, said.loss, label)
        loss = labels.fed(asked, said.loss, label)
        self._apply_feedback(
            pending, loss, (sums, labels.missing, Judgement(said, label, None, label))
        )

    def _expect(self, key: str, said: Judged, fallback: float) -> None:
        assert self._labels is not None
        self._labels.expect(key, said)
        if self._watch is not None:
            missing = self._labels.rules.missing
            self._watch.note_judged(key, Judgement(said, None, fallback, missing))

    def _settle_missing(self, key: str) -> None:
        """Learn from a decision whose label never came."""
        labels, pending = self._labels, self._pending_store.decisions[key]
        asked = pending[0].label_request
        assert labels is not None
        assert asked is not None
        said = labels.judged[key]
        loss = labels.fed(asked, said.loss, labels.rules.missing)
        self._apply_feedback(
            pending,
            loss,
            (
                labels.sums,
                labels.missing + 1,
                Judgement(said, None, loss, labels.rules.missing),
            ),
        )

    @in_turn
    def _give_up(self, decision: Decision | str) -> None:
        key = self._pending_store.find(decision)[0].id
        self._sync_watch()
        if self._watch is None:
            raise not_watched()
        self._watch.forget(key)

    @in_turn
    def expire(self, decision: Decision | str, loss: float) -> None:
        """Learn the loss that you declared for decisions whose feedback never comes, such as 1 for a timeout.

        Without labels, this is `observe`. With labels, it also settles a decision that nobody judged, and it says nothing
        about the judge.

        Args:
            decision: the pending decision, or its id.
            loss: the declared loss, within `loss_range`. Declare it before you see any.

        Raises:
            FeedbackError: if the decision is not pending.
            LossError: if the loss is outside `loss_range`.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7, labels=dc.Labels(share=0.5))
        >>> learner.expire(learner.decide(), loss=1.0)
        >>> learner.round, len(learner.pending), learner.labels.used
        (2, 0, 0)
        """
        pending, scaled = self._pending_store.find(decision), self._losses.scaled(loss)
        self._apply_feedback(
            pending, scaled if self._labels is None else self._labels.rules.to_unit(scaled)
        )

    def _sync_watch(self) -> None:
        """Keep what is watched of new decisions, before they or the state change, are asked about or saved."""
        if self._watch is not None:
            self._watch.sync(self._pending_store, self._policy_state)

    def _preferred(self, preference: Preference, loss: object, reward: object) -> float:
        if loss is not None or reward is not None:
            given = "loss" if loss is not None else "reward"
            raise LossError(Message(f"preference, {given}: both were given", "give one of them"))
        self._refuse_coupled("preference", "a decision has one arm; use")
        return preference_loss(preference, self.loss_range)

    def replay(self, records: Iterable[RecordLike], *, unrandomised: bool = False) -> int:
        """Learn from a log.

        The propensity of a record is the probability with which the logging policy explored its arm. All records are
        checked before the first is applied.

        A log without propensities raises an error. So does a log whose propensities are all 1, unless the policy keeps
        means, which do not depend on propensities. The reason: the sums that other policies learn from such a log show
        how often an arm was tried, not how good it is. If a log of two or more records leaves out arms whose losses the
        learner has never seen, an `UnseenArmWarning` names them.

        Args:
            records: the log: tuples (explored arm, propensity, loss), or mappings with the keys "explore", "propensity"
                and "loss", and "context" for a contextual policy. A learner with `labels` takes the loss for a label. With
                the keys "judged" and "label_probability", `decision.label_request.rho`, the loss is left out where no label
                was asked for.
            unrandomised: accept a log whose propensities are all 1; only if it has a record of every arm for every round.

        Returns:
            The number of records.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7)
        >>> learner.replay([("a", 0.5, 0.9), {"explore": "b", "propensity": 0.5, "loss": 0.2}])
        2
        >>> learner.estimates().tolist()
        [1.8, 0.4]
        """
        return self._replay(listed_records(records), unrandomised)

    @in_turn_by_place
    def _replay(self, records: list[Any], unrandomised: bool) -> int:
        labels = self._labels
        how = self._arms, self._losses, labels is not None, self._policy_state.contexts
        checked = [checked_record(place, record, *how) for place, record in enumerate(records)]
        if not unrandomised:
            check_randomised(checked, self._arms, self._policy_state)
        warn_of_unseen(
            checked, self._arms, self._policy_state
        )  # first, since warnings may be errors
        self._sync_watch()
        watch = self._watch
        incumbent = self._guard.rules.incumbent is not None
        self._is_updating = True
        for record in checked:
            loss = record.loss if labels is None else labels.learn_logged(record)
            assert loss is not None
            self._policy_state.learn_logged(record.arm, record.weight, loss, record.context)
            if watch is not None:
                serial = self._policy_state.serials.id_at(record.arm)
                watch.replay(serial, record.weight, loss, record.rho, incumbent=incumbent)
        self._is_updating = False
        self._judge()
        return len(checked)

    @in_turn
    def forget(self, decision: Decision | str) -> None:
        """Give up on the feedback of a pending decision. Estimates stay unbiased if your choice depends on no loss.

        A watched learner counts it as `expired_loss`, or leaves it out; see `watch`. A label that it awaits counts as `Labels.missing`.

        Args:
            decision: the pending decision, or its id.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=2, seed=7)
        >>> learner.forget(learner.decide())
        >>> learner.pending, learner.pending.forgotten
        ((), 1)
        """
        key = self._pending_store.find(decision)[0].id
        if self._labels is not None and key in self._labels.judged:
            self._settle_missing(key)
            return
        self._sync_watch()
        self._is_updating = True
        self._wait_for([], [key])
        self._is_updating = False

    # Adding and retiring arms

    def add_arms(self, names: Iterable[Arm]) -> None:
        """Add arms at the end of the list. The round and the random stream do not change.

        If the policy sums losses, a new arm starts with everything that the leader, the arm with the smallest sum, has
        learned. So it is level with the best and tried at once, like every arm in round 1. If the policy keeps means,
        the arm is one it has not seen yet. Pending decisions could not choose it, so when their feedback arrives it is
        charged the loss seen, like any unavailable arm.

        Args:
            names: strings or whole numbers that no arm of this learner has. A new arm may reuse a retired name.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7)
        >>> learner.replay([("a", 0.5, 0.9), ("b", 0.5, 0.2)])
        2
        >>> learner.add_arms(["c"])
        >>> learner.arms, learner.estimates().tolist()
        (('a', 'b', 'c'), [1.8, 0.4, 0.4])
        """
        refuse_set("names", names)
        self._add_arms(listed("names", names))

    @in_turn
    def _add_arms(self, given: list[object]) -> None:
        if given:
            arms, policy_state = self._arms.extended(given), self._policy_state.extended(len(given))
            pending_store = self._pending_store.with_arm(self._policy_state.serials.n_ever)
            guard = self._guard.with_arms(len(arms))
            watch = self._watching_arms(policy_state)
            self._replace(
                arms=arms,
                policy_state=policy_state,
                pending_store=pending_store,
                guard=guard,
                watch=watch,
            )
            self._judge()

    def retire_arms(self, names: Iterable[Arm]) -> None:
        """Retire arms: they are not drawn again, and the estimates of the others stay as they are.

        You can still send the feedback of a decision that explored such an arm. It counts as a round and changes the
        other arms as usual, so that their estimates stay unbiased. Nothing is learned about the retired arm, even if
        a new arm has its name. At least two arms must stay.

        Args:
            names: the arms to retire. At least two others must stay.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b", "c"], seed=7)
        >>> decision = learner.decide()
        >>> learner.retire_arms([decision.explore])
        >>> learner.observe(decision, loss=0.3)
        >>> decision.explore, learner.arms, learner.round, learner.estimates().tolist()
        ('b', ('a', 'c'), 2, [0.0, 0.0])
        """
        self._retire_arms(listed("names", names))

    @in_turn
    def _retire_arms(self, given: list[object]) -> None:
        gone = self._arms.places(given)
        if len(gone) > 0:
            self._guard.rules.check_retiring(given)
            arms, policy_state = self._arms.without(gone), self._policy_state.without(gone)
            guard = self._guard.with_rules(self._guard.rules.without(given))
            if guard.frozen is not None:
                guard.frozen = np.delete(guard.frozen, gone)
            self._replace(
                arms=arms,
                policy_state=policy_state,
                guard=guard,
                watch=self._watching_arms(policy_state),
            )
            self._judge()

    def _watching_arms(self, policy_state: PolicyState) -> "Watch | None":
        if self._watch is None:
            return None
        check_watchable(policy_state.state.floats.shape[1])
        self._sync_watch()
        return self._watch.with_arms(policy_state.serials)

    # Inspecting

    def exploitation_probabilities(
        self,
        *,
        context: Context | None = None,
        advice: Advice | None = None,
        available: Iterable[Arm] | None = None,
        guarded: bool = True,
    ) -> Floats:
        """The exact probability that `decide` now exploits each arm, in the order of `arms`.

        Args:
            context: what is known of the request, as in `decide`; None for nothing.
            advice: what advisers would exploit, as in `decide`; None for nothing.
            available: the arms to choose from, as in `decide`; None for all.
            guarded: apply the guardrails; False gives the policy's own probabilities.

        >>> import decoupled as dc
        >>> dc.FTPL().start(arms=4, seed=7).exploitation_probabilities().round(6).tolist()
        [0.25, 0.25, 0.25, 0.25]
        """
        request = Request(context=context, advice=advice, available=listed_available(available))
        return self._law("exploitation_law", request, guarded=guarded)

    def exploration_probabilities(
        self, *, context: Context | None = None, available: Iterable[Arm] | None = None
    ) -> Floats:
        """The exact probability that `decide` now explores each arm, in the order of `arms`.

        Args:
            context: what is known of the request, as in `decide`; None for nothing.
            available: the arms to choose from, as in `decide`; None for all.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=3, seed=7)
        >>> learner.exploration_probabilities(available=[0, 2]).round(3).tolist()
        [0.5, 0.0, 0.5]
        """
        request = Request(context=context, available=listed_available(available))
        return self._law("exploration_law", request)

    @in_turn
    def _law(self, name: str, request: Request, *, guarded: bool = False) -> Floats:
        subset = self._subsets.find(request.available)
        part = None if subset is None else subset.places
        self._sync_watch_if_needed()
        self._enter_context(request, new=False)
        # Before the law, whose copy of some arms may leave the context.
        good = self._good_enough() if guarded else ()
        segment = self._segment_at_hand()
        law = self._policy_state.law(name, part)
        if not guarded or not self._guard.has_rules:
            return law
        return self._guard.law(law, self._arms, part, good, segment)

    @in_turn
    def estimates(self) -> Floats:
        """What is learned about each arm, for losses scaled to [0, 1]; see the policy for the meaning.

        With `labels`, these are estimates on the map of `Labels.to_unit`.

        >>> import decoupled as dc
        >>> dc.FTPL().start(arms=3, seed=7).estimates().tolist()
        [0.0, 0.0, 0.0]
        """
        return self._policy_state.form.estimates(self._policy_state.state)

    @in_turn
    def inspect(self, view: "Callable[[Parts], _Answer]") -> _Answer:
        """Call a function with the parts of the learner, while no other call runs. It is for tools, such as `diagnostics`.

        Args:
            view: the function. It must not call the learner.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=2, seed=7)
        >>> learner.inspect(lambda parts: parts.pending_store.made)
        0
        """
        return view(self._parts)

    # Watching

    @in_turn
    def watch(
        self,
        risk: float = 0.05,
        *,
        drift: bool = True,
        patience: int | None = None,
        expired_loss: float | None = None,
        by_segment: bool = False,
    ) -> None:
        """Keep confidence sequences from now on, for `inference`.

        Call this before the first decision: earlier ones do not count. Each feedback then takes some 25 microseconds longer.

        Losses count in the order of decisions: each waits until all earlier decisions are settled. So delays may
        depend on the arm or on the loss. The policy learns from every loss at once.

        Args:
            risk: the probability that any interval of a family ever fails; see `decoupled.inference.Sequences`.
            drift: whether losses may drift. If no arm's mean loss ever changes, False mostly gives narrower intervals. Contexts
                and preferences need True.
            patience: how many newer decisions wait for one without feedback, up to 10,000; None for 250, with those of its own
                `decide(count=...)` on top, and for the deadline of labels once it was judged and awaits its label. After
                that, or after `forget`, it counts as `expired_loss`, or with `Labels.missing` if only its label is
                missing. Later feedback still reaches the policy. Give what nearly all of your feedback arrives within.
            expired_loss: the loss that it counts as, within `loss_range`. None leaves it out, and calls the verdict provisional:
                then you assume that whether a loss arrives in time depends on neither the arm nor the loss.
            by_segment: also keep confidence sequences of each segment of a `ContextualLadder`, for
                `inference.verdict(context=...)`. They have a second risk of this size, which segments share.

        Raises:
            ParameterError: if the learner is watched already.
            UnsupportedError: if it has more than 10,000 arms; with `drift=False`, if the policy looks at contexts; or with
                `by_segment=True`, if it tells no segments apart.

        >>> import decoupled as dc
        >>> learner = dc.ContextualLadder(segments=("subject",)).start(arms=["small", "large"], seed=7)
        >>> learner.watch(by_segment=True)
        >>> best = {"law": "large", "art": "small"}
        >>> for turn in range(500):
        ...     subject = "law" if turn % 2 else "art"
        ...     decision = learner.decide(context={"subject": subject})
        ...     learner.observe(decision, loss=0.2 if decision.explore == best[subject] else 0.6)
        >>> print(learner.inference.verdict(context={"subject": "law"}))
        large is better than small (99.2401 %, decided at round 72)
        """
        if self._watch is not None:
            raise ParameterError("watch(): this learner is watched already; call it once")
        if not drift and self._policy_state.contexts is not None:
            refuse_constant_means("watch()", CONTEXTS)
        if by_segment and not self._tells_segments:
            refuse_by_segment("watch(by_segment=True)")
        wait = None if patience is None else checked_patience(patience)
        expired = (
            None if expired_loss is None else self._losses.scaled_as("expired_loss", expired_loss)
        )
        watch = self._new_watch(risk, drift, wait, expired)
        watch.by_segment = bool(by_segment)
        self._replace(watch=watch.with_segments(kept=by_segment or watch.segments is not None))

    @in_turn
    def is_decided(self, alarm_every: float) -> bool:
        """Whether an arm is decided to be the best, without an alarm since: for a budget with a `decided_share`.

        Args:
            alarm_every: the mean number of looks until a false alarm, at least; see `Budget`.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7)
        >>> learner.watch()
        >>> learner.is_decided(alarm_every=100_000)
        False
        """
        if self._watch is None:
            rule = "this learner is not watched, so nothing is ever decided; call watch() first"
            raise UnsupportedError(f"budget.decided_share: {rule}")
        if self._policy_state.contexts is not None:
            rule = "the verdict is about all requests, and a contextual policy may still learn what is best for some"
            raise UnsupportedError(f"budget.decided_share: {rule}; leave it out")
        self._sync_watch()  # so that it depends on decisions and their feedback alone
        if self._watch.lookout is None or self._watch.lookout.every != alarm_every:
            self._replace(watch=self._watch.looking_out(alarm_every))
        return self._watch.lookout is not None and self._watch.lookout.alarm.decided is not None

    @in_turn
    def _unwatch(self) -> None:
        self._replace(watch=None)

    @in_turn
    def _configure_watch(self, patience: int, expired_loss: float | None) -> None:
        if self._watch is None:
            raise not_watched()
        expired = (
            None if expired_loss is None else self._losses.scaled_as("expired_loss", expired_loss)
        )
        if expired is not None and self._labels is not None:
            expired = self._labels.rules.to_unit(expired)
        wait = checked_patience(patience)
        watch = self._watch.copy()
        watch.patience = wait
        watch.label_patience = wait
        watch.spares_batches = False
        watch.later = {}
        watch.expired = expired
        self._replace(watch=watch)

    @in_turn
    def _query_watch(self, question: "Callable[[Watch, Parts], _Answer]") -> _Answer:
        """The answer to a question about what is watched."""
        if self._watch is None:
            raise not_watched()
        self._sync_watch()
        return question(self._watch, self._parts)

    def _new_watch(
        self, risk: float, drift: bool, patience: int | None = None, expired: float | None = None
    ) -> "Watch":
        from ..inference.sequences import Sequences
        from .watch import Watch

        check_watchable(len(self._arms))
        serials, policy = self._policy_state.serials, self._policy
        rules = None if self._labels is None else self._labels.rules
        share = 1.0 if rules is None else rules.share
        sequences = Sequences(
            serials.n_ever, risk, drift=drift, coupled=policy.coupled, label_share=share
        )
        weighs, wait = policy.cumulative is not None, PATIENCE if patience is None else patience
        watch = Watch(sequences, weighs, wait, expired)
        watch.spares_batches = patience is None
        if rules is not None:
            watch = watch.with_labels(rules)
            watch.label_patience = rules.deadline if patience is None else patience
        watch = watch.with_arms(serials)
        watch.segments = {} if self._by_segment(self._guard.rules) else None
        watch.made = self._pending_store.made  # nothing is kept of decisions that are made already
        return watch

    # Saving

    def fork(self, seed: Seed) -> Self:
        """Copy the learner with its own random stream.

        Two replicas that load the same saved state draw the same arms, so the second explores nothing new. Fork each
        replica with its own seed. Pending decisions are copied too.

        Args:
            seed: the seed of the copy's random stream; None draws fresh randomness.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=100, seed=7)
        >>> one, two = learner.fork(seed=1), learner.fork(seed=2)
        >>> one.decide().explore == two.decide().explore
        False
        """
        stream, tag = randomness(seed)
        copy = self.from_json(self.to_json())
        copy._renew(*copy._descended(stream, tag))
        return copy

    @in_turn
    def to_json(self) -> str:
        """The whole state as text: what is learned, the pending decisions and the random stream.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=3, seed=7)
        >>> twin = dc.Learner.from_json(learner.to_json())
        >>> twin.decide() == learner.decide()
        True
        """
        self._sync_watch()
        return as_text(to_content(self._parts))

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Restore the learner that `to_json` wrote. It continues bit for bit.

        Args:
            text: what `to_json` wrote.

        Raises:
            StateError: if the text is damaged, altered, or of a later version.

        >>> import decoupled as dc
        >>> text = dc.Exp3().start(arms=3, seed=7).to_json()
        >>> dc.Learner.from_json(text.replace('"round":1', '"round":9'))
        Traceback (most recent call last):
            ...
        decoupled.errors.StateError: state: does not match its checksum, so it was altered; give the text that Learner.to_json() wrote
        """
        learner = cls.__new__(cls)
        learner._assign_parts(from_text(text))
        return learner

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `to_json` to a file atomically.

        Args:
            path: the file to write; an existing file is replaced.

        >>> import decoupled as dc, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "learner.json"
        >>> learner = dc.FTPL().start(arms=3, seed=7)
        >>> learner.save(path)
        >>> dc.Learner.load(path).decide() == learner.decide()
        True
        """
        write_atomically(path, self.to_json())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Restore the learner that `save` wrote.

        Args:
            path: the file that `save` wrote.

        Raises:
            StateError: if the file is damaged, altered, or of a later version.
        """
        return cls.from_json(Path(path).read_bytes())


def _unpickled(kind: type[Learner], policy: object, text: str) -> Learner:
    return kind.from_json(text)
