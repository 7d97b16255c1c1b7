"""Off-policy evaluation: what every arm would have cost, and what was exploited did, from the log alone.

Importance weighting with a baseline. Of the n decisions that were observed, decision t explored arm e_t
with probability p_t and saw the loss l_t; b_t is the mean of the losses seen before it was made. Then

    value of arm a = (1/n) sum_t [ b_t + 1{e_t = a} (l_t - b_t) / p_t ]

is unbiased for the mean loss of a over those decisions, since b_t and p_t were known before the draw;
the arm exploited takes a's place for the value of what was exploited, because the two are drawn
independently. (A policy of the standard game sees the loss of what it plays: there it is their mean.)

Intervals are normal, at 95 %, at this moment (not for looking again and again until one of them pleases), by the central limit theorem for martingales, and within the loss range; an arm that
was explored too seldom for that has the whole range as its interval. Decisions without feedback are left out, as if it failed to come by
chance; so are decisions that could not choose from all arms.
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
BLIND = "some decisions left arms without a chance to be explored: the log cannot compare"
FEW = f"where fewer than {ENOUGH} observations bear on a value, its interval is the whole loss range"


@dataclass(frozen=True, slots=True)
class ArmValue:
    """The estimated mean loss of one arm, and how often it was explored and observed."""

    arm: Arm
    observed: int
    value: Interval | None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What the log says, in losses of the experiment's own scale.

    Attributes:
        observed: the decisions the estimates rest on.
        exploited: the mean loss of what was exploited; None where the log cannot tell.
        remark: why something is None, or an interval the whole range, where it is.
    """

    experiment: str
    method: str
    level: float
    decisions: int
    observed: int
    arms: tuple[ArmValue, ...]
    exploited: Interval | None
    remark: str | None


@dataclass(slots=True)
class _Sum:
    """Of terms b_t + r_t, where r_t is mostly zero: sums of r, and of r (r + 2 b)."""

    count: int = 0
    first: float = 0.0
    second: float = 0.0

    def add(self, baseline: float, rest: float) -> None:
        self.count += 1
        self.first += rest
        self.second += rest * (rest + 2.0 * baseline)


@dataclass(slots=True)
class _Baselines:
    """The baselines of the decisions summed over: the part of every term that all estimates share."""

    count: int = 0
    first: float = 0.0
    second: float = 0.0

    def add(self, baseline: float) -> None:
        self.count += 1
        self.first += baseline
        self.second += baseline * baseline

    def interval(self, rest: _Sum, loss_range: tuple[float, float]) -> Interval | None:
        if self.count == 0:
            return None
        mean = (self.first + rest.first) / self.count
        variance = max(0.0, (self.second + rest.second) / self.count - mean * mean)
        return interval(mean, math.sqrt(variance / self.count), rest.count, *loss_range)


@dataclass(slots=True)
class _Seen:
    """The mean of the losses that were known when a decision was made."""

    start: float
    count: int = 0
    total: float = 0.0
    to_come: list[tuple[int, float]] = field(default_factory=list)

    def before(self, seq: int) -> float:
        while self.to_come and self.to_come[0][0] < seq:
            self.total += heappop(self.to_come)[1]
            self.count += 1
        return self.total / self.count if self.count else self.start


def evaluate(
    experiment: str,
    decisions: Iterable[LoggedDecision],
    arms: Sequence[Arm],
    loss_range: tuple[float, float],
    coupled: bool,
) -> Evaluation:
    """Estimate the value of every arm and of what was exploited from decisions in the order of the log."""
    seen = _Seen(0.5 * loss_range[0] + 0.5 * loss_range[1])
    by_arm, used = {arm: _Sum() for arm in arms}, _Sum()
    all_of_them, with_exploit = _Baselines(), _Baselines()
    made = 0
    blind = False
    for each in decisions:
        made += 1
        if (
            each.status != "applied"
            or each.loss is None
            or each.settled_seq is None
            or each.explore is None
        ):
            continue
        baseline = seen.before(each.seq)
        heappush(seen.to_come, (each.settled_seq, each.loss))
        if each.available is not None:
            continue
        unknown = each.propensity is None or each.propensity >= 1.0
        blind = blind or unknown
        rest = 0.0 if each.propensity is None else (each.loss - baseline) / each.propensity
        all_of_them.add(baseline)
        by_arm[each.explore].add(baseline, rest)
        if each.exploit is not None:
            with_exploit.add(baseline)
            if coupled:
                used.add(baseline, each.loss - baseline)
            elif each.exploit == each.explore:
                used.add(baseline, rest)
    few = all_of_them.count > 0 and min(used.count, *(rest.count for rest in by_arm.values())) < ENOUGH
    return Evaluation(
        experiment,
        METHOD,
        LEVEL,
        made,
        all_of_them.count,
        tuple(
            ArmValue(arm, rest.count, None if blind else all_of_them.interval(rest, loss_range))
            for arm, rest in by_arm.items()
        ),
        None if blind and not coupled else with_exploit.interval(used, loss_range),
        BLIND if blind else FEW if few else None,
    )
