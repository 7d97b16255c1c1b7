"""Off-policy evaluation: the mean loss of every arm, and of the exploited arms, estimated from the log.

The estimates are importance-weighted: of the decisions that were observed and could explore arm a, each adds
1{explored a} loss / p to a sum, where p is the exact probability of the explored arm, and the sum is divided by that of
1{explored a} / p. For the value of what was exploited, the exploited arm replaces a, since the two arms are drawn
independently. (A policy of the standard game sees the loss of the arm it plays: there the value is the mean of these
losses.)

The intervals are confidence sequences, as those of the running experiment: they hold at every moment at once, so the
evaluation may be repeated as the log grows. Decisions count in their order: one that is pending holds up those after it, as
long as these are fewer than `patience`. One that expired has the experiment's `expired_loss`, if it declares one. Others
without a loss are left out, as if it were missing by chance.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from decoupled.decision import Arm
from decoupled.inference import PATIENCE, Interval, Sequences, settled
from decoupled.learner import LossRange

from .export import LoggedDecision

METHOD = "importance weighting; confidence sequences, which hold at every moment at once"
BLIND = "some arms had no chance to be explored in some decisions, so the log cannot compare the arms"


@dataclass(frozen=True, slots=True)
class ArmValue:
    """The estimated mean loss of one arm, and how often it was explored and observed."""

    arm: Arm
    observed: int
    value: Interval | None


@dataclass(frozen=True, slots=True)
class LogEvaluation:
    """The estimates, in the experiment's own scale of losses.

    Attributes:
        level: the probability with which all intervals hold, at every moment at once.
        observed: how many decisions the estimates are based on.
        exploited: the mean loss of the exploited arms; None if the log cannot tell.
        drawn: the mean loss of the arms that the policy drew to exploit: what it would have been without guardrails.
        remark: why a value is None, if one is.
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


def evaluate(
    experiment: str,
    decisions: Iterable[LoggedDecision],
    arms: Sequence[Arm],
    loss_range: tuple[float, float],
    *,
    coupled: bool,
    risk: float = 0.05,
    drift: bool = True,
    patience: int = PATIENCE,
) -> LogEvaluation:
    """Estimate the value of every arm and of what was exploited."""
    sequences, drawn = (Sequences(len(arms), risk, drift=drift, coupled=coupled) for _ in range(2))
    place = {arm: i for i, arm in enumerate(arms)}
    low, high = losses = LossRange.checked(loss_range)
    made, blind = 0, False

    def exploring() -> Iterator[LoggedDecision]:
        nonlocal made
        for each in decisions:
            made += 1
            if each.explore is not None:
                yield each

    for each in settled(exploring(), lambda each: each.status == "pending", patience):
        if each.loss is None or each.explore is None:
            continue
        some = None if each.available is None else [place[arm] for arm in each.available]
        if some is None:
            blind = blind or each.propensity is None or each.propensity >= 1.0
        explore, loss = place[each.explore], losses.scaled(each.loss)
        weight = None if each.propensity is None else 1.0 / each.propensity
        for seen, exploit in ((sequences, each.exploit), (drawn, each.drawn)):
            seen.update(explore, weight, loss, None if exploit is None else place[exploit], some)
    known: list[Interval | None] = [None] * len(arms)
    if not blind and sequences.observed > 0:
        known = [each.scaled(low, high) for each in sequences.arms()]
    return LogEvaluation(
        experiment,
        METHOD,
        1.0 - risk,
        made,
        sequences.observed,
        tuple(
            ArmValue(arm, sequences.seen(number), value)
            for number, (arm, value) in enumerate(zip(arms, known, strict=True))
        ),
        _served(sequences, loss_range, coupled or not blind),
        BLIND if blind else None,
        _served(drawn, loss_range, coupled or not blind),
    )


def _served(sequences: Sequences, loss_range: tuple[float, float], known: bool) -> Interval | None:
    return sequences.served().scaled(*loss_range) if known and sequences.used().any() else None
