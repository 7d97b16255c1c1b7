"""A running policy: its state, its random stream, and the compiled calls on them."""

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..base.arrays import Floats, Ints, Words
from ..base.validation import MOST_ROUNDS
from ..kernels.dispatch import bound
from ..kernels.random.stream import secret_of
from ..kernels.state import ARMS, EVENTS, OBSERVED, State
from ..policy import Baselines, ContextualDefinition, Definition
from .arms import Serials
from .context import Context, Contexts
from .pending import LAW, Baseline, EligibleArms, Pending, Recorded, RoundBaseline, recorded
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
        self.policy, self.state, self.stream = policy, state, stream
        # The same numbers, which are read faster this way.
        self._numbers: Any = memoryview(cast(Any, state.scalars))
        self.form = form or policy.at(arms)
        self.layout = self.form.layout
        self.values = np.array(self.form.params(), np.float64)
        self.entries = self.form.entries()
        self.calls = bound(self.entries, self.values, state, stream)
        self.calls.init()
        self.baselines = self.form.baselines
        self.has_baselines = self.baselines is not None and self.baselines.row is not None
        keeps = policy.contextual or self.has_baselines
        self.most_pending = max(MOST_KEPT // arms, 1) if keeps else MOST_ROUNDS
        self._any_baseline = self.baselines is not None and self.baselines.are_free
        # The baselines of the decisions of this round, and the number of these decisions, or more
        # if the baselines are computed. A decision whose feedback comes before the next leaves the
        # object for the next round.
        self.shared: RoundBaseline | None = None
        self.sharing = 0
        self.contexts = contexts
        if contexts is None and policy.contextual:
            self.contexts = Contexts(cast(ContextualDefinition, policy), state, self.calls.init)
        # The pending decisions of the learner, and the places of the scalars that they keep.
        self.pending: dict[str, Pending] = {}
        # The id of the decision whose scalars to keep are those of the state; empty if they may be
        # of none.
        self.kept_of = ""
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
        scalars = self.layout.all_scalars
        names = () if self.baselines is None else self.baselines.kept
        kept = [scalars.index(name) for name in names if name in scalars]
        self.kept = np.array(kept, np.int64)
        self.keeps_scalars = len(kept) > 0

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

    def restricted_to(self, part: Ints) -> "PolicyState":
        """The policy with only these arms, until the next call of this; the learning rate stays
        that of all arms.
        """
        arms = len(part)
        if arms not in self._scratch:
            if sum(self._scratch) + arms > MOST_SCRATCH:
                self._scratch.clear()
            form = self.policy.at(arms)
            restriction = Restriction(self.layout, form.layout, arms)
            scratch = PolicyState(
                self.policy,
                restriction.state,
                self.stream,
                self.serials.restricted_to(part),
                form,
                self.contexts,
            )
            self._scratch[arms] = restriction, scratch
        restriction, scratch = self._scratch[arms]
        if not restriction.is_of(part):
            scratch.serials = self.serials.restricted_to(part)
            if scratch.key_draws is not None:
                scratch.key_draws.renumber(scratch.serials.ids(scratch.everyone))
        restriction.refill(self.state, part)
        if self.contexts is not None:
            self.contexts.copy_context(part, restriction.state)
        scratch.calls.init()
        return scratch

    def draw_exploited(self, part: Ints | None, key: int | None) -> int:
        """Draw the arm to exploit, among some arms or all, or take the one of a key's word."""
        among = self if part is None else self.restricted_to(part)
        if key is not None:
            drawn = among.keys.arm(key)
        elif self.keeps_scalars and part is None:
            judging = self.state.scalars[self.kept]  # of the last decision
            drawn = among.calls.decide()[0]
            self.state.scalars[self.kept] = judging
        else:
            drawn = among.calls.decide()[0]
        return drawn if part is None else int(part[drawn])

    @property
    def keys(self) -> KeyDraws:
        """What draws the arms of keys."""
        if self.key_draws is None:
            self.key_draws = KeyDraws(self.form, self.state, self.serials.ids(self.everyone).copy())
        return self.key_draws

    def share_baseline(self) -> Recorded:
        """The baselines of a decision among all arms that is made now. Decisions of the same round
        share them.
        """
        if self.shared is None:
            self.shared = RoundBaseline(self._own_baseline)
        self.sharing += 1
        return self.shared

    def read_baseline(self, part: Ints, scratch: "PolicyState") -> Baseline | None:
        """The baselines of a decision among some arms, None if all are 0. Unavailable arms have
        none.
        """
        within, values = scratch.own_baselines().read(scratch.state)
        return self._known(part[within], values)

    def own_baselines(self) -> Baselines:
        """The policy's baselines; only of a policy that has them."""
        assert self.baselines is not None
        return self.baselines

    def _own_baseline(self) -> Baseline | None:
        self.sharing = max(self.sharing, 2)  # so that the next round has an object of its own
        if self.own_baselines().keep_law:
            law = self.form.exploration_law(self.state)
            return self.serials.ids(self.everyone), law, LAW, {}
        return self._known(*self.own_baselines().read(self.state))

    def record_baselines(self) -> None:
        """Compute the baselines of this round's decisions, before the state changes or because
        several share them.
        """
        if self.contexts is not None:
            self.contexts.derive()
            return
        shared = self.shared
        if shared is None or self.sharing == 0:
            return
        baseline = shared.get()
        if baseline is None or not self.keeps_scalars:
            return
        for decision, serial, _, theirs in reversed(self.pending.values()):
            if decision.round != self.round:
                break
            if theirs is shared and decision.id not in baseline[3]:
                if decision.id == self.kept_of:  # the last one: it is still in the state
                    baseline[3][decision.id] = self.state.scalars[self.kept].tolist()
                else:
                    baseline[3][decision.id] = self._prepared(decision.id, serial)

    def _prepared(self, key: str, serial: int) -> list[float]:
        """What the decision with this id, made in this round, keeps of the state if it explores an
        arm.
        """
        place, scalars = self.serials.place(serial), self.state.scalars
        self.kept_of = ""
        now = scalars.item(EVENTS)
        self.count_events(int(key.rpartition("-")[2]))
        self.own_baselines().prepare(self.state, 0 if place is None else place)
        scalars[EVENTS] = now
        kept: list[float] = scalars[self.kept].tolist()
        return kept

    def _known(self, places: Ints, values: Floats) -> Baseline | None:
        """Baselines as a pending decision keeps them: by serial, and without zeros if those are no
        baselines.
        """
        if self._any_baseline:
            return None if len(values) == 0 else (self.serials.ids(places), values, True, {})
        found = np.flatnonzero(values)
        if len(found) == 0:
            return None
        return self.serials.ids(places[found]), values[found], False, {}

    # Learning

    def settle(self, pending: Pending, loss: float) -> None:
        """Learn from the feedback of a decision, which may have explored an arm that was retired
        since.
        """
        decision, serial, eligible, baseline = pending
        if (
            eligible is None and self.serials.kept is None
        ):  # every arm was available, and none was retired
            self.learn(serial, decision.weight, loss, baseline, decision.id)
            return
        arm = self.serials.place(serial)
        if eligible is not None:
            known = recorded(baseline)
            if known is None and self._any_baseline:
                baseline = self._current_baseline(eligible)
            if known is None or known[2] != LAW:  # else the update does
                self._charge_absent(eligible, loss)
        if arm is not None:
            self.learn(arm, decision.weight, loss, baseline, decision.id)
        elif self.policy.cumulative is not None:
            self.learn(
                0, 0.0, loss, baseline
            )  # weight 0: only the baselines of the other arms count
        else:
            self._observe_removed_arm(decision.weight, loss)

    def learn(
        self, arm: int, weight: float, loss: float, baseline: Recorded = None, key: str = ""
    ) -> None:
        """Learn the loss of an explored arm, and of the decision with this id."""
        if self.contexts is not None:
            self.contexts.recall(baseline, self.serials)
        if not self.has_baselines:
            self.calls.update(arm, weight, loss)
            return
        # A baseline of this round is still in the state.
        current = baseline is not None and baseline is self.shared
        alone = self.sharing == current  # no other decision has the baselines of this round
        if not alone:
            self.record_baselines()
        if not current or (
            self.keeps_scalars and not alone
        ):  # the state may have what another decision keeps
            known = recorded(baseline)
            if known is None:
                self.own_baselines().clear(self.state)
            else:
                self._restore_baseline(arm, known, key)
        self.kept_of = ""
        self.calls.update(arm, weight, loss)
        self.sharing = 0
        if not alone:  # else no decision has the object any more, and the next round takes it
            self.shared = None

    def learn_logged(self, arm: int, weight: float, loss: float, context: Context | None) -> None:
        """Learn a record of a log, which has no baselines, and perhaps a context."""
        if self.contexts is None:
            self.learn(arm, weight, loss)
        else:
            self.contexts.enter(context)
            self.contexts.derive()
            self.state.scalars[EVENTS] += 0.5  # after all decisions, and before the update
            self.own_baselines().prepare(self.state, arm)
            self.state.scalars[EVENTS] -= 0.5
            self.calls.update(arm, weight, loss)

    def start_round(self) -> None:
        """Forget the baselines of the round before."""
        self.sharing, self.shared = 0, None

    def _restore_baseline(self, arm: int, baseline: Baseline, decision: str) -> None:
        """Write a decision's baselines where the update of the arm reads them."""
        serials, values, free, kept = baseline
        if self.serials.kept is None:
            places = serials
        else:
            places, found = self.serials.places(serials)
            values = values[found]
        mine = kept.get(decision)
        if free == LAW:
            if mine is not None:
                self.state.scalars[self.kept] = mine
            same = len(places) == len(serials) == self.state.floats.shape[1]
            self.own_baselines().recall_law(self.state, places, values, same)
            return
        self.own_baselines().write(self.state, places, values)
        if mine is not None and len(mine) == len(self.kept):  # another form keeps less
            self.state.scalars[self.kept] = mine

    def _charge_absent(self, eligible: EligibleArms, loss: float) -> None:
        """Add the loss to every arm that the decision could not choose."""
        if self.policy.cumulative is None:
            return
        if self.contexts is not None:  # the update charges them, in each of its ladders
            self._absent[self._was_away(eligible)] = 1.0
            return
        if self.has_baselines:
            self.record_baselines()
        np.add(self._cumulative, loss, out=self._cumulative, where=self._was_away(eligible))
        self.kept_of = ""
        self.calls.init()

    def _was_away(self, eligible: EligibleArms) -> NDArray[np.bool_]:
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

    def _current_baseline(self, eligible: EligibleArms) -> Baseline:
        """The baselines that the state has now, of the arms that a decision could choose.

        Absent arms are charged the loss and must not get a baseline as well. Call this before they
        are: a baseline that depends on the loss would bias the estimates.
        """
        places, values = self.own_baselines().read(self.state)
        chosen = ~self._was_away(eligible)[places]
        return self.serials.ids(places[chosen]), values[chosen], False, {}

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
        self.start_round()

    def weighs(self) -> bool:
        """Whether learning depends on the weight of an observation; a mean does not."""
        one, two = self._learned_with(1.0), self._learned_with(2.0)
        return any(not np.array_equal(*rows) for rows in zip(one, two, strict=True))

    def _learned_with(self, weight: float) -> list[Any]:
        """The learned rows of two new arms after one observation, which may only set a level, and
        two, which may restart.
        """
        state, rows = self.layout.new_state(2), []
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
        return self._followed(new, np.arange(self.state.floats.shape[1]))

    def without(self, gone: Ints) -> "PolicyState":
        """A copy without the arms at these places."""
        self.flush()
        left = np.delete(np.arange(self.state.floats.shape[1]), gone)
        form = self.policy.at(len(left))
        state = self.layout.restrict(self.state, left, form.layout)
        state.scalars[ARMS] = len(left)
        return self._followed(
            PolicyState(self.policy, state, self.stream, self.serials.restricted_to(left)), left
        )

    def _followed(self, new: "PolicyState", left: Ints) -> "PolicyState":
        if self.contexts is not None:
            new.contexts = self.contexts.with_arms(new.state, new.calls.init, left)
        return new

    def _extended(self, newcomers: int) -> State:
        arms = self.state.floats.shape[1]
        form = self.policy.at(arms + newcomers)
        state = self.layout.extend(self.state, newcomers, form.layout)
        form.init_new_arms(state, arms)
        return state

    def law(self, name: str, part: Ints | None) -> Floats:
        """The policy's "exploitation_law" or "exploration_law", among some arms or all."""
        if part is None:
            law: Floats = getattr(self.form, name)(self.state)
            return law
        probabilities = np.zeros(self.state.floats.shape[1])
        probabilities[part] = self.restricted_to(part).law(name, None)
        return probabilities
