"""Arguments that several bounds take, the constants that they share, and the soft gate of the centred estimator."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import zeta as riemann

from decoupled.base import Floats, as_float, check_number, set_number, whole_number
from decoupled.errors import ParameterError


def shape_of(alpha: float, high: float = 1e9) -> float:
    """Validate alpha, the shape of the Pareto perturbations."""
    return check_number("alpha", alpha, "the paper has 3", above=1.0, below=high)


# Validate c, the scale of the learning rate; zeta, where lemma D.1 splits its two cases; and the number of arms.
scale_of = partial(check_number, "c", remedy="the paper has 2", above=0.0)
split_of = partial(check_number, "zeta", remedy="the paper has 0.1", above=0.0, below=1.0)
arms_of = partial(whole_number, "arms", low=2, remedy="give the number of arms")


def size_of(horizon: int, arms: int) -> float:
    """Validate the horizon and the number of arms; return their product K * T."""
    rounds = whole_number("horizon", horizon, 1, "give the number of rounds")
    return float(rounds) * arms_of(arms)


def positive_gaps(gaps: Sequence[float]) -> Floats:
    """The gaps of all arms except the best one; one zero, for the best arm, is allowed and dropped."""
    numbers = [as_float(gap) for gap in gaps]
    positive = [gap for gap in numbers if gap is not None and 0.0 < gap <= 1.0]
    zeros = sum(gap == 0.0 for gap in numbers)
    if not positive or len(positive) + zeros < len(numbers) or zeros > 1:
        rule = "must be the gaps of the other arms, each in (0, 1], with at most one 0 for the best arm"
        raise ParameterError.of(
            "gaps", gaps, rule, "the theorems assume that the best arm is unique"
        )
    return np.array(positive)


LEAST_OFF_EVENT = 0.5 * (1.0 - math.exp(-0.5))  # lemma D.3 of the paper: 1 - w_best off D_t


def curvature_constant(alpha: float = 3.0) -> float:
    r"""The constant $C_1 = (\alpha + 1) \Gamma(1 + 1/\alpha)$ of lemma L3: a slope of $w$ is at most $C_1 q^2$.

    Args:
        alpha: the shape of the perturbations, above 1.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.curvature_constant(alpha=3.0), 3)
    3.572
    """
    alpha = shape_of(alpha)
    return (alpha + 1.0) * math.gamma(1.0 + 1.0 / alpha)


def winner_constant(alpha: float = 3.0) -> float:
    r"""The constant $G = \Gamma(1 - 1/\alpha)$ of lemma L2, where the paper has $C_\alpha$.

    Args:
        alpha: the shape of the perturbations, above 1.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.winner_constant(alpha=3.0), 3), round(theory.bounds.penalty_constant(alpha=3.0), 3)
    (1.354, 6.046)
    """
    return math.gamma(1.0 - 1.0 / shape_of(alpha))


def rank_sum(arms: int, alpha: float = 3.0) -> float:
    r"""The sum $S_K = \sum_{i \le K} i^{-(\alpha + 1) / (2 \alpha)}$: the sum of $q$ is at most this in every state.

    Args:
        arms: the number of arms $K$.
        alpha: the shape of the perturbations, above 1.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.rank_sum(arms=8), 3)  # `surrogate_sum_bound` is the paper's bound on it
    3.676
    """
    return float((np.arange(1.0, arms_of(arms) + 1.0) ** (-0.5 - 0.5 / shape_of(alpha))).sum())


def rank_share(arms: int | None, alpha: float = 3.0) -> float:
    r"""The ratio $s_K = S_K / K^{1/2 - 1/(2 \alpha)}$, or its limit $2 \alpha / (\alpha - 1)$ for None.

    It increases with the number of arms.

    Args:
        arms: the number of arms $K$; None for the limit.
        alpha: the shape of the perturbations, above 1.

    >>> from decoupled_lab import theory
    >>> [round(theory.bounds.rank_share(arms) ** 2, 2) for arms in (2, 8, 64, 1024)]
    [1.67, 3.38, 5.74, 7.6]
    >>> theory.bounds.rank_share(None)
    3.0
    """
    alpha = shape_of(alpha)
    if arms is None:
        return 2.0 * alpha / (alpha - 1.0)
    return rank_sum(arms, alpha) / math.pow(arms, 0.5 - 0.5 / alpha)


def square_sum(alpha: float = 3.0, arms: int | None = None) -> float:
    r"""$Z_K = \sum_{i \le K} i^{-(1 + 1/\alpha)}$, which bounds the sum of $q^2$; $Z = \zeta(1 + 1/\alpha)$ for any number of arms.

    Args:
        alpha: the shape of the perturbations, above 1.
        arms: the number of arms $K$; None for any number.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.square_sum(alpha=3.0), 3), round(theory.bounds.square_sum(arms=8), 3)
    (3.601, 2.131)
    """
    power = 1.0 + 1.0 / shape_of(alpha)
    if arms is None:
        return float(riemann(power))
    return float((np.arange(1.0, arms_of(arms) + 1.0) ** -power).sum())


def ratio_sum(alpha: float = 3.0) -> float:
    r"""$Z_2 = \zeta((3 \alpha - 1) / (2 \alpha))$: the sum of $w^2 / q$ is at most this for any number of arms.

    Args:
        alpha: the shape of the perturbations, above 1.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.ratio_sum(alpha=3.0), 3)  # equal to `square_sum` at alpha = 3
    3.601
    """
    alpha = shape_of(alpha)
    return float(riemann((3.0 * alpha - 1.0) / (2.0 * alpha)))


def first_rate(arms: int, alpha: float, c_exploit: float) -> float:
    r"""The rate $\bar\eta = c_x K^{1/\alpha - 1/2}$ of the first round."""
    return c_exploit * math.pow(arms, 1.0 / alpha - 0.5)


_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(96)


@dataclass(frozen=True)
class Gate:
    r"""The gate SOFT$(a, \delta)$: $b_i = \min(B, (a + \delta \eta u_i) p_i / \eta)$, with $0 < \delta < 1$ and $a \ge \delta$.

    It limits the largest fall of an estimate to $a + \delta y$ in units of $1 / \eta$, where $y$ is the arm's own scaled
    gap. The default is HALF: one observation takes at most half of the gap, plus $1 / (2 \eta)$, off an estimate.

    Args:
        a: the part of the limit that does not depend on the gap.
        delta: the share of its gap that an arm can make up in one round.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.Gate().fall_factor(alpha=3.0), 4)
    2.6667
    >>> round(theory.bounds.Gate(a=1.5, delta=0.5).fall_factor(alpha=3.0), 1)
    11.8
    """

    a: float = 0.5
    delta: float = 0.5

    def __post_init__(self) -> None:
        delta = set_number(self, "delta", 0.0, 1.0, "HALF has 1/2")
        a = set_number(self, "a", 0.0, math.inf, "HALF has 1/2")
        if a < delta:
            raise ParameterError.of("a", a, f"must be at least delta = {delta:g}", "raise it")

    def largest_fall(self, gap: float) -> float:
        """The largest fall of an arm with this scaled gap.

        Args:
            gap: the arm's gap, times the learning rate.
        """
        return self.a + self.delta * gap

    def fall_factor(self, alpha: float = 3.0) -> float:
        """The factor Rbar by which a fall costs more than a rise of the same size: the largest R(x, y) of lemma L4.

        With a = delta, this is the closed form r(delta). Otherwise, it is a search over y.

        Args:
            alpha: the shape of the perturbations, above 1.
        """
        alpha = shape_of(alpha)
        if self.a == self.delta:
            return proportional_fall_factor(self.delta, alpha)
        return _soft_fall_factor(self, alpha)

    def switch_factor(self, alpha: float = 3.0) -> float:
        """The factor R1 by which a fall moves more keys than a rise of the same size.

        With a = delta it is ((1 - delta)^-alpha - 1) / (alpha delta). Otherwise it is (1 + a / (1 - delta))^(alpha + 1).

        Args:
            alpha: the shape of the perturbations, above 1.
        """
        alpha, rest = shape_of(alpha), 1.0 - self.delta
        if self.a == self.delta:
            return float((rest**-alpha - 1.0) / (alpha * self.delta))
        return float((1.0 + self.a / rest) ** (alpha + 1.0))


HALF = Gate()


def proportional_fall_factor(delta: float, alpha: float = 3.0) -> float:
    r"""The factor $r(\delta) = \int_0^1 2 (1 - v) (1 - \delta v)^{-(\alpha + 1)} dv$, in closed form."""
    # Substitute s = 1 - delta v; the antiderivatives of s^-alpha and s^-(alpha + 1) are powers, since alpha > 1.
    rest = 1.0 - delta
    first = (rest ** (1.0 - alpha) - 1.0) / (alpha - 1.0)
    second = (rest**-alpha - 1.0) / alpha
    return float(2.0 / delta**2 * (first - rest * second))


@lru_cache(maxsize=64)
def _soft_fall_factor(gate: Gate, alpha: float) -> float:
    return largest_fall_factor(gate.largest_fall, alpha)


def fall_ratio(s: ArrayLike, y: float) -> Floats:
    """The ratio rho(s, y) = (1 + max(s, y)) / (1 + (y - s)_+) of lemma L3, for s and y of at least 0."""
    s = np.asarray(s, np.float64)
    return np.asarray((1.0 + np.maximum(s, y)) / (1.0 + np.maximum(y - s, 0.0)))


def jump_factor(x: float, y: float, alpha: float = 3.0) -> float:
    r"""The factor $R(x, y) = \int_0^1 2 (1 - v) \rho(x v, y)^{\alpha + 1} dv$ of lemma L4."""
    kink = min(y / x, 1.0)
    found = 0.0
    for low, high in ((0.0, kink), (kink, 1.0)):
        v = low + 0.5 * (high - low) * (1.0 + _NODES)
        values = 2.0 * (1.0 - v) * fall_ratio(x * v, y) ** (alpha + 1.0)
        found += 0.5 * (high - low) * float(_NODE_WEIGHTS @ values)
    return found


def largest_fall_factor(largest_fall: Callable[[float], float], alpha: float) -> float:
    """The largest R(x, y) over gaps y, where `largest_fall` gives x by y: a grid of y, and finer ones around its best."""
    gaps = np.concatenate(([0.0], np.geomspace(1e-3, 1e6, 400)))
    for _ in range(4):
        factors = [jump_factor(largest_fall(float(y)), float(y), alpha) for y in gaps]
        top = int(np.argmax(factors))
        best, low, high = factors[top], gaps[max(top - 1, 0)], gaps[min(top + 1, len(gaps) - 1)]
        gaps = np.linspace(low, high, 41)
    return float(best)
