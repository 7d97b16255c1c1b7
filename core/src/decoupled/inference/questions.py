"""What bets say of a mean over the decisions of a log, in which each arm may count differently.

A question is: what is the mean over the decisions of the sum over arms of r_j mu_j? For an arm, r
is 1 for it; for a candidate, its law; for a difference, that law less 1 for the arm exploited. With
a model a_j of each arm's loss, known before the decision, and the chances p_j of exploration, the
decision that explored e has the estimate

    X = sum of r_j c_j + r_e (x - c_e) / p_e

with this mean, whatever c is. See `decoupled.inference.singles` for how far c may go from 0 (from
1 for an arm with a negative r) to the model.
"""

from typing import NamedTuple

import numpy as np

from ..base.arrays import Bools, Floats, Ints
from ..kernels.single_bets import bet_on_rounds
from ..kernels.stakes import LEAST_LEVEL, MOST_LEVEL
from .singles import centred_sums, new_centred_bets


class ArmSeen(NamedTuple):
    """What a log says of one arm, for each decision.

    Attributes:
        model: the loss that was predicted.
        chance: the probability with which the decision explored the arm, or what it cannot be
            below; NaN if neither is known.
        is_explored: whether it did.
        loss: the loss of what it explored.
        inverse_propensity: 1 / propensity of what it explored.
    """

    model: Floats
    chance: Floats
    is_explored: Bools
    loss: Floats
    inverse_propensity: Floats


class _End(NamedTuple):
    """The columns of the bets for one end; `decoupled.kernels.single_bets.bet_on_rounds` says what
    each is.
    """

    levels: Floats
    bases: Floats
    reaches: Floats
    gains: Floats
    guesses: Floats


class Question:
    """A mean over decisions, and the bets on both of its ends.

    Args:
        decisions: their number.

    >>> loss = np.tile([0.25, 0.75], 500)
    >>> is_first = np.tile([True, False], 500)
    >>> half = np.full(1_000, 0.5)
    >>> question = Question(1_000)
    >>> question.add(np.ones(1_000), ArmSeen(half, half, is_first, loss, 1.0 / half))
    >>> [round(end, 2) for end in question.ends(np.arange(1_000), risk=0.025)]
    [0.21, 0.29]
    """

    def __init__(self, decisions: int) -> None:
        self._weights = np.zeros(decisions)
        self._low = _End(*(np.zeros(decisions) for _ in _End._fields))
        self._high = _End(*(np.zeros(decisions) for _ in _End._fields))

    def add(self, counts: Floats, seen: ArmSeen) -> None:
        """Add an arm.

        Args:
            counts: what the arm counts in each decision.
            seen: what the log says of it.
        """
        model = np.clip(seen.model, LEAST_LEVEL, MOST_LEVEL)
        size = np.abs(counts)
        guess = np.where(counts >= 0.0, model, 1.0 - model)
        gain = np.where(counts >= 0.0, seen.loss, 1.0 - seen.loss)
        is_explored = seen.is_explored
        self._weights[is_explored] = size[is_explored] * seen.inverse_propensity[is_explored]
        for end, sign, level, value in (
            (self._low, 1.0, guess, gain),
            (self._high, -1.0, 1.0 - guess, 1.0 - gain),
        ):
            end.levels[:] += sign * counts * model
            end.bases[:] += size * level
            with np.errstate(divide="ignore", invalid="ignore"):
                reach = np.where(np.isnan(seen.chance), np.inf, level / seen.chance)
                reach = np.where(size > 0.0, size * reach, 0.0)
            np.maximum(end.reaches, reach, out=end.reaches)
            end.gains[is_explored] = value[is_explored]
            end.guesses[is_explored] = level[is_explored]

    def set_uncentred(self, rows: Bools, above: Floats, below: Floats) -> None:
        """Make it a question without laws in some decisions: what each says of the mean plus 1, and
        of 1 less the mean.

        Args:
            rows: the decisions.
            above: for each decision, a number of at least 0 with the first mean.
            below: the same with the second.
        """
        self._weights[rows] = 1.0
        for end, values in ((self._low, above), (self._high, below)):
            end.levels[rows] = 0.0
            end.bases[rows] = 1.0
            end.reaches[rows] = np.inf
            end.gains[rows] = values[rows]
            end.guesses[rows] = 0.0

    def ends(self, rows: Ints, risk: float) -> tuple[float, float]:
        """The ends of the mean over these decisions, in this order, each at this risk.

        Args:
            rows: the places of the decisions.
            risk: the probability with which an end fails.
        """
        bets = new_centred_bets(2)
        for row, end in enumerate((self._low, self._high)):
            bet_on_rounds(
                bets,
                row,
                end.levels[rows],
                end.bases[rows],
                end.reaches[rows],
                self._weights[rows],
                end.gains[rows],
                end.guesses[rows],
            )
        low, high = centred_sums(bets, slice(0, 2), risk) / len(rows)
        return float(low), -float(high)
