"""What the confidence sequences of an experiment say: its verdict, the mean loss of each arm, the regret, and gates.

`WatchedExperiment.of` copies what is needed, which is quick. `judged` computes, which takes a while if there are many arms, so it
runs outside the commit loop.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from decoupled.client import Invalid
from decoupled.decision import Arm
from decoupled.errors import near_name, shown
from decoupled.inference import (
    Awaited,
    Interval,
    JudgeReport,
    JudgeSums,
    Sequences,
    Verdict,
    best_looking,
    compared_rounds,
    difference_now,
    judge_report,
    regret,
    verdict,
    verdict_with_judge,
)
from decoupled.learner import LabelStatus, LossRange

from .live import LiveExperiment
from .records import DecisionId, moment


@dataclass(frozen=True, slots=True)
class ArmLoss:
    """The mean loss of one arm, and how many of its losses were seen."""

    arm: Arm
    observed: int
    loss: Interval


def arm_losses(
    sequences: Sequences, names: Sequence[Arm], losses: LossRange
) -> tuple[ArmLoss, ...]:
    """The mean loss of each arm that is not retired."""
    found = sequences.arms()
    return tuple(
        ArmLoss(names[arm], sequences.seen(arm), found[arm].scaled(*losses))
        for arm in sequences.live
    )


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict, with the intervals behind it; `VerdictOut` says what each field means. `since` is in seconds since 1970."""

    experiment: str
    state_version: int
    verdict: Verdict
    risk: float
    drift: bool
    observed: int
    since: float | None
    arms: tuple[ArmLoss, ...]
    exploited: Interval | None
    regret: Interval | None
    regret_against: Arm | None
    compared: int
    incumbent: Arm | None
    incumbent_released: bool | None
    judge_report: JudgeReport | None = None

    @property
    def decided(self) -> list[Arm]:
        """The best arm and then those that are worse, once that is decided; empty until then."""
        found = self.verdict
        return (
            [found.best, *found.out] if found.state == "decided" and found.best is not None else []
        )


@dataclass(frozen=True, slots=True)
class WatchedExperiment:
    """The sequences of an experiment at one moment, with the names of all its arms."""

    experiment: str
    state_version: int
    sequences: Sequences
    names: tuple[Arm, ...]
    losses: LossRange
    since: float | None
    incumbent: Arm | None
    incumbent_released: bool | None
    waiting: int = 0
    awaited: Awaited | None = None
    judging: tuple[Sequences, JudgeSums, LabelStatus] | None = None

    @classmethod
    def of(cls, running: LiveExperiment) -> "WatchedExperiment":
        """A copy, which later observations do not change."""
        learner = running.learner
        evidence = learner.inference.copy_evidence()
        judging = None
        if (
            evidence.judged is not None
            and evidence.judge is not None
            and learner.labels is not None
        ):
            judging = evidence.judged, evidence.judge, learner.labels
        return cls(
            experiment=running.name,
            state_version=running.version,
            sequences=evidence.sequences,
            names=tuple(running.names),
            losses=running.losses,
            since=running.watched_since,
            incumbent=learner.guardrails.incumbent,
            incumbent_released=running.incumbent_released,
            waiting=evidence.waiting,
            awaited=_as_clients_know(running, evidence.awaited),
            judging=judging,
        )

    def judged(self) -> Judged:
        """The verdict and the intervals."""
        sequences = self.sequences
        arms = arm_losses(sequences, self.names, self.losses)
        best = best_looking(sequences)
        against_best = regret(sequences, best)
        exploited = sequences.served() if sequences.used().any() else None
        found, report = (
            verdict(sequences, self.names, waiting=self.waiting, awaited=self.awaited),
            None,
        )
        if self.judging is not None:
            judged, judge, status = self.judging
            report = judge_report(
                judge, judged, self.names, sequences.live, self.losses,
                waiting=self.waiting, awaiting=status.awaiting, lam=status.lam,
            )  # fmt: skip
            found = verdict_with_judge(found, report.alone, report.missing)
        return Judged(
            self.experiment,
            self.state_version,
            found,
            sequences.risk,
            sequences.drift,
            sequences.observed,
            self.since,
            arms,
            None if exploited is None else exploited.scaled(*self.losses),
            None if against_best is None else against_best.scaled(*self.losses, difference=True),
            None if best is None else self.names[best],
            compared_rounds(sequences),
            self.incumbent,
            self.incumbent_released,
            report,
        )


def _as_clients_know(running: LiveExperiment, awaited: Awaited | None) -> Awaited | None:
    """The decision that the evidence waits for by the id that clients have, with the time that ends its wait."""
    if awaited is None:
        return None
    for seq, (row, made) in running.pending.items():
        if made.id == awaited.decision:
            until = None if seq in running.judged else row.expires_at
            if seq not in running.judged and running.settings.wait is not None:
                until = row.made_at + running.settings.wait
            return Awaited(str(DecisionId(running.tag, seq)), awaited.decisions, moment(until))
    return None


# Gates: may an arm be promoted? Answered by the evidence that verdicts rest on.
#
# A gate compares an arm with others by the confidence sequences of their differences, which hold for all pairs of arms at
# every moment at once. So the probability that a gate ever passes an arm that is worse by more than the margin at that
# moment is at most the risk of the experiment, however often it is asked, whichever arms and margins it is asked about. If
# losses may drift, "worse" is about the mean difference until then, in rounds weighted by the
# chance of the rarer arm divided by a level of losses.
#
# A verdict, once decided, stays. A gate asks for the evidence of now: if an arm has become worse since, it closes again.
GateState: TypeAlias = Literal["passed", "failed", "waiting"]
"""What the evidence says about an arm at a gate; see `Gate`."""


@dataclass(frozen=True, slots=True)
class ArmDifference:
    """The mean loss of the arm at a gate minus that of another, which is below 0 if the arm is better."""

    arm: Arm
    difference: Interval


@dataclass(frozen=True, slots=True)
class Gate:
    """Whether an arm is shown to be no worse than others by more than a margin; `GateOut` says what each field means."""

    experiment: str
    arm: Arm
    state: GateState
    margin: float
    against: tuple[ArmDifference, ...]
    risk: float
    observed: int
    state_version: int
    decided_at: int | None = None  # the round of a verdict that says more than the gate

    @property
    def text(self) -> str:
        """The state as a sentence, and why a verdict says something else if it does."""
        if self.decided_at is None:
            return self._said
        stays = f"the verdict for {self.arm}, decided at round {self.decided_at:,}, stays"
        return (
            f"{self._said}; {stays}, and a gate asks what the evidence shows now, against each arm"
        )

    @property
    def _said(self) -> str:
        others = ", ".join(str(each.arm) for each in self.against)
        by = f" by more than {abs(self.margin):.4g}" if self.margin else ""
        if self.state == "waiting":
            ends = "; ".join(
                f"{each.difference.low:.4g} to {each.difference.high:.4g} against {each.arm}"
                for each in self.against[:3]
            )
            return f"too early: the difference of {self.arm} must lie below {self.margin:.4g} and is {ends}"
        if self.state == "failed":
            worst = max(self.against, key=lambda each: each.difference.low)
            # Beyond a margin below 0, it is not as much better as it must be.
            word = f"worse than {worst.arm}" if self.margin >= 0 else f"not better than {worst.arm}"
        elif self.margin > 0:
            word = f"not worse than {others}"
        else:
            word = f"better than {others}"
        level = f"{100.0 * (1.0 - self.risk):.6g} %, as of round {self.observed:,}"
        return f"{self.arm} is {word}{by} ({level})"


def gate_of(watched: WatchedExperiment, arm: str, against: str | None, margin: float) -> Gate:
    """The gate for an arm, by the texts of arms; against the incumbent if none is named, or else every other arm."""
    sequences = watched.sequences
    places = {str(watched.names[place]): place for place in reversed(sequences.live)}
    place = _place("arm", arm, places, watched.experiment)
    if against is None and watched.incumbent is not None and str(watched.incumbent) != arm:
        against = str(watched.incumbent)
    others = [each for each in sequences.live if each != place]
    if against is not None:
        others = [_place("against", against, places, watched.experiment)]
    if others == [place]:
        raise Invalid(f"against = {shown(against)}: is the arm at the gate; name another, or none")
    apart = (
        difference_now(sequences.sums, place, other, drift=sequences.drift) for other in others
    )
    scaled = (each.scaled(*watched.losses, difference=True) for each in apart)
    found = tuple(map(ArmDifference, (watched.names[other] for other in others), scaled))
    state: GateState = "waiting"
    if all(each.difference.high < margin for each in found):
        state = "passed"
    elif any(each.difference.low > margin for each in found):
        state = "failed"
    decided = None
    if state != "passed" and margin >= 0:
        judged = verdict(sequences, watched.names)
        if judged.state == "decided" and judged.best == watched.names[place]:
            decided = judged.decided_at
    return Gate(
        watched.experiment, watched.names[place], state, margin, found,
        sequences.risk, sequences.observed, watched.state_version, decided,
    )  # fmt: skip


def _place(argument: str, arm: str, places: dict[str, int], experiment: str) -> int:
    if arm not in places:
        rule = f"is not an arm of {experiment!r}"
        raise Invalid(f"{argument} = {shown(arm)}: {rule}; {near_name(arm, places)}")
    return places[arm]
