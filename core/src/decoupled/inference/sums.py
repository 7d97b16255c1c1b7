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
from ..kernels.betting import (
    AGAINST,
    COMMON,
    COMPARABLE,
    COMPARED,
    MOMENTS,
    OTHER,
    OTHER_ROUNDS,
    ROUNDS,
    SEEN,
)
from .boundary import Interval
from .missing import NOTHING_MISSING, Missing
from .outs import Outs
from .pairs import Pairs
from .singles import Singles

# How many numbers there are of each kind: for an arm, and for all arms together.
_ARM_MOMENTS = 4 * MOMENTS
_COUNTS = 3
_ROUNDS = 4
_FLOW = 2 * MOMENTS
LARGEST = 1e150  # its square is finite
_HALF = 0.5
_SHARE_OF_START = 0.9  # of the risk, for the arms of the start


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
        label: the label that it got, in [0, 1]; None if it got none, and without labels; NaN in a
            learner's queue while a wanted one is not known yet.

    The second arm was explored with probability 1/4, and lost 0.3:

    >>> from decoupled.inference import Sequences
    >>> sequences = Sequences(arms=2)
    >>> sequences.add(Observation(explore=1, weight=4.0, loss=0.3))
    >>> sequences.observed
    1
    """

    explore: int
    weight: float | None
    loss: float
    exploit: int | None = None
    available: Collection[int] | None = None
    law: Floats | None = None
    rho: float = 1.0
    label: float | None = None


class Shown(NamedTuple):
    """The interval that showed an arm to be worse than another.

    Attributes:
        estimate: the estimated difference of their losses.
        low: the lower end.
        high: the upper end.
        at: after how many observations; 0 if that is not known.
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
    """The sums of all arms, of what was exploited, and of pairs of arms.

    Moments are sums of losses and of their squares, and the same of gains; see
    `decoupled.kernels.betting`.

    Attributes:
        risk: the probability with which anything in a family may ever be wrong.
        drift: whether losses may drift.
        coupled: whether the arm exploited is the arm explored (the standard game).
        moments: for each arm, those of the losses seen (`PLAIN`, unweighted); of weighted ones over
            the comparable rounds, those that could explore every arm there is now (`COMPARABLE`),
            and over the others (`OTHER`); and what the arm adds to the comparison with what was
            exploited, beyond what every arm has (`AGAINST`).
        counts: for each arm, how many losses of it were seen (`SEEN`), how many of the observed
            decisions exploited it (`USED`), and in how many rounds it could be explored, apart from
            the comparable ones (`OTHER_ROUNDS`).
        batch: for each arm, 0 if it was there from the start, b if it is of the b-th addition.
        retired: whether each arm is retired.
        rounds: the number of comparable rounds (`ROUNDS`), and of those that exploited an arm
            (`COMPARED`); of all that did (`SERVED_ROUNDS`); and of those whose law was known
            (`LAW_ROUNDS`).
        flow: the part of `AGAINST` that is the same for every arm (`COMMON`); moments of the
            estimated losses of the exploited arms (`SERVED`).
        compared: how many ordered pairs of arms share the risk of each addition.
        contenders: how many arms there were when the comparable rounds began.
        pairs: what bets on pairs of arms have won.
        singles: what bets on single means have won.
        outs: what the bet of each arm against the leader has won.
        out_at: after how many observations each arm was shown to be out by its own bet, in that
            order.
        settled: the pairs of which the first arm was shown to be worse, in that order, with what
            showed it and when.
        best: the arm that was last shown to be better than every other one there was. Without
            drift nothing is noted here.
        next_look: after how many observations to look for what `pairs` does not say by itself.
        left_out: how many decisions are left out, because it is not known what they would have
            shown.
        missing: what is missing of each arm.
        complete: how many observations there were before the first decision that was left out;
            None if that is not known.
        by_law: whether the law of the first round was known; None before it. Without drift, arms
            are then judged by bets against the leader, and else by the losses seen.
        width: the width of the range of losses, which is 1 without labels. They are mapped to
            [0, 1] from a range around 1/2; only pairs of arms are compared by losses that are not
            mapped.
    """

    risk: float
    drift: bool
    coupled: bool
    moments: Floats
    counts: Ints
    batch: Ints
    retired: Bools
    rounds: Ints
    flow: Floats
    compared: list[int]
    contenders: int
    pairs: Pairs
    singles: Singles
    outs: Outs
    out_at: dict[int, int]
    settled: dict[tuple[int, int], Shown]
    best: "Best | None" = None
    next_look: int = 0
    left_out: int = 0
    missing: Missing = NOTHING_MISSING
    complete: int | None = None
    by_law: bool | None = None
    width: float = 1.0

    @classmethod
    def start(
        cls,
        arms: int,
        *,
        risk: float = 0.05,
        drift: bool = True,
        coupled: bool = False,
        width: float = 1.0,
    ) -> "Sums":
        """The sums of arms of which nothing is known."""
        pairs = Pairs.start(arms)
        sums = cls(
            risk=risk,
            drift=drift,
            coupled=coupled,
            moments=np.zeros((arms, _ARM_MOMENTS)),
            counts=np.zeros((arms, _COUNTS), np.int64),
            batch=np.zeros(arms, np.int64),
            retired=np.zeros(arms, np.bool_),
            rounds=np.zeros(_ROUNDS, np.int64),
            flow=np.zeros(_FLOW),
            compared=[arms * (arms - 1)],
            contenders=arms,
            pairs=pairs,
            singles=Singles.start(arms),
            outs=Outs.start(arms),
            out_at={},
            settled={},
            width=width,
        )
        sums._set_goals(range(len(pairs.owners)))
        return sums

    def copy(self) -> "Sums":
        """A copy that shares nothing with this one that changes."""
        changing = (*_ARRAYS, "compared", "pairs", "singles", "outs", "out_at", "settled")
        return replace(self, **{name: getattr(self, name).copy() for name in changing})

    def unmapped(self, mean: Any) -> Any:
        """A mean loss, given the mean of mapped losses, which may lie outside [0, 1] if it is an
        end of an interval.
        """
        return mean if self.width == 1.0 else np.clip(0.5 + self.width * (mean - 0.5), 0.0, 1.0)

    def unmapped_difference(self, difference: Any) -> Any:
        """The difference of two means, given that of mapped losses."""
        return difference if self.width == 1.0 else np.clip(self.width * difference, -1.0, 1.0)

    @property
    def live(self) -> list[int]:
        """The arms that are not retired."""
        return np.flatnonzero(~self.retired).tolist()

    @property
    def observed(self) -> int:
        """How many losses were seen."""
        return int(self.counts[:, SEEN].sum())

    @property
    def decided(self) -> int | None:
        """The arm that was shown to be better than every other one; None if there is none."""
        if self.drift:
            best = self.best
            if best is None or self.batch[self.live].max() > best.batch:  # some arms came later
                return None
            return best.arm
        left = set(self.live).difference(self.out_since)
        return left.pop() if len(left) == 1 else None

    @property
    def out_since(self) -> dict[int, int]:
        """After how many observations each arm that is out was first shown to be worse."""
        since = dict(self.out_at)
        for (worse, _), shown in self.settled.items():
            since[worse] = min(since.get(worse, shown.at), shown.at)
        return since

    @property
    def batches(self) -> int:
        """How many times arms were added."""
        return len(self.compared) - 1

    @property
    def apart(self) -> list[int]:
        """The arms that are not retired and that `pairs` does not follow."""
        live = np.flatnonzero(~self.retired)
        arms: list[int] = np.setdiff1d(live, self.pairs.owners).tolist()
        return arms

    @property
    def has_arms_apart(self) -> bool:
        """Whether there are such arms. Only arms that are not retired have a place in `pairs`."""
        return len(self.retired) - int(self.retired.sum()) > int((self.pairs.owners >= 0).sum())

    def add_arms(self, count: int) -> None:
        """Add arms. Comparable rounds start again: until now no round could explore every arm there
        is.
        """
        old_count = len(self.batch)
        batch = len(self.compared)
        self.moments[:, OTHER:AGAINST] += self.moments[:, COMPARABLE:OTHER]
        self.moments[:, COMPARABLE:OTHER] = 0.0
        self.moments[:, AGAINST:] = 0.0
        self.counts[:, OTHER_ROUNDS] += self.rounds[ROUNDS]
        self.rounds[[ROUNDS, COMPARED]] = 0
        self.flow[COMMON : COMMON + MOMENTS] = 0.0
        self.moments = np.pad(self.moments, ((0, count), (0, 0)))
        self.counts = np.pad(self.counts, ((0, count), (0, 0)))
        self.batch = np.pad(self.batch, (0, count), constant_values=batch)
        self.retired = np.pad(self.retired, (0, count))
        self.contenders = len(self.live)
        slots = self.pairs.admit(range(old_count, old_count + count))
        self.singles.add_arms(count)
        self.outs.begin_epoch(old_count + count, self.contenders)
        # Those with a new arm, and what the others show from now on alone.
        self.compared.append(self.contenders * (self.contenders - 1))
        self._set_goals(slots)

    def retire(self, arm: int) -> None:
        """Retire an arm. What is known of the others stays."""
        self.retired[arm] = True
        self.pairs.dismiss(arm)
        self.settled = {pair: shown for pair, shown in self.settled.items() if arm not in pair}
        if self.out_at.pop(arm, None) is not None:
            self.outs.readmit([arm])
        if self.outs.led[arm]:
            # What the others' bets have won, they may have won against this arm.
            self.outs.readmit(list(self.out_at))
            self.out_at = {}
            self.outs.begin_epoch(len(self.batch), len(self.live))
        if self.best is not None and self.best.arm == arm:
            self.best = None
        # A pair that contradicted one with this arm may be settled now.
        self._set_goals(np.flatnonzero(self.pairs.owners >= 0).tolist())

    def _set_goals(self, slots: Collection[int]) -> None:
        """Set what the bets must win for each pair with one of these slots. Without drift another
        kind of evidence settles them.
        """
        if not self.drift:
            return
        pairs = self.pairs
        taken = np.flatnonzero(pairs.owners >= 0)
        for slot in slots:
            others = taken[taken != slot]
            owners = pairs.owners[others], int(pairs.owners[slot])
            parts = self.part_of_pairs(self.later_batches(*owners))
            goals = 1.0 / (self.risk * parts * self.share_of_pairs(*owners))
            pairs.goals[slot, others] = goals
            pairs.goals[others, slot] = goals
        for pair in self.settled:
            worse, better = pairs.slots(pair).tolist()
            if min(worse, better) >= 0:
                pairs.goals[worse, better] = np.inf

    def settle(self, worse: int, better: int, shown: Interval) -> None:
        """Note that an arm was shown to be worse, unless the other one was shown to be worse than
        it before.
        """
        if not self._leads(better, worse):
            self.settled[worse, better] = Shown(*shown, at=self.observed)

    def _leads(self, start: int, goal: int) -> bool:
        """Whether pairs that are settled lead from an arm, always to a better one, to another."""
        reached = {start}
        unvisited = [start]
        while unvisited:
            arm = unvisited.pop()
            for worse, better in self.settled:
                if worse == arm and better not in reached:
                    reached.add(better)
                    unvisited.append(better)
        return goal in reached

    # How the risk is shared, so that everything in a family of statements holds together
    #
    # There are three families: the mean loss of every arm and of what was exploited; which arms are
    # out, and the difference of any two arms; the difference between any arm and what was
    # exploited. Each holds as a whole, at all moments, with probability 1 - risk. Arms that come
    # later need a share too: see `share_of_batch`.

    def part_of_pairs(self, batches: Any) -> Any:
        """The part of the risk that pairs have if losses may drift, by the later addition of the
        two arms: half, because the bets against the leader have the other half.

        Two arms from the start have all of it: the leader is the only rival of the other.
        """
        return np.where((np.asarray(batches) == 0) & (self.compared[0] == 2), 1.0, _HALF)

    @property
    def part_of_outs(self) -> float:
        """The part of the risk of an epoch that the bets against the leader have if losses may
        drift.
        """
        return 0.0 if self.outs.epoch == 0 and self.outs.contenders == 2 else _HALF

    @property
    def goal_of_outs(self) -> float:
        """The money that shows an arm to be out; without drift, it is that of a mean."""
        risk = self.risk * share_of_batch(self.outs.epoch)
        if not self.drift:
            return 1.0 / risk
        if self.part_of_outs == 0.0:
            return math.inf
        return self.outs.contenders / (risk * self.part_of_outs)

    def later_batches(self, firsts: Ints, seconds: Ints | int) -> Ints:
        """The later addition of each two of these arms."""
        return np.asarray(np.maximum(self.batch[firsts], self.batch[seconds]))

    def share_of_arms(self) -> tuple[Floats, float]:
        """The share of each arm's interval, and that of what was exploited."""
        sizes = np.bincount(self.batch, minlength=self.batches + 1)
        sizes[0] += 1  # what was exploited
        batch_shares = np.array([share_of_batch(batch) for batch in range(len(sizes))])
        shares = batch_shares / np.maximum(sizes, 1)
        return shares[self.batch], float(shares[0])

    def share_of_served_difference(self) -> float:
        """The share of each end of the difference between an arm and what was exploited, since arms
        were last added.
        """
        return share_of_batch(self.batches) / (2 * self.contenders)

    def share_of_pairs(self, firsts: Ints, seconds: Ints | int) -> Floats:
        """The share of "the first arm is worse than the second" in a comparison that never starts
        again.
        """
        later = self.later_batches(firsts, seconds)
        return _shares_in_batches(later, np.array(self.compared))

    def share_of_new_pairs(self) -> float:
        """The share of "the first arm is worse than the second" in a comparison that started again
        when arms were last added.

        A pair with an arm of the last addition has the same share in `share_of_pairs`: its
        comparison began then too.
        """
        return share_of_batch(self.batches) / max(self.compared[-1], 1)

    def share_of_rivals(self, arm: int, rivals: Ints) -> Floats:
        """The share of "the arm is worse than this rival", if nothing is to be said about any other
        arm.
        """
        others = np.maximum(np.delete(self.batch, arm), self.batch[arm])
        later = np.maximum(self.batch[rivals], self.batch[arm])
        return _shares_in_batches(later, np.bincount(others, minlength=self.batches + 1))

    def to_dict(self) -> dict[str, Any]:
        """The sums as plain values."""
        content: dict[str, Any] = {name: getattr(self, name) for name in _PLAIN}
        for name in _ARRAYS:
            values = getattr(self, name).ravel()
            content[name] = pack_floats(values) if name in _FLOATS else pack_ints(values)
        content["pairs"] = self.pairs.to_dict()
        content["singles"] = self.singles.to_dict()
        content["outs"] = self.outs.to_dict()
        content["missing"] = self.missing.to_list()
        content["out_at"] = [[arm, when] for arm, when in self.out_at.items()]
        content["settled"] = [[*pair, *shown] for pair, shown in self.settled.items()]
        content["best"] = None if self.best is None else list(self.best)
        return content

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Sums":
        """Restore the result of `to_dict`."""
        plain = {name: content[name] for name in _PLAIN}
        best = content["best"]
        sums = cls(
            **plain,
            **{name: _unpack(content[name], name) for name in _ARRAYS},
            pairs=Pairs.from_dict(content["pairs"]),
            singles=Singles.from_dict(content["singles"]),
            outs=Outs.from_dict(content["outs"]),
            missing=Missing.from_list(content["missing"]),
            out_at={int(arm): int(when) for arm, when in content["out_at"]},
            settled={
                (worse, better): Shown(*shown) for worse, better, *shown in content["settled"]
            },
            best=None if best is None else Best(*best),
        )
        sums._check()
        return sums

    def _check(self) -> None:
        """Raise an error if no observations could have led to these sums, as far as each number
        shows by itself.
        """
        arms = len(self.batch)
        is_possible = {
            "risk": isinstance(self.risk, float) and 0.0 < self.risk < 1.0,
            "drift": isinstance(self.drift, bool),
            "coupled": isinstance(self.coupled, bool),
            "retired": self.retired.shape == (arms,) and arms - self.retired.sum() >= 2,
            "moments": (
                self.moments.shape == (arms, _ARM_MOMENTS)
                and _are_small(self.moments)
                and (self.moments[:, :AGAINST] >= 0.0).all()
            ),
            "counts": self.counts.shape == (arms, _COUNTS) and _are_counts(self.counts),
            "rounds": self.rounds.shape == (_ROUNDS,) and _are_counts(self.rounds),
            "flow": self.flow.shape == (_FLOW,) and _are_small(self.flow),
            "outs": (
                len(self.outs.marks) == arms
                and self.out_at.keys() == set(np.flatnonzero(self.outs.is_out()).tolist())
                and all(0 <= when <= self.observed for when in self.out_at.values())
            ),
            "by_law": self.by_law in (None, False, True),
            "compared": _are_counts(np.array(self.compared)),
            "batch": _are_counts(self.batch) and (self.batch <= self.batches).all(),
            "contenders": type(self.contenders) is int and 2 <= self.contenders <= arms,
            "next_look": _is_count(self.next_look),
            "left_out": _is_count(self.left_out),
            "complete": self.complete is None or _is_count(self.complete),
            "width": type(self.width) is float and 1.0 <= self.width < 1e6,
            "singles": len(self.singles.look_weights) == 2 * arms,
            "owners": np.isin(self.pairs.owners, [-1, *self.live]).all(),
            "settled": self._has_possible_settled(),
            "best": self.best is None or self._is_possible_best(self.best),
        }
        for name, is_right in is_possible.items():
            if not is_right:
                raise ValueError(f"{name} cannot be")

    def _has_possible_settled(self) -> bool:
        """Whether all pairs that are settled are of two arms, with an interval and a time."""
        rows = [[*pair, *shown] for pair, shown in self.settled.items()]
        worse, better, estimate, low, high, when = np.array(rows).reshape(-1, 6).T
        has_arms = np.isin((worse, better), np.arange(len(self.batch))).all()
        is_interval = (low >= -1.0) & (low <= estimate) & (estimate <= high)
        is_time = (when >= 0) & (when <= self.observed)
        return bool(has_arms and ((worse != better) & is_interval & is_time).all())

    def _is_possible_best(self, best: Best) -> bool:
        """Whether an arm may have been shown to be the best of those that came with this addition
        or before.
        """
        others = [arm for arm in self.live if arm != best.arm and self.batch[arm] <= best.batch]
        return (
            best.arm in self.live
            and all((arm, best.arm) in self.settled for arm in others)
            and 0 <= best.at <= self.observed
            and 0 <= best.batch <= self.batches
        )


def share_of_batch(batch: int) -> float:
    """The share of the risk of all arms that came together: nine tenths for those of the start.

    The b-th addition has a tenth, divided by b (b + 1): the shares never add up to more than 1.

    >>> [share_of_batch(0), round(share_of_batch(1), 4), round(share_of_batch(2), 4)]
    [0.9, 0.05, 0.0167]
    """
    if batch == 0:
        return _SHARE_OF_START
    return (1.0 - _SHARE_OF_START) / (batch * (batch + 1))


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


# With many arms there are fewer, since each keeps numbers for every pair of them.
_FEWEST_SEGMENTS = 10
_MOST_SEGMENTS = 1_000
_SEGMENT_PAIRS = 100_000  # of arms, in all segments together


def most_segments(arms: int) -> int:
    """How many segments have sequences of their own, with so many arms.

    >>> from decoupled.inference import most_segments
    >>> most_segments(2), most_segments(20), most_segments(5_000)
    (1000, 250, 10)
    """
    fitting = _SEGMENT_PAIRS // min(arms, 100) ** 2
    return min(_MOST_SEGMENTS, max(_FEWEST_SEGMENTS, fitting))


def _shares_in_batches(batches: Ints, counts: Ints) -> Floats:
    """The share of each statement of these batches, if `counts` share that of a batch."""
    batch_shares = np.array([share_of_batch(batch) for batch in range(len(counts))])
    return np.asarray(batch_shares[batches] / np.maximum(counts[batches], 1))


def _are_small(values: Floats) -> bool:
    """Whether all are numbers whose squares are finite."""
    return bool((np.abs(values) < LARGEST).all())


def _are_counts(values: Ints) -> bool:
    """Whether all are numbers of something that was counted."""
    return values.dtype == np.int64 and bool((values >= 0).all())


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


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
    "by_law",
)
_ARRAYS = ("moments", "counts", "batch", "retired", "rounds", "flow")
_FLOATS = ("moments", "flow")
_WIDTHS = {"moments": _ARM_MOMENTS, "counts": _COUNTS}


def _unpack(text: str, name: str) -> Any:
    """The array with this name, as `Sums.to_dict` wrote it."""
    values = unpack_floats(text) if name in _FLOATS else unpack_ints(text)
    if name in _WIDTHS:
        return values.reshape(-1, _WIDTHS[name])
    return values.astype(np.bool_) if name == "retired" else values
