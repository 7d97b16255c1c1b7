"""Off-policy evaluation: the mean loss of every arm, and of the exploited arms, estimated from the log.

Importance weighting with a baseline. Of the n decisions that were observed, decision t explored arm e_t
with probability p_t and saw the loss l_t; b_t is the mean of the losses seen before it was made. Then

    value of arm a = (1/n) sum_t [ b_t + 1{e_t = a} (l_t - b_t) / p_t ]

is an unbiased estimate of the mean loss of a over those decisions, since b_t and p_t were known before the draw.
For the value of what was exploited, the exploited arm replaces a, since the two arms are drawn independently.
(A policy of the standard game sees the loss of the arm it plays: there the value is the mean of these losses.)

Intervals are normal, at 95 %, by the central limit theorem for martingales, and cut to the loss range. They hold
at one moment, not if you look repeatedly until one pleases. An arm that was explored too rarely has the whole loss
range as its interval. Two kinds of decisions are left out: those without feedback, as if it were missing by chance,
and those that could not choose from all arms.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from ...decision import Arm
from ..experiment.intervals import ENOUGH, LEVEL, interval
from ..experiment.records import Interval
from .export import LoggedDecision

METHOD = "importance weighting with a baseline; normal intervals, at this moment"
BLIND = "some arms had no chance to be explored in some decisions, so the log cannot compare the arms"
FEW = f"a value with fewer than {ENOUGH} observations has the whole loss range as its interval"


@dataclass(frozen=True, slots=True)
class ArmValue:
    """The estimated mean loss of one arm, and how often it was explored and observed."""

    arm: Arm
    observed: int
    value: Interval | None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The estimates, in the experiment's own scale of losses.

    Attributes:
        observed: how many decisions the estimates are based on.
        exploited: the mean loss of the exploited arms; None if the log cannot tell.
        drawn: the mean loss of the arms that the policy drew to exploit: what it would have been without guardrails.
        remark: why a value is None, or an interval the whole loss range, if that is so.
    """

    experiment: str
    method: str
    level: float
    decisions: int
    observed: int
    arms: tuple[ArmValue, ...]
    exploited: Interval | None
    remark: str | None
    drawn: Interval | None


@dataclass(slots=True)
class _Sum:
    """Sums over terms b + r, without what b alone contributes: of r, and of r (r + 2 b) = (b + r)^2 - b^2."""

    count: int = 0
    first: float = 0.0
    second: float = 0.0

    def add(self, baseline: float, rest: float) -> None:
        self.count += 1
        self.first += rest
        self.second += rest * (rest + 2.0 * baseline)


def _interval(baselines: _Sum, rests: _Sum, loss_range: tuple[float, float]) -> Interval | None:
    """The interval for the mean of b + r, from the sums over all b and over those r that are not zero."""
    if baselines.count == 0:
        return None
    mean = (baselines.first + rests.first) / baselines.count
    variance = max(0.0, (baselines.second + rests.second) / baselines.count - mean * mean)
    return interval(mean, math.sqrt(variance / baselines.count), rests.count, *loss_range)


@dataclass(slots=True)
class _KnownLosses:
    """The mean of the losses that were known before a decision."""

    start: float
    count: int = 0
    total: float = 0.0
    pending: list[tuple[int, float]] = field(default_factory=list)

    def before(self, seq: int) -> float:
        while self.pending and self.pending[0][0] < seq:
            self.total += heappop(self.pending)[1]
            self.count += 1
        return self.total / self.count if self.count else self.start


def evaluate(
    experiment: str,
    decisions: Iterable[LoggedDecision],
    arms: Sequence[Arm],
    loss_range: tuple[float, float],
    coupled: bool,
) -> Evaluation:
    """Estimate the value of every arm and of what was exploited. The decisions must be in the order of the log."""
    known = _KnownLosses(0.5 * loss_range[0] + 0.5 * loss_range[1])
    by_arm, used, drawn = {arm: _Sum() for arm in arms}, _Sum(), _Sum()
    baselines, exploit_baselines = _Sum(), _Sum()
    made, blind = 0, False
    for each in decisions:
        made += 1
        if (
            each.loss is None
            or each.settled_seq is None
            or each.explore is None
            or each.status != "applied"
        ):
            continue
        baseline = known.before(each.seq)
        heappush(known.pending, (each.settled_seq, each.loss))
        if each.available is not None:
            continue
        blind = blind or each.propensity is None or each.propensity >= 1.0
        rest = 0.0 if each.propensity is None else (each.loss - baseline) / each.propensity
        baselines.add(0.0, baseline)
        by_arm[each.explore].add(baseline, rest)
        if each.exploit is not None:
            exploit_baselines.add(0.0, baseline)
            if coupled:
                used.add(baseline, each.loss - baseline)
                drawn.add(baseline, each.loss - baseline)
                continue
            if each.exploit == each.explore:
                used.add(baseline, rest)
            if each.drawn == each.explore:
                drawn.add(baseline, rest)
    few = baselines.count > 0 and min(used.count, *(rest.count for rest in by_arm.values())) < ENOUGH
    return Evaluation(
        experiment,
        METHOD,
        LEVEL,
        made,
        baselines.count,
        tuple(
            ArmValue(arm, rest.count, None if blind else _interval(baselines, rest, loss_range))
            for arm, rest in by_arm.items()
        ),
        None if blind and not coupled else _interval(exploit_baselines, used, loss_range),
        BLIND if blind else FEW if few else None,
        None if blind and not coupled else _interval(exploit_baselines, drawn, loss_range),
    )
