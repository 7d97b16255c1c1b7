"""The constants that theorems A to E share."""

import math
from functools import lru_cache

import numpy as np

from decoupled.base import needed_for, whole_number

from .arguments import shape_of

with needed_for("bounds with the zeta function"):
    from scipy.special import zeta as riemann

LEAST_OFF_EVENT = 0.5 * (1.0 - math.exp(-0.5))  # lemma D.3 of the paper: 1 - w_best off D_t


def arms_of(arms: int) -> int:
    """Validate the number of arms."""
    return whole_number("arms", arms, 2, "give the number of arms")


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


@lru_cache(maxsize=256)
def _rank_sum(arms: int, alpha: float) -> float:
    return float((np.arange(1.0, arms + 1.0) ** (-0.5 - 0.5 / alpha)).sum())


def rank_sum(arms: int, alpha: float = 3.0) -> float:
    r"""The sum $S_K = \sum_{i \le K} i^{-(\alpha + 1) / (2 \alpha)}$: the sum of $q$ is at most this in every state.

    Args:
        arms: the number of arms $K$.
        alpha: the shape of the perturbations, above 1.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.rank_sum(arms=8), 3)  # `surrogate_sum_bound` is the paper's bound on it
    3.676
    """
    return _rank_sum(arms_of(arms), shape_of(alpha))


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


def square_sum(alpha: float = 3.0) -> float:
    r"""$Z = \zeta(1 + 1/\alpha)$: the sum of $q^2$ is at most this for any number of arms.

    Args:
        alpha: the shape of the perturbations, above 1.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.square_sum(alpha=3.0), 3)
    3.601
    """
    return float(riemann(1.0 + 1.0 / shape_of(alpha)))


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
