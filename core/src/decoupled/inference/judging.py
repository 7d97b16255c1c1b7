"""How far a judge can be trusted: its agreement with labels, its bias for each arm, and its bias
for what it sees first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

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
    """What labels say about a judge. Every interval holds at every moment; together they fail with
    the risk of `watch`.

    They are over the labelled decisions. `position_bias` is over all judged decisions whose
    position is known.

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
        known = f"{self.labels:,} label{'' if self.labels == 1 else 's'}"
        lines = [f"agreement {_spoken(self.agreement, signed=False)}, {known}"]
        lines += [f"bias on {name}: {_spoken(each)}" for name, each in self.bias.items()]
        if self.position_bias is not None:
            lines.append(f"bias for what it sees first: {_spoken(self.position_bias)}")
        if self.missing:
            lines.append(f"{self.missing:,} labels are missing and count as declared")
        return "\n".join([*lines, f"alone it would say: {self.alone}"])

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values, for JSON."""
        position = self.position_bias
        return {
            "agreement": list(self.agreement),
            "bias": {str(name): list(each) for name, each in self.bias.items()},
            "position_bias": None if position is None else list(position),
            **{name: getattr(self, name) for name in ("labels", "missing", "awaiting", "lam")},
            "alone": self.alone.to_dict(),
        }


def _spoken(found: Interval, *, signed: bool = True) -> str:
    estimate, low, high = (f"{each:+.3f}" if signed else f"{each:.3f}" for each in found)
    return f"{estimate} ({low} to {high})"


class JudgeSums:
    """Sums of judged losses and labels, in the order of decisions.

    >>> judge = JudgeSums(arms=2)
    >>> judge.add_once(0, 1, 0.25, 1.0, None, False)   # arm 1: judged 0.25, labelled 1
    >>> judge.labels, judge.missing
    (1, 0)
    """

    def __init__(self, arms: int) -> None:
        # The sums, of how many decisions, and decisions that are not in them yet. They are replaced
        # in one step, so that an interrupt leaves either the old or the new.
        self._now: tuple[Floats, int, list[Any]] = np.zeros((_ARMS + arms, _COLUMNS)), 0, []

    @property
    def count(self) -> int:
        """How many decisions were added."""
        return self._now[1] + len(self._now[2])

    @property
    def sums(self) -> Floats:
        """The sums of all decisions."""
        summed, count, unsummed = self._now
        if unsummed:
            summed = summed.copy()
            summed[_TOTALS, :2] += len(unsummed), sum(each[4] for each in unsummed)
            for arm, judged, label, position, _ in unsummed:
                if label is not None or position is not None:
                    summed = _with(summed, arm, judged, label, position)
            self._now = summed, count + len(unsummed), []
        return summed

    @property
    def labels(self) -> int:
        """How many of them had a label."""
        return int(self.sums[_AGREEMENT, 0])

    @property
    def missing(self) -> int:
        """How many asked for a label that never arrived."""
        return int(self.sums[_TOTALS, 1])

    def add_once(self, number: int, *seen: Any) -> None:
        """Add a decision once: its arm, judged loss, label or None, position or None, and whether a
        label is missing.
        """
        if self.count == number:
            unsummed = self._now[2]
            unsummed.append(seen)
            if len(unsummed) >= AT_ONCE:
                self.sums  # noqa: B018

    def copy(self) -> "JudgeSums":
        """An independent copy."""
        copy = JudgeSums(0)
        summed, count, unsummed = self._now
        copy._now = summed, count, unsummed.copy()
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
        position = self._interval(_POSITION, 0.25 * risk) if self.sums[_POSITION, 0] > 0.0 else None
        biases = {
            arm: self._interval(_ARMS + arm, 0.5 * risk / ((arm + 1) * (arm + 2))) for arm in arms
        }
        signed = [each.scaled(-1.0, 1.0) for each in biases.values()]
        return agreement, position and position.scaled(-1.0, 1.0), signed

    def _interval(self, row: int, risk: float) -> Interval:
        count, *moments = self.sums[row] if row < len(self.sums) else np.zeros(_COLUMNS)
        if count == 0.0:
            return Interval(0.5, 0.0, 1.0)
        low = float(lower_mean(count, moments[0], moments[1], risk / 2.0))
        high = 1.0 - float(lower_mean(count, moments[2], moments[3], risk / 2.0))
        return Interval.around(moments[0] / count, min(low, 1.0), max(high, 0.0))

    def to_json(self) -> str:
        """The sums as text."""
        return pack_floats(self.sums.ravel())

    @classmethod
    def from_json(cls, text: str) -> "JudgeSums":
        """Restore the result of `to_json`."""
        found, judge = unpack_floats(text).reshape(-1, _COLUMNS), cls(0)
        if len(found) < _ARMS or not bool((found >= 0.0).all()) or found.max() > 1e15:
            raise ValueError("sums of a judge cannot be")
        judge._now = found, int(found[_TOTALS, 0]), []
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
    """What labels say about a judge, for the `live` arms; `names` are also of retired ones, and
    `losses` is the loss range.

    >>> judge = JudgeSums(arms=2)
    >>> judge.add_once(0, 1, 0.25, 1.0, None, False)
    >>> names, losses = ["a", "b"], (0.0, 1.0)
    >>> found = judge_report(judge, Sequences(2), names, [0, 1], losses, waiting=0, awaiting=0, lam=1.0)
    >>> found.bias["b"].estimate, found.labels
    (-0.75, 1)
    """
    agreement, position, biases = judge.intervals(judged.risk, live)
    scaled = (each.scaled(*losses, difference=True) for each in biases)
    bias: dict[Arm, Interval] = dict(zip((names[arm] for arm in live), scaled, strict=True))
    alone = verdict(judged, names, waiting=waiting)
    return JudgeReport(agreement, bias, position, judge.labels, judge.missing, awaiting, lam, alone)


def beside(found: Verdict, alone: Verdict, missing: int) -> Verdict:
    """A verdict by labels, with that by the judge's losses `alone` and the number of missing
    labels.

    >>> unknown = verdict(Sequences(2), ["a", "b"])
    >>> beside(unknown, unknown, missing=2).remark[:35]
    '2 labels are missing and count as d'
    """
    remarks, warning = [found.remark] if found.remark else [], None
    if missing:
        what = "label is missing and counts" if missing == 1 else "labels are missing and count"
        assumed = "assuming that whether one comes depends on neither arm nor loss"
        remarks.append(f"{missing:,} {what} as declared, {assumed}")
    if found.state == alone.state == "decided" and found.best != alone.best:
        warning = f"the judge alone would choose {alone.best}, and labels show that {found.best} is better"
        warning += "; do not trust this judge by itself"
    return replace(found, remark="; ".join(remarks) or None, judge=alone.text, warning=warning)


def _with(
    sums: Floats, arm: int, judged: float, label: float | None, position: float | None
) -> Floats:
    """The sums with one more decision, in place if there is room for its arm."""
    if _ARMS + arm >= len(sums):
        sums = np.pad(sums, ((0, _ARMS + arm + 1 - len(sums)), (0, 0)))
    if label is not None:
        sums[_AGREEMENT] += _powers(1.0 - abs(judged - label))
        sums[_ARMS + arm] += _powers(0.5 + 0.5 * (judged - label))
    if position is not None:
        sums[_POSITION] += _powers(0.5 + 0.5 * position)
    return sums


def _powers(value: float) -> tuple[float, float, float, float, float]:
    rest = 1.0 - value
    return 1.0, value, value * value, rest, rest * rest
