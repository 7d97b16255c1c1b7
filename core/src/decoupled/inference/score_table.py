"""Scores of the same items by a judge, and people's labels of a few items: read and checked."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..base.arrays import Bools, Floats
from ..base.tables import MISSING_WORDS
from ..base.validation import as_float, is_missing
from ..decision import Arm
from ..errors import ArmError, LossError, Message, ParameterError
from .log_columns import LogLike, plain_values, table_columns
from .missing import NOTHING_MISSING, RISK

SCORE_COLUMNS = ("item", "arm", "score")
LABEL_COLUMNS = ("item", "arm", "label")


class Scale(NamedTuple):
    """What numbers mean: the lowest and the highest possible one, and whether higher is better."""

    low: float
    high: float
    is_higher_better: bool

    @property
    def sign(self) -> float:
        """What a loss is multiplied by to get a number of this scale, apart from its width."""
        return -1.0 if self.is_higher_better else 1.0

    @property
    def width(self) -> float:
        """How far the lowest and the highest possible number are apart."""
        return self.high - self.low

    def loss_of(self, number: float) -> float:
        """A number of this scale as a loss in [0, 1]."""
        above = self.high - number if self.is_higher_better else number - self.low
        return above / self.width

    def number_of(self, loss: float) -> float:
        """A loss in [0, 1] as a number of this scale."""
        start = self.high if self.is_higher_better else self.low
        return start + self.sign * self.width * loss


class ScoreTable(NamedTuple):
    """The items that have a score of every arm.

    Attributes:
        arms: the arms.
        items: the items, in the order in which their last score comes in the table.
        losses: a row for each item and a column for each arm, the scores as losses in [0, 1].
        labels: the same for labels, with rows of NaN for items without.
        dropped: how many items lack the score of some arm.
        is_uneven: whether scores were shown to be missing more often for one arm than for others.
        most_missing: the arm that has the fewest scores.
    """

    arms: tuple[Arm, ...]
    items: tuple[Any, ...]
    losses: Floats
    labels: Floats
    dropped: int
    is_uneven: bool
    most_missing: Arm

    @property
    def is_labelled(self) -> Bools:
        """Which items have labels."""
        is_labelled: Bools = ~np.isnan(self.labels[:, 0])
        return is_labelled


class _Lost(NamedTuple):
    """An item that lacks the score of this arm alone; see `missing.LostDecision`."""

    explore: int
    weight: float | None


def read_scores(
    scores: LogLike,
    labels: LogLike | None,
    arms: Sequence[Arm] | None,
    scale: Scale,
    label_scale: Scale,
    missing: float | None,
) -> ScoreTable:
    """Read scores and labels, and refuse what is no such table.

    Args:
        scores: the table of scores.
        labels: that of labels; None without.
        arms: the arms to compare; None for all.
        scale: of the scores.
        label_scale: of the labels.
        missing: what a missing score counts as; None if its item is left out.

    >>> rows = [{"item": 1, "arm": arm, "score": 0.5} for arm in ("a", "b")]
    >>> scale = Scale(0.0, 1.0, False)
    >>> read_scores(rows, None, None, scale, scale, None).losses.tolist()
    [[0.5, 0.5]]
    """
    by_item, seen_arms = _by_item(scores, "scores", SCORE_COLUMNS, scale, arms)
    names = seen_arms if arms is None else list(arms)
    _check_arms(names, seen_arms)
    if missing is not None:
        fallback = scale.loss_of(missing)
        for losses in by_item.values():
            losses.update({arm: fallback for arm in names if losses.get(arm) is None})
    lacking = {
        item: [arm for arm in names if losses.get(arm) is None] for item, losses in by_item.items()
    }
    items = [item for item, lacking_arms in lacking.items() if not lacking_arms]
    is_uneven, most_missing = _missing_by_arm(list(lacking.values()), names)
    rows = [[by_item[item][arm] for arm in names] for item in items]
    table = np.array(rows, np.float64).reshape(len(items), len(names))
    known_labels = np.full_like(table, np.nan)
    if labels is not None:
        labels_of = _labels_of(labels, label_scale, names, set(by_item))
        for place, item in enumerate(items):
            if item in labels_of:
                known_labels[place] = labels_of[item]
    return ScoreTable(
        arms=tuple(names),
        items=tuple(items),
        losses=table,
        labels=known_labels,
        dropped=len(by_item) - len(items),
        is_uneven=is_uneven,
        most_missing=most_missing,
    )


def _by_item(
    table: LogLike,
    name: str,
    wanted: tuple[str, ...],
    scale: Scale,
    arms: Sequence[Arm] | None,
) -> tuple[dict[Any, dict[Arm, float | None]], list[Arm]]:
    """The losses of each item by arm, None where a number is missing, and the arms as they come.

    Items are in the order of their last row of these arms, so that a longer table begins with the
    items of a shorter one.
    """
    columns = table_columns(table, wanted, name)
    for column in wanted:
        if column not in columns:
            present = ", ".join(map(repr, columns)) or "none of its columns"
            problem = f"{name}: has no column {column!r}, only {present}"
            remedy = f"name the columns {', '.join(wanted)}"
            raise ParameterError(Message(problem, remedy))
    losses_of: dict[Any, dict[Arm, float | None]] = {}
    seen_arms: dict[Arm, None] = {}
    number_name = wanted[-1]
    for place, row in enumerate(
        zip(*(plain_values(columns[column]) for column in wanted), strict=True)
    ):
        item, arm, number = row
        for what, value in (("item", item), ("arm", arm)):
            _check_name(f"{name}[{place}].{what}", value)
        if arms is not None and arm not in arms:
            continue
        seen_arms[arm] = None
        losses = losses_of.pop(item, {})
        if arm in losses:
            problem = f"{name}[{place}]: item {item!r} has a second {number_name} of arm {arm!r}"
            remedy = f"give one {number_name} for each item and arm, such as their mean"
            raise ParameterError(Message(problem, remedy))
        losses[arm] = _loss(f"{name}[{place}].{number_name}", number, scale)
        losses_of[item] = losses
    return losses_of, list(seen_arms)


def _check_name(name: str, value: Any) -> None:
    """Raise an error if a cell names no item or arm."""
    if isinstance(value, (list, dict, set)):
        rule = "is neither a text nor a number"
        raise ParameterError.of(name, value, rule, "give one for each row")
    if _is_blank(value):
        raise ParameterError.of(name, value, "is missing", "leave out the row")


def _is_blank(value: Any) -> bool:
    """Whether a cell is empty, or holds a word for a missing value."""
    if isinstance(value, str):
        return value.strip() in MISSING_WORDS
    return is_missing(value)


def _loss(name: str, value: Any, scale: Scale) -> float | None:
    """A cell as a loss in [0, 1]; None if it is missing."""
    if _is_blank(value):
        return None
    if isinstance(value, bool):
        value = float(value)
    number = as_float(value)
    if isinstance(value, str):
        try:
            number = as_float(float(value))
        except ValueError:
            number = None
    if number is None:
        raise ParameterError.of(name, value, "is not a number", "leave it empty if it is missing")
    if not scale.low <= number <= scale.high:
        rule = f"must lie in [{scale.low:g}, {scale.high:g}]"
        raise LossError.of(name, value, rule, "declare the lowest and the highest possible number")
    return scale.loss_of(number)


def _check_arms(names: Sequence[Arm], seen_arms: Sequence[Arm]) -> None:
    """Raise an error if the arms cannot be compared."""
    if len(set(names)) < len(names):
        raise ArmError(Message("arms: one is named twice", "name every arm once"))
    for name in names:
        if name not in seen_arms:
            present = ", ".join(map(repr, seen_arms)) or "none"
            problem = f"arms: {name!r} has no score; there are {present}"
            raise ArmError(Message(problem, "name an arm as the table of scores does"))
    if len(names) < 2:
        problem = f"scores: there are {len(names)} arms to compare"
        raise ArmError(Message(problem, "give the scores of two arms or more"))


def _missing_by_arm(lacking: Sequence[Sequence[Arm]], names: Sequence[Arm]) -> tuple[bool, Arm]:
    """Whether scores are missing more often for one arm, and the arm that lacks most.

    If the arm does not matter, an item that lacks one score lacks each arm's with the same chance.
    """
    missing = NOTHING_MISSING
    counts = dict.fromkeys(names, 0)
    for lacking_arms in lacking:
        for arm in lacking_arms:
            counts[arm] += 1
        if len(lacking_arms) == 1:
            lost = _Lost(names.index(lacking_arms[0]), float(len(names)))
            missing = missing.with_decision(lost, range(len(names)))
    return missing.is_uneven, max(counts, key=counts.__getitem__)


def _labels_of(
    labels: LogLike, scale: Scale, names: Sequence[Arm], items: set[Any]
) -> Mapping[Any, list[float]]:
    """The labels of each labelled item, one for each arm."""
    by_item, _ = _by_item(labels, "labels", LABEL_COLUMNS, scale, names)
    labels_of = {}
    for item, losses in by_item.items():
        if item not in items:
            problem = f"labels: item {item!r} has no score"
            raise ParameterError(Message(problem, "give the scores of every labelled item"))
        losses_of_arms = []
        for arm in names:
            loss = losses.get(arm)
            if loss is None:
                problem = f"labels: item {item!r} has no label of arm {arm!r}"
                remedy = (
                    "label all arms of an item or none: which of them have a label must not depend "
                    "on what they answered"
                )
                raise ParameterError(Message(problem, remedy))
            losses_of_arms.append(loss)
        labels_of[item] = losses_of_arms
    return labels_of


def check_missing(table: ScoreTable) -> None:
    """Raise an error if scores are missing more often for one arm.

    At most a share `RISK` of tables in which the arm does not matter are refused.

    >>> rows = [{"item": 1, "arm": arm, "score": 0.5} for arm in ("a", "b")]
    >>> scale = Scale(0.0, 1.0, False)
    >>> check_missing(read_scores(rows, None, None, scale, scale, None))
    """
    if table.is_uneven:
        problem = (
            f"scores: {table.dropped:,} items lack a score, most often that of arm "
            f"{table.most_missing!r} (by chance in at most {100.0 * RISK:g} % of tables); if it is "
            "missing because the answer was bad, the items that are left favour this arm"
        )
        remedy = "say what a missing score counts as (`missing`), or leave these items out yourself"
        raise ParameterError(Message(problem, remedy))
