"""Theorem 3.2: regret in the stochastically constrained adversarial regime."""

import math
from collections.abc import Sequence

import numpy as np

from decoupled.base import number_in, whole_number

from .adversarial import first_round_constant, penalty_constant, stability_constant
from .arguments import positive_gaps, scale_of, shape_of, split_of

_OFF_EVENT = 0.5 * (1.0 - math.exp(-0.5))  # lemma D.3


def surrogate_sum_bound(arms: int, alpha: float = 3.0) -> float:
    r"""The bound on the sum of $q$ in any state, equation (17): $2 \alpha K^{1/2 - 1/(2 \alpha)} / (\alpha - 1)$.

    Args:
        arms: the number of arms $K$.
        alpha: the shape of the perturbations, above 1.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.surrogate_sum_bound(arms=8), 6)
    6.0
    """
    alpha, count = shape_of(alpha), whole_number("arms", arms, 1, "give the number of arms")
    return 2.0 * alpha / (alpha - 1.0) * math.pow(count, 0.5 - 0.5 / alpha)


def self_bounding_constant(
    arms: int, alpha: float = 3.0, c: float = 2.0, zeta: float = 0.1, *, corrected: bool = False
) -> float:
    r"""$Z_1(\alpha; \zeta)$ of equation (27), the factor of $w^{1 - 1/\alpha} / \sqrt{t}$ on the event $D_t$.

    The paper's last summand, $\alpha / (c (\alpha - 1))$, comes from a penalty whose factor $1 / \sqrt{t - 1}$ was
    written as $1 / \sqrt{t}$ in the display above equation (24). `corrected=True` corrects it with
    the factor $\sqrt{2}$ that the paper uses off $D_t$.

    Args:
        arms: the number of arms $K$.
        alpha: the shape of the perturbations, above 1.
        c: the scale of the learning rate, above 0.
        zeta: where lemma D.1 splits its cases, in (0, 1).
        corrected: whether to add the factor that the penalty on $D_t$ lacks.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.self_bounding_constant(arms=8), 1)
    1920.5
    """
    alpha, c, zeta = shape_of(alpha, 3.0 + 1e-12), scale_of(c), split_of(zeta)
    others = 4.0 * c * alpha * (alpha + 1.0) * math.e / (alpha - 1.0)
    best = 4.0 * c * alpha**2 * (math.e - 1.0) / ((alpha - 1.0) * math.pow(1.0 - zeta, alpha + 1.0))
    penalty = (math.sqrt(2.0) if corrected else 1.0) * alpha / (c * (alpha - 1.0))
    scale = math.pow(2.0 * math.e**2, 1.0 - 1.0 / alpha) * math.pow(arms, 0.5 / alpha)
    return scale * (others + best + penalty)


def gap_constant(alpha: float = 3.0, c: float = 2.0) -> float:
    r"""The factor of $K / \Delta_{\min}$, from equation (29).

    $$\frac{4}{1 - e^{-1/2}} \left(\frac{8 c e \alpha^2 (\alpha + 1)}{(\alpha - 1)^2} + \frac{\sqrt{2} C_\alpha}{c}\right)^2$$

    Args:
        alpha: the shape of the perturbations, above 1.
        c: the scale of the learning rate, above 0.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.gap_constant(alpha=3.0, c=2.0))
    1591838
    """
    rounds = stability_constant(alpha, c) + penalty_constant(alpha) * math.sqrt(2.0) / c
    return 2.0 * rounds**2 / _OFF_EVENT


def early_rounds(arms: int, alpha: float = 3.0, c: float = 2.0, zeta: float = 0.1) -> float:
    r"""The number of rounds after which case (ii) of lemma D.1 ends.

    $$\frac{4 \alpha^2 c^2 K^{1/\alpha}}{(\alpha - 1)^2 \zeta^2}$$

    It replaces the paper's $O(c^2 K^{2/\alpha - 1})$, equation (37), which relies on a tail bound for geometric
    resampling that does not hold here. Case (ii) needs $\sum q > \zeta / \eta_t$, each of its rounds adds at most 1,
    and equation (17) ends it. The correction and its constant are ours.

    Args:
        arms: the number of arms $K$.
        alpha: the shape of the perturbations, above 1.
        c: the scale of the learning rate, above 0.
        zeta: where lemma D.1 splits its cases, in (0, 1).

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.early_rounds(arms=8, c=0.128017), 2)
    29.5
    """
    alpha, c, zeta = shape_of(alpha), scale_of(c), split_of(zeta)
    rate = c * math.pow(arms, 1.0 / alpha - 0.5)  # eta_1
    return (surrogate_sum_bound(arms, alpha) * rate / zeta) ** 2


def theorem2(
    gaps: Sequence[float],
    horizon: int,
    alpha: float = 3.0,
    c: float = 2.0,
    zeta: float = 0.1,
    *,
    corrected: bool = False,
) -> float:
    r"""Theorem 3.2 with the constants of its proof (appendix C); the statement hides them in an O.

    $$\mathrm{Reg}_T \le \sum_{t, i} Z_2 \Delta_i^{1 - \alpha} t^{-\alpha/2} + g \frac{K}{\Delta_{\min}}
    + \frac{2 \alpha \Gamma(1 - 1/\alpha)}{\alpha - 1} \frac{\sqrt{K}}{c} + 2 n$$

    with $Z_2$ of equation (28), $g$ = `gap_constant`, $n$ = `early_rounds` and $\alpha \in (1, 3]$.

    Even the proof hides one constant, in $O(c^2 K^{2/\alpha - 1})$; `early_rounds` explains what replaces it.
    The proof assumes $\eta_{T+1} = \eta_T$, and so does this function.

    Args:
        gaps: the gaps of the other arms; one 0, for the best arm, is allowed.
        horizon: the number of rounds.
        alpha: the shape of the perturbations, above 1 and at most 3.
        c: the scale of the learning rate.
        zeta: where lemma D.1 splits its cases, in (0, 1).
        corrected: whether to add the factor that the penalty on $D_t$ lacks; see `self_bounding_constant`.

    >>> from decoupled_lab import theory
    >>> f"{theory.bounds.theorem2([0.125] * 7, horizon=10_000, c=0.128):.3g}"
    '1.9e+09'
    """
    others = positive_gaps(gaps)
    arms = len(others) + 1
    rounds = whole_number("horizon", horizon, 1, "give the number of rounds")
    first = self_bounding_constant(arms, alpha, c, zeta, corrected=corrected)
    share = (alpha - 1.0) / alpha
    second = math.pow(first, alpha) * (math.pow(share, alpha - 1.0) - math.pow(share, alpha))
    decay = float((np.arange(1, rounds + 1) ** (-0.5 * alpha)).sum())
    return (
        second * decay * float((others ** (1.0 - alpha)).sum())
        + gap_constant(alpha, c) * arms / float(others.min())
        + 2.0 * first_round_constant(alpha) * math.sqrt(arms) / c
        + 2.0 * early_rounds(arms, alpha, c, number_in("zeta", zeta, 0.0, 1.0))
    )
