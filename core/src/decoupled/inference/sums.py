"""The sums that confidence sequences are made of: a few numbers for each arm, and for each pair of
arms.

Losses lie in [0, 1], and arms are numbered 0, 1, 2, ... in the order in which they came, also after
some are retired. When arm e was explored with weight W and the loss l was seen, W l and W (1 - l)
are *weighted* losses and gains: for a given arm, with zeros in the rounds that explored another
arm, their means are its mean loss and 1 minus that.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..base.arrays import Bools, Floats, Ints
from ..base.packed import pack_floats, pack_ints, unpack_floats, unpack_ints
from ..kernels import betting as at
from .boundary import Interval
from .pairs import Pairs

_MOMENTS, _COUNTS, _ROUNDS, _FLOW = 16, 3, 4, 9
LARGEST = 1e150  # its square is finite
_START = 0.9  # the share of the arms of the start


class Observation(NamedTuple):
    """One observed round.

    Attributes:
        explore: the arm that was explored.
        weight: 1 / propensity, or an unbiased estimate of it; None if it is not known.
        loss: the loss of that arm, in [0, 1]; with labels, an estimate of it on the map of
            `Labels.to_unit`.
        exploit: the arm that was exploited; None if none was.
        available: the arms that could be explored; None for all.
        law: the probability with which each arm was explored, 0 for retired arms; None if it is not
            known.
        rho: the probability with which the round wanted a label; 1 without labels.
    """

    explore: int
    weight: float | None
    loss: float
    exploit: int | None = None
    available: Collection[int] | None = None
    law: Floats | None = None
    rho: float = 1.0


class Shown(NamedTuple):
    """The interval that showed an arm to be worse than another, and after how many observations; 0
    if that is not known.
    """

    estimate: float
    low: float
    high: float
    at: int = 0


class Best(NamedTuple):
    """The arm that was shown to be better than every other one, each by its own pair and all by the
    same rounds.

    Attributes:
        arm: the arm.
        at: after how many observations; 0 if that is not known.
        batch: the number of the last addition of arms before. It is not compared with arms that
            came later.
    """

    arm: int
    at: int
    batch: int


@dataclass(slots=True)
class Sums:
    """The sums of all arms, of what was exploited, and of pairs of arms."""

    risk: float  # with which anything in a family may ever be wrong
    drift: bool  # whether losses may drift
    coupled: bool  # whether the arm exploited is the arm explored (the standard game)
    # For each arm, four numbers each of the losses seen (`PLAIN`, unweighted); of weighted ones
    # over the comparable rounds, those that could explore every arm there is now (`COMPARABLE`),
    # and over the others (`OTHER`); and what the arm adds to the comparison with what was
    # exploited, beyond what every arm has (`AGAINST`). The four are a sum of losses and of their
    # squares, and the same of gains.
    moments: Floats
    # For each arm, how many losses of it were seen (`SEEN`), how many of the observed decisions
    # exploited it (`USED`), and in how many rounds it could be explored, apart from the comparable
    # ones (`OTHER_ROUNDS`).
    counts: Ints
    batch: Ints  # 0 for an arm that was there from the start, b for one of the b-th addition
    retired: Bools
    # The number of comparable rounds (`ROUNDS`), and of those that exploited an arm (`COMPARED`);
    # of all that did (`SERVED_ROUNDS`); and of those whose law was known (`LAW_ROUNDS`).
    rounds: Ints
    # The part of `AGAINST` that is the same for every arm (`COMMON`); moments of the estimated
    # losses of the exploited arms (`SERVED`); a level of the last losses (`LEVEL`).
    flow: Floats
    compared: list[int]  # how many ordered pairs of arms share the risk of each addition
    contenders: int  # how many arms there were when the comparable rounds began
    pairs: Pairs
    # The pairs of which the first arm was shown to be worse, in that order, with what showed it and
    # when.
    settled: dict[tuple[int, int], Shown]
    # The arm that was last shown to be better than every other one there was. Without drift nothing
    # is noted here.
    best: "Best | None" = None
    next_look: int = (
        0  # after how many observations to look for what `pairs` does not say by itself
    )
    left_out: int = 0  # decisions, because it is not known what they would have shown
    complete: int | None = (
        # how many observations there were before the first of these; None if that is not known
        None
    )
    # Of the range of losses, which is 1 without labels. They are mapped to [0, 1] from a range
    # around 1/2; only pairs of arms are compared by losses that are not mapped.
    width: float = 1.0

    @classmethod
    def start(
        cls,
        arms: int,
        coupled: bool = False,
        risk: float = 0.05,
        drift: bool = True,
        width: float = 1.0,
    ) -> "Sums":
        """The sums of arms of which nothing is known."""
        pairs = Pairs.start(arms)
        flow = np.zeros(_FLOW)
        flow[at.LEVEL] = 0.5
        sums = cls(
            *(
                risk,
                drift,
                coupled,
                np.zeros((arms, _MOMENTS)),
                np.zeros((arms, _COUNTS), np.int64),
            ),
            *(
                np.zeros(arms, np.int64),
                np.zeros(arms, np.bool_),
                np.zeros(_ROUNDS, np.int64),
                flow,
            ),
            *([arms * (arms - 1)], arms, pairs, {}),
            width=width,
        )
        sums._set_goals(range(len(pairs.owners)))
        return sums

    def copy(self) -> "Sums":
        """A copy that shares nothing with this one that changes."""
        changing = (*_ARRAYS, "compared", "pairs", "settled")
        return replace(self, **{name: getattr(self, name).copy() for name in changing})

    def unmapped(self, mean: Any) -> Any:
        """A mean loss, given the mean of mapped losses, which may lie outside [0, 1] if it is an
        end of an interval.
        """
        return mean if self.width == 1.0 else np.clip(0.5 + self.width * (mean - 0.5), 0.0, 1.0)

    def unmapped_difference(self, difference: Any) -> Any:
        """The same for a difference of two means."""
        return difference if self.width == 1.0 else np.clip(self.width * difference, -1.0, 1.0)

    @property
    def live(self) -> list[int]:
        """The arms that are not retired."""
        return np.flatnonzero(~self.retired).tolist()

    @property
    def observed(self) -> int:
        """How many losses were seen."""
        return int(self.counts[:, at.SEEN].sum())

    @property
    def decided(self) -> int | None:
        """The arm that was shown to be better than every other one there is; None if there is none."""
        if self.drift:
            is_of_all = self.best is not None and self.batch[self.live].max() <= self.best.batch
            return self.best.arm if self.best is not None and is_of_all else None
        left = set(self.live).difference(worse for worse, _ in self.settled)
        return left.pop() if len(left) == 1 else None

    @property
    def batches(self) -> int:
        """How many times arms were added."""
        return len(self.compared) - 1

    @property
    def apart(self) -> list[int]:
        """The arms that are not retired and that `pairs` does not follow."""
        found: list[int] = np.setdiff1d(np.flatnonzero(~self.retired), self.pairs.owners).tolist()
        return found

    def add_arms(self, count: int) -> None:
        """Add arms. Comparable rounds begin anew: until now no round could explore every arm there
        is.
        """
        known, batch = len(self.batch), len(self.compared)
        self.moments[:, at.OTHER : at.AGAINST] += self.moments[:, at.COMPARABLE : at.OTHER]
        self.moments[:, at.COMPARABLE : at.OTHER] = self.moments[:, at.AGAINST :] = 0.0
        self.counts[:, at.OTHER_ROUNDS] += self.rounds[at.ROUNDS]
        self.rounds[[at.ROUNDS, at.COMPARED]] = 0
        self.flow[at.COMMON : at.COMMON + 4] = 0.0
        self.moments = np.pad(self.moments, ((0, count), (0, 0)))
        self.counts = np.pad(self.counts, ((0, count), (0, 0)))
        self.batch = np.pad(self.batch, (0, count), constant_values=batch)
        self.retired = np.pad(self.retired, (0, count))
        live = self.contenders = len(self.live)
        slots = self.pairs.admit(range(known, known + count))
        # Those with a new arm, and what the others show from now on alone.
        self.compared.append(live * (live - 1))
        self._set_goals(slots)

    def retire(self, arm: int) -> None:
        """Retire an arm. What is known of the others stays."""
        self.retired[arm] = True
        self.pairs.dismiss(arm)
        self.settled = {pair: each for pair, each in self.settled.items() if arm not in pair}
        if self.best is not None and self.best.arm == arm:
            self.best = None
        # A pair that contradicted one with this arm may be settled now.
        self._set_goals(np.flatnonzero(self.pairs.owners >= 0).tolist())

    def _set_goals(self, slots: Collection[int]) -> None:
        """Set what the bets must win for each pair with one of these slots. Without drift another
        kind settles them.
        """
        if not self.drift:
            return
        pairs = self.pairs
        taken = np.flatnonzero(pairs.owners >= 0)
        for slot in slots:
            others = taken[taken != slot]
            shared = self.share_of_pairs(pairs.owners[others], int(pairs.owners[slot]))
            pairs.goals[slot, others] = pairs.goals[others, slot] = 1.0 / (self.risk * shared)
        for pair in self.settled:
            one, two = pairs.slots(pair).tolist()
            if min(one, two) >= 0:
                pairs.goals[one, two] = np.inf

    def settle(self, worse: int, better: int, shown: Interval) -> None:
        """Note that an arm was shown to be worse, unless the other one was shown to be worse than
        it before.
        """
        if not self._leads(better, worse):
            self.settled[worse, better] = Shown(*shown, self.observed)

    def _leads(self, start: int, goal: int) -> bool:
        """Whether pairs that are settled lead from an arm, always to a better one, to another."""
        reached, new = {start}, [start]
        while new:
            arm = new.pop()
            found = [
                better for worse, better in self.settled if worse == arm and better not in reached
            ]
            reached.update(found)
            new += found
        return goal in reached

    # How the risk is shared, so that everything in a family of statements holds together
    #
    # There are three families: the mean loss of every arm and of what was exploited; the difference
    # of any two arms; the difference between any arm and what was exploited. Each holds as a whole,
    # at all moments, with probability 1 - risk. Arms that come later need a share too: see
    # `share_of_batch`.

    def share_of_arms(self) -> tuple[Floats, float]:
        """The share of each arm's interval, and that of what was exploited."""
        sizes = np.bincount(self.batch, minlength=self.batches + 1)
        sizes[0] += 1  # what was exploited
        shares = np.array([share_of_batch(batch) for batch in range(len(sizes))]) / np.maximum(
            sizes, 1
        )
        return shares[self.batch], float(shares[0])

    def share_of_served_difference(self) -> float:
        """The share of each end of the difference between an arm and what was exploited, since arms
        were last added.
        """
        return share_of_batch(self.batches) / (2 * self.contenders)

    def share_of_pairs(self, firsts: Ints, second: int) -> Floats:
        """The share of "the first arm is worse than the second" in a comparison that never begins
        anew.
        """
        return _in_batches(
            np.maximum(self.batch[firsts], self.batch[second]), np.array(self.compared)
        )

    def share_of_new_pairs(self) -> float:
        """The same in a comparison that began anew when arms were last added.

        It is that of `share_of_pairs` for a pair with an arm of the last addition, whose comparison
        began then too.
        """
        return share_of_batch(self.batches) / max(self.compared[-1], 1)

    def share_of_rivals(self, arm: int, rivals: Ints) -> Floats:
        """The share of "the arm is worse than this rival", if nothing is to be said about any other
        arm.
        """
        others = np.maximum(np.delete(self.batch, arm), self.batch[arm])
        later = np.maximum(self.batch[rivals], self.batch[arm])
        return _in_batches(later, np.bincount(others, minlength=self.batches + 1))

    def to_dict(self) -> dict[str, Any]:
        """The sums as plain values."""
        flat = {name: getattr(self, name).ravel() for name in _ARRAYS}
        packed = {
            name: (pack_floats if name in _FLOATS else pack_ints)(flat[name]) for name in _ARRAYS
        }
        plain = {name: getattr(self, name) for name in _PLAIN}
        settled = [[*pair, *shown] for pair, shown in self.settled.items()]
        best = None if self.best is None else list(self.best)
        return {**plain, **packed, "pairs": self.pairs.to_dict(), "settled": settled, "best": best}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Sums":
        """Restore the result of `to_dict`."""
        plain = {name: content[name] for name in _PLAIN if name in content or name not in _OPTIONAL}
        arrays = {name: _unpack(content[name], name) for name in _ARRAYS}
        settled = {(worse, better): Shown(*shown) for worse, better, *shown in content["settled"]}
        sums = cls(
            **plain,
            **arrays,
            pairs=Pairs.from_dict(content["pairs"]),
            settled=settled,
            best=_best_of(content.get("best")),
        )
        sums._check()
        return sums

    def _check(self) -> None:
        """Raise an error if no observations could have led to these sums, as far as each number
        shows by itself.
        """
        arms, settled = (
            len(self.batch),
            np.array([[*pair, *shown] for pair, shown in self.settled.items()]),
        )
        moments, (worse, better, estimate, low, high, when) = self.moments, settled.reshape(-1, 6).T
        own = np.isin((worse, better), np.arange(arms)).all() and (worse != better).all()
        for name, holds in {
            "risk": isinstance(self.risk, float) and 0.0 < self.risk < 1.0,
            "drift": isinstance(self.drift, bool),
            "coupled": isinstance(self.coupled, bool),
            "retired": self.retired.shape == (arms,) and arms - self.retired.sum() >= 2,
            "moments": moments.shape == (arms, _MOMENTS) and _small(moments) and (moments[:, :at.AGAINST] >= 0.0).all(),
            "counts": self.counts.shape == (arms, _COUNTS) and _counted(self.counts),
            "rounds": self.rounds.shape == (_ROUNDS,) and _counted(self.rounds),
            "flow": self.flow.shape == (_FLOW,) and _small(self.flow) and 0.0 <= self.flow[at.LEVEL] <= 1.0,
            "compared": _counted(np.array(self.compared)),
            "batch": _counted(self.batch) and (self.batch <= self.batches).all(),
            "contenders": type(self.contenders) is int and 2 <= self.contenders <= arms,
            "next_look": type(self.next_look) is int and self.next_look >= 0,
            "left_out": type(self.left_out) is int and self.left_out >= 0,
            "complete": self.complete is None or (type(self.complete) is int and self.complete >= 0),
            "width": type(self.width) is float and 1.0 <= self.width < 1e6,
            "owners": np.isin(self.pairs.owners, [-1, *self.live]).all(),
            "settled": own and (low >= -1.0).all() and (low <= estimate).all() and (estimate <= high).all()
            and (when >= 0).all() and (when <= self.observed).all(),
            "best": self.best is None or self._is_best(*self.best),
        }.items():  # fmt: skip
            if not holds:
                raise ValueError(f"{name} cannot be")

    def _is_best(self, arm: int, when: int, batch: int) -> bool:
        """Whether an arm may have been shown to be the best of those that came with this addition
        or before.
        """
        others = [other for other in self.live if other != arm and self.batch[other] <= batch]
        is_shown = all((other, arm) in self.settled for other in others)
        return (
            arm in self.live
            and is_shown
            and 0 <= when <= self.observed
            and 0 <= batch <= self.batches
        )


def _best_of(content: list[int] | None) -> "Best | None":
    return None if content is None else Best(*content)


def share_of_batch(batch: int) -> float:
    """The share of the risk of all arms that came together: nine tenths for those of the start.

    The b-th addition has a tenth, divided by b (b + 1): the shares never add up to more than 1.

    >>> [share_of_batch(0), round(share_of_batch(1), 4), round(share_of_batch(2), 4)]
    [0.9, 0.05, 0.0167]
    """
    return _START if batch == 0 else (1.0 - _START) / (batch * (batch + 1))


def share_of_segment(number: int) -> float:
    """The share of a risk for a segment, by the order in which it appeared, from 1. All shares sum
    to 1.

    A segment appears with its first decision, before any of its losses is seen, so its share does
    not depend on them.

    >>> from decoupled.inference import share_of_segment
    >>> round(share_of_segment(1), 3), round(sum(map(share_of_segment, range(1, 100_000))), 3)
    (0.608, 1.0)
    """
    return 6.0 / (math.pi * number) ** 2


# At least and at most; with many arms fewer, since each keeps numbers for every pair of them.
_SEGMENTS = 10, 1_000
_SEGMENT_PAIRS = 100_000  # of arms, in all segments together


def most_segments(arms: int) -> int:
    """How many segments have sequences of their own, with so many arms.

    >>> from decoupled.inference import most_segments
    >>> most_segments(2), most_segments(20), most_segments(5_000)
    (1000, 250, 10)
    """
    fewest, most = _SEGMENTS
    return min(most, max(fewest, _SEGMENT_PAIRS // min(arms, 100) ** 2))


def _in_batches(batches: Ints, counts: Ints) -> Floats:
    whole = np.array([share_of_batch(batch) for batch in range(len(counts))])
    return np.asarray(whole[batches] / np.maximum(counts[batches], 1))


def _small(values: Floats) -> bool:
    """Whether all are numbers whose squares are finite."""
    return bool((np.abs(values) < LARGEST).all())


def _counted(values: Ints) -> bool:
    return values.dtype == np.int64 and bool((values >= 0).all())


_PLAIN = (
    "risk",
    "drift",
    "coupled",
    "compared",
    "contenders",
    "next_look",
    "left_out",
    "complete",
    "width",
)
_OPTIONAL = ("left_out", "complete", "width")  # what older states do not have
_ARRAYS = ("moments", "counts", "batch", "retired", "rounds", "flow")
_FLOATS = ("moments", "flow")
_WIDTHS = {"moments": _MOMENTS, "counts": _COUNTS}


def _unpack(text: str, name: str) -> Any:
    values = unpack_floats(text) if name in _FLOATS else unpack_ints(text)
    if name in _WIDTHS:
        return values.reshape(-1, _WIDTHS[name])
    return values.astype(np.bool_) if name == "retired" else values
