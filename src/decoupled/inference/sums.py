"""The sums that confidence sequences are made of: a few numbers for each arm.

Losses lie in [0, 1], and arms are numbered 0, 1, 2, ... in the order in which they came, also after some are retired.
When arm e was explored with weight W and the loss l was seen, W l and W (1 - l) are *weighted* losses and gains: for a
given arm, with zeros in the rounds that explored another arm, their means are its mean loss and 1 minus that.
"""

from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, NamedTuple

from ..base.arrays import Floats
from .pairs import MOST, Pairs

# A sum of losses and of their squares, then the same of gains.
Moments = list[float]


def new_moments() -> Moments:
    """Four zeros."""
    return [0.0, 0.0, 0.0, 0.0]


def add_to(moments: Moments, loss: float, gain: float) -> None:
    """Add one loss and its gain."""
    moments[0] += loss
    moments[1] += loss * loss
    moments[2] += gain
    moments[3] += gain * gain


@dataclass(slots=True)
class ArmSums:
    """What is summed for one arm.

    Attributes:
        batch: 0 for an arm that was there from the start, b for one of the b-th addition.
        seen: how many losses of the arm were seen.
        plain: the moments of these, unweighted.
        used: how many of the observed decisions exploited the arm.
        other_rounds: the rounds in which the arm could be explored, apart from the comparable ones.
        comparable: weighted moments over the comparable rounds: those that could explore every arm there is now.
        other: weighted moments over the other rounds.
        against: what the arm adds to the comparison with what was exploited, beyond what every arm has.
    """

    batch: int = 0
    seen: int = 0
    plain: Moments = field(default_factory=new_moments)
    used: int = 0
    other_rounds: int = 0
    comparable: Moments = field(default_factory=new_moments)
    other: Moments = field(default_factory=new_moments)
    against: Moments = field(default_factory=new_moments)
    retired: bool = False

    def copy(self) -> "ArmSums":
        """A copy that shares nothing with this one."""
        return ArmSums(
            *(self.batch, self.seen, self.plain.copy(), self.used, self.other_rounds),
            *(self.comparable.copy(), self.other.copy(), self.against.copy(), self.retired),
        )


class Observation(NamedTuple):
    """One observed round.

    Attributes:
        explore: the arm that was explored.
        weight: 1 / propensity, or an unbiased estimate of it; None if it is not known.
        loss: the loss of that arm, in [0, 1].
        exploit: the arm that was exploited; None if none was.
        available: the arms that could be explored; None for all.
        law: the probability with which each arm was explored, 0 for retired arms; None if it is not known.
    """

    explore: int
    weight: float | None
    loss: float
    exploit: int | None = None
    available: Collection[int] | None = None
    law: Floats | None = None


@dataclass(slots=True)
class Sums:
    """The sums of all arms, and of what was exploited.

    Attributes:
        coupled: whether the arm exploited is the arm explored (the standard game).
        arms: the sums of each arm.
        batches: how many times arms were added.
        contenders: how many arms there were when the current comparison began.
        rounds: the number of comparable rounds.
        compared: how many of them exploited an arm.
        common: the part of `ArmSums.against` that is the same for every arm.
        served_rounds: the number of rounds that exploited an arm.
        served: moments of the estimated losses of the exploited arms.
        pairs: the arms two by two, from rounds whose law is known; None if there are too many arms for it.
    """

    coupled: bool = False
    arms: list[ArmSums] = field(default_factory=list)
    batches: int = 0
    contenders: int = 0
    rounds: int = 0
    compared: int = 0
    common: Moments = field(default_factory=new_moments)
    served_rounds: int = 0
    served: Moments = field(default_factory=new_moments)
    pairs: Pairs | None = None

    @classmethod
    def start(cls, arms: int, coupled: bool) -> "Sums":
        """The sums of arms of which nothing is known."""
        pairs = Pairs.start(arms) if arms <= MOST else None
        return cls(coupled, [ArmSums() for _ in range(arms)], contenders=arms, pairs=pairs)

    @property
    def live(self) -> list[int]:
        """The arms that are not retired."""
        return [place for place, arm in enumerate(self.arms) if not arm.retired]

    def writable(self, places: Iterable[int]) -> "Sums":
        """A copy that may be changed, but of the arms only those at these places."""
        arms = self.arms.copy()
        for place in places:
            arms[place] = arms[place].copy()
        pairs = None if self.pairs is None else self.pairs.copy()
        return replace(self, arms=arms, common=self.common.copy(), served=self.served.copy(), pairs=pairs)

    def add_arms(self, count: int) -> None:
        """Add arms. Comparisons begin anew: until now no round could explore every arm there is."""
        self.batches += 1
        for arm in self.arms:
            arm.other_rounds += self.rounds
            arm.other = [old + new for old, new in zip(arm.other, arm.comparable, strict=True)]
            arm.comparable, arm.against = new_moments(), new_moments()
        self.rounds = self.compared = 0
        self.common = new_moments()
        self.arms += [ArmSums(self.batches) for _ in range(count)]
        self.contenders = len(self.live)
        if self.pairs is not None:
            self.pairs = self.pairs.extended(count) if len(self.arms) <= MOST else None

    def add(self, seen: Observation) -> None:
        """Add an observation."""
        explore, weight, loss, exploit, available, law = seen
        arm, gain = self.arms[explore], 1.0 - loss
        arm.seen += 1
        add_to(arm.plain, loss, gain)
        if exploit is not None:
            self.arms[exploit].used += 1
        if law is not None and self.pairs is not None:
            self.pairs.add(explore, law, loss)
        if weight is None:
            if self.coupled:  # what was exploited is what was seen
                self._serve(seen, 0.0, 0.0)
            return
        if weight == 1.0:  # no other arm had a chance
            available = (explore,)
        weighted = weight * loss, weight * gain
        if available is not None and (len(available) < len(self.arms) and not self._covers(available)):
            for place in available:
                self.arms[place].other_rounds += 1
            add_to(arm.other, *weighted)
            if exploit in available:  # else the exploited arm had no chance to be explored
                self._serve(seen, *weighted)
            return
        self.rounds += 1
        add_to(arm.comparable, *weighted)
        served = self._serve(seen, *weighted)
        if served is not None:
            self._compare(seen, weighted, served)

    def _covers(self, available: Iterable[int]) -> bool:
        return set(available).issuperset(self.live)

    def _serve(self, seen: Observation, loss: float, gain: float) -> tuple[float, float] | None:
        """Estimate the loss and the gain of the exploited arm: each is unbiased, and 0 or more."""
        if seen.exploit is None:
            return None
        if self.coupled:
            loss, gain = seen.loss, 1.0 - seen.loss
        elif seen.exploit != seen.explore:
            loss = gain = 0.0
        self.served_rounds += 1
        add_to(self.served, loss, gain)
        return loss, gain

    def _compare(
        self, seen: Observation, weighted: tuple[float, float], served: tuple[float, float]
    ) -> None:
        """Add "loss of an arm minus loss of the exploited arm", and its opposite, for every arm.

        Both are written as a loss plus a gain minus 1, which is at least -1 whatever the weight. They are the same for
        all arms but the explored arm and the exploited one, so only those two keep a difference from the common sum.
        """
        self.compared += 1
        above, below = served[1] - 1.0, served[0] - 1.0
        add_to(self.common, above, below)
        explore, exploit = seen.explore, seen.exploit
        if not self.coupled and exploit is not None:
            _correct(self.arms[exploit].against, above, below, 0.0, 0.0)  # an arm and itself do not differ
        if self.coupled or exploit != explore:
            _correct(self.arms[explore].against, above, below, above + weighted[0], below + weighted[1])

    def to_dict(self) -> dict[str, Any]:
        """The sums as plain values."""
        content = {each.name: getattr(self, each.name) for each in fields(self)}
        arms = [asdict(arm) for arm in self.arms]
        return {**content, "arms": arms, "pairs": None if self.pairs is None else self.pairs.to_dict()}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Sums":
        """Restore the result of `to_dict`."""
        arms, pairs = [ArmSums(**arm) for arm in content["arms"]], content["pairs"]
        matrices = None if pairs is None else Pairs.from_dict(len(arms), pairs)
        return cls(**{**content, "arms": arms, "pairs": matrices})


def touched(sums: Sums, seen: Iterable[Observation]) -> set[int]:
    """The arms whose sums change when these observations are added."""
    places: set[int] = set()
    for each in seen:
        places.add(each.explore)
        if each.exploit is not None:
            places.add(each.exploit)
        if each.available is not None and len(each.available) < len(sums.arms):
            places.update(each.available)
    return places


def _correct(moments: Moments, above: float, below: float, new_above: float, new_below: float) -> None:
    moments[0] += new_above - above
    moments[1] += new_above * new_above - above * above
    moments[2] += new_below - below
    moments[3] += new_below * new_below - below * below
