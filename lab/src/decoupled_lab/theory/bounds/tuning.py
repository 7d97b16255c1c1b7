"""The corollary, which does not depend on the horizon, and the scale c that minimises it."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from .adversarial import first_round_constant, penalty_constant
from .arguments import positive_gaps, scale_of, split_of
from .stochastic import early_rounds, gap_constant


class Tuned(NamedTuple):
    """The scale of the learning rate that minimises the corollary's leading constant, and that constant.

    Attributes:
        c: the scale of the learning rate.
        leading_constant: the constant at that scale.

    >>> from decoupled_lab import theory
    >>> theory.bounds.Tuned(c=1.0, leading_constant=2.0).c
    1.0
    """

    c: float
    leading_constant: float


def _coefficients(zeta: float, corrected: bool) -> tuple[float, float, float, float]:
    """The coefficients h_1 to h_4 of f(c) = (h_1 c + h_2 / c) (h_3 c + h_4 / c)^3."""
    h3 = 24.0 * math.e + 18.0 * (math.e - 1.0) / (1.0 - zeta) ** 4
    h4 = 1.5 * (math.sqrt(2.0) if corrected else 1.0)
    return 144.0 * math.e, 2.0 * penalty_constant(3.0), h3, h4


def leading_constant(c: float, zeta: float = 0.1, *, corrected: bool = False) -> float:
    r"""The factor of $\sqrt{(K / \Delta_{\min}) \sum_i 1 / \Delta_i}$ in corollary 3.3: $2 \sqrt{(32 e^4 / 27) f(c)}$.

    Equations (34) and (36). The paper calls its minimum $f(c)$. For `corrected`, see `self_bounding_constant`.

    Args:
        c: the scale of the learning rate, above 0.
        zeta: where lemma D.1 splits its cases, in (0, 1).
        corrected: whether to add the factor that the penalty on $D_t$ lacks; see `self_bounding_constant`.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.leading_constant(c=2.0))
    1530285
    """
    c = scale_of(c)
    h1, h2, h3, h4 = _coefficients(split_of(zeta), corrected)
    value = (h1 * c + h2 / c) * (h3 * c + h4 / c) ** 3
    return 2.0 * math.sqrt(32.0 * math.e**4 / 27.0 * value)


def optimal_c(zeta: float = 0.1, *, corrected: bool = False) -> Tuned:
    """The $c$ that minimises `leading_constant`, in closed form, as in appendix C ("The choice of c").

    Args:
        zeta: where lemma D.1 splits its cases, in (0, 1).
        corrected: whether to add the factor that the penalty on $D_t$ lacks; see `self_bounding_constant`.

    >>> from decoupled_lab import theory
    >>> c, constant = theory.bounds.optimal_c(zeta=0.1)
    >>> round(c, 6), round(constant, 3)
    (0.128017, 25799.36)
    >>> round(theory.bounds.optimal_c(zeta=0.1, corrected=True).leading_constant, 3)
    32753.539
    """
    h1, h2, h3, h4 = _coefficients(split_of(zeta), corrected)
    difference = h1 * h4 - h2 * h3
    square = (difference + math.sqrt(difference**2 + 16.0 * h1 * h2 * h3 * h4)) / (4.0 * h1 * h3)
    return Tuned(math.sqrt(square), leading_constant(math.sqrt(square), zeta, corrected=corrected))


def corollary(
    gaps: Sequence[float], c: float = 2.0, zeta: float = 0.1, *, corrected: bool = False
) -> float:
    r"""Corollary 3.3 ($\alpha = 3$, any horizon) with the constants of its proof; the statement hides them in an O.

    $$\mathrm{Reg}_T \le l \sqrt{\frac{K}{\Delta_{\min}} \sum_i \frac{1}{\Delta_i}} + g \frac{K}{\Delta_{\min}}
    + 3 \Gamma(2/3) \frac{\sqrt{K}}{c} + 2 n$$

    with $l$ = `leading_constant`, $g$ = `gap_constant` and $n$ = `early_rounds`, from equations (33) and (34). The last
    summand replaces $O(c^2 K^{-1/3})$; see `early_rounds`. At the $c$ that minimises the first constant, the second is larger.

    Args:
        gaps: the gaps of the other arms; one 0, for the best arm, is allowed.
        c: the scale of the learning rate, above 0.
        zeta: where lemma D.1 splits its cases, in (0, 1).
        corrected: whether to add the factor that the penalty on $D_t$ lacks; see `self_bounding_constant`.

    >>> from decoupled_lab import theory
    >>> f"{theory.bounds.corollary([0.125] * 7, c=0.128):.3g}"
    '7.03e+06'
    """
    others = positive_gaps(gaps)
    arms, smallest = len(others) + 1, float(others.min())
    root = math.sqrt(arms / smallest * float((1.0 / others).sum()))
    return (
        leading_constant(c, zeta, corrected=corrected) * root
        + gap_constant(3.0, c) * arms / smallest
        + 2.0 * first_round_constant(3.0) * math.sqrt(arms) / c
        + 2.0 * early_rounds(arms, 3.0, c, zeta)
    )
