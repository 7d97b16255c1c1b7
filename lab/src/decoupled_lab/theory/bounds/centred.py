"""Theorems A to C: any adversary, and the stochastically constrained regime."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from decoupled.base import Floats, whole_number
from decoupled.errors import ParameterError

from .constants import (
    HALF,
    LEAST_OFF_EVENT,
    Gate,
    arms_of,
    curvature_constant,
    first_rate,
    positive_gaps,
    rank_share,
    rank_sum,
    scale_of,
    shape_of,
    size_of,
    split_of,
    square_sum,
    winner_constant,
)
from .paper import Tuned, gap_constant, leading_constant

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
    stability = c * curvature_constant(alpha) * factor * rank_share(arms, alpha) ** 2
    return stability + winner_constant(alpha) / c


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
        return np.asarray(drift + half * eta * growth * total * np.minimum(total, arms * limit))

    # The terms fall with the round, so a block costs at most its length times its first term. From `_LAST`
    # on, they fall like t^(-3/2).
    blocks = math.ceil(math.log(_LAST / _EXACT) / math.log(_GROWTH))
    edges = np.floor(_EXACT * _GROWTH ** np.arange(blocks + 1.0))
    found = float(terms(np.arange(1.0, _EXACT)).sum()) + float(np.diff(edges) @ terms(edges[:-1]))
    last = float(edges[-1])
    eta = rate / math.sqrt(last)
    growth = math.expm1(power * math.log1p(eta)) / eta
    drift = 3.0 * curvature_constant(alpha) * (1.0 + eta * growth) * rate**3 * arms
    rest = (
        drift * (total / gate.delta) ** 2 + half * growth * rate**3 * arms * total**2 / gate.delta
    )
    return found + rest * 2.0 / math.sqrt(last - 1.0)


def _closed(arms: int, alpha: float, c: float, gate: Gate) -> float:
    rate, share, curvature = (
        first_rate(arms, alpha, c),
        rank_share(arms, alpha),
        curvature_constant(alpha),
    )
    factor = math.pow(1.0 + rate, alpha + 1.0)
    drift = 15.0 * curvature * factor * c**2 * share * math.sqrt(square_sum(alpha))
    reach = 2.0 + max(0.0, math.log(arms * rate / gate.delta))
    rest = (
        curvature
        * gate.fall_factor(alpha)
        * (factor - 1.0)
        * c
        * share**2
        * math.sqrt(arms)
        * reach
    )
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


class Constrained(NamedTuple):
    r"""The constants of theorem C, which bound the stability and the penalty of a round.

    Attributes:
        early: $A_0'$, the factor of $\sqrt{K / t}$ before `first_round`.
        any_state: $A_0$, the factor of $\sqrt{K / t}$ afterwards.
        on_event: $A_1$, the factor of $K^{1/(2 \alpha)} t^{-1/2} \sum_i (8 w_i)^{1 - 1/\alpha}$ on $D_t$.
        first_round: $t_1$, from which on a round may be late.

    >>> from decoupled_lab import theory
    >>> theory.bounds.constrained_constants(arms=8).first_round
    274
    """

    early: float
    any_state: float
    on_event: float
    first_round: int


def constrained_constants(
    arms: int,
    alpha: float = 3.0,
    c_exploit: float = 0.5,
    zeta: float = 0.1,
    gate: Gate = HALF,
) -> Constrained:
    r"""The constants $A_0'$, $A_0$, $A_1$ and $t_1$ of theorem C.

    Args:
        arms: the number of arms $K$.
        alpha: the shape of the perturbations, above 1 and at most 3.
        c_exploit: the scale $c_x$ of the exploitation rate, above 0.
        zeta: where the proof calls a round late, above 0 and at most the gate's a.
        gate: the gate of the estimator.

    >>> from decoupled_lab import theory
    >>> found = theory.bounds.constrained_constants(arms=8)
    >>> round(found.any_state, 1), round(found.on_event, 1)
    (21.5, 15.4)
    """
    arms, alpha, c = arms_of(arms), shape_of(alpha, 3.0 + 1e-12), scale_of(c_exploit)
    zeta = split_of(zeta)
    if zeta > gate.a:
        rule = f"must be at most the gate's a = {gate.a:g}, so that the leader is fully centred"
        raise ParameterError.of("zeta", zeta, rule, "the default is 0.1")
    rate, share, total = first_rate(arms, alpha, c), rank_share(arms, alpha), rank_sum(arms, alpha)
    curvature, factor = curvature_constant(alpha), gate.fall_factor(alpha)
    late = math.pow(1.0 + zeta, alpha + 1.0)

    def any_state(growth: float) -> float:
        drift = 3.0 * square_sum(alpha) * math.pow(arms, 1.0 / alpha - 1.0)
        stability = c * curvature * growth * (0.5 * factor * share**2 + drift)
        return stability + winner_constant(alpha) / c

    others = late * curvature * (0.5 * factor + 3.0 / total)
    best = 0.5 * alpha * math.pow(1.0 - zeta, -(alpha + 1.0))
    on_event = c * share * (others + best) + alpha / ((alpha - 1.0) * c)
    first = math.ceil((rate * (total + 1.0) / zeta) ** 2)
    early = any_state(math.pow(1.0 + rate, alpha + 1.0))
    return Constrained(early, any_state(late), on_event, max(first, 1))


def self_bounding_factor(alpha: float = 3.0) -> float:
    r"""The factor $k_\alpha = 2^\alpha 8^{\alpha - 1} ((\alpha - 1) / \alpha)^{\alpha - 1} / \alpha$ of theorem C.

    Args:
        alpha: the shape of the perturbations, above 1 and at most 3.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.self_bounding_factor(alpha=3.0), 1)
    75.9
    """
    alpha = shape_of(alpha, 3.0 + 1e-12)
    share = (alpha - 1.0) / alpha
    return math.pow(2.0, alpha) * math.pow(8.0, alpha - 1.0) * math.pow(share, alpha - 1.0) / alpha


def theorem_c(
    gaps: Sequence[float],
    horizon: int | None = None,
    alpha: float = 3.0,
    c_exploit: float = 0.5,
    zeta: float = 0.1,
    gate: Gate = HALF,
    *,
    switch: int | None = None,
) -> float:
    r"""Theorem C: regret of the policy of theorem B in the stochastically constrained regime.

    For every $T_0 \ge t_1$ and $\alpha \in (1, 3]$,

    $$\mathrm{Reg}_T \le 4 A_0' \sqrt{K t_1} + 4 A_0 \sqrt{K T_0} + \frac{4 A_0^2 K}{0.1967 \Delta_{\min}}
    + k_\alpha A_1^\alpha \sqrt{K} \sum_i \Delta_i^{1 - \alpha} \sum_{T_0 < t \le T} t^{-\alpha/2}.$$

    The bound does not depend on $T$ if $\alpha > 2$.

    Args:
        gaps: the gaps of the other arms, given the past; one 0, for the best arm, is allowed.
        horizon: the number of rounds, or None for any number, which needs an alpha above 2.
        alpha: the shape of the perturbations, above 1 and at most 3.
        c_exploit: the scale of the exploitation rate.
        zeta: where the proof calls a round late, above 0 and at most the gate's a.
        gate: the gate of the estimator.
        switch: $T_0$, from which the proof uses self-bounding; the best one if None.

    >>> from decoupled_lab import theory
    >>> f"{theory.bounds.theorem_c([0.125] * 7):.3g}", f"{theory.bounds.corollary([0.125] * 7, c=0.182):.3g}"
    ('1.44e+06', '6.18e+06')
    """
    others = positive_gaps(gaps)
    arms, smallest = len(others) + 1, float(others.min())
    early, any_state, on_event, first = constrained_constants(arms, alpha, c_exploit, zeta, gate)
    if horizon is None and alpha <= 2.0:
        rule = "must be given if alpha is at most 2, where the bound grows with it"
        raise ParameterError.of("horizon", None, rule, "give the number of rounds")
    end = (
        math.inf
        if horizon is None
        else whole_number("horizon", horizon, 1, "give the number of rounds")
    )
    slope = self_bounding_factor(alpha) * math.pow(on_event, alpha) * math.sqrt(arms)
    slope *= float((others ** (1.0 - alpha)).sum())

    def bound(start: float) -> float:
        return 4.0 * any_state * math.sqrt(arms * min(start, end)) + slope * _tail(
            start, end, alpha
        )

    if switch is None:
        # The derivative of 4 A0 sqrt(K T0) - slope T0^(1 - alpha/2) / (1 - alpha/2) vanishes here.
        best = (slope / (2.0 * any_state * math.sqrt(arms))) ** (2.0 / (alpha - 1.0))
        start = float(max(first, math.ceil(min(best, 1e300))))
    else:
        start = float(whole_number("switch", switch, first, f"t1 is {first}"))
    fixed = 4.0 * early * math.sqrt(arms * first) + 4.0 * any_state**2 * arms / (
        LEAST_OFF_EVENT * smallest
    )
    return fixed + bound(start)


def _tail(start: float, end: float, alpha: float) -> float:
    """The sum of t^(-alpha/2) over start < t <= end, or the integral that bounds it if it is long."""
    if end <= start:
        return 0.0
    if end - start <= 1e6:
        return float((np.arange(start + 1.0, end + 1.0) ** (-0.5 * alpha)).sum())
    power = 1.0 - 0.5 * alpha
    if power == 0.0:
        return math.log(end / start)
    last = 0.0 if math.isinf(end) else math.pow(end, power)
    return (last - math.pow(start, power)) / power


def constrained_bracket(
    arms: int, c_exploit: float = 0.5, zeta: float = 0.1, gate: Gate = HALF
) -> float:
    r"""The factor of $K / \Delta_{\min}$ in theorem C at $\alpha = 3$: $2 \sqrt{8 k_3 A_0 A_1^3} + 4 A_0^2 / 0.1967$.

    It is the bound at the best $T_0 = k_3 A_1^3 K / (2 A_0 \Delta_{\min}^2)$, up to $O(\sqrt{K t_1})$.

    Args:
        arms: the number of arms $K$.
        c_exploit: the scale of the exploitation rate, above 0.
        zeta: where the proof calls a round late, above 0 and at most the gate's a.
        gate: the gate of the estimator.

    >>> from decoupled_lab import theory
    >>> [round(theory.bounds.constrained_bracket(arms), -2) for arms in (8, 64)]
    [23300.0, 27900.0]
    """
    _, any_state, on_event, _ = constrained_constants(arms, 3.0, c_exploit, zeta, gate)
    root = 2.0 * math.sqrt(8.0 * self_bounding_factor(3.0) * any_state * on_event**3)
    return root + 4.0 * any_state**2 / LEAST_OFF_EVENT


def papers_bracket(zeta: float = 0.1) -> Tuned:
    r"""The factor of $K / \Delta_{\min}$ in the paper's corollary 3.3, the sum of its two terms, at the c that minimises it.

    Args:
        zeta: where lemma D.1 splits its cases, in (0, 1).

    >>> from decoupled_lab import theory
    >>> c, bracket = theory.bounds.papers_bracket()
    >>> round(c, 3), round(bracket)
    (0.182, 98384)
    """
    scales = np.geomspace(0.01, 10.0, 400)
    for _ in range(5):
        sums = [leading_constant(float(c), zeta) + gap_constant(3.0, float(c)) for c in scales]
        top = int(np.argmin(sums))
        scales = np.geomspace(scales[max(top - 1, 0)], scales[min(top + 1, len(scales) - 1)], 41)
    c = float(scales[20])
    return Tuned(c, leading_constant(c, zeta) + gap_constant(3.0, c))
