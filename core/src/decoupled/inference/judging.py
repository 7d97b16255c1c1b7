"""How far a judge can be trusted: its agreement with labels, its bias for each arm, and its bias
for what it sees first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..base.arrays import Floats
from ..base.packed import pack_floats, unpack_floats
from ..decision import Arm
from .boundary import Interval, lower_mean
from .sequences import AT_ONCE, Sequences
from .verdicts import Verdict, verdict

# Rows of the sums. Those of arms follow.
_TOTALS, _AGREEMENT, _POSITION, _ARMS = range(4)
# Columns: how many numbers in [0, 1] there were, their sum and that of their squares, and the same
# of 1 minus each. The totals are the decisions, and the labels that are missing.
_COLUMNS = 5


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """What labels say about a judge.

    Every interval holds at every moment; together they fail with the risk of `watch`.
    `position_bias` is over all judged decisions whose position is known, and the other intervals
    are over the labelled ones.

    Attributes:
        agreement: the mean of 1 - |judged - label|. For losses of 0 and 1 it is how often the judge
            is right.
        bias: for each arm, the mean of judged loss minus label, in units of `loss_range`: above 0
            if the judge is too harsh.
        position_bias: how often the judge preferred what it saw first, minus how often the second;
            None if not known.
        labels: how many labels were used.
        missing: how many never came, and counted as `Labels.missing`.
        awaiting: how many decisions await their label now.
        lam: how much the judge counts in the next decision, from 0 to 1.
        alone: the verdict by the judge's losses alone.

    >>> import decoupled as dc
    >>> learner = dc.Ladder().start(["a", "b"], seed=7, labels=dc.Labels(share=1.0))
    >>> learner.watch()
    >>> for _ in range(100):
    ...     learner.observe(learner.decide(), judged=0.5, loss=0.25)
    >>> learner.inference.judge().bias["a"].estimate
    0.25
    """

    agreement: Interval
    bias: dict[Arm, Interval]
    position_bias: Interval | None
    labels: int
    missing: int
    awaiting: int
    lam: float
    alone: Verdict

    def __str__(self) -> str:
        labels = f"{self.labels:,} label{'' if self.labels == 1 else 's'}"
        lines = [f"agreement {_text_of(self.agreement, signed=False)}, {labels}"]
        for name, interval in self.bias.items():
            lines.append(f"bias on {name}: {_text_of(interval)}")
        if self.position_bias is not None:
            lines.append(f"bias for what it sees first: {_text_of(self.position_bias)}")
        if self.missing:
            lines.append(f"{self.missing:,} labels are missing and count as declared")
        lines.append(f"alone it would say: {self.alone}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values, for JSON."""
        position = self.position_bias
        return {
            "agreement": list(self.agreement),
            "bias": {str(name): list(interval) for name, interval in self.bias.items()},
            "position_bias": None if position is None else list(position),
            "labels": self.labels,
            "missing": self.missing,
            "awaiting": self.awaiting,
            "lam": self.lam,
            "alone": self.alone.to_dict(),
        }


def _text_of(interval: Interval, *, signed: bool = True) -> str:
    """An interval in words."""
    layout = "+.3f" if signed else ".3f"
    estimate, low, high = (format(number, layout) for number in interval)
    return f"{estimate} ({low} to {high})"


class _Judged(NamedTuple):
    """A judged decision.

    Attributes:
        arm: the number of the arm that it explored.
        judged: the judge's loss.
        label: the label; None if there is none.
        position: how much the judge preferred what it saw first; None if that is not known.
        is_missing: whether it asked for a label that never arrived.
    """

    arm: int
    judged: float
    label: float | None
    position: float | None
    is_missing: bool


class JudgeSums:
    """Sums of judged losses and labels, in the order of decisions.

    >>> judge = JudgeSums(arms=2)
    >>> judge.add_once(0, 1, 0.25, 1.0, None, is_missing=False)   # arm 1: judged 0.25, labelled 1
    >>> judge.labels, judge.missing
    (1, 0)
    """

    def __init__(self, arms: int) -> None:
        # The sums, of how many decisions, and decisions that are not in them yet. They are replaced
        # in one step, so that an interrupt leaves either the old or the new.
        self._now: tuple[Floats, int, list[_Judged]] = np.zeros((_ARMS + arms, _COLUMNS)), 0, []

    @property
    def count(self) -> int:
        """How many decisions were added."""
        _, count, unsummed = self._now
        return count + len(unsummed)

    @property
    def sums(self) -> Floats:
        """The sums of all decisions."""
        return self._add_unsummed()

    def _add_unsummed(self) -> Floats:
        """Add the decisions that are not in the sums yet; the sums with them."""
        sums, count, unsummed = self._now
        if unsummed:
            sums = sums.copy()
            sums[_TOTALS, 0] += len(unsummed)
            sums[_TOTALS, 1] += sum(decision.is_missing for decision in unsummed)
            for decision in unsummed:
                if decision.label is not None or decision.position is not None:
                    sums = _add_decision(sums, decision)
            self._now = sums, count + len(unsummed), []
        return sums

    @property
    def labels(self) -> int:
        """How many of them had a label."""
        return int(self.sums[_AGREEMENT, 0])

    @property
    def missing(self) -> int:
        """How many asked for a label that never arrived."""
        return int(self.sums[_TOTALS, 1])

    def add_once(
        self,
        number: int,
        arm: int,
        judged: float,
        label: float | None,
        position: float | None,
        *,
        is_missing: bool,
    ) -> None:
        """Add the decision with this number, unless it was added already.

        Args:
            number: how many decisions were there before it.
            arm: the number of the arm that it explored.
            judged: the judge's loss, in [0, 1].
            label: the label, in [0, 1]; None if there is none.
            position: how much the judge preferred what it saw first, from -1 to 1; None if that is
                not known.
            is_missing: whether it asked for a label that never arrived.
        """
        if self.count == number:
            _, _, unsummed = self._now
            unsummed.append(_Judged(arm, judged, label, position, is_missing))
            if len(unsummed) >= AT_ONCE:
                self._add_unsummed()

    def copy(self) -> "JudgeSums":
        """An independent copy."""
        copy = JudgeSums(0)
        sums, count, unsummed = self._now
        copy._now = sums, count, unsummed.copy()
        return copy

    def intervals(
        self, risk: float, arms: Sequence[int]
    ) -> tuple[Interval, Interval | None, list[Interval]]:
        """The agreement, the position bias if anything is known of it, and the bias for each of
        these arms.

        Half of the risk is for the arms, by the order in which they came, so that arms may be
        added.
        """
        agreement = self._interval(_AGREEMENT, 0.25 * risk)
        position = None
        if self.sums[_POSITION, 0] > 0.0:
            position = self._interval(_POSITION, 0.25 * risk).scaled(-1.0, 1.0)
        biases = []
        for arm in arms:
            share = 0.5 * risk / ((arm + 1) * (arm + 2))
            biases.append(self._interval(_ARMS + arm, share).scaled(-1.0, 1.0))
        return agreement, position, biases

    def _interval(self, row: int, risk: float) -> Interval:
        """The interval of the mean of one row of the sums."""
        values = self.sums[row] if row < len(self.sums) else np.zeros(_COLUMNS)
        count, total, squares, total_below_1, squares_below_1 = values
        if count == 0.0:
            return Interval(0.5, 0.0, 1.0)
        low = float(lower_mean(count, total, squares, risk / 2.0))
        high = 1.0 - float(lower_mean(count, total_below_1, squares_below_1, risk / 2.0))
        return Interval.around(total / count, min(low, 1.0), max(high, 0.0))

    def to_json(self) -> str:
        """The sums as text."""
        return pack_floats(self.sums.ravel())

    @classmethod
    def from_json(cls, text: str) -> "JudgeSums":
        """Restore the result of `to_json`."""
        sums = unpack_floats(text).reshape(-1, _COLUMNS)
        if len(sums) < _ARMS or not bool((sums >= 0.0).all()) or sums.max() > 1e15:
            raise ValueError("sums of a judge cannot be")
        judge = cls(0)
        judge._now = sums, int(sums[_TOTALS, 0]), []
        return judge


def judge_report(
    judge: JudgeSums,
    judged: Sequences,
    names: Sequence[Arm],
    live: Sequence[int],
    losses: tuple[float, float],
    *,
    waiting: int,
    awaiting: int,
    lam: float,
) -> JudgeReport:
    """What labels say about a judge.

    Args:
        judge: the sums of judged losses and labels.
        judged: the sequences of the judge's losses.
        names: the name of each arm, also of retired ones.
        live: the numbers of the arms that are not retired.
        losses: the loss range.
        waiting: how many losses wait for those of earlier decisions.
        awaiting: how many decisions await their label.
        lam: how much the judge counts in the next decision.

    >>> judge = JudgeSums(arms=2)
    >>> judge.add_once(0, 1, 0.25, 1.0, None, is_missing=False)
    >>> report = judge_report(
    ...     judge, Sequences(2), ["a", "b"], [0, 1], (0.0, 1.0), waiting=0, awaiting=0, lam=1.0
    ... )
    >>> report.bias["b"].estimate, report.labels
    (-0.75, 1)
    """
    agreement, position, biases = judge.intervals(judged.risk, live)
    bias: dict[Arm, Interval] = {}
    for arm, interval in zip(live, biases, strict=True):
        bias[names[arm]] = interval.scaled(*losses, difference=True)
    return JudgeReport(
        agreement=agreement,
        bias=bias,
        position_bias=position,
        labels=judge.labels,
        missing=judge.missing,
        awaiting=awaiting,
        lam=lam,
        alone=verdict(judged, names, waiting=waiting),
    )


def verdict_with_judge(by_labels: Verdict, by_judge: Verdict, missing: int) -> Verdict:
    """The verdict by labels, with what the judge alone would say.

    Args:
        by_labels: the verdict by labels.
        by_judge: the verdict by the judge's losses alone.
        missing: the number of missing labels.

    >>> unknown = verdict(Sequences(2), ["a", "b"])
    >>> verdict_with_judge(unknown, unknown, missing=2).remark[:35]
    '2 labels are missing and count as d'
    """
    remarks = [by_labels.remark] if by_labels.remark else []
    if missing:
        what = "label is missing and counts" if missing == 1 else "labels are missing and count"
        assumption = "assuming that whether one comes depends on neither arm nor loss"
        remarks.append(f"{missing:,} {what} as declared, {assumption}")
    warning = None
    if by_labels.state == by_judge.state == "decided" and by_labels.best != by_judge.best:
        warning = (
            f"the judge alone would choose {by_judge.best}, and labels show that {by_labels.best} "
            "is better; do not trust this judge by itself"
        )
    return replace(
        by_labels, remark="; ".join(remarks) or None, judge=by_judge.text, warning=warning
    )


def _add_decision(sums: Floats, decision: _Judged) -> Floats:
    """The sums with one more decision, in place if there is room for its arm."""
    row = _ARMS + decision.arm
    if row >= len(sums):
        sums = np.pad(sums, ((0, row + 1 - len(sums)), (0, 0)))
    if decision.label is not None:
        error = decision.judged - decision.label
        sums[_AGREEMENT] += _powers(1.0 - abs(error))
        sums[row] += _powers(0.5 + 0.5 * error)
    if decision.position is not None:
        sums[_POSITION] += _powers(0.5 + 0.5 * decision.position)
    return sums


def _powers(value: float) -> tuple[float, float, float, float, float]:
    """What a number in [0, 1] adds to a row: 1, itself, its square, and the same of 1 minus it."""
    below_1 = 1.0 - value
    return 1.0, value, value * value, below_1, below_1 * below_1
