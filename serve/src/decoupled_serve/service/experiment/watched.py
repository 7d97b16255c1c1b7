"""What the confidence sequences of an experiment say: its verdict, the mean loss of each arm, and the regret.

`WatchedExperiment.of` copies what is needed, which is quick. `judged` computes, which takes a while if there are many arms, so it
runs outside the commit loop.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from decoupled.decision import Arm
from decoupled.inference import Interval, Sequences, Verdict, best_looking, compared_rounds, regret, verdict
from decoupled.learner import LossRange

from .live import LiveExperiment


@dataclass(frozen=True, slots=True)
class ArmLoss:
    """The mean loss of one arm, and how many of its losses were seen."""

    arm: Arm
    observed: int
    loss: Interval


def arm_losses(sequences: Sequences, names: Sequence[Arm], losses: LossRange) -> tuple[ArmLoss, ...]:
    """The mean loss of each arm that is not retired."""
    found = sequences.arms()
    return tuple(
        ArmLoss(names[arm], sequences.seen(arm), found[arm].scaled(*losses)) for arm in sequences.live
    )


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict, with the intervals behind it. All of them hold at every moment at once.

    Attributes:
        state_version: the last row of the log that was part of it.
        verdict: which arm is best, as far as that is decided.
        risk: the probability with which an interval of a family, or the verdict as of the moment it was decided, may ever fail.
        drift: whether losses may drift.
        observed: how many losses it is made of.
        since: the time from which losses count; None if all do.
        arms: the mean loss of each arm, on the experiment's own scale of losses.
        exploited: the mean loss of the exploited arms; None if none was observed.
        regret: what the exploited arms cost more, in all, than one arm would have; None if nothing can be compared.
        regret_against: that arm: the one that looks best now.
        compared: how many decisions the regret is over: those that could explore every arm there is now.
        incumbent: the arm that is exploited until another is known to be better; None for none.
        incumbent_released: whether another was found to be better; None without an incumbent.
    """

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

    @property
    def decided(self) -> list[Arm]:
        """The best arm and then those that are worse, once that is decided; empty until then."""
        verdict = self.verdict
        return (
            [verdict.best, *verdict.out] if verdict.state == "decided" and verdict.best is not None else []
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

    @classmethod
    def of(cls, running: LiveExperiment) -> "WatchedExperiment":
        """A copy, which later observations do not change."""
        learner = running.learner
        sequences, waiting = learner._asked(lambda watch, _: (watch.sequences.copy(), watch.waiting))
        return cls(
            running.name, running.version, sequences, tuple(running.names), running.losses, running.watched_since,
            learner.guardrails.incumbent, running.incumbent_released, waiting,
        )  # fmt: skip

    def judged(self) -> Judged:
        """The verdict and the intervals."""
        sequences = self.sequences
        arms = arm_losses(sequences, self.names, self.losses)
        best = best_looking(sequences)
        against_best = regret(sequences, best)
        exploited = sequences.served() if sequences.used().any() else None
        return Judged(
            self.experiment,
            self.state_version,
            verdict(sequences, self.names, waiting=self.waiting),
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
        )
