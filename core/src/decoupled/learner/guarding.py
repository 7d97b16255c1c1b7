"""Guardrails in a running learner: which arm is served, and what the evidence says of the rules."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from ..base.arrays import Floats, Ints
from ..errors import UnsupportedError
from ..kernels.state import ROUND
from .guardrail_state import WHOLE
from .guardrails import Guardrails
from .parts import Parts
from .watching import WatchOptions, new_watch

# The next look at the evidence comes after one more observation for each so many so far.
OBSERVATIONS_PER_LOOK = 20
# The law that keys draw from is looked at after one observation for each so many arms.
ARMS_FOR_EACH_OBSERVATION = 4


def parts_with_rules(parts: Parts, rules: Guardrails) -> Parts:
    """The parts of a learner that gets other guardrails; an error if it cannot have them."""
    policy_state = parts.policy_state
    watch = parts.watch
    if rules.replace_arms and policy_state.policy.coupled:
        rule = (
            "plays the standard game and learns from the arm that is served, so another must not "
            "be served"
        )
        name = type(policy_state.policy).__name__
        raise UnsupportedError(f"guardrails: {name} {rule}; use a decoupled policy such as FTPL")
    rules.check_arms(parts.arms)
    rules.check_fits(
        parts.arms,
        parts.losses,
        parts.guard.rules,
        contextual=policy_state.contexts is not None,
        segmented=parts.tells_segments,
        labelled=parts.labels is not None,
    )
    if watch is not None and watch.has_preferences:
        rules.check_takes_preferences()
    if watch is None and rules.compare_arms:
        watch = new_watch(parts, WatchOptions(rules.risk, rules.drift))
    by_segment = parts.compares_by_segment(rules)
    if watch is not None and by_segment != (watch.segments is not None):
        watch.sync(parts.pending_store, policy_state)
        watch = watch.with_segments(kept=by_segment)
    if watch is not None and not rules.tries_as(parts.guard.rules):
        watch.sync(parts.pending_store, policy_state)
        watch = watch.with_trial(
            has_incumbent=rules.incumbent is not None, by_segment=rules.by_segment
        )
    return replace(parts, guard=parts.guard.with_rules(rules), watch=watch)


class GuardedServing:
    """Chooses the arm to serve by a learner's guardrails, and applies the evidence to these."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        # The serials that were last shown to be good enough, and their places, cheapest first.
        self._last_good: tuple[list[int], list[int]] = ([], [])

    # The arm to serve

    def choose(
        self, drawn: int, places: Ints | None, key_hash: int | None
    ) -> tuple[int, str | None]:
        """The place of the arm to serve instead of the one drawn, and the guardrail that chose it.

        The request may choose from the arms at these `places`, None for all, and its key has this
        `key_hash`, None for no key.
        """
        parts = self._parts
        policy_state = parts.policy_state
        return parts.guard.serve(
            drawn,
            parts.arms,
            places,
            policy_state.stream,
            key_hash=key_hash,
            good=self._places_good_enough(),
            serials=policy_state.serials,
            segment=parts.segment,
        )

    def exploitation_law(self, places: Ints | None) -> Floats:
        """The probability of serving each arm, for a request that has those at these places."""
        parts = self._parts
        # Before the law, whose copy of some arms may leave the context.
        good = self._places_good_enough()
        segment = parts.segment
        law = parts.policy_state.law("exploitation_law", places)
        if not parts.guard.has_rules:
            return law
        return parts.guard.law(law, parts.arms, places, good, segment)

    def _places_good_enough(self) -> Sequence[int]:
        """The places of the arms with a price that are known to be within the margin, in the
        context at hand, cheapest first.
        """
        parts = self._parts
        guard = parts.guard
        watch = parts.watch
        if guard.rules.cheapest_within is None or watch is None:
            return ()
        at_hand = parts.segment
        if guard.keeps_incumbent(at_hand):
            return ()
        segment = WHOLE if watch.segments is None else at_hand
        _, shown = guard.shown.get(segment, (0, []))
        if not shown:
            return ()
        last_shown, good = self._last_good
        if shown is not last_shown:  # each look makes a list of its own
            places, _ = parts.policy_state.serials.places(np.array(shown, np.int64))
            good = guard.cheapest_first(places.tolist(), parts.arms)
            self._last_good = shown, good
        return good

    # What the evidence says of the rules

    def apply_evidence(self) -> None:
        """Find by the evidence which arms are good enough, and the law that keys draw from."""
        watch = self._parts.watch
        segments = {} if watch is None else watch.segments
        self._look_within_segments([WHOLE] if segments is None else list(segments))
        self._refresh_frozen_law()

    def apply_evidence_after_feedback(self) -> None:
        """Apply every rule to the evidence, after feedback.

        A look at the law that keys draw from takes time in proportion to the number of arms. So
        with many arms, it comes once for several observations.
        """
        parts = self._parts
        watch = parts.watch
        if watch is not None:
            if watch.segments is None:
                self._release_incumbent([])
                self._look_within(WHOLE)
            else:
                changed = sorted(watch.unjudged)
                self._release_incumbent(changed)
                self._look_within_segments(changed)
                watch.unjudged.clear()
        if parts.guard.rules.switch_margin is None:
            return
        policy_state = parts.policy_state
        arms = policy_state.state.floats.shape[1]
        if policy_state.round % max(1, arms // ARMS_FOR_EACH_OBSERVATION) == 0:
            self._refresh_frozen_law()

    def _look_within_segments(self, segments: Iterable[int]) -> None:
        """Find which arms are within the margin in these segments."""
        if self._parts.guard.rules.cheapest_within is not None:
            for segment in segments:
                self._look_within(segment)

    def _look_within(self, segment: int) -> None:
        """Find which arms are within the margin, if it is time to look again.

        Looks cost more than observations, so they get rarer: if losses may drift, the next one
        comes after 5 % more observations, or one if that is more; else see `_next_look`. Until
        then, what the last look found is served.
        """
        parts = self._parts
        guard = parts.guard
        rules = parts.guard.rules
        watch = parts.watch
        if watch is None or rules.cheapest_within is None:
            return
        by_segment = watch.segments or {}
        sequences = watch.sequences if segment == WHOLE else by_segment.get(segment)
        if sequences is None:
            return
        observed = sequences.observed
        next_look, _ = guard.shown.get(segment, (0, []))
        if observed < max(next_look, 1):
            return
        from ..inference.comparisons import within
        from ..inference.sums import share_of_segment

        share = 1.0
        if segment != WHOLE:
            share = share_of_segment(1 + list(by_segment).index(segment))
        margin = rules.cheapest_within / (parts.losses.high - parts.losses.low)
        good = within(sequences.sums, margin, rules.risk * share, drift=rules.drift).tolist()
        if rules.drift:
            next_look = observed + max(1, observed // OBSERVATIONS_PER_LOOK)
        else:
            next_look = _next_look(observed)
        guard.shown[segment] = next_look, good

    def _refresh_frozen_law(self) -> None:
        """Freeze the law of now, if an arm's mean beats that of the frozen law by the margin."""
        losses = self._parts.losses
        switch_margin = self._parts.guard.rules.switch_margin
        if switch_margin is None:
            return
        margin = switch_margin / (losses.high - losses.low)
        guard = self._parts.guard
        policy_state = self._parts.policy_state
        law = guard.frozen
        form = policy_state.form
        means = form.estimates(policy_state.state)
        rounds = 0.0 if form.cumulative is None else policy_state.state.scalars.item(ROUND) - 1.0
        if rounds > 0.0:
            means = means / rounds
        if law is not None:
            whole = guard.draw_of_frozen(law, policy_state.serials).sum
            if whole > 0.0 and law @ means / whole - means.min() <= margin:
                return
        guard.frozen = policy_state.law("exploitation_law", None)

    def _release_incumbent(self, changed: list[int]) -> None:
        """Release the incumbent once the evidence since it was set shows a better arm.

        `changed` are the segments that got evidence.
        """
        parts = self._parts
        guard = parts.guard
        rules = parts.guard.rules
        watch = parts.watch
        if rules.incumbent is None or watch is None:
            return
        if rules.by_segment:
            self._release_incumbent_by_segment(changed)
            return
        observed = watch.incumbent_sequences.observed
        if not guard.released and observed >= guard.next_look:
            from ..inference.verdicts import is_beaten

            serial = parts.policy_state.serials.id_at(parts.arms.place(rules.incumbent))
            guard.released = is_beaten(
                watch.incumbent_sequences, serial, rules.risk, drift=rules.drift
            )
            guard.next_look = _next_look(observed)

    def _release_incumbent_by_segment(self, changed: list[int]) -> None:
        """Release the incumbent in segments whose own evidence shows a better arm.

        Each has its share of the risk.
        """
        from ..inference.sums import share_of_segment
        from ..inference.verdicts import is_beaten

        parts = self._parts
        guard = parts.guard
        rules = parts.guard.rules
        watch = parts.watch
        if watch is None:
            return
        by_segment = watch.incumbent_sequences_by_segment
        serial = parts.policy_state.serials.id_at(parts.arms.place(rules.incumbent))
        for place in changed:
            if place not in by_segment:
                continue
            sequences = by_segment[place]
            released, next_look = guard.released_in.get(place, (False, 1))
            if not released and sequences.observed >= next_look:
                share = share_of_segment(1 + list(by_segment).index(place))
                released = is_beaten(sequences, serial, rules.risk * share, drift=rules.drift)
                guard.released_in[place] = released, _next_look(sequences.observed)


def _next_look(observed: int) -> int:
    """After how many observations to look again: after ten more, or 5 % more if that is more.

    Looks cost more than observations, so they get rarer.
    """
    return observed + max(10, observed // OBSERVATIONS_PER_LOOK)
