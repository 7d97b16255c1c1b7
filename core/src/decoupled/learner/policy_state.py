"""A running policy: its state, its random stream, and the compiled calls on them."""

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..base.arrays import Floats, Ints, Words
from ..base.validation import MOST_ROUNDS
from ..kernels.dispatch import bound
from ..kernels.random.stream import secret_of
from ..kernels.state import ARMS, EVENTS, OBSERVED, State
from ..policy import ContextualDefinition, Definition
from .arms import Serials
from .baselines import PendingBaselines
from .context import Context, Contexts
from .pending import EligibleArms, HeldBaseline, Pending, baseline_of
from .restriction import Restriction
from .seeds import KeyDraws

MOST_KEPT = 100_000_000  # numbers that pending decisions keep, one for each arm
MOST_SCRATCH = 20_000  # arms in the states for some of them; one state may have more


class PolicyState:
    """A policy's state, and the operations on it.

    Arms are places here. The learner knows their names, and pending decisions their serials. A
    policy may have several forms; `form` is the one for this number of arms, and `state` has its
    rows.
    """

    def __init__(
        self,
        policy: Definition,
        state: State,
        stream: Words,
        serials: Serials | None = None,
        form: Definition | None = None,
        contexts: Contexts | None = None,
    ) -> None:
        arms = state.floats.shape[1]
        if policy.contextual and contexts is None:  # else a copy for the segment at hand alone
            state = Contexts.room(cast(ContextualDefinition, policy), state)
        self.serials = serials or Serials(arms)
        self.policy = policy
        self.state = state
        self.stream = stream
        # The same numbers, which are read faster this way.
        self._numbers: Any = memoryview(cast(Any, state.scalars))
        self.form = form or policy.at(arms)
        self.layout = self.form.layout
        self.values = self.form.param_values()
        self.entries = self.form.entries()
        self.calls = bound(self.entries, self.values, state, stream)
        self.calls.init()
        self.pending_baselines = PendingBaselines(self.form, state, self.serials)
        self.has_baselines = self.pending_baselines.has_any
        keeps_numbers = policy.contextual or self.has_baselines
        self.most_pending = max(MOST_KEPT // arms, 1) if keeps_numbers else MOST_ROUNDS
        self.contexts = contexts
        if contexts is None and policy.contextual:
            self.contexts = Contexts(cast(ContextualDefinition, policy), state, self.calls.init)
        self.key_draws: KeyDraws | None = None
        self.everyone = np.arange(arms)
        # A state for each number of arms that decisions choose from, which is filled anew for each.
        self._scratch: dict[int, tuple[Restriction, PolicyState]] = {}
        # Of the last decision among some arms: those that it could choose, and a mask of the
        # others.
        self._last_away: tuple[EligibleArms, NDArray[np.bool_]] = (None, np.zeros(arms, np.bool_))
        # The rows that are charged where an arm was not available.
        if policy.cumulative is not None:
            self._cumulative = self.layout.row(state, policy.cumulative)
        if policy.contextual:
            self._absent = self.layout.row(state, "absent")

    @classmethod
    def fresh(cls, policy: Definition, arms: int, stream: Words) -> "PolicyState":
        """A policy that has not seen anything yet."""
        return cls(policy, policy.at(arms).layout.new_state(arms, secret_of(stream)), stream)

    @property
    def round(self) -> int:
        """1 + the number of observations applied."""
        return int(self._numbers[OBSERVED]) + 1

    def count_events(self, made: int) -> None:
        """Set the number of events, after so many decisions: other draws are no events."""
        self.state.scalars[EVENTS] = made + self.round - 1

    def restricted_to(self, places: Ints) -> "PolicyState":
        """The policy with only the arms at these places, until the next call of this.

        The learning rate stays that of all arms.
        """
        arms = len(places)
        if arms not in self._scratch:
            if sum(self._scratch) + arms > MOST_SCRATCH:
                self._scratch.clear()
            form = self.policy.at(arms)
            restriction = Restriction(self.layout, form.layout, arms)
            scratch = PolicyState(
                self.policy,
                restriction.state,
                self.stream,
                self.serials.restricted_to(places),
                form,
                self.contexts,
            )
            self._scratch[arms] = restriction, scratch
        restriction, scratch = self._scratch[arms]
        if not restriction.is_of(places):
            scratch.renumber(self.serials.restricted_to(places))
        restriction.refill(self.state, places)
        if self.contexts is not None:
            self.contexts.copy_context(places, restriction.state)
        scratch.calls.init()
        return scratch

    def renumber(self, serials: Serials) -> None:
        """Let the same places be those of arms with other serial numbers."""
        self.serials = serials
        self.pending_baselines.serials = serials
        if self.key_draws is not None:
            self.key_draws.renumber(serials.ids(self.everyone))

    def draw_exploited(self, places: Ints | None, key_hash: int | None) -> int:
        """Draw the arm to exploit, among the arms at these places or all, or take that of a key."""
        drawn_from = self if places is None else self.restricted_to(places)
        if key_hash is not None:
            drawn = drawn_from.keys.arm(key_hash)
        elif places is None and self.pending_baselines.keeps_scalars:
            scalars = self.pending_baselines.read_scalars()  # of the last decision
            drawn = drawn_from.calls.decide()[0]
            self.pending_baselines.write_scalars(scalars)
        else:
            drawn = drawn_from.calls.decide()[0]
        return drawn if places is None else int(places[drawn])

    @property
    def keys(self) -> KeyDraws:
        """What draws the arms of keys."""
        if self.key_draws is None:
            self.key_draws = KeyDraws(self.form, self.state, self.serials.ids(self.everyone).copy())
        return self.key_draws

    def record_baselines(self) -> None:
        """Compute the baselines of this round's decisions, before the state changes or because
        several share them.
        """
        if self.contexts is not None:
            self.contexts.derive()
        else:
            self.pending_baselines.record()

    # Learning

    def settle(self, pending: Pending, loss: float) -> None:
        """Learn from the feedback of a decision, which may have explored an arm that was retired
        since.
        """
        decision, serial, eligible, baseline = pending
        if eligible is None and self.serials.kept is None:
            # Every arm was available, and none was retired.
            self.learn(serial, decision.weight, loss, baseline, decision.id)
            return
        arm = self.serials.place(serial)
        if eligible is not None:
            kept_baseline = baseline_of(baseline)
            if kept_baseline is None and self.pending_baselines.takes_any:
                baseline = self.pending_baselines.current(self._mask_of_absent(eligible))
            if kept_baseline is None or kept_baseline.kind != "law":  # else the update does
                self._charge_absent(eligible, loss)
        if arm is not None:
            self.learn(arm, decision.weight, loss, baseline, decision.id)
        elif self.policy.cumulative is not None:
            # Weight 0: only the baselines of the other arms count.
            self.learn(0, 0.0, loss, baseline)
        else:
            self._observe_removed_arm(decision.weight, loss)

    def learn(
        self,
        arm: int,
        weight: float,
        loss: float,
        baseline: HeldBaseline = None,
        decision_id: str = "",
    ) -> None:
        """Learn the loss of an explored arm, and of the decision with this id."""
        if self.contexts is not None:
            self.contexts.recall(baseline, self.serials)
        if not self.has_baselines:
            self.calls.update(arm, weight, loss)
            return
        pending_baselines = self.pending_baselines
        if (
            pending_baselines.sharers == 1
            and pending_baselines.round_baseline is baseline
            and not pending_baselines.was_computed
        ):
            # Nearly always: the only decision of this round, and the state has its baselines. No
            # decision has the object any more, so the next round takes it.
            pending_baselines.kept_of = ""
            self.calls.update(arm, weight, loss)
            pending_baselines.sharers = 0
            return
        pending_baselines.restore(baseline, decision_id)
        self.calls.update(arm, weight, loss)
        pending_baselines.start_round()

    def learn_logged(self, arm: int, weight: float, loss: float, context: Context | None) -> None:
        """Learn a record of a log, which has no baselines, and perhaps a context."""
        if self.contexts is None:
            self.learn(arm, weight, loss)
        else:
            self.contexts.enter(context)
            self.contexts.derive()
            self.state.scalars[EVENTS] += 0.5  # after all decisions, and before the update
            self.pending_baselines.own().prepare(self.state, arm)
            self.state.scalars[EVENTS] -= 0.5
            self.calls.update(arm, weight, loss)

    def _charge_absent(self, eligible: EligibleArms, loss: float) -> None:
        """Add the loss to every arm that the decision could not choose."""
        if self.policy.cumulative is None:
            return
        if self.contexts is not None:  # the update charges them, in each of its ladders
            self._absent[self._mask_of_absent(eligible)] = 1.0
            return
        if self.has_baselines:
            self.record_baselines()
        np.add(self._cumulative, loss, out=self._cumulative, where=self._mask_of_absent(eligible))
        self.pending_baselines.kept_of = ""
        self.calls.init()

    def _mask_of_absent(self, eligible: EligibleArms) -> NDArray[np.bool_]:
        """A mask of the arms that a decision could not choose."""
        if eligible is self._last_away[0]:
            return self._last_away[1]
        away = np.full(self.state.floats.shape[1], eligible is not None)
        if isinstance(eligible, tuple):
            away[self.serials.places(np.array(eligible, np.int64))[0]] = False
        elif eligible is not None:
            away[: self.serials.first_from(eligible)] = False
        self._last_away = eligible, away
        return away

    def _observe_removed_arm(self, weight: float, loss: float) -> None:
        """Learn the loss of a retired arm: add it for this one observation, so that the round
        counts.
        """
        self.record_baselines()
        arms = self.state.floats.shape[1]
        state = self._extended(1)
        state.scalars[ARMS] = arms
        larger = PolicyState(self.policy, state, self.stream)
        larger.learn(arms, weight, loss)
        left = larger.layout.restrict(state, np.arange(arms), self.layout)
        for mine, new in zip(self.state, left, strict=True):
            mine[:] = new
        self.calls.init()
        self.pending_baselines.start_round()

    def learns_from_weights(self) -> bool:
        """Whether learning depends on the weight of an observation; a mean does not."""
        with_weight_1 = self._learned_with(1.0)
        with_weight_2 = self._learned_with(2.0)
        return any(
            not np.array_equal(*rows) for rows in zip(with_weight_1, with_weight_2, strict=True)
        )

    def _learned_with(self, weight: float) -> list[Any]:
        """The learned rows of two new arms after the first and after the second observation.

        Both are compared, because the first may only set a level and the second may restart the
        policy.
        """
        state = self.layout.new_state(2)
        rows = []
        self.entries.init(self.values, *state)
        for loss in (1.0, 0.0):
            self.entries.update(self.values, *state, 0, weight, loss)
            rows += [self.layout.row(state, name).copy() for name in self.layout.learned]
        return rows

    # Adding and retiring arms

    def flush(self) -> None:
        """Leave the round and the context at hand, because what is saved or copied must not depend
        on the last call.
        """
        self.record_baselines()
        if self.contexts is not None:
            self.contexts.leave()

    def extended(self, newcomers: int) -> "PolicyState":
        """A copy with this many more arms."""
        self.flush()
        serials = self.serials.extended(newcomers)
        new = PolicyState(self.policy, self._extended(newcomers), self.stream, serials)
        return self._with_contexts(new, np.arange(self.state.floats.shape[1]))

    def without(self, gone: Ints) -> "PolicyState":
        """A copy without the arms at these places."""
        self.flush()
        left = np.delete(np.arange(self.state.floats.shape[1]), gone)
        form = self.policy.at(len(left))
        state = self.layout.restrict(self.state, left, form.layout)
        state.scalars[ARMS] = len(left)
        return self._with_contexts(
            PolicyState(self.policy, state, self.stream, self.serials.restricted_to(left)), left
        )

    def _with_contexts(self, new: "PolicyState", left: Ints) -> "PolicyState":
        """The new state, with these contexts for the arms that are left."""
        if self.contexts is not None:
            new.contexts = self.contexts.with_arms(new.state, new.calls.init, left)
        return new

    def _extended(self, newcomers: int) -> State:
        arms = self.state.floats.shape[1]
        form = self.policy.at(arms + newcomers)
        state = self.layout.extend(self.state, newcomers, form.layout)
        form.init_new_arms(state, arms)
        return state

    def law(self, name: str, places: Ints | None) -> Floats:
        """The "exploitation_law" or "exploration_law" among the arms at these places, or all."""
        if places is None:
            law: Floats = getattr(self.form, name)(self.state)
            return law
        probabilities = np.zeros(self.state.floats.shape[1])
        probabilities[places] = self.restricted_to(places).law(name, None)
        return probabilities
