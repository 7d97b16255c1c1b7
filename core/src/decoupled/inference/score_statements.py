"""What bets say of arms that were scored on the same items, two by two, and what a judge saves."""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from ..base.arrays import Floats
from ..decision import Arm
from .boundary import Interval
from .paired_bets import paired_bets, slope_of
from .score_table import Scale, ScoreTable

ScoreState: TypeAlias = Literal["better", "not better", "undecided"]
"""How a comparison of scores ends; see `ScoreComparison`."""

_FEWEST_LABELS = 10  # from fewer, what the judge saves would be noise
_FEWEST_ITEMS = 30  # from fewer, a forecast would be
_MOST_ITEMS = 10**9


class Statement(NamedTuple):
    """What bets say of an arm against another one.

    Attributes:
        arm: the place of an arm.
        against: that of another.
        difference: the loss of the first minus that of the second.
        better_at: after how many items the first was shown to be better by more than the margin;
            0 if it was not.
        not_better_at: after how many it was shown not to be; 0 if it was not.
        evidence: the logarithm of the money on what was shown, or on what is nearest to it.
    """

    arm: int
    against: int
    difference: Interval
    better_at: int
    not_better_at: int
    evidence: float

    def compares(self, arm: int) -> bool:
        """Whether this is one of the two arms."""
        return arm in (self.arm, self.against)


class Standing(NamedTuple):
    """How a comparison ends: the state, the place of the arm that is best if that was shown, and
    after how many items; both None while it is undecided.
    """

    state: ScoreState
    best: int | None
    shown_at: int | None


def pairs_of(table: ScoreTable, baseline: Arm | None) -> list[tuple[int, int]]:
    """The places of the arms that are compared: all two by two, or each with the baseline.

    >>> import numpy as np
    >>> table = ScoreTable(("a", "b", "c"), (), np.empty((0, 3)), np.empty((0, 3)), 0, False, "a")
    >>> pairs_of(table, None), pairs_of(table, "b")
    ([(0, 1), (0, 2), (1, 2)], [(0, 1), (2, 1)])
    """
    places = range(len(table.arms))
    if baseline is not None:
        against = table.arms.index(baseline)
        return [(arm, against) for arm in places if arm != against]
    return [(one, two) for one in places for two in places if one < two]


def statement_of(
    table: ScoreTable, share: float | None, pair: tuple[int, int], margin: float, goal: float
) -> Statement:
    """What bets say of two arms.

    Args:
        table: the scores and labels.
        share: the probability of a label; None without labels.
        pair: the places of the arms.
        margin: by how much the first has to be better, as a loss.
        goal: the logarithm of the money that shows something, in each direction.
    """
    one, two = pair
    scores = table.losses[:, one] - table.losses[:, two]
    labels = None if share is None else table.labels[:, one] - table.labels[:, two]
    one_is_worse = paired_bets(scores, labels, share)
    two_is_worse = paired_bets(-scores, None if labels is None else -labels, share)
    log_money_on_better = two_is_worse.log_money(margin)
    log_money_on_not_better = one_is_worse.log_money(-margin)
    better_at = _first(log_money_on_better, goal)
    not_better_at = _first(log_money_on_not_better, goal)
    if better_at and not_better_at:  # means drifted, and what was shown first stands
        if better_at < not_better_at:
            not_better_at = 0
        else:
            better_at = 0
    if better_at:
        evidence = _last(log_money_on_better)
    elif not_better_at:
        evidence = _last(log_money_on_not_better)
    else:
        evidence = max(_last(log_money_on_better), _last(log_money_on_not_better))
    risk = math.exp(-goal)
    low = one_is_worse.lowest_mean(risk)
    high = -two_is_worse.lowest_mean(risk)
    return Statement(
        arm=one,
        against=two,
        difference=Interval.around(mean_of(scores, labels), low, high),
        better_at=better_at,
        not_better_at=not_better_at,
        evidence=evidence,
    )


def _first(log_money: Floats, goal: float) -> int:
    """After how many items the money first reaches the goal; 0 if it never does."""
    reached = np.flatnonzero(log_money >= goal)
    return int(reached[0]) + 1 if len(reached) else 0


def _last(log_money: Floats) -> float:
    """The logarithm of the money after the last item; before the first, the money is 1."""
    return float(log_money[-1]) if len(log_money) else 0.0


def mean_of(scores: Floats, labels: Floats | None) -> float:
    """The mean of scores; or of labels, with the judge as a control variate, if there are any.

    >>> import numpy as np
    >>> mean_of(np.array([0.25, 0.75]), None)
    0.5
    >>> mean_of(np.array([0.25, 0.75, 0.5]), np.array([np.nan, np.nan, 0.25]))
    0.25
    """
    if len(scores) == 0:
        return 0.0
    if labels is None:
        return float(scores.mean())
    is_labelled = ~np.isnan(labels)
    if not is_labelled.any():
        return 0.0
    known = labels[is_labelled]
    judged = scores[is_labelled]
    offsets = judged - judged.mean()
    slope = slope_of(
        np.array([float(known @ offsets)]),
        np.array([float(offsets @ offsets)]),
        np.array([float(scores.std())]),
    )
    return float(known.mean() - slope[0] * (judged.mean() - scores.mean()))


def means_of(table: ScoreTable, share: float | None, scale: Scale) -> dict[Arm, float]:
    """The estimated mean score of each arm, by people if there are labels.

    >>> import numpy as np
    >>> losses = np.array([[0.25, 0.5], [0.25, 1.0]])
    >>> table = ScoreTable(("a", "b"), (1, 2), losses, losses, 0, False, "a")
    >>> means_of(table, None, Scale(0.0, 4.0, False))
    {'a': 1.0, 'b': 3.0}
    """
    means = {}
    for place, arm in enumerate(table.arms):
        labels = None if share is None else table.labels[:, place]
        means[arm] = scale.number_of(min(max(mean_of(table.losses[:, place], labels), 0.0), 1.0))
    return means


def saved_share(table: ScoreTable, share: float) -> float | None:
    """The share of the labels that the judge saves; None if labels are too few, or every item is
    labelled.

    It is (1 - share) r^2, adjusted for few labels, where r is the correlation of scores and labels
    within items, apart from what all answers of an arm have in common: only that makes a difference
    of arms more precise.

    >>> import numpy as np
    >>> losses = np.random.default_rng(1).random((100, 2))
    >>> table = ScoreTable(("a", "b"), tuple(range(100)), losses, losses, 0, False, "a")
    >>> round(saved_share(table, 0.1), 2)
    0.9
    """
    rows = table.is_labelled
    count = int(rows.sum())
    if count < _FEWEST_LABELS or share == 1.0:
        return None
    judged = _within(table.losses[rows])
    known = _within(table.labels[rows])
    spread = float((judged * judged).sum() * (known * known).sum())
    if spread == 0.0:
        return 0.0
    correlation = float((judged * known).sum()) / math.sqrt(spread)
    if correlation <= 0.0:
        return 0.0
    freedom = (count - 1) * (len(table.arms) - 1)
    adjusted = 1.0 - (1.0 - correlation**2) * freedom / (freedom - 1)
    return (1.0 - share) * max(adjusted, 0.0)


def _within(values: Floats) -> Floats:
    """Values without the mean of their item and that of their arm."""
    centred = values - values.mean(axis=1, keepdims=True)
    within: Floats = centred - centred.mean(axis=0)
    return within


def standing_of(
    statements: Sequence[Statement], table: ScoreTable, baseline: Arm | None
) -> Standing:
    """How a comparison ends."""
    if baseline is None:
        return _standing_of_best(statements, len(table.arms))
    better = [each for each in statements if each.better_at]
    if better:
        best = min(better, key=lambda each: each.difference.estimate)
        return Standing("better", best.arm, min(each.better_at for each in better))
    if all(each.not_better_at for each in statements):
        return Standing("not better", None, max(each.not_better_at for each in statements))
    return Standing("undecided", None, None)


def _standing_of_best(statements: Sequence[Statement], arms: int) -> Standing:
    """How a comparison without a baseline ends: whether one arm was shown to be better than every
    other.
    """
    for arm in range(arms):
        shown_at = [_better_at(each, arm) for each in statements if each.compares(arm)]
        if all(shown_at):
            return Standing("better", arm, max(shown_at))
    return Standing("undecided", None, None)


def _better_at(statement: Statement, arm: int) -> int:
    """When an arm was shown to be better than the other one of a statement; 0 if it was not."""
    return statement.better_at if statement.arm == arm else statement.not_better_at


def items_to_decide(
    statements: Sequence[Statement], table: ScoreTable, baseline: Arm | None, goal: float
) -> int | None:
    """About how many more items it takes to decide; None if that cannot be foreseen.

    Evidence grows in proportion to the items, if arms differ as they seem to.
    """
    items = len(table.items)
    if items < _FEWEST_ITEMS:
        return None
    items_needed = [_items_for(each, items, goal) for each in statements]
    if baseline is not None:
        # It ends once one arm is better, or no arm is left that may be.
        soon = [
            count for count, each in zip(items_needed, statements, strict=True) if _is_ahead(each)
        ]
        total = min(soon) if soon else max(items_needed)
    else:
        leads = []
        for arm in range(len(table.arms)):
            own = [
                count
                for count, each in zip(items_needed, statements, strict=True)
                if each.compares(arm)
            ]
            is_leading = all(_is_led_by(each, arm) for each in statements if each.compares(arm))
            if is_leading:
                leads.append(max(own))
        total = min(leads, default=math.inf)
    if not total < _MOST_ITEMS:
        return None
    more = max(total - items, 1.0)
    return int(float(f"{more:.2g}"))


def _items_for(statement: Statement, items: int, goal: float) -> float:
    """About how many items a statement takes in all."""
    if statement.better_at or statement.not_better_at:
        return float(statement.better_at or statement.not_better_at)
    return items * goal / statement.evidence if statement.evidence > 1.0 else math.inf


def _is_ahead(statement: Statement) -> bool:
    """Whether the first arm looks better than the second."""
    return statement.difference.estimate < 0.0 and not statement.not_better_at


def _is_led_by(statement: Statement, arm: int) -> bool:
    """Whether this arm looks better than the other one."""
    estimate = statement.difference.estimate
    return estimate < 0.0 if statement.arm == arm else estimate > 0.0
