"""What pending decisions keep of the state in which they were made, for their updates."""

import numpy as np
from numpy.typing import NDArray

from ..base.arrays import Floats, Ints
from ..kernels.state import EVENTS, OBSERVED, State
from ..policy import Baselines, Definition
from .arms import Serials
from .pending import Baseline, HeldBaseline, Pending, RoundBaseline, baseline_of, number_of


class PendingBaselines:
    """The baselines of the pending decisions of a running policy.

    Decisions of the same round share their baselines. As long as the round lasts, the state has
    them, so they are computed only if a decision outlives its round.

    Attributes:
        serials: the serial numbers of the arms.
        pending: the pending decisions of the learner, by id.
        has_any: whether the policy has baselines of arms.
        takes_any: whether its update accepts any baselines.
        keeps_scalars: whether an update also needs scalars of the state as its decision left them.
        round_baseline: the baselines of the decisions of this round; None before the first. A
            decision whose feedback comes before the next one leaves the object for the next round.
        sharers: the number of decisions of this round that have `round_baseline`.
        was_computed: whether `round_baseline` is computed, so that the next round needs another.
        kept_of: the id of the decision whose scalars the state has; empty if they may be of none.
    """

    def __init__(self, form: Definition, state: State, serials: Serials) -> None:
        self.serials = serials
        self.pending: dict[str, Pending] = {}
        self._form = form
        self._state = state
        self._baselines = form.baselines
        self.has_any = self._baselines is not None and self._baselines.row is not None
        self.takes_any = self._baselines is not None and self._baselines.are_free
        self.round_baseline: RoundBaseline | None = None
        self.sharers = 0
        self.was_computed = False
        self.kept_of = ""
        scalars = form.layout.all_scalars
        names = () if self._baselines is None else self._baselines.kept
        kept = [scalars.index(name) for name in names if name in scalars]
        self._kept = np.array(kept, np.int64)
        self.keeps_scalars = len(kept) > 0

    def own(self) -> Baselines:
        """The policy's baselines; only of a policy that has them."""
        assert self._baselines is not None
        return self._baselines

    # When decisions are made

    def start_round(self) -> None:
        """Forget the baselines of the round before."""
        self.sharers = 0
        self.round_baseline = None
        self.was_computed = False

    def share(self) -> HeldBaseline:
        """The baselines of a decision among all arms that is made now."""
        if self.round_baseline is None:
            self.round_baseline = RoundBaseline(self._compute)
        self.sharers += 1
        return self.round_baseline

    def read_from(self, scratch: "PendingBaselines", places: Ints) -> Baseline | None:
        """The baselines of a decision among the arms at these places; None if all are 0.

        The `scratch` is that of the policy with only these arms. All other arms have no baselines.
        """
        within, values = scratch.read()
        chosen = places if len(within) == len(places) else places[within]
        return self._known(chosen, values)

    def read(self) -> tuple[Ints, Floats]:
        """The places of the arms that have a baseline now, and these baselines."""
        return self.own().read(self._state)

    def _compute(self) -> Baseline | None:
        self.was_computed = True
        if self.own().keep_law:
            law = self._form.exploration_law(self._state)
            return Baseline(self.serials.ids(np.arange(len(law))), law, "law", {})
        return self._known(*self.read())

    def _known(self, places: Ints, values: Floats) -> Baseline | None:
        """Baselines as a pending decision keeps them: by serial.

        Zeros are left out, unless the policy tells a baseline of 0 from none.
        """
        if self.takes_any:
            if len(values) == 0:
                return None
            return Baseline(self.serials.ids(places), values, "all", {})
        nonzero = np.flatnonzero(values)
        if len(nonzero) == 0:
            return None
        return Baseline(self.serials.ids(places[nonzero]), values[nonzero], "sparse", {})

    # Before the state changes

    def record(self) -> None:
        """Compute the baselines of this round's decisions.

        Call this before the state changes, or because several decisions share them.
        """
        shared = self.round_baseline
        if shared is None or self.sharers == 0:
            return
        baseline = shared.get()
        if baseline is None or not self.keeps_scalars:
            return
        current_round = int(self._state.scalars[OBSERVED]) + 1
        for decision, serial, _, held in reversed(self.pending.values()):
            if decision.round != current_round:
                break
            if held is shared and decision.id not in baseline.scalars_of:
                if decision.id == self.kept_of:  # the last one: its scalars are still in the state
                    scalars = self.read_scalars().tolist()
                else:
                    scalars = self._prepared(decision.id, serial)
                baseline.scalars_of[decision.id] = scalars

    def _prepared(self, decision_id: str, serial: int) -> list[float]:
        """The scalars that a decision of this round keeps if it explores the arm of this serial."""
        place = self.serials.place(serial)
        scalars = self._state.scalars
        self.kept_of = ""
        events = scalars.item(EVENTS)
        scalars[EVENTS] = number_of(decision_id) + scalars[OBSERVED]
        self.own().prepare(self._state, 0 if place is None else place)
        scalars[EVENTS] = events
        kept: list[float] = self.read_scalars().tolist()
        return kept

    def read_scalars(self) -> Floats:
        """A copy of the scalars of the state that a pending decision keeps."""
        return self._state.scalars[self._kept]

    def write_scalars(self, scalars: Floats) -> None:
        """Put the result of `read_scalars` back."""
        self._state.scalars[self._kept] = scalars

    def current(self, away: NDArray[np.bool_]) -> Baseline:
        """The baselines that the state has now, of the arms that are not away.

        Absent arms are charged the loss and must not get a baseline as well. Call this before they
        are: a baseline that depends on the loss would bias the estimates.
        """
        places, values = self.read()
        chosen = ~away[places]
        return Baseline(self.serials.ids(places[chosen]), values[chosen], "sparse", {})

    # Before an update

    def restore(self, held: HeldBaseline, decision_id: str) -> None:
        """Put the baselines of a decision where its update reads them."""
        is_current = held is not None and held is self.round_baseline
        other_sharers = self.sharers - (1 if is_current else 0)
        is_alone = other_sharers == 0 and not self.was_computed
        if not is_alone:
            self.record()
        # The state has the baselines of this round, but may have the scalars of another decision.
        if not is_current or (self.keeps_scalars and not is_alone):
            baseline = baseline_of(held)
            if baseline is None:
                self.own().clear(self._state)
            else:
                self._write(baseline, decision_id)
        self.kept_of = ""

    def _write(self, baseline: Baseline, decision_id: str) -> None:
        """Write a decision's baselines, and the scalars that it keeps, into the state."""
        serials, values, kind, scalars_of = baseline
        if self.serials.kept is None:
            places = serials
        else:
            places, still_there = self.serials.places(serials)
            values = values[still_there]
        scalars = scalars_of.get(decision_id)
        if kind == "law":
            if scalars is not None:
                self._state.scalars[self._kept] = scalars
            is_same = len(places) == len(serials) == self._state.floats.shape[1]
            self.own().recall_law(self._state, places, values, is_same=is_same)
            return
        self.own().write(self._state, places, values)
        if scalars is not None and len(scalars) == len(self._kept):  # another form keeps less
            self._state.scalars[self._kept] = scalars
