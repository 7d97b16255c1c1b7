"""A running policy: its state, its random stream, and the compiled calls on them."""

from collections.abc import Iterable
from functools import cached_property, partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..base.arrays import Floats, Ints, Words
from ..base.validation import MOST_ROUNDS
from ..kernels.dispatch import bound
from ..kernels.lazy_numba import jit_disabled
from ..kernels.random.stream import secret_of
from ..kernels.state import ARMS, EVENTS, OBSERVED, State
from ..policy import Baselines, ContextualDefinition, Definition
from .arms import Serials
from .context import Context, Contexts, Undo
from .pending import LAW, NEVER, Baseline, Covered, Pending, Recorded, RoundBaseline, recorded
from .seeds import KeyDraws

MOST_KEPT = 100_000_000  # numbers that pending decisions keep, one for each arm


class Running:
    """A policy's state, and the operations on it.

    Arms are places here. The learner knows their names, and pending decisions their serials. A policy may have several
    forms; `form` is the one for this number of arms, and `state` has its rows.
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
        # Whether an update is one step, which no signal interrupts; and whether what comes before it changes only what
        # is derived, even if baselines were predicted.
        self._in_one_step = not (policy.in_python or policy.interpreted or jit_disabled())
        self._any_baseline = self.baselines is not None and self.baselines.are_free
        # The baselines of the decisions of this round, and the number of these decisions, or more if the baselines are
        # computed. A decision whose feedback comes before the next leaves the object for the next round.
        self.shared: RoundBaseline | None = None
        self.sharing = 0
        self.contexts = contexts
        if contexts is None and policy.contextual:
            self.contexts = Contexts(cast(ContextualDefinition, policy), state, self.calls.init)
        # The pending decisions of the learner, and the places of the scalars that they keep.
        self.pending: dict[str, Pending] = {}
        scalars = self.layout.all_scalars
        names = () if self.baselines is None else self.baselines.kept
        self.kept = [scalars.index(name) for name in names if name in scalars]

    @classmethod
    def fresh(cls, policy: Definition, arms: int, stream: Words) -> "Running":
        """A policy that has not seen anything yet."""
        return cls(policy, policy.at(arms).layout.new_state(arms, secret_of(stream)), stream)

    @property
    def round(self) -> int:
        """1 + the number of observations applied."""
        return int(self._numbers[OBSERVED]) + 1

    def count_events(self, made: int) -> None:
        """Set the number of events after so many decisions: a draw that is no decision is no event."""
        self.state.scalars[EVENTS] = made + self.round - 1

    def only(self, part: Ints) -> "Running":
        """A copy with only these arms, until something is learned; the learning rate stays that of all arms."""
        form = self.policy.at(len(part))
        state = self.layout.restrict(self.state, part, form.layout)
        if self.contexts is not None:
            self.contexts.copy_context(part, state)
        return Running(
            self.policy, state, self.stream, self.serials.only(part), form, self.contexts
        )

    def draw_exploited(self, part: Ints | None, key: int | None) -> int:
        """Draw the arm to exploit, among some arms or all, or take the one of a key's word."""
        among = self if part is None else self.only(part)
        judging = self.state.scalars[self.kept]  # of the last decision
        drawn = among.calls.decide()[0] if key is None else among.keys.arm(key)
        self.state.scalars[self.kept] = judging
        return drawn if part is None else int(part[drawn])

    @cached_property
    def keys(self) -> KeyDraws:
        """What draws the arms of keys."""
        return KeyDraws(
            self.form, self.state, self.serials.of(np.arange(self.state.floats.shape[1]))
        )

    def baseline_of(
        self, part: Ints | None, predicted: tuple[Ints, Floats] | None = None
    ) -> Recorded:
        """The baselines of decisions made now, None if all are 0.

        Unavailable arms have none, and decisions of the same round share theirs. `predicted` replaces the policy's own
        numbers, but only for arms to which the policy gives a baseline, and only up to the policy's bound.
        """
        if not self.has_baselines:
            return None
        if part is None and predicted is None:
            if self.shared is None:
                self.shared = RoundBaseline(self._own_baseline)
            self.sharing += 1
            return self.shared
        some = self if part is None else self.only(part)
        within, values = some.own_baselines().read(some.state)
        places = within if part is None else part[within]
        if predicted is not None:
            most = some.own_baselines().largest(some.state)[within]
            values = np.minimum(_replaced(places, values, *predicted), most)
        return self._known(places, values, predicted is not None)

    def own_baselines(self) -> Baselines:
        """The policy's baselines; only of a policy that has them."""
        assert self.baselines is not None
        return self.baselines

    def _own_baseline(self) -> Baseline | None:
        self.sharing = max(self.sharing, 2)  # so that the next round has an object of its own
        if self.own_baselines().keep_law:
            everyone = np.arange(self.state.floats.shape[1])
            return self.serials.of(everyone), self.form.exploration_law(self.state), LAW, {}
        return self._known(*self.own_baselines().read(self.state))

    def record_baselines(self) -> None:
        """Compute the baselines of this round's decisions, before the state changes or because several share them."""
        if self.contexts is not None:
            self.contexts.derive()
            return
        shared = self.shared
        if shared is None or self.sharing == 0:
            return
        baseline = shared.get()
        if baseline is None or not self.kept:
            return
        for decision, serial, _, theirs in reversed(self.pending.values()):
            if decision.round != self.round:
                break
            if theirs is shared and decision.id not in baseline[3]:
                baseline[3][decision.id] = self._prepared(decision.id, serial)

    def _prepared(self, key: str, serial: int) -> list[float]:
        """What the decision with this id, made in this round, keeps of the state if it explores an arm."""
        place, scalars = self.serials.place(serial), self.state.scalars
        now = scalars.item(EVENTS)
        self.count_events(int(key.rpartition("-")[2]))
        self.own_baselines().prepare(self.state, 0 if place is None else place)
        scalars[EVENTS] = now
        kept: list[float] = scalars[self.kept].tolist()
        return kept

    def keep_with(self, baseline: Baseline, arm: int, key: str) -> None:
        """Add to the baselines of a decision, some of which were predicted, what else it keeps of the state."""
        self._restore_baseline(arm, baseline, key)
        baseline[3][key] = self._prepared(key, self.serials.of_one(arm))
        self.calls.init()  # the state's own baselines

    def _known(self, places: Ints, values: Floats, predicted: bool = False) -> Baseline | None:
        """Baselines as a pending decision keeps them: by serial, and without zeros if those are no baselines."""
        free = self._any_baseline
        found = np.arange(len(values)) if free else np.flatnonzero(values)
        if len(found) == 0:
            return None
        return self.serials.of(places[found]), values[found], predicted or free, {}

    # Learning

    def undo(self, pending: Pending) -> tuple[float, Undo]:
        """The round after a `settle`, if its update is one step and the last to change the state; and what takes it back.

        If so, a settle that has not come to the update has only written baselines, which are derived. Else it is `NEVER`.
        """
        _, serial, covered, baseline = pending
        predicted = type(baseline) is tuple and baseline[2] and not self._any_baseline
        if self._in_one_step and covered is None and not predicted:
            gone = self.serials.kept is not None and self.serials.place(serial) is None
            if not gone or self.policy.cumulative is not None:
                return self._numbers[OBSERVED] + 2.0, self.calls.init
        return NEVER, self.undo_all(recorded=baseline)

    def undo_all(self, contexts: Iterable[Context | None] = (), recorded: Recorded = None) -> Undo:
        """What takes back everything that is learned from now on, in these contexts and that of this record."""
        scalars, floats, ints = self.state
        names = len(self.layout.all_scalars)
        state = State(scalars[:names].copy(), floats.copy(), ints.copy())
        segments = None if self.contexts is None else self.contexts.undo(contexts, recorded)
        return partial(self._restore, state, self.shared, segments)

    def _restore(self, state: State, shared: RoundBaseline | None, segments: Undo | None) -> None:
        for mine, saved in zip(self.state, state, strict=True):
            mine[: len(saved)] = saved
        self.shared = shared
        self.sharing = max(self.sharing, 2)  # it may have been computed
        if segments is not None:
            segments()

    def settle(self, pending: Pending, loss: float) -> None:
        """Learn from the feedback of a decision, which may have explored an arm that was retired since."""
        decision, serial, covered, baseline = pending
        if (
            covered is None and self.serials.kept is None
        ):  # every arm was available, and none was retired
            self.learn(serial, decision.weight, loss, baseline, decision.id)
            return
        arm = self.serials.place(serial)
        if covered is not None:
            known = recorded(baseline)
            if known is None and self._any_baseline:
                baseline = self._current_baseline(covered)
            if known is None or known[2] != LAW:  # else the update does
                self._charge_absent(covered, loss)
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
            self.kept and not alone
        ):  # the state may have what another decision keeps
            known = recorded(baseline)
            if known is None:
                self.own_baselines().clear(self.state)
            else:
                self._restore_baseline(arm, known, key)
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
        places, found = self.serials.places(serials)
        values = values[found]
        mine = kept.get(decision, kept.get(self.serials.of_one(arm)))
        if free == LAW:
            if mine is not None:
                self.state.scalars[self.kept] = mine
            same = len(places) == len(serials) == self.state.floats.shape[1]
            self.own_baselines().recall_law(self.state, places, values, same)
            return
        if free and not self._any_baseline:
            # The update may rely on a property of the policy's own baselines, such as one amount for all. So it gets
            # the baseline of the explored arm only, and the others are added here.
            others = places != arm
            self.layout.row(self.state, str(self.policy.cumulative))[places[others]] += values[
                others
            ]
            self.calls.init()
            places, values = places[~others], values[~others]
        self.own_baselines().write(self.state, places, values)
        if mine is not None and len(mine) == len(
            self.kept
        ):  # another form, or an older state, keeps less
            self.state.scalars[self.kept] = mine

    def _charge_absent(self, covered: Covered, loss: float) -> None:
        """Add the loss to every arm that the decision could not choose."""
        if self.policy.cumulative is None:
            return
        if self.contexts is not None:  # the update charges them, in each of its ladders
            self.layout.row(self.state, "absent")[~self._could_choose(covered)] = 1.0
            return
        self.record_baselines()
        self.layout.row(self.state, self.policy.cumulative)[~self._could_choose(covered)] += loss
        self.calls.init()

    def _could_choose(self, covered: Covered) -> NDArray[np.bool_]:
        """A mask of the arms that a decision could choose."""
        chosen = np.full(self.state.floats.shape[1], covered is None)
        if isinstance(covered, tuple):
            chosen[self.serials.places(np.array(covered, np.int64))[0]] = True
        elif covered is not None:
            chosen[: self.serials.first_from(covered)] = True
        return chosen

    def _current_baseline(self, covered: Covered) -> Baseline:
        """The baselines that the state has now, of the arms that a decision could choose.

        Absent arms are charged the loss and must not get a baseline as well. Call this before they are: a baseline that
        depends on the loss would bias the estimates.
        """
        places, values = self.own_baselines().read(self.state)
        chosen = self._could_choose(covered)[places]
        return self.serials.of(places[chosen]), values[chosen], False, {}

    def _observe_removed_arm(self, weight: float, loss: float) -> None:
        """Learn the loss of a retired arm: add it for this one observation, so that the round counts."""
        self.record_baselines()
        arms = self.state.floats.shape[1]
        state = self._extended(1)
        state.scalars[ARMS] = arms
        larger = Running(self.policy, state, self.stream)
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
        """The learned rows of two new arms after one observation, which may only set a level, and two, which may restart."""
        state, rows = self.layout.new_state(2), []
        self.entries.init(self.values, *state)
        for loss in (1.0, 0.0):
            self.entries.update(self.values, *state, 0, weight, loss)
            rows += [self.layout.row(state, name).copy() for name in self.layout.learned]
        return rows

    # Adding and retiring arms

    def rest(self) -> None:
        """Leave the round and the context at hand, because what is saved or copied must not depend on the last call."""
        self.record_baselines()
        if self.contexts is not None:
            self.contexts.leave()

    def extended(self, newcomers: int) -> "Running":
        """A copy with this many more arms."""
        self.rest()
        serials = self.serials.extended(newcomers)
        new = Running(self.policy, self._extended(newcomers), self.stream, serials)
        return self._followed(new, np.arange(self.state.floats.shape[1]))

    def without(self, gone: Ints) -> "Running":
        """A copy without the arms at these places."""
        self.rest()
        left = np.delete(np.arange(self.state.floats.shape[1]), gone)
        form = self.policy.at(len(left))
        state = self.layout.restrict(self.state, left, form.layout)
        state.scalars[ARMS] = len(left)
        return self._followed(
            Running(self.policy, state, self.stream, self.serials.only(left)), left
        )

    def _followed(self, new: "Running", left: Ints) -> "Running":
        if self.contexts is not None:
            new.contexts = self.contexts.following(new.state, new.calls.init, left)
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
        probabilities[part] = self.only(part).law(name, None)
        return probabilities


def _replaced(places: Ints, values: Floats, others: Ints, new_values: Floats) -> Floats:
    """The values at `places`, replaced by a new value if `others` contains the place."""
    if len(others) == 0:
        return values
    by_place = np.argsort(others)
    found = np.searchsorted(others, places, sorter=by_place)
    match = by_place[np.minimum(found, len(others) - 1)]
    return np.where(others[match] == places, new_values[match], values)
