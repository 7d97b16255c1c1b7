"""Which arm is better, from a table of scores and people's labels of a few items."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np

from ..base.validation import LEAST_RISK, check_number, loss_ends, one_of
from ..decision import Arm
from ..errors import ArmError, Message, ParameterError
from .boundary import Interval
from .label_checks import FALSE_ALARMS, check_labels
from .log_columns import LogLike
from .score_statements import (
    ScoreState,
    Statement,
    items_to_decide,
    means_of,
    pairs_of,
    saved_share,
    standing_of,
    statement_of,
)
from .score_table import Scale, ScoreTable, check_missing, read_scores

LITTLE = 0.05  # a judge that saves a smaller share of the labels is not worth its price

_UNSEEN_OF_ITEMS = "whether the items are a fair sample, in an order that scores do not depend on"
_UNSEEN_OF_SCORES = "whether the scores are right: a judge that favours an arm decides for it"
_UNSEEN_OF_LABELS = (
    "whether chance alone chose what to label, or someone who had seen the answers; that it does "
    f"not depend on the scores was tested (a false alarm in at most {100.0 * FALSE_ALARMS:g} % of "
    "tables)",
    "whether the judge has learned from these labels",
    "whether those who label favour an arm",
)


@dataclass(frozen=True, slots=True)
class ScoreDifference:
    """What is known of two arms that were scored on the same items.

    Attributes:
        arm: an arm.
        against: another.
        difference: the mean score of `arm` minus that of `against`, by people if there are labels.
        state: "better" if `arm` was shown to be better by more than the margin, "not better" if it
            was shown not to be.
        shown_at: after how many items; None if it is undecided.
        sure: the highest level at which the evidence after the last item shows the same; None if it
            is undecided.

    >>> from decoupled.inference import Interval, ScoreDifference
    >>> ScoreDifference("b", "a", Interval(-0.2, -0.3, -0.1), "better", 40, 0.99).state
    'better'
    """

    arm: Arm
    against: Arm
    difference: Interval
    state: ScoreState
    shown_at: int | None
    sure: float | None


@dataclass(frozen=True, slots=True)
class ScoreComparison:
    """The arms of a table of scores, compared item by item, valid after every item.

    With probability 1 - risk, every interval and every statement is right, after every item at
    once. With labels they are about what people say of all items, whatever the judge says.

    Attributes:
        text: the comparison as a sentence.
        state: with a baseline, "better" if some arm was shown to be better than it by more than the
            margin, "not better" if every other arm was shown not to be, else "undecided". Without,
            "better" if one arm was shown to be better than every other, else "undecided".
        best: the arm that was shown to be better; None if none was.
        shown_at: after how many items the state was reached; None if it is undecided.
        means: the estimated mean score of each arm, by people if there are labels.
        differences: of each other arm and the baseline, or of every two arms.
        is_higher_better: whether a higher score is better.
        baseline: the arm that others have to beat; None without.
        margin: by how much.
        risk: the probability that anything of this is ever wrong.
        items: how many items were compared.
        dropped: how many were left out, because they lack the score of an arm.
        labels: how many of the items have labels; None if no labels were given.
        label_share: the probability of a label; None if no labels were given.
        saved: the share of the labels that the judge saves, compared with labels alone; None
            without a judge or with too few labels.
        judge: with labels, what the judge's scores alone would say; None without.
        more_items: about how many more items it takes to decide, with as many labels for each, if
            arms differ as they seem to; None if it is decided or cannot be foreseen.
        remarks: sentences to read with the result.
        unseen: what a table cannot show, and the result assumes.
        table: what was compared, as losses in [0, 1]; not in `to_dict`.

    >>> from decoupled.inference import compare_scores
    >>> table = {"item": [1, 1], "arm": ["a", "b"], "score": [0.2, 0.4]}
    >>> compare_scores(table).state
    'undecided'
    """

    text: str
    state: ScoreState
    best: Arm | None
    shown_at: int | None
    means: dict[Arm, float]
    differences: tuple[ScoreDifference, ...]
    is_higher_better: bool
    baseline: Arm | None
    margin: float
    risk: float
    items: int
    dropped: int
    labels: int | None
    label_share: float | None
    saved: float | None
    judge: str | None
    more_items: int | None
    remarks: tuple[str, ...]
    unseen: tuple[str, ...]
    table: ScoreTable = field(repr=False, compare=False)

    def __str__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain values, for JSON."""
        names = [each.name for each in fields(self) if each.name != "table"]
        content = {name: getattr(self, name) for name in names}
        content["means"] = {str(arm): mean for arm, mean in self.means.items()}
        content["differences"] = [
            {**asdict(each), "difference": each.difference._asdict()} for each in self.differences
        ]
        content["remarks"] = list(self.remarks)
        content["unseen"] = list(self.unseen)
        return content

    def records(self) -> list[dict[str, Any]]:
        """The scores as losses from 0 to 1, for `Learner.replay` with `unrandomised=True`.

        With labels, start the learner with `labels=` too: scores are then what a judge said.

        >>> import decoupled as dc
        >>> from decoupled.inference import compare_scores
        >>> table = {"item": [1, 1], "arm": ["a", "b"], "score": [2.0, 4.0]}
        >>> comparison = compare_scores(table, score_range=(0.0, 10.0))
        >>> learner = dc.FTPL().start(["a", "b"], seed=7)
        >>> learner.replay(comparison.records(), unrandomised=True)
        2
        >>> learner.estimates().tolist()
        [0.2, 0.4]
        """
        records: list[dict[str, Any]] = []
        table = self.table
        for losses, labels in zip(table.losses.tolist(), table.labels.tolist(), strict=True):
            for arm, loss, label in zip(table.arms, losses, labels, strict=True):
                record: dict[str, Any] = {"explore": arm, "propensity": 1.0, "loss": loss}
                if self.label_share is not None:
                    record["loss"] = None if math.isnan(label) else label
                    record["judged"] = loss
                    record["label_probability"] = self.label_share
                records.append(record)
        return records


def compare_scores(
    scores: LogLike,
    labels: LogLike | None = None,
    *,
    label_share: float | None = None,
    arms: Sequence[Arm] | None = None,
    baseline: Arm | None = None,
    margin: float = 0.0,
    risk: float = 0.05,
    score_range: tuple[float, float] = (0.0, 1.0),
    label_range: tuple[float, float] | None = None,
    better: str = "lower",
    missing: float | None = None,
) -> ScoreComparison:
    """Compare arms that were scored on the same items, by a judge or by people.

    The result is right after every item at once: look, stop or append items whenever you like, as
    long as that depends on nothing but the items so far. docs/how-to/compare-file.md has the
    assumptions.

    Args:
        scores: a table with the columns "item", "arm" and "score": the path of a .csv or .parquet
            file, a data frame, columns by name, or rows. Items are in the order of their last row.
        labels: a table with the columns "item", "arm" and "label": what people say of some items,
            of all arms of each. The result is then about labels, and scores only save some of them.
        label_share: the probability with which each item was labelled, whatever its scores.
        arms: the arms to compare. By default all, in the order of the table; they share the risk,
            so name them before you look at a table that grows.
        baseline: the arm that others have to beat.
        margin: by how much they have to, in units of the labels, or of the scores without labels;
            below 0, how much worse they may be. Only with a baseline.
        risk: the probability that any statement or interval is ever wrong.
        score_range: the lowest and the highest possible score.
        label_range: the same for labels; by default that of scores.
        better: "lower" if scores are losses, "higher" if not.
        missing: what the score counts as that an item lacks. By default the item is left out.

    >>> table = {"item": [], "arm": [], "score": []}
    >>> for item in range(50):
    ...     for arm, score in (("old", 0.6), ("new", 0.3)):
    ...         for name, value in (("item", item), ("arm", arm), ("score", score)):
    ...             table[name].append(value)
    >>> print(compare_scores(table, baseline="old"))
    new is better than old (95 %, shown after 21 items)
    """
    scale = _scale("score_range", score_range, better)
    label_scale = scale if label_range is None else _scale("label_range", label_range, better)
    question = _Question(
        baseline=baseline,
        margin=_checked_margin(margin, baseline, label_scale),
        risk=check_number("risk", risk, "try 0.05", at_least=LEAST_RISK, below=1.0),
        scale=label_scale,
    )
    share = _checked_share(label_share, has_labels=labels is not None)
    if missing is not None:
        remedy = "give a score that is possible"
        missing = check_number("missing", missing, remedy, at_least=scale.low, at_most=scale.high)
    table = read_scores(scores, labels, arms, scale, label_scale, missing)
    if baseline is not None and baseline not in table.arms:
        present = ", ".join(map(repr, table.arms))
        problem = f"baseline = {baseline!r}: is none of the arms {present}"
        raise ArmError(Message(problem, "name the arm as the table does"))
    check_missing(table)
    if share is not None:
        check_labels(table, share)
    return _compared(table, share, question)


class _Question(NamedTuple):
    """What is asked: the baseline, the margin as a loss in [-1, 1], the risk, and the scale of the
    answer.
    """

    baseline: Arm | None
    margin: float
    risk: float
    scale: Scale

    @property
    def level(self) -> str:
        """The level of what is said, in words."""
        return f"{100.0 * (1.0 - self.risk):.6g} %"


def _scale(name: str, ends: tuple[float, float], better: str) -> Scale:
    """The scale of a column of numbers, from the range that a user gave."""
    try:
        low, high = loss_ends(ends)
    except ParameterError:
        rule = "must be two finite numbers, the lower first"
        raise ParameterError.of(name, ends, rule, "the default is (0, 1)") from None
    return Scale(low, high, one_of("better", better, ("lower", "higher")) == "higher")


def _checked_margin(margin: float, baseline: Arm | None, scale: Scale) -> float:
    """The margin as a difference of losses in [0, 1]."""
    width = scale.width
    remedy = "it is a difference of two scores"
    number = check_number("margin", margin, remedy, above=-width, below=width)
    if number != 0.0 and baseline is None:
        raise ParameterError.of("margin", margin, "needs a baseline", "name the arm to beat")
    return number / width


def _checked_share(share: float | None, *, has_labels: bool) -> float | None:
    """The probability of a label; None without labels."""
    if not has_labels:
        if share is not None:
            raise ParameterError.of("label_share", share, "needs labels", "give the labels, too")
        return None
    remedy = (
        "declare the probability with which chance drew each item to be labelled, whatever its "
        "scores; a choice by any other rule would bias the comparison"
    )
    if share is None:
        raise ParameterError(Message("label_share: is needed with labels", remedy))
    return check_number("label_share", share, remedy, above=0.0, at_most=1.0)


def _compared(table: ScoreTable, share: float | None, question: _Question) -> ScoreComparison:
    """The comparison of a table that was checked."""
    pairs = pairs_of(table, question.baseline)
    goal = math.log(2.0 * len(pairs) / question.risk)
    statements = [statement_of(table, share, pair, question.margin, goal) for pair in pairs]
    standing = standing_of(statements, table, question.baseline)
    by_judge = None
    if share is not None:
        without_labels = table._replace(labels=np.full_like(table.losses, np.nan))
        by_judge = _compared(without_labels, None, question)
    more_items = None
    if standing.state == "undecided":
        more_items = items_to_decide(statements, table, question.baseline, goal)
    differences = tuple(_difference(each, table, question, goal) for each in statements)
    saved = None if share is None else saved_share(table, share)
    best = None if standing.best is None else table.arms[standing.best]
    remarks = [
        *_remarks_on_items(table),
        *_remarks_on_evidence(differences, question),
        *([] if share is None else _remarks_on_judge(table, share, saved)),
    ]
    if by_judge is not None and _contradicts(by_judge, standing.state, best):
        remarks.append("the judge alone would decide otherwise: do not trust it by itself")
    return ScoreComparison(
        text=_text(differences, standing.state, best, standing.shown_at, question, more_items),
        state=standing.state,
        best=best,
        shown_at=standing.shown_at,
        means=means_of(table, share, question.scale),
        differences=differences,
        is_higher_better=question.scale.is_higher_better,
        baseline=question.baseline,
        margin=question.margin * question.scale.width,
        risk=question.risk,
        items=len(table.items),
        dropped=table.dropped,
        labels=None if share is None else int(table.is_labelled.sum()),
        label_share=share,
        saved=saved,
        judge=None if by_judge is None else by_judge.text,
        more_items=more_items,
        remarks=tuple(remarks),
        unseen=(_UNSEEN_OF_ITEMS, *((_UNSEEN_OF_SCORES,) if share is None else _UNSEEN_OF_LABELS)),
        table=table,
    )


def _difference(
    statement: Statement, table: ScoreTable, question: _Question, goal: float
) -> ScoreDifference:
    """A statement in units of the scores."""
    estimate, low, high = statement.difference
    if question.scale.is_higher_better:
        estimate, low, high = -estimate, -high, -low
    state: ScoreState = "undecided"
    shown_at = None
    sure = None
    if statement.better_at or statement.not_better_at:
        state = "better" if statement.better_at else "not better"
        shown_at = statement.better_at or statement.not_better_at
        sure = 1.0 - min(question.risk * math.exp(goal - statement.evidence), 1.0)
    return ScoreDifference(
        arm=table.arms[statement.arm],
        against=table.arms[statement.against],
        difference=Interval(*(question.scale.width * end for end in (estimate, low, high))),
        state=state,
        shown_at=shown_at,
        sure=sure,
    )


def _contradicts(by_judge: ScoreComparison, state: ScoreState, best: Arm | None) -> bool:
    """Whether the judge alone would decide, and in another way."""
    if "undecided" in (by_judge.state, state):
        return False
    return (by_judge.state, by_judge.best) != (state, best)


def _remarks_on_items(table: ScoreTable) -> list[str]:
    """A sentence on items that were left out."""
    if not table.dropped:
        return []
    if table.dropped == 1:
        return ["1 item lacks the score of an arm and was left out"]
    return [f"{table.dropped:,} items lack the score of an arm and were left out"]


def _remarks_on_evidence(differences: Sequence[ScoreDifference], question: _Question) -> list[str]:
    """A sentence on what the evidence of now no longer shows."""
    weaker = [
        f"{each.arm} and {each.against}"
        for each in differences
        if each.sure is not None and each.sure < 1.0 - question.risk
    ]
    if not weaker:
        return []
    pairs = "; ".join(weaker)
    return [
        f"after the last item, the evidence shows less than {question.level} for {pairs}: what was "
        "shown stands for the items until then"
    ]


def _remarks_on_judge(table: ScoreTable, share: float, saved: float | None) -> list[str]:
    """A sentence on what the judge is worth."""
    if share == 1.0:
        return ["every item is labelled, so the judge adds nothing"]
    if saved is None:
        return [f"{int(table.is_labelled.sum())} labels are too few to say what the judge saves"]
    percent = f"about {100.0 * saved:.0f} % of the labels"
    if saved < LITTLE:
        return [f"the judge saves next to nothing, {percent}: you can do without it"]
    return [f"the judge saves {percent}, compared with labels alone"]


def _text(
    differences: Sequence[ScoreDifference],
    state: ScoreState,
    best: Arm | None,
    shown_at: int | None,
    question: _Question,
    more_items: int | None,
) -> str:
    """The comparison as a sentence."""
    if state == "undecided":
        return _text_of_undecided(differences, question.baseline, more_items)
    ending = f"({question.level}, shown after {shown_at:,} items)"
    if question.baseline is None:
        others = {arm for each in differences for arm in (each.arm, each.against)} - {best}
        beaten = "every other arm" if len(others) > 1 else next(iter(others))
        return f"{best} is better than {beaten} {ending}"
    if state == "better":
        also = [f"{each.arm}" for each in differences if each.state == state and each.arm != best]
        so_are = f"; so {'is' if len(also) == 1 else 'are'} {', '.join(also)}" if also else ""
        # The others may have been shown to be better before or after it.
        best_shown_at = next(each.shown_at for each in differences if each.arm == best)
        ending = f"({question.level}, shown after {best_shown_at:,} items)"
        return f"{best} is {_better_text(question)} {ending}{so_are}"
    subject = f"{differences[0].arm} is not" if len(differences) == 1 else "no arm is"
    return f"{subject} {_better_text(question)} {ending}"


def _better_text(question: _Question) -> str:
    """What an arm has to be, in words."""
    margin = question.margin * question.scale.width
    if margin < 0.0:
        return f"at most {-margin:.4g} worse than {question.baseline}"
    by = f" by more than {margin:.4g}" if margin else ""
    return f"better than {question.baseline}{by}"


def _text_of_undecided(
    differences: Sequence[ScoreDifference], baseline: Arm | None, more_items: int | None
) -> str:
    """The sentence of a comparison that is not decided: who is out, and how long it may take."""
    parts = ["undecided"]
    out: dict[Arm, None] = {}
    for each in differences:
        if each.state == "not better":
            out[each.arm] = None
        elif each.state == "better" and baseline is None:
            out[each.against] = None
    if out:
        listed = ", ".join(map(str, out))
        than = "another arm" if baseline is None else str(baseline)
        state = "worse than" if baseline is None else "not better than"
        parts.append(f"{listed} {'is' if len(out) == 1 else 'are'} {state} {than}")
    if more_items is not None:
        parts.append(f"about {more_items:,} more items would decide it")
    return "; ".join(parts)
