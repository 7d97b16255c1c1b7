"""The boundary of every confidence sequence here, as a pure function of sums.

Let X_1, X_2, ... be random with X_n >= 0, and let mu_n be the mean of X_n given the past. For a
guess g >= 0 of the mean and a bet 0 <= lam < 1/g, put psi(lam, g) = (-log(1 - g lam) - g lam) /
g^2, which is lam^2 / 2 for g = 0. Then

    exp(lam sum (X_m - mu_m) - psi(lam, g) sum (X_m - g)^2)

is a supermartingale that starts at 1, and so is the average of such terms over a grid of bets and
guesses. The smallest mean at which it does not exceed 1 / risk is a lower bound of the running mean
(mu_1 + ... + mu_n) / n, at every n at once.

Three sums are all that it needs: n, the sum of X and the sum of X^2. docs/inference.md has the
derivation.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..base.arrays import Floats

# Powers of two: the best bet for a spread V is about 4 / sqrt(V), so these serve up to V = 10^10.
BETS: Floats = np.power(0.5, np.arange(1.0, 17.0))
GUESSES: Floats = np.linspace(0.0, 1.0, 5)
# At most. Newton's method converges from below, so stopping early only widens an interval.
_NEWTON_STEPS = 30


def _psi(bets: Floats, guesses: Floats) -> Floats:
    """The price of a bet, psi(lam, g), for each pair of a bet and a guess."""
    scaled = bets * guesses
    with np.errstate(divide="ignore", invalid="ignore"):
        exact = (-np.log1p(-scaled) - scaled) / guesses**2
    return np.where(guesses == 0.0, bets**2 / 2.0, exact)


# One pair of a guess and a bet for each term of the average, with its logarithmic weight. Small
# guesses allow larger bets, which matter while little was seen.
_TERM_GUESSES = np.repeat(GUESSES, len(BETS))
_TERM_BETS = np.tile(BETS, len(GUESSES)) / np.maximum(_TERM_GUESSES, 0.25)
PSI = _psi(_TERM_BETS, _TERM_GUESSES)
_LOG_SHARE = -np.log(len(_TERM_BETS))
# A difference of two arms is bounded below by -1, and its guess is 0.
PSI_DIFFERENCE = _psi(BETS, np.ones(1))
_LOG_SHARE_DIFFERENCE = -np.log(len(BETS))


def lower_mean(count: ArrayLike, total: ArrayLike, squares: ArrayLike, risk: ArrayLike) -> Floats:
    """A lower bound of the running mean of numbers X >= 0 whose means lie in [0, 1].

    The arguments may be arrays of one shape. The bound is 0 where nothing was seen.

    Args:
        count: how many numbers there were.
        total: their sum.
        squares: the sum of their squares.
        risk: the probability with which the bound may fail at some moment, in (0, 1).

    >>> print(lower_mean(1000, 500.0, 500.0, risk=0.025).round(3))
    0.436
    """
    return np.maximum(_lower(count, total, squares, risk, of_difference=False), 0.0)


def lower_difference(
    count: ArrayLike, total: ArrayLike, squares: ArrayLike, risk: ArrayLike
) -> Floats:
    """A lower bound of the running mean of numbers X >= -1 whose means lie in [-1, 1].

    The arguments may be arrays of one shape. The bound is -1 where nothing was seen.

    Args:
        count: how many numbers there were.
        total: their sum.
        squares: the sum of their squares.
        risk: the probability with which the bound may fail at some moment, in (0, 1).

    >>> print(lower_difference(1000, 500.0, 500.0, risk=0.025).round(3))
    0.416
    """
    return np.maximum(_lower(count, total, squares, risk, of_difference=True), -1.0)


def _terms(
    squares: Floats, total: Floats, count: Floats, *, of_difference: bool
) -> tuple[Floats, Floats]:
    """The bets, and what each of them pays for the spread, with the logarithm of its share."""
    if of_difference:
        return BETS, squares[:, None] * PSI_DIFFERENCE - _LOG_SHARE_DIFFERENCE
    spread = squares[:, None] - 2.0 * GUESSES * total[:, None] + GUESSES**2 * count[:, None]
    spread = np.repeat(np.maximum(spread, 0.0), len(BETS), axis=1)
    return _TERM_BETS, spread * PSI - _LOG_SHARE


def log_wealth(
    count: Floats, total: Floats, squares: Floats, mean: Floats
) -> tuple[Floats, Floats]:
    """The logarithm of the supermartingale of `lower_mean` for a given running mean, and its slope
    in that mean.
    """
    bets, price = _terms(squares, total, count, of_difference=False)
    exponents = bets * (total - count * mean)[:, None] - price
    logarithm, weights = log_sum_exp(exponents)
    return logarithm, -count * (weights @ bets)


def log_wealth_of_difference(total: Floats, squares: Floats) -> Floats:
    """The logarithm of the supermartingale of `lower_difference` for a running mean of 0. Arrays of
    any shape.
    """
    exponents = (
        total[..., None] * BETS - squares[..., None] * PSI_DIFFERENCE + _LOG_SHARE_DIFFERENCE
    )
    return log_sum_exp(exponents)[0]


def log_sum_exp(exponents: Floats) -> tuple[Floats, Floats]:
    """The logarithm of the sum of exp(exponents) over the last axis, and the share of each term in
    the sum.
    """
    top = exponents.max(axis=-1, keepdims=True)
    terms = np.exp(exponents - top)
    sums = terms.sum(axis=-1, keepdims=True)
    return (top + np.log(sums))[..., 0], terms / sums


def _lower(count: Any, total: Any, squares: Any, risk: Any, *, of_difference: bool) -> Floats:
    """The lower bound of each mean; minus infinity where nothing was seen."""
    sums = np.broadcast_arrays(count, total, squares, risk)
    counts, totals, all_squares, risks = (np.asarray(values, np.float64).ravel() for values in sums)
    bounds = np.full(counts.shape, -np.inf)
    is_seen: NDArray[np.bool_] = counts > 0.0
    if is_seen.any():
        counts = counts[is_seen]
        totals = totals[is_seen]
        bets, price = _terms(all_squares[is_seen], totals, counts, of_difference=of_difference)
        log_wealth_at_zero = bets * totals[:, None] - price
        bounds[is_seen] = root(bets, log_wealth_at_zero, counts, -np.log(risks[is_seen]))
    return bounds.reshape(sums[0].shape)


def root(bets: Floats, at_zero: Floats, count: Floats, goal: Floats) -> Floats:
    """Where log sum exp(at_zero - bets count m) falls to the goal, as a function of m, by Newton's
    method.

    The function is convex and falling. At the start, the best bound by a single bet, it is not
    below the goal, so every step ends below the root.
    """
    slopes = bets * count[:, None]
    mean: Floats = ((at_zero - goal[:, None]) / slopes).max(axis=1)
    for _ in range(_NEWTON_STEPS):
        logarithm, weights = log_sum_exp(at_zero - slopes * mean[:, None])
        step = (logarithm - goal) / (weights * slopes).sum(axis=1)
        mean = mean + np.maximum(step, 0.0)
        if not np.any(step > 1e-9):
            break
    return mean


class Interval(NamedTuple):
    """An estimate and its interval, which holds at every moment at once.

    Attributes:
        estimate: the estimate.
        low: the lower end.
        high: the upper end.

    >>> from decoupled.inference import Interval
    >>> Interval(0.5, 0.4, 0.7).scaled(0.0, 250.0)
    Interval(estimate=125.0, low=100.0, high=175.0)
    >>> Interval(0.1, -0.2, 0.3).scaled(0.0, 250.0, difference=True)
    Interval(estimate=25.0, low=-50.0, high=75.0)
    """

    estimate: float
    low: float
    high: float

    def scaled(self, low: float, high: float, *, difference: bool = False) -> "Interval":
        """The interval of losses in [low, high], from that of losses in [0, 1]; or of a difference
        of losses.

        Args:
            low: the lowest possible loss.
            high: the highest possible loss.
            difference: whether it is the interval of a difference of two losses, which scaling does
                not shift.
        """
        start = 0.0 if difference else low
        width = high - low
        return Interval(*(start + width * end for end in self))

    @classmethod
    def around(cls, estimate: float, low: float, high: float) -> "Interval":
        """An interval, with the estimate moved inside it.

        Args:
            estimate: the estimate; if it lies outside, the nearer end takes its place.
            low: the lower end.
            high: the upper end.
        """
        low = float(low)
        high = max(low, float(high))
        return cls(min(max(float(estimate), low), high), low, high)
