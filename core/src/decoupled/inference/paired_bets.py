"""Bets on the mean of paired differences: two arms were seen on the same item.

Let d be the loss of arm i minus that of arm j on an item, in [-1, 1]. Someone who doubts that its
mean given the past is at most m bets on

    z = (d - m) / (1 + m),

the largest multiple of d - m that is never below -1. Its mean is at most 0 if that of d is at most
m. With the stakes of `stakes`, its money reaches 1 / risk at any item with probability at most
risk. The lowest mean at which it is less is a lower bound of the mean at every item at once: of the
running mean if means drift, because 1 + u <= exp(u).

With labels, d is what a judge says, and g, what people say, is known for each item with probability
rho, whatever the judge says. Let f be a forecast of g that knows d and what came before, between
two numbers F0 and F1 that know the past alone, and let a be 1 if the item is labelled. Then

    x = f + (a / rho) (g - f)

has the mean of g, whatever the judge says, and rho x is least for a label of -1 and f = F1. So

    z = rho (x - m) / (1 + (1 - rho) F1 + rho m)

is at least -1. The forecast is the mean label so far, plus the judge as a control variate: a
multiple of d minus its mean over all items so far, with the slope of g on d. This is
prediction-powered inference (Angelopoulos, Bates, Fannjiang, Jordan and Zrnic, Science 382, 2023)
as a bet. Half of the money ignores the judge and takes m for the forecast, so that z is
(g - m) / (1 + m) at a label and 0 otherwise: a bad judge costs at most a factor of two.

If means drift, what the money shows with labels holds for the plain running mean, or for that with
the weights 1 / (1 + (1 - rho) F1 + rho m): for one of them, as each half has its own.
"""

import math
from typing import NamedTuple

import numpy as np

from ..base.arrays import Bools, Floats
from ..kernels.stakes import STAKES
from .stakes import LOG_PRIOR, evidence

_PSEUDO_LABELS = 4.0  # that say that the judge knows nothing
_DEVIATIONS = 2.0  # of the forecast round its middle; beyond, it is cut off
_HALVINGS = 24  # of [-1, 1]: a bound is exact to 2e-7


class Plan(NamedTuple):
    """A way of betting: in each round, z = top / (base + slope m) - 1.

    Attributes:
        rounds: the places of the items in which it bets.
        tops: for each of these.
        bases: the same.
        slope: of the denominator.
    """

    rounds: Bools
    tops: Floats
    bases: Floats
    slope: float


class PairedBets(NamedTuple):
    """Bets that the mean of a difference is above a number, on items in their order.

    Attributes:
        items: the number of items.
        plans: the ways of betting, which share the money at the start.

    >>> import numpy as np
    >>> bets = paired_bets(np.full(50, 0.5))
    >>> bool(bets.log_money(0.0)[-1] > np.log(1e6)), bool(0.35 < bets.lowest_mean(0.05) < 0.5)
    (True, True)
    """

    items: int
    plans: tuple[Plan, ...]

    def log_money(self, mean: float) -> Floats:
        """The logarithm of the money after each item, against "the mean is at most this"."""
        logs = [self._path(plan, mean) for plan in self.plans]
        log_money: Floats = np.logaddexp.reduce(logs, axis=0) - math.log(len(logs))
        return log_money

    def _path(self, plan: Plan, mean: float) -> Floats:
        """The logarithm of the money of one way of betting after each item."""
        z = np.zeros(self.items)
        z[plan.rounds] = plan.tops / (plan.bases + plan.slope * mean) - 1.0
        return evidence(LOG_PRIOR + np.log1p(STAKES * z[:, None]).cumsum(axis=0))

    def _last_log_money(self, mean: float) -> float:
        """The logarithm of the money after the last item."""
        logs = []
        for plan in self.plans:
            z = plan.tops / (plan.bases + plan.slope * mean) - 1.0
            won = LOG_PRIOR + np.log1p(STAKES * z[:, None]).sum(axis=0)
            logs.append(float(evidence(won)))
        return float(np.logaddexp.reduce(logs)) - math.log(len(logs))

    def lowest_mean(self, risk: float) -> float:
        """A lower bound of the mean, at every item at once, with probability 1 - risk.

        The money falls in the mean, so halving finds where it is 1 / risk.
        """
        low, high = -1.0, 1.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2.0
            if self._last_log_money(middle) >= -math.log(risk):
                low = middle
            else:
                high = middle
        return low


def paired_bets(
    scores: Floats, labels: Floats | None = None, share: float | None = None
) -> PairedBets:
    """Bets that the mean of a difference of two arms is above a number.

    Args:
        scores: for each item, the difference of their losses as scored, in [-1, 1].
        labels: the same by people, NaN without; None if the scores are what counts.
        share: the probability of a label.
    """
    items = len(scores)
    if labels is None or share is None:
        every = np.ones(items, np.bool_)
        return PairedBets(items, (Plan(every, 1.0 + scores, np.ones(items), 1.0),))
    is_labelled: Bools = ~np.isnan(labels)
    known = labels[is_labelled]
    alone = Plan(is_labelled, 1.0 + known, np.ones(len(known)), 1.0)
    if share == 1.0:  # no item is left to forecast
        return PairedBets(items, (alone,))
    return PairedBets(items, (alone, _with_judge(scores, labels, is_labelled, share)))


def _with_judge(scores: Floats, labels: Floats, is_labelled: Bools, share: float) -> Plan:
    """The bets with the judge as a control variate."""
    forecasts, highs = _forecasts(scores, labels, is_labelled)
    bases = 1.0 + (1.0 - share) * highs
    labelled_worth = np.where(is_labelled, labels, 0.0) - (1.0 - share) * forecasts
    worth = np.where(is_labelled, labelled_worth, share * forecasts)
    return Plan(np.ones(len(scores), np.bool_), worth + bases, bases, share)


def _forecasts(scores: Floats, labels: Floats, is_labelled: Bools) -> tuple[Floats, Floats]:
    """The forecast of each label, and the highest that it could have been, by what came before."""
    known = np.where(is_labelled, labels, 0.0)
    judged = np.where(is_labelled, scores, 0.0)
    items = np.maximum(np.arange(float(len(scores))), 1.0)
    middle = _before(scores) / items
    deviation = np.sqrt(np.maximum(_before(scores**2) / items - middle**2, 0.0))
    count = _before(is_labelled.astype(np.float64))
    seen = np.maximum(count, 1.0)
    products = _before(known * judged) - _before(known) * _before(judged) / seen
    squares = np.maximum(_before(judged**2) - _before(judged) ** 2 / seen, 0.0)
    slopes = slope_of(products, squares, deviation)
    base = _before(known) / (count + 1.0)
    reach = _DEVIATIONS * slopes * deviation
    highs = np.minimum(base + reach, 1.0)
    forecasts = np.clip(base + slopes * (scores - middle), np.maximum(base - reach, -1.0), highs)
    return forecasts, highs


def _before(values: Floats) -> Floats:
    """The sum of the values before each."""
    return np.concatenate([np.zeros(1), np.cumsum(values)[:-1]])[: len(values)]


def slope_of(products: Floats, squares: Floats, deviation: Floats) -> Floats:
    """The slope of labels on scores, kept in [0, 1], from centred sums of products and of squares.

    Pseudo-labels that do not depend on the score draw it to 0 while labels are few.

    >>> import numpy as np
    >>> slope_of(np.array([8.0]), np.array([10.0]), np.array([0.0])).tolist()
    [0.8]
    """
    totals = squares + _PSEUDO_LABELS * deviation**2
    slopes = np.divide(products, totals, out=np.zeros_like(products), where=totals > 0.0)
    return np.clip(slopes, 0.0, 1.0)
