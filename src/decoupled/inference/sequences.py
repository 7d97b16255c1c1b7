"""Confidence sequences for the losses of arms, of what was exploited, and of their differences."""

import operator
from collections.abc import Collection, Sequence
from typing import Any, Self

import numpy as np

from ..base.arrays import Floats
from ..base.validation import as_float, number_in, whole_number
from ..errors import ArmError, LossError, ParameterError, StateError, invalid_value
from . import shares
from .boundary import lower_difference, lower_mean
from .evidence import lower_plain_difference
from .interval import Interval
from .sums import ArmSums, Observation, Sums, touched
from .together import add_all

FORMAT = 1
AT_ONCE = 128  # observations; they are cheaper to add together
_RISK = "the default is 0.05"


class Sequences:
    """Intervals that hold at every moment at once, so you may watch them and stop when you like.

    They are for losses in [0, 1] and for arms numbered 0, 1, 2, ... in the order in which they came. Update them with
    every loss that is observed, in any order, however late. A decision without feedback is left out: whether feedback
    comes, and when, must not depend on the arm drawn or its loss.

    With `drift=True` nothing is assumed about the losses. An interval then covers the *running mean*: the mean loss of
    an arm over all rounds observed so far, also those that explored another arm. It uses importance weights, so it is
    wide for an arm that is seldom explored.

    With `drift=False` an interval covers the mean loss of an arm if that never changes. It uses the losses seen of the
    arm and needs no weights. If the mean does change, the interval covers the mean over the moments at which the arm was
    explored, and differences of arms mean little.

    Each family of intervals (all arms and what was exploited; all differences of two arms; all differences between an
    arm and what was exploited) holds as a whole with probability 1 - `risk`.

    Args:
        arms: the number of arms.
        risk: the probability with which an interval of a family may ever fail.
        drift: which intervals the methods give unless you say otherwise.
        coupled: whether the arm exploited is the arm explored, as in the standard game.

    >>> from decoupled.inference import Sequences
    >>> sequences = Sequences(arms=2)
    >>> for n in range(2_000):
    ...     sequences.update(explore=n % 2, weight=2.0, loss=0.25 if n % 2 else 0.75, exploit=1)
    >>> [[round(float(each), 2) for each in interval] for interval in sequences.arms()]
    [[0.75, 0.68, 0.78], [0.25, 0.22, 0.32]]
    >>> sequences.difference(0, 1).low > 0.0
    True
    """

    def __init__(self, arms: int, risk: float = 0.05, *, drift: bool = True, coupled: bool = False) -> None:
        count = whole_number("arms", arms, 2, "with one arm there is nothing to compare")
        self._risk = number_in("risk", risk, 0.0, 1.0, _RISK)
        self._drift = bool(drift)
        self._set(Sums.start(count, bool(coupled)))

    def _set(self, sums: Sums, seen: int = 0, unsummed: list[Observation] | None = None) -> None:
        """Replace everything in one step, so that an interrupt leaves either the old or the new.

        `sums` are of `seen` observations. They are not changed from now on, and copies of these sequences share them.
        """
        self._now = sums, seen, unsummed or []

    def __repr__(self) -> str:
        return f"<Sequences of {self.count} arms, risk {self.risk:g}, {self.observed} observations>"

    @property
    def risk(self) -> float:
        """The probability with which an interval of a family may ever fail."""
        return self._risk

    @property
    def drift(self) -> bool:
        """Whether the intervals allow for losses that drift, unless a call says otherwise."""
        return self._drift

    @property
    def sums(self) -> Sums:
        """The sums that everything is computed from."""
        return self._sums

    @property
    def _sums(self) -> Sums:
        summed, seen, unsummed = self._now
        if unsummed:
            summed = summed.writable(touched(summed, unsummed))
            add_all(summed, unsummed)
            self._set(summed, seen + len(unsummed))
        return summed

    @property
    def observed(self) -> int:
        """The number of observations."""
        _, seen, unsummed = self._now
        return seen + len(unsummed)

    @property
    def count(self) -> int:
        """The number of arms, also of those that are retired."""
        return len(self._now[0].arms)

    @property
    def pairs_arms(self) -> bool:
        """Whether there are few enough arms to compare them two by two."""
        return self._now[0].pairs is not None

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
    ) -> None:
        """Add an observation.

        Args:
            explore: the arm that was explored.
            weight: 1 / propensity, or an unbiased estimate of it. None if neither is known: the observation then counts
                with `drift=False` only. A weight of 1 means that no other arm had a chance.
            loss: its loss, in [0, 1].
            exploit: the arm that was exploited; None if none was.
            available: the arms that could be explored; None for all. Rounds that could not explore every arm count for
                the arms that they could, and for what was exploited. They are left out of the differences.
            law: the probability with which each arm was explored in that round, 0 for those that could not be. Only
                `paired_difference` and verdicts use it, and they gain much by it.

        >>> from decoupled.inference import Sequences
        >>> Sequences(arms=2).update(explore=0, weight=2.0, loss=7.0)
        Traceback (most recent call last):
            ...
        decoupled.errors.LossError: loss = 7.0: must lie in [0, 1]; scale losses to [0, 1] first
        """
        if not (type(loss) is float and 0.0 <= loss <= 1.0):
            loss = _checked_loss(loss)
        if weight is not None and not (type(weight) is float and 0.0 < weight < 1e100):
            weight = number_in("weight", weight, 0.0, 1e100, "give 1 / propensity, or None")
        explore = self._place("explore", explore)
        exploit = None if exploit is None else self._place("exploit", exploit)
        if available is not None and not (
            explore in available and min(available) >= 0 and max(available) < self.count
        ):
            rule = f"must be numbers from 0 to {self.count - 1} that include the explored arm"
            raise ArmError(invalid_value("available", available, rule, "leave it out for all arms"))
        chances = None if law is None else self._checked_law(explore, law)
        self.add(Observation(explore, weight, loss, exploit, available, chances))

    def add(self, seen: Observation) -> None:
        """Add an observation that needs no checks; `update` makes them. It is summed when something is asked.

        Args:
            seen: the observation.
        """
        unsummed = self._now[2]
        unsummed.append(seen)
        if len(unsummed) >= AT_ONCE:
            self._sums  # noqa: B018

    def add_once(self, number: int, seen: Observation) -> None:
        """Add the observation that comes after so many others, unless it was added already.

        Args:
            number: how many observations were there before it.
            seen: the observation.
        """
        if self.observed == number:
            self.add(seen)

    def add_arms(self, count: int = 1) -> None:
        """Add arms, numbered on from the last. Differences begin anew; the intervals of the other arms do not.

        Args:
            count: how many arms to add, at least one.

        >>> from decoupled.inference import Sequences
        >>> sequences = Sequences(arms=2)
        >>> sequences.add_arms(1)
        >>> sequences.live
        [0, 1, 2]
        """
        newcomers = whole_number("count", count, 1, "give the number of new arms")
        sums = self._sums.writable(range(self.count))
        sums.add_arms(newcomers)
        self._set(sums, self.observed)

    def retire(self, arm: int) -> None:
        """Retire an arm. Its number is not used again, and what is known of the others stays.

        Args:
            arm: the number of the arm.

        >>> from decoupled.inference import Sequences
        >>> sequences = Sequences(arms=3)
        >>> sequences.retire(1)
        >>> sequences.live
        [0, 2]
        """
        place = self._place("arm", arm)
        sums = self._sums.writable([place])
        sums.arms[place].retired = True
        self._set(sums, self.observed)

    def copy(self) -> Self:
        """The same sequences, which go on independently of these.

        >>> from decoupled.inference import Sequences
        >>> sequences = Sequences(arms=2)
        >>> twin = sequences.copy()
        >>> sequences.update(explore=0, weight=2.0, loss=0.5)
        >>> sequences.observed, twin.observed
        (1, 0)
        """
        twin = type(self).__new__(type(self))
        twin._risk, twin._drift = self._risk, self._drift
        sums, seen, unsummed = self._now
        twin._set(sums, seen, unsummed.copy())
        return twin

    # Intervals

    def arms(self, *, drift: bool | None = None) -> list[Interval]:
        """The interval of every arm's mean loss, also of retired arms.

        Args:
            drift: whether losses may drift; None for what the sequences were made with.
        """
        estimates, lows, highs = self.bounds(drift=drift)
        ends = zip(estimates.tolist(), lows.tolist(), highs.tolist(), strict=True)
        return [Interval.around(*each) for each in ends]

    def arm(self, arm: int, *, drift: bool | None = None) -> Interval:
        """The interval of one arm's mean loss.

        Args:
            arm: the number of the arm.
            drift: whether losses may drift; None for what the sequences were made with.
        """
        place = self._place("arm", arm)
        return self.arms(drift=drift)[place]

    def bounds(
        self, *, drift: bool | None = None, among: Sequence[int] | None = None
    ) -> tuple[Floats, Floats, Floats]:
        """Arrays over all arms, or over those in `among`: the estimates, the lower and the upper ends.

        Args:
            drift: whether losses may drift; None for what the sequences were made with.
            among: the numbers of the arms that the arrays are over; None for all.
        """
        risks = self._risk * shares.of_arms(self._sums)[0] / 2.0
        if among is not None:
            risks = risks[[self._place("among", arm) for arm in among]]
        rounds, moments = self._moments(self._allows_drift(drift), among)
        lows = lower_mean(rounds, moments[0], moments[1], risks)
        highs = 1.0 - lower_mean(rounds, moments[2], moments[3], risks)
        return _ratio(moments[0], moments[2]), lows, highs

    def estimates(self, *, drift: bool | None = None) -> Floats:
        """The estimated mean loss of every arm: its weighted losses over their weights; 1/2 if none was seen.

        Args:
            drift: whether losses may drift; None for what the sequences were made with.
        """
        moments = self._moments(self._allows_drift(drift))[1]
        return _ratio(moments[0], moments[2])

    def served(self, *, drift: bool | None = None) -> Interval:
        """The interval of the mean loss of what was exploited, over the observed rounds that exploited an arm.

        Args:
            drift: whether losses may drift; None for what the sequences were made with.
        """
        sums, used = self._sums, self.used()
        if not self._allows_drift(drift):
            if not used.any():
                return Interval(0.5, 0.0, 1.0)
            estimates, lows, highs = self.bounds(drift=False)
            return Interval.around(*(float(used @ each) for each in (estimates, lows, highs)))
        risk = self._risk * shares.of_arms(sums)[1] / 2.0
        loss, losses, gain, gains = sums.served
        low = lower_mean(sums.served_rounds, loss, losses, risk)
        high = 1.0 - lower_mean(sums.served_rounds, gain, gains, risk)
        return Interval.around(float(_ratio(np.array(loss), np.array(gain))), float(low), float(high))

    def difference(self, arm: int, other: int, *, drift: bool | None = None) -> Interval:
        """The interval of one arm's mean loss minus another's: above 0 if the other arm is better.

        Args:
            arm: the number of an arm.
            other: the number of the arm to compare it with.
            drift: whether losses may drift; None for what the sequences were made with.
        """
        arm, other = self._place("arm", arm), self._place("other", other)
        if arm == other:
            return Interval(0.0, 0.0, 0.0)
        estimates = self.estimates(drift=drift)
        estimate = float(estimates[arm] - estimates[other])
        low, high = (self._lower_difference(*pair, drift) for pair in ((arm, other), (other, arm)))
        return Interval.around(estimate, low, -high)

    def _lower_difference(self, arm: int, other: int, drift: bool | None) -> float:
        if not self._allows_drift(drift):
            return lower_plain_difference(self._sums, self._risk, arm, other)
        risk = self._risk * shares.of_difference(self._sums)
        return float(lower_difference(*self.pair(arm, other), risk))

    def paired_difference(self, arm: int, other: int) -> Interval:
        """The interval of one arm's mean loss minus another's, over rounds weighted by the chance to explore both.

        The weight of a round is the smaller of the two probabilities. Losses may drift; if the difference of the two
        arms does not, the interval covers it. Only rounds whose law is known count. See `decoupled.inference.pairs`.

        Args:
            arm: the number of an arm.
            other: the number of the arm to compare it with.

        >>> from decoupled.inference import Sequences
        >>> sequences = Sequences(arms=2)
        >>> for n in range(2_000):
        ...     sequences.update(explore=n % 2, weight=2.0, loss=0.25 if n % 2 else 0.75, law=[0.5, 0.5])
        >>> [round(each, 2) for each in sequences.paired_difference(0, 1)]
        [0.5, 0.46, 0.55]
        """
        arm, other = self._place("arm", arm), self._place("other", other)
        pairs = self._sums.pairs
        if pairs is None or arm == other or pairs.weights[arm, other] == 0.0:
            return Interval(0.0, 0.0, 0.0) if arm == other else Interval(0.0, -1.0, 1.0)
        weight, total, squares = (
            float(each[arm, other]) for each in (pairs.weights, pairs.differences, pairs.squares)
        )
        risk = self._risk * float(shares.of_lasting_difference(self._sums, np.array([arm]), other)[0])
        ends = (lower_difference(weight, sign * total, squares, risk) for sign in (1.0, -1.0))
        return Interval.around(total / weight, float(next(ends)), -float(next(ends)))

    def against_served(self, arm: int, *, drift: bool | None = None) -> Interval:
        """The interval of an arm's mean loss minus that of what was exploited: above 0 if the arm is worse.

        Args:
            arm: the number of the arm.
            drift: whether losses may drift; None for what the sequences were made with.
        """
        mine, sums, used = self._arm(arm), self._sums, self.used()
        if not used.any():
            return Interval(0.0, -1.0, 1.0)
        estimates = self.estimates(drift=drift)
        estimate = float(estimates[arm] - used @ estimates)
        if not self._allows_drift(drift):
            _, lows, highs = self.bounds(drift=False)
            apart = used.sum() - used[arm]  # the arm does not differ from itself
            used[arm] = 0.0
            low, high = apart * lows[arm] - used @ highs, apart * highs[arm] - used @ lows
            return Interval.around(estimate, float(low), float(high))
        risk = self._risk * shares.of_served_difference(sums)
        above, aboves, below, belows = (
            common + own for common, own in zip(sums.common, mine.against, strict=True)
        )
        low = lower_difference(sums.compared, above, aboves, risk)
        high = -lower_difference(sums.compared, below, belows, risk)
        return Interval.around(estimate, float(low), float(high))

    # Parts of the above

    def _allows_drift(self, drift: bool | None) -> bool:
        return self._drift if drift is None else bool(drift)

    def _arm(self, arm: int) -> ArmSums:
        return self._sums.arms[self._place("arm", arm)]

    def _place(self, name: str, arm: object) -> int:
        try:
            place = operator.index(arm)  # type: ignore[arg-type]
        except TypeError:
            place = -1
        if not 0 <= place < self.count:
            rule = f"must be a number from 0 to {self.count - 1}"
            raise ArmError(invalid_value(name, arm, rule, "see Sequences.live"))
        return place

    def _checked_law(self, explore: int, law: Sequence[float] | Floats) -> Floats:
        chances = np.asarray(law, np.float64)
        if (
            chances.shape != (self.count,)
            or not chances.min() >= 0.0
            or not abs(chances.sum() - 1.0) < 1e-6
            or chances[explore] == 0.0
        ):
            rule = f"must be {self.count} probabilities, above 0 for the explored arm"
            raise ParameterError(invalid_value("law", law, rule, "leave it out if it is not known"))
        return chances

    def _moments(self, drift: bool, among: Sequence[int] | None = None) -> tuple[Floats, Floats]:
        """For each arm, the number of rounds that its moments are over, and a row for each moment."""
        arms, rounds = self._sums.arms, self._sums.rounds
        if among is not None:
            arms = [arms[place] for place in among]
        if not drift:
            return np.array([arm.seen for arm in arms], np.float64), np.array([arm.plain for arm in arms]).T
        moments = np.array([arm.comparable for arm in arms]) + np.array([arm.other for arm in arms])
        return np.array([rounds + arm.other_rounds for arm in arms], np.float64), moments.T

    def pair(self, arm: int, other: int) -> tuple[int, float, float]:
        """The number of comparable rounds, and the sum and sum of squares of "loss of arm + gain of other - 1".

        Args:
            arm: the number of an arm.
            other: the number of the arm to compare it with.
        """
        n = self._sums.rounds
        loss, losses = self._sums.arms[arm].comparable[:2]
        gain, gains = self._sums.arms[other].comparable[2:]
        return n, loss + gain - n, losses + gains + n - 2.0 * (loss + gain)

    def used(self) -> Floats:
        """The share of each arm in what was exploited, over the observed rounds."""
        used = np.array([arm.used for arm in self._sums.arms], np.float64)
        total: float = max(float(used.sum()), 1.0)
        shared: Floats = used / total
        return shared

    # Saving

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON. `from_dict` restores it, bit for bit.

        >>> from decoupled.inference import Sequences
        >>> sequences = Sequences(arms=2)
        >>> Sequences.from_dict(sequences.to_dict()).to_dict() == sequences.to_dict()
        True
        """
        return {"format": FORMAT, "risk": self._risk, "drift": self._drift, **self._sums.to_dict()}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Self:
        """Restore the result of `to_dict`.

        Args:
            content: what `to_dict` returned.
        """
        try:
            rest = dict(content)
            found, risk, drift = rest.pop("format"), rest.pop("risk"), rest.pop("drift")
            if found != FORMAT:
                raise StateError(f"format = {found!r}: must be {FORMAT}; update the package")
            sequences = cls(len(rest["arms"]), risk, drift=drift)
            sums = Sums.from_dict(rest)
            sequences._set(sums, sum(arm.seen for arm in sums.arms))
        except (KeyError, TypeError, ParameterError) as error:
            raise StateError(
                f"sequences: cannot be restored ({type(error).__name__}: {error}); "
                "give the result of Sequences.to_dict()"
            ) from error
        return sequences


def _checked_loss(loss: object) -> float:
    number = as_float(loss)
    if number is None or not 0.0 <= number <= 1.0:
        raise LossError(invalid_value("loss", loss, "must lie in [0, 1]", "scale losses to [0, 1] first"))
    return number


def _ratio(loss: Floats, gain: Floats) -> Floats:
    """The self-normalised estimate: weighted losses over weights; 1/2 where nothing was seen."""
    weights = loss + gain
    with np.errstate(invalid="ignore"):
        return np.where(weights > 0.0, loss / np.where(weights > 0.0, weights, 1.0), 0.5)
