"""The models of verdicts, gates, histories and evaluations, with their JSON."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from ...analysis.history import HistoryRecord, SegmentsRecord
from ...experiment.records import moment
from ...experiment.watched import Gate, Judged
from .fields import Arm, json_of, told
from .schemas import IntervalOut

SINCE = "The time from which losses count, if an earlier part of the log was dropped before sequences were kept."


class ArmLossOut(BaseModel):
    """The mean loss of one arm."""

    arm: Arm
    observed: int = told("How many losses of it were seen.")
    loss: IntervalOut = told("Its mean loss, on the experiment's own scale.")


class JudgedOut(BaseModel):
    """Which arm is best, and what is known of each."""

    text: str = Field(
        examples=["large is better than every other arm (95 %, decided at round 812)"]
    )
    state: Literal["decided", "narrowed", "open"] = told(
        "decided: one arm was shown to be better than every other; narrowed: some are out; open: none is."
    )
    best: Arm | None = told("The arm that looks best of those left; null if no loss was seen.")
    left: list[Arm] = told("The arms that may still be the best.")
    out: list[Arm] = told(
        "The arms that were shown to be worse than another. They stay out until arms are added or retired."
    )
    sure: float | None = told(
        "The highest level at which the evidence of now shows the same, which is below 1 - `risk` if it has "
        "become less since `decided_at`; null while it is open."
    )
    more_observations: int | None = told(
        "About how many more observations it takes to decide at this rate; null if it is decided, "
        "or not foreseeable."
    )
    basis: Literal["running", "paired", "stationary"] = told(
        "paired: arms are compared two by two, in rounds weighted by the chance of the rarer one divided by a level of losses; running: all "
        "rounds count the same, as with contexts; stationary: by the losses seen of each, if no mean changes."
    )
    decided_at: int | None = told(
        "After how many observations it was decided, or the last arm that is out was shown to be worse. It holds as of "
        "that moment: losses may have drifted since. null while it is open."
    )
    left_out: int = told("Decisions without a loss in time, which are left out.")
    waiting: int = told("Losses that are not in it yet: they wait for an earlier one.")
    waiting_for: str | None = told(
        "The decision whose loss they wait for; null if none waits, and for a segment."
    )
    waiting_decisions: int | None = told("After how many more decisions that one is given up.")
    waiting_until: str | None = told(
        "When it is given up if that comes first; null if it only awaits its label, or none waits."
    )
    is_provisional: bool = told(
        "Whether it rests on leaving out decisions without a loss in time: it is biased if late losses differ."
    )
    remark: str | None = told(
        "What is assumed about those left out, and about missing labels; null if there are none."
    )
    judge: str | None = told(
        "With labels, what the judge alone would say; null without, and for a segment."
    )
    warning: str | None = told(
        "A warning if the judge alone would decide for another arm than the labels do; otherwise null."
    )
    arms: list[ArmLossOut]
    exploited: IntervalOut | None = told("The mean loss of the exploited arms.")


class JudgeOut(BaseModel):
    """What labels say about a judge. All intervals hold at every moment at once."""

    agreement: IntervalOut = told(
        "The mean of 1 - |judged - label|, for losses from 0 to 1: of losses 0 and 1, how often it is right."
    )
    bias: dict[str, IntervalOut] = told(
        "By arm, the mean of judged loss minus label: above 0 if it is too harsh on the arm."
    )
    position_bias: IntervalOut | None = told(
        "How often it preferred what it saw first, minus how often the second; null if that is not known."
    )
    labels: int = told("How many labels these are over.")
    missing: int = told("How many never arrived, and count as declared.")
    awaiting: int = told("How many decisions were judged and await their label.")
    lam: float = told("How much the judge counts in the next decision, from 0 to 1.")


class VerdictOut(JudgedOut):
    """Which arm is best, as far as that is decided. You may look as often as you like, and stop when you like."""

    experiment: str
    risk: float = told(
        "The largest probability that an arm is ever ruled out while it is not worse than "
        "another, by the mean difference so far, in rounds weighted by the chance of the rarer one "
        "divided by a level of losses."
    )
    drift: bool
    observed: int
    since: str | None = told(SINCE)
    state_version: int
    regret: IntervalOut | None = told(
        "How much more the exploited arms cost, in all, than always using `regret_against` would have."
    )
    regret_against: Arm | None = told("The arm that looks best now.")
    compared: int = told(
        "How many decisions the regret is over: those observed that could explore every arm there is now."
    )
    incumbent: Arm | None = told("The arm that is exploited until another is known to be better.")
    incumbent_released: bool | None = told(
        "Whether another was found to be better; null if there is no incumbent."
    )
    judge_report: JudgeOut | None = told("How far the judge can be trusted; null without labels.")


class SegmentOut(JudgedOut):
    """What is known of one segment."""

    segment: dict[str, str | bool | None] | None = told(
        "The value of each field, null if it was missing; null for all segments beyond the limit, which share "
        "one.",
        {"subject": "law"},
    )
    risk: float = told("Its share of the risk, by the order in which segments appeared.")
    decisions: int
    observed: int


class SegmentsOut(BaseModel):
    """A verdict for each segment. They hold all together, at every moment at once."""

    experiment: str
    by: list[str] = told("The fields that tell segments apart.")
    text: str = told(
        "Which arm is best for which segment, where that is decided.",
        "large is best for law; small is best for art; 12 are open",
    )
    risk: float = told(
        "The largest probability that a verdict of any segment ever rules out an arm while it is "
        "not worse than another."
    )
    drift: bool
    since: str | None = told(SINCE)
    state_version: int
    segments: list[SegmentOut] = told("Those with the most losses first.")
    others: int = told("How many segments are not listed.")


class ArmDifferenceOut(BaseModel):
    """An arm that the one at the gate is compared with."""

    arm: Arm
    difference: IntervalOut = told(
        "The mean loss of the arm at the gate minus that of this one: below 0 if the arm is better."
    )


class GateOut(BaseModel):
    """Whether an arm is shown to be no worse than others by more than a margin."""

    experiment: str
    arm: Arm
    open: bool = told("Whether `state` is what was asked for with `when`.")
    state: Literal["passed", "failed", "waiting"] = told(
        "passed: every difference lies below `margin`; failed: one lies above it; waiting: neither is shown."
    )
    text: str = Field(
        examples=["next is not worse than current by more than 0.02 (95 %, as of round 812)"]
    )
    margin: float
    against: list[ArmDifferenceOut]
    risk: float = told(
        "The largest probability that a gate of this experiment is ever wrong about the mean "
        "difference so far, whatever you ask and when."
    )
    observed: int
    state_version: int


class IntervalsOut(BaseModel):
    """A mean loss at each point; null where nothing was seen."""

    estimate: list[float | None]
    low: list[float | None]
    high: list[float | None]


class ArmHistoryOut(BaseModel):
    """One arm at each point; counts are since the experiment was created."""

    arm: Arm
    retired: bool
    exploited: list[int]
    explored: list[int]
    loss: IntervalsOut = told("Its mean loss, as it was known then, with its interval.")


class HistoryOut(BaseModel):
    """Counts and mean losses at some points of the log. The last point is now."""

    experiment: str
    level: float = told("The probability with which all intervals hold, at every moment at once.")
    since: str | None = told(SINCE)
    at: list[str] = told("The time of each point.")
    decisions: list[int] = told("The decisions made until each point.")
    observed: list[int] = told("The losses learned until each point.")
    exploited: list[int] = told("The decisions that exploited an arm until each point.")
    explored: list[int] = told("The decisions that explored an arm until each point.")
    arms: list[ArmHistoryOut] = told(
        "All arms that there ever were; of more than 20, those that were exploited most."
    )
    others: int = told("How many other arms there were.")


def verdict_out(found: Judged) -> dict[str, Any]:
    """A verdict as JSON."""
    report = None if found.judge_report is None else json_of(found.judge_report, JudgeOut)
    return json_of(found, VerdictOut, **found.verdict.to_dict(), judge_report=report)


def segments_out(found: SegmentsRecord, limit: int) -> dict[str, Any]:
    """Verdicts by segment as JSON."""
    segments = []
    for each in found.segments[:limit]:
        values = None if each.values is None else dict(zip(found.by, each.values, strict=True))
        segments.append(json_of(each, SegmentOut, segment=values, **each.verdict.to_dict()))
    return json_of(
        found, SegmentsOut, segments=segments, others=len(found.segments) - len(segments)
    )


def gate_out(found: Gate, when: str) -> dict[str, Any]:
    """A gate as JSON; it is open in one of the states."""
    return json_of(found, GateOut, open=found.state == when)


def history_out(found: HistoryRecord) -> dict[str, Any]:
    """A history as JSON: a list for each column, since a list of objects is three times as long."""
    points = found.points
    arms = []
    for i, arm in enumerate(found.arms):
        losses = [each.losses[i] for each in points]
        ends = {
            end: [None if loss is None else getattr(loss, end) for loss in losses]
            for end in ("estimate", "low", "high")
        }
        counts = {
            name: [getattr(each, name)[i] for each in points] for name in ("exploited", "explored")
        }
        arms.append({"arm": arm, "retired": found.retired[i], **counts, "loss": ends})
    return {
        "experiment": found.experiment, "level": found.level, "since": moment(found.since),
        "at": [moment(each.at) for each in points],
        "decisions": [each.decisions for each in points], "observed": [each.observed for each in points],
        "exploited": [each.all_exploited for each in points], "explored": [each.all_explored for each in points],
        "arms": arms, "others": found.others,
    }  # fmt: skip
