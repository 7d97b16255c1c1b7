"""Confidence sequences for the losses of arms, of what was exploited, and of their differences."""

import operator
import zlib
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from ..base.arrays import Floats
from ..base.validation import LEAST_PROPENSITY, LEAST_RISK, as_float, check_number, whole_number
from ..errors import ArmError, LossError, ParameterError, StateError
from ..kernels.betting import (
    AGAINST,
    COMMON,
    COMPARED,
    MOMENTS,
    OPPOSITE,
    SEEN,
    SERVED,
    TOTAL,
    USED,
)
from .adding import add_all
from .boundary import Interval, lower_difference
from .comparisons import (
    comparable_means,
    difference,
    note_best,
    ratio,
)
from .missing import Missing
from .sums import Observation, Sums

FORMAT = 3
MOST_WEIGHT = 1.01 / LEAST_PROPENSITY
AT_ONCE = 128  # observations; they are cheaper to add together
_RISK = "the default is 0.05"


class Sequences:
    """Intervals that hold at every moment at once, so you can watch them and stop whenever you
    like.

    They are for losses in [0, 1] and for arms numbered 0, 1, 2, ... in order of arrival. Update
    them with every observed loss, in the order of the decisions, as `Learner.watch` does even if
    losses are late. A decision without feedback is left out, and `leave_out` counts it: whether it
    comes must not depend on the arm or its loss.

    The interval of an arm covers its mean loss over the rounds that looked at it, whatever drifts,
    and needs no weights; see `bounds`. If the mean never changes, that is the mean.

    With `drift=True` nothing is assumed about the losses. The interval of the exploited arms then
    covers the *running mean* over all rounds observed so far, by importance weights. With
    `drift=False` it is made of those of the arms. If means do change, that and differences of arms
    mean little.

    Each family of intervals (all arms and the exploited ones; all differences of two arms; all
    differences between an arm and the exploited ones) is right as a whole with probability 1 -
    `risk`.

    Args:
        arms: the number of arms.
        risk: the probability that any interval of a family ever fails.
        drift: which intervals the methods give unless you say otherwise.
        coupled: whether the arm exploited is the arm explored, as in the standard game.
        label_share: the share of decisions that ask for a label, if losses are on the map of
            `Labels.to_unit`; else 1.

    >>> from decoupled.inference import Sequences
    >>> sequences = Sequences(arms=2)
    >>> for n in range(2_000):
    ...     sequences.update(explore=n % 2, weight=2.0, loss=0.25 if n % 2 else 0.75, exploit=1)
    >>> [[round(float(each), 2) for each in interval] for interval in sequences.arms()]
    [[0.75, 0.74, 0.75], [0.25, 0.25, 0.26]]
    >>> sequences.difference(0, 1).low > 0.0
    True
    """

    def __init__(
        self,
        arms: int,
        risk: float = 0.05,
        *,
        drift: bool = True,
        coupled: bool = False,
        label_share: float = 1.0,
    ) -> None:
        count = whole_number("arms", arms, 2, "with one arm there is nothing to compare")
        chance = check_number("risk", risk, _RISK, above=LEAST_RISK, below=1.0)
        sums = Sums.start(
            count,
            risk=chance,
            drift=bool(drift),
            coupled=bool(coupled),
            width=2.0 / label_share - 1.0,
        )
        self._set(sums)

    def _set(self, sums: Sums, seen: int = 0, unsummed: list[Observation] | None = None) -> None:
        """Replace everything in one step, for interrupts.

        `sums`, of `seen` observations, are shared and never change; `unsummed` are the observations
        that are not in them yet.
        """
        self._now = sums, seen, unsummed or []

    def __repr__(self) -> str:
        return f"<Sequences of {self.count} arms, risk {self.risk:g}, {self.observed} observations>"

    @property
    def risk(self) -> float:
        """The probability that any interval of a family ever fails."""
        return self._now[0].risk

    @property
    def drift(self) -> bool:
        """Whether the intervals allow for losses that drift, unless a call says otherwise."""
        return self._now[0].drift

    @property
    def width(self) -> float:
        """The width of the range around 1/2 that losses are mapped from; 1 without labels."""
        return self._now[0].width

    @property
    def sums(self) -> Sums:
        """The sums that everything is computed from."""
        return self._add_unsummed()

    def _add_unsummed(self) -> Sums:
        """Add the observations that are not in the sums yet; the sums with them."""
        summed, seen, unsummed = self._now
        if unsummed:
            summed = summed.copy()
            add_all(summed, unsummed, seen)
            self._set(summed, seen + len(unsummed))
        return summed

    @property
    def observed(self) -> int:
        """The number of observations."""
        _, seen, unsummed = self._now
        return seen + len(unsummed)

    @property
    def left_out(self) -> int:
        """The number of decisions that were left out."""
        return self._now[0].left_out

    @property
    def complete(self) -> int | None:
        """How many observations there were before the first decision that was left out; None if
        none was.
        """
        return self._now[0].complete

    @property
    def count(self) -> int:
        """The number of arms, also of those that are retired."""
        return len(self._now[0].batch)

    @property
    def pairs_arms(self) -> bool:
        """Whether arms are compared two by two, by the law of exploration: all of them, unless
        there are too many.
        """
        return len(self._now[0].pairs.owners) > 0

    @property
    def live(self) -> list[int]:
        """The numbers of the arms that are not retired."""
        return self._now[0].live

    # Learning

    def update(
        self,
        explore: int,
        weight: float | None,
        loss: float,
        exploit: int | None = None,
        available: Collection[int] | None = None,
        law: Sequence[float] | Floats | None = None,
        *,
        rho: float = 1.0,
        label: float | None = None,
    ) -> None:
        """Add an observation.

        Args:
            explore: the arm that was explored.
            weight: 1 / propensity, or an unbiased estimate of it. None if neither is known: the
                observation then counts with `drift=False` only. A weight of 1 means that no other
                arm had a chance.
            loss: its loss, in [0, 1].
            exploit: the arm that was exploited; None if none was.
            available: the arms that could be explored; None for all. Rounds that could not explore
                every arm count for the arms that they could, and for the exploited arms, but not
                for comparisons with these.
            law: the probability with which each arm was explored in that round, 0 for those that
                could not be. Differences, verdicts and the interval of the exploited arms use it,
                and become much sharper. Leave it out if it depends on the request: requests would
                then count by it.
            rho: the probability with which the round asked for a label; 1 without labels.
            label: the label that it got, in [0, 1]; None if it got none, and without labels. With
                `rho` below 1, a loss without it counts as one that nobody labelled.

        >>> Sequences(arms=2).update(explore=0, weight=2.0, loss=7.0)
        Traceback (most recent call last):
            ...
        decoupled.errors.LossError: loss = 7.0: must lie in [0, 1]; scale losses to [0, 1] first
        """
        number = as_float(loss)
        if number is None or not 0.0 <= number <= 1.0:
            raise LossError.of("loss", loss, "must lie in [0, 1]", "scale losses to [0, 1] first")
        if weight is not None and not (type(weight) is float and 0.0 < weight < MOST_WEIGHT):
            weight = check_number(
                "weight", weight, "give 1 / propensity, or None", above=0.0, below=MOST_WEIGHT
            )
        explore = self._place("explore", explore)
        exploit = None if exploit is None else self._place("exploit", exploit)
        numbers = (explore,) if available is None else available
        if explore not in numbers or min(numbers) < 0 or max(numbers) >= self.count:
            rule = f"must be numbers from 0 to {self.count - 1} that include the explored arm"
            raise ArmError.of("available", available, rule, "leave it out for all arms")
        chances = None if law is None else self._checked_law(explore, law)
        if available is None and chances is not None and not chances.all():
            available = tuple(np.flatnonzero(chances).tolist())
        observation = Observation(
            explore=explore,
            weight=weight,
            loss=number,
            exploit=exploit,
            available=available,
            law=chances,
            rho=rho,
            label=label,
        )
        self.add(observation)

    def add(self, observation: Observation) -> None:
        """Add an observation without the checks of `update`, to be summed when you ask for
        something.

        Args:
            observation: the observation.
        """
        unsummed = self._now[2]
        unsummed.append(observation)
        if len(unsummed) >= AT_ONCE:
            self._add_unsummed()

    def add_once(self, number: int, observation: Observation) -> None:
        """Add the observation with this number, unless it was added already.

        Args:
            number: how many observations were there before it.
            observation: the observation.
        """
        if self.observed == number:
            self.add(observation)

    def leave_out(self, decision: Observation | None = None) -> None:
        """Count a decision that will not be observed.

        Args:
            decision: the decision as an observation, whatever its loss, so that what is missing is
                counted for each arm; None if that is not known.

        >>> sequences = Sequences(arms=2)
        >>> sequences.leave_out()
        >>> sequences.left_out
        1
        """
        sums, observed, unsummed = self._now
        complete = self.observed if sums.left_out == 0 else sums.complete
        missing = sums.missing
        if decision is not None:
            missing = missing.with_decision(decision, sums.live)
        sums = replace(sums, left_out=sums.left_out + 1, complete=complete, missing=missing)
        self._set(sums, observed, unsummed)

    @property
    def missing(self) -> Missing:
        """What is missing of each arm, and whether that tells arms apart."""
        return self._now[0].missing

    def add_arms(self, count: int = 1) -> None:
        """Add arms, numbered on from the last. What is known of the other arms stays.

        Only comparisons with the exploited arms start again, and those beyond the hundred arms
        compared two by two.

        Args:
            count: how many arms to add, at least one.

        >>> sequences = Sequences(arms=2)
        >>> sequences.add_arms(1)
        >>> sequences.live
        [0, 1, 2]
        """
        newcomers = whole_number("count", count, 1, "give the number of new arms")
        sums = self.sums.copy()
        sums.add_arms(newcomers)
        self._set(sums, self.observed)

    def retire(self, arm: int) -> None:
        """Retire an arm. Its number is not used again, and what is known of the others stays.

        Args:
            arm: the number of the arm.

        >>> sequences = Sequences(arms=3)
        >>> sequences.retire(1)
        >>> sequences.live
        [0, 2]
        """
        place = self._place("arm", arm)
        sums = self.sums.copy()
        sums.retire(place)
        for candidate in sums.live:
            note_best(sums, candidate)
        self._set(sums, self.observed)

    def copy(self) -> "Sequences":
        """An independent copy.

        >>> sequences = Sequences(arms=2)
        >>> twin = sequences.copy()
        >>> sequences.update(explore=0, weight=2.0, loss=0.5)
        >>> sequences.observed, twin.observed
        (1, 0)
        """
        sums, observed, unsummed = self._now
        twin = Sequences(arms=2)
        twin._set(sums, observed, unsummed.copy())
        return twin

    # Intervals

    def arms(self) -> list[Interval]:
        """The interval of every arm's mean loss, also of retired arms.

        It covers the mean over the rounds that looked at the arm, see `bounds`.
        """
        estimates, lows, highs = self.bounds()
        return [Interval.around(*ends) for ends in zip(estimates, lows, highs, strict=True)]

    def arm(self, arm: int) -> Interval:
        """The interval of one arm's mean loss.

        Args:
            arm: the number of the arm.
        """
        return self.arms()[self._place("arm", arm)]

    def bounds(self, *, among: Sequence[int] | None = None) -> tuple[Floats, Floats, Floats]:
        """Arrays over all arms, or over those in `among`: the estimates, the lower and the upper
        ends.

        They are of an arm's mean loss over the rounds that looked at it, whatever drifts: each look
        counts its mean given everything before. The ends weight these means by 1 / m and by
        1 / (1 - m), where m is the running mean of the arm's earlier losses.

        Args:
            among: the numbers of the arms that the arrays are over; None for all.
        """
        sums = self.sums
        risks = sums.risk * sums.share_of_arms()[0] / 2.0
        lows, highs = sums.singles.look_ends(risks)
        means = sums.unmapped(self._plain_means())
        ends = (means, np.clip(lows, 0.0, 1.0), np.clip(highs, 0.0, 1.0))
        if among is None:
            return ends
        places = [self._place("among", arm) for arm in among]
        estimates, lows, highs = (values[places] for values in ends)
        return estimates, lows, highs

    def estimates(self) -> Floats:
        """The estimated mean loss of every arm: the mean of the losses seen; 1/2 if none was."""
        return np.asarray(self.sums.unmapped(self._plain_means()))

    def _plain_means(self) -> Floats:
        """The mean of the losses seen of each arm, on the map of losses to [0, 1]."""
        return comparable_means(self.sums, drift=False)

    def served(self, *, drift: bool | None = None) -> Interval:
        """The interval of the mean loss of what was exploited, over the observed rounds that
        exploited an arm and could explore it.

        Args:
            drift: whether losses may drift; None for what the sequences were made with.
        """
        sums = self.sums
        used = self.used()
        if not self._allows_drift(drift=drift):
            if not used.any():
                return Interval(0.5, 0.0, 1.0)
            estimates, lows, highs = self.bounds()
            return Interval.around(float(used @ estimates), float(used @ lows), float(used @ highs))
        risk = sums.risk * sums.share_of_arms()[1] / 2.0
        low, high = sums.singles.served_ends(risk)
        loss = sums.flow[SERVED + TOTAL]
        gain = sums.flow[SERVED + OPPOSITE]
        ends = (float(ratio(loss, gain)), min(max(low, 0.0), 1.0), min(max(high, 0.0), 1.0))
        return Interval.around(*(float(sums.unmapped(end)) for end in ends))

    def difference(self, arm: int, other: int, *, drift: bool | None = None) -> Interval:
        """The interval of one arm's mean loss minus another's: above 0 if the other arm is better.

        An arm whose difference to another one is above 0 is out; others may be out by their own
        bets against the leader, which need less. If losses may drift, it covers the mean difference
        over rounds that are weighted by the chance of the rarer arm divided by a level of losses,
        times `rho` with labels; see `decoupled.inference.pairs`. Once it is above 0, it stays so
        until arms change: if the evidence shrinks, you get the interval that showed it. If the arms
        took turns, its ends may cross; then it is the whole range.

        Args:
            arm: the number of an arm.
            other: the number of the arm to compare it with.
            drift: whether losses may drift; None for what the sequences were made with.

        >>> sequences = Sequences(arms=2)
        >>> for n in range(2_000):
        ...     loss = 0.25 if n % 2 else 0.75
        ...     sequences.update(explore=n % 2, weight=2.0, loss=loss, law=[0.5, 0.5])
        >>> [round(end, 2) for end in sequences.difference(0, 1)]
        [0.5, 0.45, 0.55]
        """
        place = self._place("arm", arm)
        other_place = self._place("other", other)
        return difference(self.sums, place, other_place, drift=self._allows_drift(drift=drift))

    def against_served(self, arm: int, *, drift: bool | None = None) -> Interval:
        """The interval of an arm's mean loss minus that of what was exploited: above 0 if the arm
        is worse.

        Args:
            arm: the number of the arm.
            drift: whether losses may drift; None for what the sequences were made with.
        """
        place = self._place("arm", arm)
        sums = self.sums
        used = self.used()
        if not used.any():
            return Interval(0.0, -1.0, 1.0)
        if not self._allows_drift(drift=drift):
            return self._against_served_without_drift(place, used)
        risk = sums.risk * sums.share_of_served_difference()
        rounds = sums.rounds[COMPARED]
        common = sums.flow[COMMON : COMMON + MOMENTS]
        if not sums.coupled and sums.singles.compares(place):
            low, high = sums.singles.against_served_ends(place, risk)
        else:
            own = sums.moments[place, AGAINST : AGAINST + MOMENTS]
            above, above_squares, below, below_squares = common + own
            low = float(lower_difference(rounds, above, above_squares, risk))
            high = float(-lower_difference(rounds, below, below_squares, risk))
        # By the same rounds: `common` has, less 1 in each, the gains and the losses of what was
        # exploited.
        served = ratio(common[OPPOSITE] + rounds, common[TOTAL] + rounds)
        estimate = float(comparable_means(sums, drift=True)[place] - served) if rounds > 0 else 0.0
        ends = (estimate, min(max(low, -1.0), 1.0), min(max(high, -1.0), 1.0))
        return Interval.around(*(float(sums.unmapped_difference(end)) for end in ends))

    def _against_served_without_drift(self, place: int, used: Floats) -> Interval:
        """An arm's mean loss minus that of a mixture of arms, if no mean changes."""
        estimates, lows, highs = self.bounds()
        estimate = float(estimates[place] - used @ estimates)
        other_share = used.sum() - used[place]  # the arm does not differ from itself
        others = used.copy()
        others[place] = 0.0
        low = other_share * lows[place] - others @ highs
        high = other_share * highs[place] - others @ lows
        return Interval.around(estimate, float(low), float(high))

    def _allows_drift(self, *, drift: bool | None) -> bool:
        """What a call says about drift, or else what the sequences were made with."""
        return self.drift if drift is None else bool(drift)

    def _place(self, name: str, arm: object) -> int:
        """The number of an arm that the caller gave as the argument `name`."""
        try:
            place = operator.index(arm)  # type: ignore[arg-type]
        except TypeError:
            place = -1
        if not 0 <= place < self.count:
            rule = f"must be a number from 0 to {self.count - 1}"
            raise ArmError.of(name, arm, rule, "see Sequences.live")
        return place

    def _checked_law(self, explore: int, law: Sequence[float] | Floats) -> Floats:
        """A law of exploration as an array, if it is one and could explore this arm."""
        chances = np.asarray(law, np.float64)
        is_law = (
            chances.shape == (self.count,)
            and chances.min() >= 0.0
            and abs(chances.sum() - 1.0) < 1e-6
        )
        if not is_law or chances[explore] == 0.0:
            rule = f"must be {self.count} probabilities, above 0 for the explored arm"
            raise ParameterError.of("law", law, rule, "leave it out if it is not known")
        return chances

    def seen(self, arm: int) -> int:
        """How many losses of an arm were seen.

        Args:
            arm: the number of the arm.
        """
        return int(self.sums.counts[self._place("arm", arm), SEEN])

    def used(self) -> Floats:
        """The share of each arm in what was exploited, over the observed rounds; all 0 if nothing
        was.
        """
        used = self.sums.counts[:, USED]
        return np.asarray(used / max(int(used.sum()), 1), np.float64)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON. `from_dict` restores it, bit for bit.

        >>> sequences = Sequences(arms=2)
        >>> Sequences.from_dict(sequences.to_dict()).to_dict() == sequences.to_dict()
        True
        """
        return {"format": FORMAT, **self.sums.to_dict()}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Self:
        """Restore the result of `to_dict`.

        Args:
            content: what `to_dict` returned.
        """
        version = content.get("format")
        if version != FORMAT:
            rule = f"format = {version!r}: must be {FORMAT}"
            raise StateError(
                f"{rule}; other versions bet otherwise, so replay the log with this one"
            )
        try:
            sums = Sums.from_dict(content)
        except (KeyError, TypeError, ValueError, zlib.error) as error:
            reason = f"sequences: cannot be restored ({type(error).__name__}: {error})"
            raise StateError(f"{reason}; give the result of Sequences.to_dict()") from error
        sequences = cls(arms=2)
        sequences._set(sums, int(sums.counts[:, SEEN].sum()))
        return sequences


def empty_like(sequences: Sequences, *, drift: bool, share: float = 1.0) -> Sequences:
    """Sequences of the same arms and the same kind of losses, of which nothing is known.

    Args:
        sequences: the sequences.
        drift: whether losses may drift.
        share: the share of their risk that the new ones have.
    """
    old = sequences.sums
    new = Sequences(
        sequences.count,
        max(old.risk * share, 2.0 * LEAST_RISK),
        drift=drift,
        coupled=old.coupled,
        label_share=2.0 / (1.0 + old.width),
    )
    for arm in np.flatnonzero(old.retired).tolist():
        new.retire(arm)
    return new
