"""Theorems A and B: any adversary, with importance weighting and with centred losses."""

import math
from functools import lru_cache

import numpy as np

from decoupled.base import Floats

from .arguments import scale_of, shape_of, size_of
from .constants import (
    arms_of,
    curvature_constant,
    first_rate,
    rank_share,
    rank_sum,
    square_sum,
    winner_constant,
)
from .gates import HALF, Gate

_EXACT = 2**15  # rounds that are summed one by one
_GROWTH = 1.0005  # after that, blocks of rounds grow by this factor
_LAST = 1e16


def centred_constant(
    arms: int | None, alpha: float = 3.0, c_exploit: float = 0.5, gate: Gate | None = HALF
) -> float:
    r"""The factor of $\sqrt{KT}$ in theorems A and B: $c_x C_1 \bar R s_K^2 + G / c_x$, with $c_x$ = `c_exploit`.

    A gate of None means importance weighting (theorem A, $\bar R = 1$). With None for the arms, the value bounds
    the factor for any number of arms. Theorem B adds `low_order_term`, which does not depend on the horizon.

    Args:
        arms: the number of arms $K$; None for a bound that holds for any number.
        alpha: the shape of the perturbations, above 1.
        c_exploit: the scale $c_x$ of the exploitation rate, above 0.
        gate: the gate of the estimator; None for importance weighting.

    >>> from decoupled_lab import theory
    >>> [round(theory.bounds.centred_constant(arms, c_exploit=2.0, gate=None), 1) for arms in (8, 64, None)]
    [24.8, 41.7, 65.0]
    >>> [round(theory.bounds.centred_constant(arms), 1) for arms in (2, 8, 64, None)]
    [10.7, 18.8, 30.0, 45.6]
    """
    alpha, c = shape_of(alpha), scale_of(c_exploit)
    factor = 1.0 if gate is None else gate.fall_factor(alpha)
    return (
        c * curvature_constant(alpha) * factor * rank_share(arms, alpha) ** 2 + winner_constant(alpha) / c
    )


def optimal_c_exploit(arms: int | None, alpha: float = 3.0, gate: Gate | None = None) -> float:
    r"""The `c_exploit` that minimises `centred_constant`: $\sqrt{G / (C_1 \bar R s_K^2)}$.

    Args:
        arms: the number of arms $K$; None for any number.
        alpha: the shape of the perturbations, above 1.
        gate: the gate of the estimator; None for importance weighting.

    >>> from decoupled_lab import theory
    >>> c = theory.bounds.optimal_c_exploit(arms=8)
    >>> round(c, 3), round(theory.bounds.centred_constant(8, c_exploit=c, gate=None), 1)
    (0.335, 8.1)
    """
    alpha = shape_of(alpha)
    stability = centred_constant(arms, alpha, 1.0, gate) - winner_constant(alpha)
    return math.sqrt(winner_constant(alpha) / stability)


def theorem_a(horizon: int, arms: int, alpha: float = 3.0, c_exploit: float = 2.0) -> float:
    r"""Theorem A: importance weighting against any adversary, $(c_x C_1 s_K^2 + G / c_x) \sqrt{KT}$.

    It holds for the paper's policy ($c_x = c$) and for two rates with $c \le c_x$, for any $\alpha > 1$ and rates that
    fall with the rounds. No term is left out. The theorem is ours, and so are theorems B to E.

    Args:
        horizon: the number of rounds $T$.
        arms: the number of arms $K$.
        alpha: the shape of the perturbations, above 1.
        c_exploit: the scale $c_x$ of the exploitation rate, above 0.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.theorem_a(horizon=10_000, arms=8)), round(theory.bounds.theorem1(10_000, 8))
    (7016, 111572)
    """
    return centred_constant(arms, alpha, c_exploit, None) * math.sqrt(size_of(horizon, arms))


def low_order_term(
    arms: int,
    alpha: float = 3.0,
    c_exploit: float = 0.5,
    gate: Gate = HALF,
    *,
    closed: bool = False,
) -> float:
    r"""$C_{\text{low}}$ of theorem B, which does not depend on the horizon: what the arms below the gate cost.

    The default sums its series, rounded up by less than 0.1 %. `closed=True` gives the closed bound of the proof.

    Args:
        arms: the number of arms $K$.
        alpha: the shape of the perturbations, above 1.
        c_exploit: the scale $c_x$ of the exploitation rate, above 0.
        gate: the gate of the estimator.
        closed: whether to return the closed bound of the proof instead of the sum of the series.

    >>> from decoupled_lab import theory
    >>> [round(theory.bounds.low_order_term(arms)) for arms in (2, 8, 64)]
    [95, 409, 1949]
    """
    arms, alpha, c = arms_of(arms), shape_of(alpha), scale_of(c_exploit)
    return _closed(arms, alpha, c, gate) if closed else _summed(arms, alpha, c, gate)


@lru_cache(maxsize=64)  # a search for a horizon needs it for each of many
def _summed(arms: int, alpha: float, c: float, gate: Gate) -> float:
    total, half = rank_sum(arms, alpha), 0.5 * curvature_constant(alpha) * gate.fall_factor(alpha)
    largest, power = square_sum(alpha), alpha + 1.0
    rate = first_rate(arms, alpha, c)

    def terms(rounds: Floats) -> Floats:
        eta = rate / np.sqrt(rounds)
        limit = np.minimum(1.0, eta * total / gate.delta)
        growth = np.expm1(power * np.log1p(eta))
        mass = np.minimum(largest, arms * limit**2)
        drift = np.minimum(3.0, 3.0 * curvature_constant(alpha) * eta * (1.0 + growth) * mass)
        found: Floats = drift + half * eta * growth * total * np.minimum(total, arms * limit)
        return found

    # The terms fall with the round, so a block costs at most its length times its first term. From `_LAST`
    # on, they fall like t^(-3/2).
    blocks = math.ceil(math.log(_LAST / _EXACT) / math.log(_GROWTH))
    edges = np.floor(_EXACT * _GROWTH ** np.arange(blocks + 1.0))
    found = float(terms(np.arange(1.0, _EXACT)).sum()) + float(np.diff(edges) @ terms(edges[:-1]))
    last = float(edges[-1])
    eta = rate / math.sqrt(last)
    growth = math.expm1(power * math.log1p(eta)) / eta
    drift = (
        3.0 * curvature_constant(alpha) * (1.0 + eta * growth) * rate**3 * arms * (total / gate.delta) ** 2
    )
    return found + (drift + half * growth * rate**3 * arms * total**2 / gate.delta) * 2.0 / math.sqrt(
        last - 1.0
    )


def _closed(arms: int, alpha: float, c: float, gate: Gate) -> float:
    rate, share, curvature = first_rate(arms, alpha, c), rank_share(arms, alpha), curvature_constant(alpha)
    factor = math.pow(1.0 + rate, alpha + 1.0)
    drift = 15.0 * curvature * factor * c**2 * share * math.sqrt(square_sum(alpha))
    reach = 2.0 + max(0.0, math.log(arms * rate / gate.delta))
    rest = curvature * gate.fall_factor(alpha) * (factor - 1.0) * c * share**2 * math.sqrt(arms) * reach
    return drift * math.pow(arms, 1.5 / alpha) / gate.delta + rest


def theorem_b(
    horizon: int, arms: int, alpha: float = 3.0, c_exploit: float = 0.5, gate: Gate = HALF
) -> float:
    r"""Theorem B: centred losses with a soft gate against any adversary.

    It is `centred_constant` times $\sqrt{KT}$, plus `low_order_term`.

    It holds for any $\alpha > 1$, any $c \le c_x$, any baseline $B_t \in [0, 1]$ that is known before the draw,
    and rates that fall with the rounds.

    Args:
        horizon: the number of rounds $T$.
        arms: the number of arms $K$.
        alpha: the shape of the perturbations, above 1.
        c_exploit: the scale $c_x$ of the exploitation rate, above 0.
        gate: the gate of the estimator.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.theorem_b(horizon=10_000, arms=8))
    5725
    """
    main = centred_constant(arms, alpha, c_exploit, gate) * math.sqrt(size_of(horizon, arms))
    return main + low_order_term(arms, alpha, c_exploit, gate)
