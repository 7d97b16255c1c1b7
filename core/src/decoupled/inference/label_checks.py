"""What a file can show of how its labels were chosen: by chance, or by what the judge said.

If each item is labelled with probability rho, whatever its scores are, then for every number q in
[-1, 1] that knows the scores of the item and of those before it

    z = (a - rho) q / max(rho, 1 - rho),   a = 1 if the item is labelled and 0 if not,

has the mean 0 and is at least -1. So whoever bets on z has money that reaches 1 / risk with
probability at most risk, for any number of items and of looks. Here q is the rank among the items
so far, from -1 to 1, of the item's mean score, of how far its scores are apart, and of how far each
arm's score lies above the mean; and 1, which tests rho itself.
"""

import math
from bisect import bisect_left, bisect_right, insort

import numpy as np

from ..base.arrays import Floats
from ..errors import Message, ParameterError
from ..kernels.stakes import STAKES
from .score_table import ScoreTable
from .stakes import LOG_PRIOR, evidence

# How often the labels of a fair coin are refused, at most; half of it for each of the two tests.
FALSE_ALARMS = 0.001


def check_labels(table: ScoreTable, share: float) -> None:
    """Raise an error if labels were not drawn with this probability, whatever the scores.

    Args:
        table: the scores and labels.
        share: the declared probability.

    >>> import numpy as np
    >>> losses = np.random.default_rng(1).random((200, 2))
    >>> labels = np.where(losses.mean(axis=1, keepdims=True) > 0.6, losses, np.nan)
    >>> table = ScoreTable((0, 1), tuple(range(200)), losses, labels, 0, False, 0)
    >>> check_labels(table, 0.25)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    decoupled.errors.ParameterError: labels: which items are labelled depends on their scores...
    """
    goal = -math.log(FALSE_ALARMS / 2.0)
    found = int(table.is_labelled.sum())
    if evidence_of_choice(table, share) >= goal:
        problem = (
            "labels: which items are labelled depends on their scores (by chance in at most "
            f"{100.0 * FALSE_ALARMS:g} % of tables), so a comparison by these labels is biased"
        )
        raise ParameterError(Message(problem, "draw the items to label by chance, before scoring"))
    is_impossible = share == 1.0 and found < len(table.items)
    if is_impossible or evidence_of_share(table, share) >= goal:
        problem = (
            f"label_share = {share:g}: {found:,} of {len(table.items):,} items are labelled, which "
            f"a share of {share:g} gives in at most {100.0 * FALSE_ALARMS:g} % of tables"
        )
        raise ParameterError(Message(problem, "declare the probability with which you drew them"))


def evidence_of_choice(table: ScoreTable, share: float) -> float:
    """The largest logarithm of the money of bets that labels depend on scores, after any item.

    >>> table = ScoreTable((0, 1), (7,), np.zeros((1, 2)), np.zeros((1, 2)), 0, False, 0)
    >>> evidence_of_choice(table, 0.5)
    0.0
    """
    losses = table.losses
    means = losses.mean(axis=1)
    spreads = losses.max(axis=1) - losses.min(axis=1)
    columns = [means, spreads, *(losses - means[:, None]).T]
    ranks = [_ranks(column) for column in columns]
    return _most_money(table, share, ranks)


def evidence_of_share(table: ScoreTable, share: float) -> float:
    """The same of bets that labels are more or less frequent.

    >>> table = ScoreTable((0, 1), (7,), np.zeros((1, 2)), np.zeros((1, 2)), 0, False, 0)
    >>> round(evidence_of_share(table, 0.5), 2)
    0.0
    """
    return _most_money(table, share, [np.ones(len(table.items))])


def _most_money(table: ScoreTable, share: float, bets: list[Floats]) -> float:
    """The largest logarithm of the mean money of these bets and their opposites."""
    if len(table.items) == 0:
        return 0.0
    unit = (table.is_labelled - share) / max(share, 1.0 - share)
    paths = []
    for bet in bets:
        for sign in (1.0, -1.0):
            z = sign * unit * bet
            paths.append(evidence(LOG_PRIOR + np.log1p(STAKES * z[:, None]).cumsum(axis=0)))
    money = np.logaddexp.reduce(paths, axis=0) - math.log(len(paths))
    return float(money.max())


def _ranks(values: Floats) -> Floats:
    """The rank of each value among those before it, from -1 to 1; 0 for a tie with all."""
    before: list[float] = []
    ranks = np.zeros(len(values))
    for place, value in enumerate(values.tolist()):
        if before:
            less = bisect_left(before, value)
            not_more = bisect_right(before, value)
            ranks[place] = (less + not_more) / len(before) - 1.0
        insort(before, value)
    return ranks
